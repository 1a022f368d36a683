/* SPDX-License-Identifier: BSD-2-Clause */
/* What engine_cost moves, and how much of it is counted. */
#ifndef MRD_PERF_WORKLOAD_H
#define MRD_PERF_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum { WORKLOAD_PEERS_MAX = 64 };

struct workload {
    const char *name;
    uint32_t message_bytes, payload_bytes; /* payload: of a packet */
    unsigned peers, outstanding;
    unsigned warmup, messages; /* messages not counted, and then counted */
    uint32_t drop_ppm;
    bool is_send;     /* sends, into receives that are posted anew; else writes */
    bool is_answered; /* by a send, and a message is over when the answer came */
};

/* All of them; a last one has no name. */
extern const struct workload workload_list[];
/* NULL: there is none of this name. */
const struct workload *workload_find(const char *name);

#endif
