/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole run as each end conducts it, from the request to the report.
 */
#ifndef MRD_PERF_ENDS_H
#define MRD_PERF_ENDS_H

#include "tools/perf/run.h"

/* The client's run: its report, or NULL with run->error. */
struct json_object *perf_run_client(struct perf_run *run);
/* The server's, as the client's `request` asks. 0, or -errno with run->error, which the client was told. */
int perf_run_server(struct perf_run *run, struct json_object *request);

#endif
