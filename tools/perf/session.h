/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client and a server do from their first word to their last, and both ends in one command.
 */
#ifndef MRD_PERF_SESSION_H
#define MRD_PERF_SESSION_H

#include "tools/perf/options.h"

/* Connect to host:port, run all that the options ask for, report it. The process's exit code. */
int perf_client_session(const struct perf_options *options, const char *host, uint16_t port);
/* Serve clients of the listening socket: one, or with --forever all. The process's exit code. */
int perf_server_session(const struct perf_options *options, int listener);

/* Fork a server and a client over loopback and wait for them: the process's exit code. */
int perf_local_run(const struct perf_options *options);
/* Pin the process to a core. 0, or -errno with a sentence. */
int perf_local_pin(int cpu, char *error);

#endif
