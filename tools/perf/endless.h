/* SPDX-License-Identifier: BSD-2-Clause */
/* --run_infinitely: a run that a signal ends, and that tells each second what it did. */
#ifndef MRD_PERF_ENDLESS_H
#define MRD_PERF_ENDLESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_run;

/* From now on SIGINT and SIGTERM end the run, and it is reported like any other. */
void perf_endless_catch(void);
/* Did one of them come? */
bool perf_endless_ended(void);
/* From now on this process hands them on to `client`, or ignores them if that is 0. */
void perf_endless_hand_on(pid_t client);

/* If a second is over: print a line about it. `done` messages were sent, or exchanged, in all. */
void perf_endless_tell(struct perf_run *run, uint64_t now_ns, uint64_t done);

#endif
