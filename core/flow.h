/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: the record of a flow (local QP, remote QP) with a peer, one for each direction
 * in use.
 *
 * MSN orders all messages of a flow, RSN those that consume receives. Sending: a message gets its
 * numbers when it is posted, and stays on the flow until it completes, in order. Receiving: a
 * message that arrives early waits in a pending record; mrd_flow_rx_deliver() hands out what is
 * in order.
 *
 * Binding a receive to an RSN first binds receives to all lower unbound ones, or binds none. Else a
 * later message could take the only receive that an earlier one needs. A message that will never
 * come (mrd_flow_rx_gone()) needs no record, so that it can always be noted: others may wait
 * for it.
 */
#ifndef MRD_CORE_FLOW_H
#define MRD_CORE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"
#include "core/last_bytes.h"
#include "core/limits.h"
#include "core/list.h"
#include "core/pool.h"
#include "mrd/mrd.h"

struct mrd_peer;
struct mrd_recv;
struct mrd_response;
struct mrd_qp_impl;

/* Messages of a flow, from `first` to the last one that was posted when something was learnt of them. */
struct mrd_flow_gap {
    bool is_known;
    uint32_t first, end; /* MSNs; `end` is the next one's */
};

struct mrd_flow_tx {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node;
    struct mrd_peer *peer; /* NULL: the space ended; the mover still reads the messages' buffers */
    uint32_t qpn, remote_qpn;
    uint32_t msn_next, rsn_next; /* numbers of the next message posted */
    /*
     * The remote queue pair was gone or in error. It refused the first of `broken`: these messages were not
     * delivered, even if they were acked. It refused the ABORT of the first of `doubted`: whether these
     * were delivered nobody will tell. What is posted later tells the target that nothing older is owed.
     */
    struct mrd_flow_gap broken, doubted;
    uint32_t proven_msn;     /* lower ones were delivered, as an answer tells, or have ended */
    uint32_t num_held;       /* messages that have no number yet; the record stays for them */
    struct mrd_node msgs;    /* mrd_msg.order.node, MSN order */
    struct mrd_node qp_node; /* on its queue pair's list `flows`, or `ended` */
    /* A flow without messages: on the send state's list `idle` or `closes`. */
    struct mrd_node idle_node;
    uint64_t idle_ns;   /* when it became idle */
    bool closing;       /* a CLOSE is in flight */
    uint32_t close_msn; /* the CLOSE says: no message below this MSN is owed */
    bool qp_gone;       /* the queue pair was destroyed */
    uint64_t start_ns;  /* nothing of it is sent earlier: see mrd_handle_await() */
};

enum mrd_reorder_state {
    MRD_REORDER_OPEN, /* some of its packets arrived */
    MRD_REORDER_FULL, /* complete; waits for earlier messages */
};

/*
 * On `pending`: a message that is not delivered yet. On `reserved`: a receive for an RSN whose
 * message did not come yet.
 */
struct mrd_reorder_entry {
    struct mrd_node node;
    uint32_t msn, rsn;
    uint8_t state;
    bool complete; /* push `wc` when it is delivered */
    struct mrd_recv *recv;
    struct mrd_response *response; /* of a request: what to do when it is delivered; or NULL */
    struct mrd_last_bytes last;    /* of a write: to be stored when it is delivered */
    struct mrd_wc wc;
};

struct mrd_flow_rx {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node;
    struct mrd_peer *peer;
    struct mrd_qp_impl *qp;
    uint32_t remote_qpn;
    uint32_t msn_next;        /* next to be delivered */
    uint32_t rsn_next;        /* all lower RSNs are bound to receives or gone */
    struct mrd_node pending;  /* by MSN */
    struct mrd_node reserved; /* by RSN, below rsn_next */
    /* MSNs and RSNs above the next ones that will never come; their number; the peer's sum. */
    uint64_t gone_msn[MRD_MSN_WINDOW / 64], gone_rsn[MRD_MSN_WINDOW / 64];
    uint32_t num_gone, *peer_gone;
};

static inline uint64_t mrd_flow_hash(uint32_t peer_id, uint32_t qpn, uint32_t remote_qpn)
{
    return mrd_hash_mix(mrd_hash_mix((uint64_t)peer_id << 32 | qpn) + remote_qpn);
}

void mrd_flow_tx_init(struct mrd_flow_tx *flow, struct mrd_peer *peer, uint32_t qpn,
                      uint32_t remote_qpn);
/*
 * msn_next, rsn_next: the oldest message that the sender still owes. *peer_gone: sum of num_gone
 * over the peer's flows, borrowed.
 */
void mrd_flow_rx_init(struct mrd_flow_rx *flow, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                      uint32_t remote_qpn, uint32_t msn_next, uint32_t rsn_next,
                      uint32_t *peer_gone);

enum mrd_msn_verdict { MRD_MSN_OLD, MRD_MSN_NEW, MRD_MSN_BEYOND };
/*
 * Judges the MSN of a message, and its RSN if it consumes a receive. OLD: it came or is gone;
 * BEYOND: it is MRD_MSN_WINDOW or more ahead.
 */
enum mrd_msn_verdict mrd_flow_rx_judge(const struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                                       uint32_t rsn);
/* Returns how many receives binding all RSNs up to `rsn` takes. */
uint32_t mrd_flow_rx_needs(const struct mrd_flow_rx *flow, uint32_t rsn);
/* Binds `recv` to the next RSN, in the caller's record `entry`. */
void mrd_flow_rx_reserve(struct mrd_flow_rx *flow, struct mrd_reorder_entry *entry,
                         struct mrd_recv *recv);
/* Takes the reserved record of an RSN off its list and returns it; NULL: none. */
struct mrd_reorder_entry *mrd_flow_rx_claim(struct mrd_flow_rx *flow, uint32_t rsn);
/* Inserts a pending record by its MSN. */
void mrd_flow_rx_insert(struct mrd_flow_rx *flow, struct mrd_reorder_entry *entry);
struct mrd_reorder_entry *mrd_flow_rx_find(const struct mrd_flow_rx *flow, uint32_t msn);
/* Notes that a new message will never come. If its RSN is below rsn_next, claim that first. */
void mrd_flow_rx_gone(struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn, uint32_t rsn);
/* RSNs below `rsn` will not come: moves their reserved records to `done`, oldest last. */
void mrd_flow_rx_pass_rsn(struct mrd_flow_rx *flow, uint32_t rsn, struct mrd_node *done);
/*
 * The sender gave up all messages below `msn`: moves msn_next on to `msn`, or to the first pending
 * one before it.
 */
void mrd_flow_rx_skip(struct mrd_flow_rx *flow, uint32_t msn);
/* Returns whether nothing of the flow waits here: its record may be released. */
bool mrd_flow_rx_idle(const struct mrd_flow_rx *flow);
/* Takes the next message in order off its list and returns it; NULL: it is not FULL. */
struct mrd_reorder_entry *mrd_flow_rx_deliver(struct mrd_flow_rx *flow);

#endif
