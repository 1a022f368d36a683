/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer costs in memory: mrd_perf state, and a column of a comparison.
 *
 * It is the memory for many peers less that for fewer, divided by the difference in their number.
 * What does not depend on the number cancels out. For user memory, two child processes make the two
 * numbers of peers, because tables may be sized for the peers in advance. Kernel memory is read
 * within one child, because the kernel hands freed memory to the next process.
 */
#ifndef MRD_PERF_STATE_H
#define MRD_PERF_STATE_H

#include <json-c/json.h>

#include "tools/perf/memory.h"
#include "tools/perf/options.h"

struct perf_transport_ops;

/* The state that a transport makes; nothing of it need be taken down. */
struct perf_state {
    const struct perf_options *options;
    const struct perf_transport_ops *ops;
    uint32_t peers;
    uint32_t fewer; /* perf_state_mark() when so many of them are there */
    uint32_t ends;  /* of each connection that are in here: 2 if it is both. Set by the transport */
    struct perf_memory before, mark, after;
    bool has_idle;           /* there was a difference between idle and active peers... */
    struct perf_memory idle; /* ...and this is with idle ones */
    char error[PERF_ERROR_BYTES];
};

/* Read the memory in use while there are `fewer` peers. 0, or -errno with s->error. */
static inline int perf_state_mark(struct perf_state *s)
{
    return perf_memory_read(&s->mark, s->error);
}

int perf_state_mrd(struct perf_state *s);

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
