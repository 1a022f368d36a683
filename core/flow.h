/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered mode: the record of a flow (local QP, remote QP) on a peer entry, one for each direction
 * that is in use.
 *
 * MSN orders all messages of a flow, RSN those that consume receives. Sending: mrd_flow_tx_number()
 * at post, the messages hang on the flow until they complete, in order. Receiving: a message that
 * arrives early waits in a pending record; mrd_flow_rx_deliver() hands out what is in order.
 * Receives are bound by RSN together with all lower unbound ones or not at all, else a later
 * message would take the only receive that an earlier one needs. A message that will never come
 * (mrd_flow_rx_gone()) takes no record, so that this can always be noted: it may be what others
 * wait for.
 */
#ifndef MRD_CORE_FLOW_H
#define MRD_CORE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"
#include "core/limits.h"
#include "core/list.h"
#include "core/pool.h"
#include "mrd/mrd.h"

struct mrd_peer;
struct mrd_recv;
struct mrd_qp_impl;

struct mrd_flow_tx {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node;
    struct mrd_peer *peer; /* NULL: the space is over, and its messages are only read to the end */
    uint32_t qpn, remote_qpn;
    uint32_t msn_next, rsn_next; /* of the next message posted */
    /*
     * The remote queue pair is gone or in error, as a refusal of broken_msn told: what comes from
     * there on was not delivered, even if it was acked.
     */
    bool broken;
    uint32_t broken_msn;
    struct mrd_node msgs;      /* mrd_msg.flow_node, MSN order */
    struct mrd_node qp_node;   /* on its queue pair's list */
    struct mrd_node idle_node; /* without messages: among those that are idle, or to be closed */
    uint64_t idle_ns;          /* since when */
    bool closing;              /* a CLOSE is on its way, and says: */
    uint32_t close_msn;        /* no message below is owed */
    bool qp_gone;              /* the queue pair was destroyed */
};

enum mrd_pend_state {
    MRD_PEND_OPEN, /* some of it is here */
    MRD_PEND_FULL, /* all of it; waits for earlier messages */
};

/*
 * A message of a flow that is not delivered yet; or, on `reserved`, an RSN whose message did not
 * come yet.
 */
struct mrd_pend {
    struct mrd_node node;
    uint32_t msn, rsn;
    uint8_t state;
    bool complete; /* push `wc` when its turn comes */
    struct mrd_recv *recv;
    struct mrd_wc wc;
};

struct mrd_flow_rx {
    struct mrd_hash_node by_key;
    struct mrd_node peer_node;
    struct mrd_peer *peer;
    struct mrd_qp_impl *qp;
    uint32_t remote_qpn;
    uint32_t msn_next;        /* next to be delivered */
    uint32_t rsn_next;        /* all lower ones are bound or gone */
    struct mrd_node pending;  /* by MSN */
    struct mrd_node reserved; /* by RSN, below rsn_next */
    /*
     * MSNs and RSNs above the next ones for which nothing will come; their number, also as part of
     * the peer's.
     */
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
 * It begins with the oldest message that its sender still owes. *peer_gone: counts num_gone of all
 * flows of the peer.
 */
void mrd_flow_rx_init(struct mrd_flow_rx *flow, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                      uint32_t remote_qpn, uint32_t msn_next, uint32_t rsn_next,
                      uint32_t *peer_gone);

enum mrd_msn_verdict { MRD_MSN_OLD, MRD_MSN_NEW, MRD_MSN_BEYOND };
/* Is a message with this MSN (and RSN, if it consumes a receive) one that did not come yet? */
enum mrd_msn_verdict mrd_flow_rx_judge(const struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                                       uint32_t rsn);
/* Receives needed to bind through `rsn`. */
uint32_t mrd_flow_rx_needs(const struct mrd_flow_rx *flow, uint32_t rsn);
/* The next RSN gets `recv`, in a record from the caller. */
void mrd_flow_rx_reserve(struct mrd_flow_rx *flow, struct mrd_pend *pend, struct mrd_recv *recv);
/* The reserved record of an RSN, taken off the list; NULL: none. */
struct mrd_pend *mrd_flow_rx_claim(struct mrd_flow_rx *flow, uint32_t rsn);
/* Enter a pending record at its MSN. */
void mrd_flow_rx_insert(struct mrd_flow_rx *flow, struct mrd_pend *pend);
struct mrd_pend *mrd_flow_rx_find(const struct mrd_flow_rx *flow, uint32_t msn);
/* A new message that will never come. An RSN below rsn_next was bound: to be claimed before. */
void mrd_flow_rx_gone(struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn, uint32_t rsn);
/*
 * All RSNs below `rsn` are over: the records of those that were reserved, oldest last, into `done`.
 */
void mrd_flow_rx_pass_rsn(struct mrd_flow_rx *flow, uint32_t rsn, struct mrd_node *done);
/* Messages below `msn`, or the first that is here, were given up before any of them came. */
void mrd_flow_rx_skip(struct mrd_flow_rx *flow, uint32_t msn);
/* Nothing of it waits here: it may be forgotten. */
bool mrd_flow_rx_idle(const struct mrd_flow_rx *flow);
/* The next message in order if it is FULL, off the list; NULL: it is not. */
struct mrd_pend *mrd_flow_rx_deliver(struct mrd_flow_rx *flow);

#endif
