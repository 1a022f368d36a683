/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bandwidth: the client posts as fast as its window allows, the server takes what arrives.
 */
#ifndef MRD_PERF_BW_H
#define MRD_PERF_BW_H

#include "tools/perf/run.h"

/* Post all messages, and return. 0 or -errno with run->error, like the others. */
int perf_bw_client(struct perf_run *run);
/* Poll once while the server may still need retransmissions. */
int perf_bw_progress(struct perf_run *run);
/* Take messages until all have arrived. */
int perf_bw_server(struct perf_run *run);

#endif
