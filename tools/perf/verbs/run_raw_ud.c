#include "tools/perf/transport.h"
const struct perf_transport_ops perf_raw_ud_ops = {.name = "raw-ud", .raw = true, .rdma = true};
