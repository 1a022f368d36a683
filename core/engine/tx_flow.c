/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered mode at the sender: the records of flows. Those that were idle for long are closed. */
#include "core/engine/tx_flow.h"

#include <assert.h>

struct mrd_flow_tx *mrd_tx_flow_open(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, uint32_t remote_qpn)
{
    uint32_t qpn = qp->pub.qp_num;
    uint64_t hash = mrd_flow_hash(peer->id, qpn, remote_qpn);
    struct mrd_flow_tx *flow;

    for (struct mrd_hash_node *n = mrd_hash_first(&e->flows_tx.by_key, hash); n; n = n->next) {
        flow = mrd_container_of(n, struct mrd_flow_tx, by_key);
        if (flow->peer == peer && flow->qpn == qpn && flow->remote_qpn == remote_qpn)
            return flow;
    }
    flow = mrd_table_alloc(&e->flows_tx);
    if (!flow)
        return NULL;
    mrd_flow_tx_init(flow, peer, qpn, remote_qpn);
    mrd_hash_add(&e->flows_tx.by_key, &flow->by_key, hash);
    mrd_list_append(&peer->flows_tx, &flow->peer_node);
    mrd_list_append(&qp->flows, &flow->qp_node);
    return flow;
}

struct mrd_flow_tx *mrd_tx_flow_first(const struct mrd_node *after, const struct mrd_node *list,
                                      uint32_t remote_qpn)
{
    for (struct mrd_node *n = after->next; n != list; n = n->next) {
        struct mrd_flow_tx *flow = mrd_container_of(n, struct mrd_flow_tx, qp_node);

        if (flow->remote_qpn == remote_qpn)
            return flow;
    }
    return NULL;
}

static void release(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    assert(mrd_list_empty(&flow->msgs));
    mrd_list_remove(&flow->peer_node);
    mrd_list_remove(&flow->idle_node);
    mrd_list_remove(&flow->qp_node);
    mrd_table_release(&e->flows_tx, &flow->by_key, flow);
}

void mrd_tx_flow_rest(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    struct mrd_send_state *tx;

    if (!mrd_list_empty(&flow->msgs) || flow->closing)
        return;
    if (!flow->peer) {
        mrd_pool_release(&e->flows_tx.pool, flow);
        return;
    }
    tx = flow->peer->tx;
    flow->idle_ns = e->clock.now_ns;
    mrd_list_remove(&flow->idle_node);
    mrd_list_append(flow->qp_gone ? &tx->closes : &tx->idle, &flow->idle_node);
    mrd_tx_ready(e, flow->peer);
}

void mrd_tx_flow_close_acked(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    flow->closing = false;
    if (!mrd_list_empty(&flow->msgs) || flow->msn_next != flow->close_msn)
        mrd_tx_flow_rest(e, flow);
    else if (!flow->num_held)
        release(e, flow);
}

void mrd_tx_flow_close_idle(struct mrd_engine *e, struct mrd_peer *peer, uint64_t idle_ns)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&peer->tx->idle))) {
        struct mrd_flow_tx *flow = mrd_container_of(n, struct mrd_flow_tx, idle_node);

        if (e->clock.now_ns - flow->idle_ns < idle_ns)
            return;
        mrd_list_remove(n);
        mrd_list_append(&peer->tx->closes, n);
        mrd_tx_ready(e, peer);
    }
}
