/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a received message, and its place in the order of its flow. */
#ifndef MRD_CORE_ENGINE_RX_FLOW_H
#define MRD_CORE_ENGINE_RX_FLOW_H

#include "core/engine/complete.h"

/* An ordered message ends: it completes when its turn comes. */
void mrd_rx_end_in_order(struct mrd_engine *e, const struct mrd_bound *b, const struct mrd_wc *wc);
/* A RESPONSE ends its request: with its status, or as one that the target cannot answer. */
void mrd_rx_end_answer(struct mrd_engine *e, struct mrd_msg *request, const struct mrd_wc *wc);

/*
 * A bound message ends: its receive completes, in ordered mode in its turn; or the request that it
 * answers.
 */
static inline void mrd_rx_end_message(struct mrd_engine *e, const struct mrd_bound *b,
                                      const struct mrd_wc *wc)
{
    if (b->request)
        mrd_rx_end_answer(e, b->request, wc);
    else if (b->flow)
        mrd_rx_end_in_order(e, b, wc);
    else if (b->recv)
        mrd_rx_complete(e, b->qp, b->recv, wc);
}

/*
 * A half-received message ends: its receive completes with `status`. `state`: of its slot from
 * now on.
 */
void mrd_rx_fail_slot(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_slot *slot,
                      enum mrd_slot_state state, enum mrd_wc_status status);
/* A record of a message that waits for its turn, counted for its peer; NULL: there is none. */
struct mrd_reorder_entry *mrd_rx_take_entry(struct mrd_engine *e, struct mrd_peer *peer);
void mrd_rx_release_entry(struct mrd_engine *e, struct mrd_peer *peer,
                          struct mrd_reorder_entry *entry);
/* Complete what is in order. */
void mrd_rx_deliver(struct mrd_engine *e, struct mrd_flow_rx *flow);
/* The flow from a peer's queue pair to one of ours; NULL: there is none. */
struct mrd_flow_rx *mrd_rx_find_flow(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     const struct mrd_qp_impl *qp, uint32_t remote_qpn);
/* A message of the flow will never be delivered: its places in MSN and RSN are free. */
void mrd_rx_skip_message(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                         uint32_t rsn);
/* The sender closes the flow: the record goes, unless it was used since. */
void mrd_rx_close_flow(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                       const struct mrd_wire_part *part);
/*
 * Earlier messages of the flow will never be here: those behind them that are here, and wait for
 * their turn, will complete with `status`.
 */
void mrd_rx_fail_flow(struct mrd_flow_rx *flow, enum mrd_wc_status status);
/*
 * The record goes. What waits there completes with `status`; reserved receives go back to
 * their queue.
 */
void mrd_rx_free_flow(struct mrd_engine *e, struct mrd_flow_rx *flow, enum mrd_wc_status status);

#endif
