/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All transports, by name.
 */
#ifndef MRD_PERF_TRANSPORTS_H
#define MRD_PERF_TRANSPORTS_H

#include "tools/perf/transport.h"

/* NULL: no such transport. */
const struct perf_transport_ops *perf_transport_find(const char *name);
/* Is there a device as -d names it? 0, or -ENODEV with a sentence. */
int perf_transport_check_device(const struct perf_options *options, char *error);
/* "mrd-udp, mrd-ibv, rc, raw-ud, raw-udp, tcp" */
const char *perf_transport_names(void);

#endif
