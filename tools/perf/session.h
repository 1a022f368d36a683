/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client and a server do from their first word to their last.
 */
#ifndef MRD_PERF_SESSION_H
#define MRD_PERF_SESSION_H

#include "tools/perf/options.h"

/* Connect to host:port, run all that the options ask for, report it. The process's exit code. */
int perf_client_session(const struct perf_options *options, const char *host, uint16_t port);
/* Serve clients of the listening socket: one, or with --forever all. The process's exit code. */
int perf_server_session(const struct perf_options *options, int listener);

#endif
