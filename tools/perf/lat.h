/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency: client and server send each other one message in turn.
 */
#ifndef MRD_PERF_LAT_H
#define MRD_PERF_LAT_H

#include "tools/perf/run.h"

/* 0 or -errno with run->error. */
int perf_lat_client(struct perf_run *run);
int perf_lat_server(struct perf_run *run);

#endif
