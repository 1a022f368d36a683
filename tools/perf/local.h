/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends in one command: two processes over loopback.
 */
#ifndef MRD_PERF_LOCAL_H
#define MRD_PERF_LOCAL_H

#include "tools/perf/options.h"

/* Fork a server and a client and wait for them: the process's exit code. */
int perf_local_run(const struct perf_options *options);
/* Pin the process to a core. 0, or -errno with a sentence. */
int perf_local_pin(int cpu, char *error);

#endif
