/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection matrices: which host sends how much to which, and when. The file format of uet-htsim:
 *
 *   Nodes N
 *   Connections N
 *   Triggers N                                    optional
 *   SRC->DST [id N] start T | trigger N size BYTES [msg [N]] [prio N] [send_done_trigger N]
 *       [recv_done_trigger N]
 *   trigger id N oneshot | barrier [count N]
 *
 * T is in picoseconds, an integer, as htsim reads it. Files that it writes have microseconds with a
 * fraction: of these only 0.000000 is clear, others are refused. Ids are above 0 and unique, but
 * that messages of one flow share its id; a trigger may be named above the line that defines it.
 * Priorities are not looked at, as in htsim_uec. Refused are htsim's multishot triggers and
 * failures, sizes of 0 (a flow without end), and what can never run: a trigger that no flow fires
 * or that waits for itself, and a count that is not that of the connections which fire it.
 *
 * simx_cm_read() or one of the generators; use; simx_cm_fini().
 */
#ifndef MRD_SIM_CM_H
#define MRD_SIM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SIMX_NODES_MAX = 1 << 16,
    SIMX_FLOWS_MAX = 1 << 20,
    SIMX_TRIGGERS_MAX = 1 << 20,
};

enum simx_trigger_kind {
    SIMX_ONESHOT, /* fires at the one event that names it */
    SIMX_BARRIER, /* fires at the last of them */
};

struct simx_trigger {
    uint32_t id; /* of the file: 1 .. INT32_MAX */
    enum simx_trigger_kind kind;
    /* Events that fire it: each flow's send_done is one, and its recv_done. ONESHOT: 1. */
    uint32_t count;
    unsigned line; /* of the file; 0: generated */
};

struct simx_flow {
    uint32_t src, dst; /* hosts, not the same */
    uint64_t id;       /* of the file, if it has one */
    bool has_id;
    bool triggered;    /* starts when `trigger` fires, otherwise at start_ps */
    uint64_t start_ps; /* picoseconds from the begin of the run */
    int32_t trigger;   /* index into triggers */
    int32_t send_done; /* index of the trigger of the sender's completion, or -1 */
    int32_t recv_done; /* index of the trigger of the arrival of the last byte, or -1 */
    uint64_t bytes;    /* at least 1 */
    unsigned line;     /* of the file; 0: generated */
    bool is_message;   /* one of several of a flow, which have its id */
};

struct simx_cm {
    uint32_t nodes;
    struct simx_flow *flows; /* in the order of the file */
    uint32_t num_flows;
    struct simx_trigger *triggers;
    uint32_t num_triggers;
};

/*
 * 0; -EINVAL with FILE:LINE: expected WHAT, found 'TEXT'; -errno: the file cannot be read, or
 * no memory.
 */
int simx_cm_read(struct simx_cm *cm, const char *path);
void simx_cm_fini(struct simx_cm *cm);

/* Which flows wait for which trigger: flows[first[t]] .. flows[first[t + 1] - 1] for trigger t. */
struct simx_waiting {
    uint32_t *flows, *first; /* owned, as the others */
    /* Flows in an order in which they can start: each behind all that fire its trigger. */
    uint32_t *order, num_order;
    uint32_t *lacks; /* events that a trigger can never get; 0: it fires */
};

/* Also of a matrix that can never run. False: no memory. */
bool simx_waiting_init(struct simx_waiting *waiting, const struct simx_cm *cm);
void simx_waiting_fini(struct simx_waiting *waiting);

/*
 * Generators. All start at time 0 and number flows and triggers from 1. 0; -EINVAL: no such pattern
 * for these arguments, or more than SIMX_FLOWS_MAX flows; -ENOMEM. `cm` is set on success only.
 */
/* Every host sends to one other and receives from one other, all of them one circle. */
int simx_cm_permutation(struct simx_cm *cm, uint32_t hosts, uint64_t bytes, uint64_t seed);
/* `senders` hosts, drawn from all but `target`, send to it at once. */
int simx_cm_incast(struct simx_cm *cm, uint32_t hosts, uint32_t target, uint32_t senders,
                   uint64_t bytes, uint64_t seed);
/* Hosts 0, 1, ... pairs - 1 send to `target`, target + 1, ... */
int simx_cm_pairs(struct simx_cm *cm, uint32_t hosts, uint32_t target, uint32_t pairs,
                  uint64_t bytes);
/* Host 0 sends `messages` in all to hosts 1 .. peers, round robin. */
int simx_cm_fan_out(struct simx_cm *cm, uint32_t hosts, uint32_t peers, uint32_t messages,
                    uint64_t bytes);
/*
 * Host 0 sends to the last one in a closed loop: message i starts when i - outstanding has ended.
 */
int simx_cm_loop(struct simx_cm *cm, uint32_t hosts, uint32_t messages, uint32_t outstanding,
                 uint64_t bytes);
/* Every host sends to `peers` others, evenly spread over all, and receives from as many. */
int simx_cm_spread(struct simx_cm *cm, uint32_t hosts, uint32_t peers, uint64_t bytes);
/* Host i sends to i+1, i+2, ... i-1; serial: each when the one before is done. */
int simx_cm_alltoall(struct simx_cm *cm, uint32_t hosts, uint64_t bytes, bool serial);
/*
 * The ring all-reduce of `bytes`, at least one a host: 2 (hosts - 1) steps. In step k host i sends
 * piece i - k of `hosts` pieces to i+1; it starts when step k - 1 of host i-1 has arrived.
 */
int simx_cm_ring_allreduce(struct simx_cm *cm, uint32_t hosts, uint64_t bytes);

#endif
