/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a received message; in ordered mode in its turn. */
#include "core/engine/rx_flow.h"

#include "core/engine/complete.h"
#include "core/engine/message.h"
#include "core/seq.h"

void mrd_rx_end_in_order(struct mrd_engine *e, const struct mrd_bound *b, const struct mrd_wc *wc)
{
    b->entry->state = MRD_REORDER_FULL;
    b->entry->complete = b->recv != NULL;
    b->entry->wc = *wc;
    if (mrd_list_empty(&b->entry->node))
        mrd_flow_rx_insert(b->flow, b->entry);
    mrd_rx_deliver(e, b->flow);
}

void mrd_rx_end_answer(struct mrd_engine *e, struct mrd_msg *request, const struct mrd_wc *wc)
{
    request->request.slot = NULL;
    if (wc->status == MRD_WC_SUCCESS)
        mrd_msg_end_request(e, request);
    else
        mrd_msg_cancel(e, request,
                       wc->status == MRD_WC_REM_ABORT_ERR ? MRD_WC_REM_OP_ERR : wc->status);
}

void mrd_rx_fail_slot(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_slot *slot,
                      enum mrd_slot_state state, enum mrd_wc_status status)
{
    struct mrd_bound b = slot->bound;
    struct mrd_wc wc = mrd_rx_wc(peer, slot->op, slot->flags, 0, slot->imm, slot->src_qpn);

    mrd_slots_end(&peer->rx->slots, slot, state);
    wc.status = status;
    mrd_rx_end_message(e, &b, &wc);
}

struct mrd_reorder_entry *mrd_rx_take_entry(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_reorder_entry *entry = mrd_pool_alloc(&e->reorder_entries);

    if (entry)
        peer->uses.reorder_entries++;
    return entry;
}

void mrd_rx_release_entry(struct mrd_engine *e, struct mrd_peer *peer,
                          struct mrd_reorder_entry *entry)
{
    peer->uses.reorder_entries--;
    mrd_pool_release(&e->reorder_entries, entry);
}

/* The turn of a request came, or with `failed` it never will: respond.c does what follows. */
static void end_wait(struct mrd_engine *e, struct mrd_response *response, bool failed)
{
    response->failed = failed;
    response->entry = NULL;
    response->msg.peer->uses.turns--;
    mrd_list_append(&e->turns.responses, &response->msg.node);
    mrd_tx_ready(e, response->msg.peer);
}

/* The turn of a write came: its end lands, unless its memory was deregistered meanwhile. */
static void land(struct mrd_engine *e, const struct mrd_flow_rx *flow,
                 struct mrd_reorder_entry *entry)
{
    const struct mrd_last_bytes *tail = &entry->last;

    if (!tail->len || entry->wc.status != MRD_WC_SUCCESS)
        return;
    if (mrd_mr_remote(&e->objects.mrs, flow->qp->pub.pd, tail->rkey, tail->addr, tail->len,
                      MRD_ACCESS_REMOTE_WRITE) == MRD_MR_OK)
        mrd_last_bytes_store(tail);
    else
        entry->wc.status = MRD_WC_LOC_PROT_ERR;
}

void mrd_rx_deliver(struct mrd_engine *e, struct mrd_flow_rx *flow)
{
    struct mrd_reorder_entry *entry;

    while ((entry = mrd_flow_rx_deliver(flow))) {
        if (entry->response)
            end_wait(e, entry->response, false);
        land(e, flow, entry);
        if (entry->complete)
            mrd_rx_complete(e, flow->qp, entry->recv, &entry->wc);
        mrd_rx_release_entry(e, flow->peer, entry);
    }
}

struct mrd_flow_rx *mrd_rx_find_flow(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     const struct mrd_qp_impl *qp, uint32_t remote_qpn)
{
    uint64_t hash = mrd_flow_hash(peer->id, qp->pub.qp_num, remote_qpn);

    for (struct mrd_hash_node *n = mrd_hash_first(&e->flows_rx.by_key, hash); n; n = n->next) {
        struct mrd_flow_rx *flow = mrd_container_of(n, struct mrd_flow_rx, by_key);

        if (flow->peer == peer && flow->qp == qp && flow->remote_qpn == remote_qpn)
            return flow;
    }
    return NULL;
}

void mrd_rx_fail_flow(struct mrd_flow_rx *flow, enum mrd_wc_status status)
{
    for (struct mrd_node *n = flow->pending.next; n != &flow->pending; n = n->next) {
        struct mrd_reorder_entry *entry = mrd_container_of(n, struct mrd_reorder_entry, node);

        if (entry->wc.status == MRD_WC_SUCCESS)
            entry->wc.status = status;
    }
}

void mrd_rx_free_flow(struct mrd_engine *e, struct mrd_flow_rx *flow, enum mrd_wc_status status)
{
    struct mrd_node *n;

    mrd_rx_fail_flow(flow, status);
    while ((n = mrd_list_pop(&flow->pending))) {
        struct mrd_reorder_entry *entry = mrd_container_of(n, struct mrd_reorder_entry, node);

        if (entry->complete)
            mrd_rx_complete(e, flow->qp, entry->recv, &entry->wc);
        if (entry->response)
            end_wait(e, entry->response, true);
        mrd_rx_release_entry(e, flow->peer, entry);
    }
    /* The newest first, because each goes back to the front of its queue. */
    while (!mrd_list_empty(&flow->reserved)) {
        struct mrd_reorder_entry *entry =
            mrd_container_of(flow->reserved.prev, struct mrd_reorder_entry, node);

        mrd_list_remove(&entry->node);
        mrd_rx_return_recv(e, flow->qp, entry->recv);
        mrd_rx_release_entry(e, flow->peer, entry);
    }
    flow->peer->uses.gone -= flow->num_gone;
    flow->peer->uses.flows--;
    mrd_list_remove(&flow->peer_node);
    mrd_table_release(&e->flows_rx, &flow->by_key, flow);
}

void mrd_rx_close_flow(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                       const struct mrd_wire_part *part)
{
    struct mrd_flow_rx *flow = mrd_rx_find_flow(e, peer, qp, part->src_qpn);

    /* An MSN beyond the CLOSE's: the sender posted again, and the flow goes on. */
    if (flow && (uint16_t)flow->msn_next == part->msn && mrd_flow_rx_idle(flow))
        mrd_rx_free_flow(e, flow, MRD_WC_SUCCESS);
}

void mrd_rx_skip_message(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                         uint32_t rsn)
{
    struct mrd_reorder_entry *entry =
        has_rsn && mrd_seq_before(rsn, flow->rsn_next) ? mrd_flow_rx_claim(flow, rsn) : NULL;

    if (entry) {
        mrd_rx_return_recv(e, flow->qp, entry->recv);
        mrd_rx_release_entry(e, flow->peer, entry);
    }
    mrd_flow_rx_gone(flow, msn, has_rsn, rsn);
    mrd_rx_deliver(e, flow);
}
