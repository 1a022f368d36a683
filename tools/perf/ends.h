/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run as each end performs it, from the request to the report.
 */
#ifndef MRD_PERF_ENDS_H
#define MRD_PERF_ENDS_H

#include "tools/perf/run.h"

/* Run the client. Returns its report, or NULL with run->error. */
struct json_object *perf_run_client(struct perf_run *run);
/*
 * Run the server as the client's `request` says. 0, or -errno with run->error, which the client was
 * told.
 */
int perf_run_server(struct perf_run *run, struct json_object *request);

#endif
