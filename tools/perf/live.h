/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one line on a terminal that tells how a run longer than a second is getting on.
 */
#ifndef MRD_PERF_LIVE_H
#define MRD_PERF_LIVE_H

#include "tools/perf/run.h"

/* The client has sent (latency: exchanged) `done` messages. Writes only if stderr is a terminal. */
void perf_live_update(struct perf_run *run, uint64_t now_ns, uint64_t done);
/* Take the line away. */
void perf_live_clear(struct perf_run *run);

#endif
