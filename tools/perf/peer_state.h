/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a transport makes the state of many peers, so that state.c can measure what one costs.
 */
#ifndef MRD_PERF_PEER_STATE_H
#define MRD_PERF_PEER_STATE_H

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
    struct perf_memory mark;
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
int perf_state_tcp(struct perf_state *s);

#endif
