/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: is every pool full again, and every figure equal to what it is derived from? */
#include "core/engine/state.h"

static uint32_t length(const struct mrd_node *list)
{
    uint32_t num = 0;

    for (const struct mrd_node *n = list->next; n != list; n = n->next)
        num++;
    return num;
}

static uint32_t gone_in_flows(const struct mrd_peer *peer)
{
    uint32_t num = 0;

    for (const struct mrd_node *n = peer->flows_rx.next; n != &peer->flows_rx; n = n->next)
        num += mrd_container_of(n, const struct mrd_flow_rx, peer_node)->num_gone;
    return num;
}

const char *mrd_engine_audit(struct mrd_engine *e)
{
    uint32_t pages = 0, tx = 0, rx = 0, open = 0, entries = 0, refusals = 0, flows = 0,
             rnr_waiters = 0;
    uint32_t responses = 0, answers = 0;

    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *p = mrd_container_of(n, struct mrd_peer, node);

        rx += p->rx != NULL;
        entries += p->uses.reorder_entries;
        refusals += p->uses.refusals;
        flows += p->uses.flows;
        responses += p->uses.responses;
        open += p->rx ? p->rx->slots.num_open : 0;
        rnr_waiters += length(&p->rnr_waiters) + length(&p->readies);
        if (p->uses.gone != gone_in_flows(p))
            return "a peer's number of messages that never come differs from its flows'";
        if (!p->tx)
            continue;
        tx++;
        if (!mrd_sent_audit(&p->tx->sent, &p->tx->paths))
            return "bytes or packets in flight differ from the records";
        for (uint32_t i = 0; i < p->tx->sent.ring; i++)
            pages += p->tx->sent.page[i] != NULL;
    }
    if (pages != e->peers.pages.used)
        return "pages of records leaked";
    if (entries != e->reorder_entries.used || refusals != e->refusals.used ||
        flows != e->flows_rx.pool.used)
        return "records of pending messages, refusals or flows differ from the peers' counts";
    if (open != e->peers.slots.used)
        return "records of open messages leaked";
    if (rnr_waiters != e->rnr_waiters.pool.used)
        return "records of who is to be told of receives leaked";
    if (tx != e->peers.send_states.used || rx != e->peers.recv_states.used)
        return "send or receive states leaked";
    for (struct mrd_node *n = e->objects.qp_list.next; n != &e->objects.qp_list; n = n->next) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, node);

        answers += length(&qp->responses);
        if (length(&qp->free_msgs) + qp->live_msgs - length(&qp->responses) != qp->cap.max_send_wr)
            return "send slots leaked";
    }
    /* Of a peer that was given up, the mover may still read some. */
    if (answers != e->responses.used || responses > answers)
        return "records of responses leaked";
    return NULL;
}
