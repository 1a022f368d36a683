/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer costs in memory: mrd_perf state, and a column of a comparison.
 *
 * It is the memory for many peers less that for fewer, divided by how many more they are: what is there with any
 * number of peers cancels out. For user memory two children make the state of the one and the other number, since
 * tables may be sized for the peers before the first of them comes. Kernel memory is read within one child, as the
 * kernel gives what an earlier one freed to the next. Nothing is left behind in the process that measures.
 */
#ifndef MRD_PERF_STATE_H
#define MRD_PERF_STATE_H

#include <json-c/json.h>

#include "tools/perf/options.h"

/* Bytes a peer; NAN where it does not apply. */
struct perf_state_figures {
    double user, kernel, idle;
};

/* 0, or -errno with a sentence; -ENOTSUP: the transport has no state. */
int perf_state_measure(const struct perf_options *options, const char *transport, uint32_t peers,
                       struct perf_state_figures *figures, char *error);
/* Add peer_bytes, peer_bytes_user, peer_bytes_kernel and peer_bytes_idle. */
void perf_state_to_json(const struct perf_state_figures *figures, struct json_object *object);

/* mrd_perf state: the exit code. */
int perf_state_run(const struct perf_options *options);

#endif
