/* SPDX-License-Identifier: BSD-2-Clause */
/* --run_infinitely: a run that a signal ends, and that prints each second what it did. */
#ifndef MRD_PERF_INFINITE_H
#define MRD_PERF_INFINITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_run;

/* From now on SIGINT and SIGTERM end the run, and it is reported like any other. */
void perf_infinite_catch_signals(void);
/* Did one of them come? */
bool perf_infinite_is_over(void);
/* From now on this process forwards them to `client`, or ignores them if that is 0. */
void perf_infinite_forward_signals(pid_t client);

/* If a second is over, print a line about it. `done` messages were sent, or exchanged, in all. */
void perf_infinite_print(struct perf_run *run, uint64_t now_ns, uint64_t done);

#endif
