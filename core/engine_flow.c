/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered mode at the target: records of flows, what is over, delivery in order. */
#include "core/engine_impl.h"
#include "core/seq.h"

struct mrd_pend *mrd_engine_pend_take(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_pend *pend = mrd_pool_alloc(&e->pend_pool);

    if (pend)
        peer->num_pends++;
    return pend;
}

void mrd_engine_pend_release(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_pend *pend)
{
    peer->num_pends--;
    mrd_pool_release(&e->pend_pool, pend);
}

void mrd_engine_flow_deliver(struct mrd_engine *e, struct mrd_flow_rx *flow)
{
    struct mrd_pend *pend;

    while ((pend = mrd_flow_rx_deliver(flow))) {
        if (pend->complete)
            mrd_engine_recv_done(e, flow->qp, pend->recv, &pend->wc);
        mrd_engine_pend_release(e, flow->peer, pend);
    }
}

static struct mrd_flow_rx *flow_find(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     const struct mrd_qp_impl *qp, uint32_t remote_qpn)
{
    uint64_t hash = mrd_flow_hash(peer->id, qp->pub.qp_num, remote_qpn);

    for (struct mrd_hash_node *n = mrd_hash_first(&e->flows_rx, hash); n; n = n->next) {
        struct mrd_flow_rx *flow = mrd_container_of(n, struct mrd_flow_rx, by_key);

        if (flow->peer == peer && flow->qp == qp && flow->remote_qpn == remote_qpn)
            return flow;
    }
    return NULL;
}

/* A peer alone may have max_flows; all together twice as many. */
static bool may_make(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint32_t used = e->flow_rx_pool.used, most = 2 * e->config.max_flows;

    return used < most && peer->num_flows_rx < most - used;
}

/*
 * Messages make records up to twice max_flows; an ABORT may go beyond, so that what it says is not forgotten. If even that
 * is used up, the next message tells how far its sender is.
 */
static struct mrd_flow_rx *flow_make(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, const struct mrd_wire_part *part)
{
    struct mrd_flow_rx *flow;

    if (part->op != MRD_OP_ABORT && !may_make(e, peer))
        mrd_engine_reclaim(e);
    if (part->op != MRD_OP_ABORT && !may_make(e, peer))
        return NULL;
    flow = mrd_pool_alloc(&e->flow_rx_pool);
    if (!flow)
        return NULL;
    peer->num_flows_rx++;
    mrd_flow_rx_init(flow, peer, qp, part->src_qpn, (uint16_t)(part->msn - part->msn_behind),
                     (uint16_t)(part->rsn - part->rsn_behind), &peer->num_gone);
    mrd_hash_add(&e->flows_rx, &flow->by_key,
                 mrd_flow_hash(peer->id, qp->pub.qp_num, part->src_qpn));
    mrd_list_append(&peer->flows_rx, &flow->peer_node);
    return flow;
}

/* The sender owes nothing older than (msn, rsn): what never came will not, and receives kept for it are free. */
static void catch_up(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn, uint32_t rsn)
{
    struct mrd_node done, *n;

    mrd_engine_flow_deliver(e, flow);
    while (mrd_seq_before(flow->msn_next, msn) && !mrd_flow_rx_find(flow, flow->msn_next)) {
        mrd_flow_rx_skip(flow, msn);
        mrd_engine_flow_deliver(e, flow);
    }
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(flow, rsn, &done);
    while ((n = mrd_list_pop(&done))) {
        struct mrd_pend *pend = mrd_container_of(n, struct mrd_pend, node);

        mrd_qp_recv_return(flow->qp, pend->recv);
        mrd_engine_pend_release(e, flow->peer, pend);
    }
}

/* The flow of an ordered part, caught up, and the part's numbers in full; NULL: no room for its record. */
struct mrd_flow_rx *mrd_engine_flow_of(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, const struct mrd_wire_part *part,
                                       uint32_t *msn, uint32_t *rsn)
{
    struct mrd_flow_rx *flow = flow_find(e, peer, qp, part->src_qpn);

    if (!flow)
        flow = flow_make(e, peer, qp, part);
    if (!flow)
        return NULL;
    /* Both ends are less than half of 16 bits apart: the window is MRD_MSN_WINDOW. */
    *msn = flow->msn_next + (uint32_t)(int32_t)(int16_t)(uint16_t)(part->msn - flow->msn_next);
    *rsn = flow->rsn_next + (uint32_t)(int32_t)(int16_t)(uint16_t)(part->rsn - flow->rsn_next);
    catch_up(e, flow, *msn - part->msn_behind, *rsn - part->rsn_behind);
    return flow;
}

void mrd_engine_flow_rx_free(struct mrd_engine *e, struct mrd_flow_rx *flow,
                             enum mrd_wc_status status)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&flow->pending))) {
        struct mrd_pend *pend = mrd_container_of(n, struct mrd_pend, node);

        if (pend->complete) { /* it is all here, but what comes before it never will be */
            if (pend->wc.status == MRD_WC_SUCCESS)
                pend->wc.status = status;
            mrd_engine_recv_done(e, flow->qp, pend->recv, &pend->wc);
        }
        mrd_engine_pend_release(e, flow->peer, pend);
    }
    /* Newest first: each goes to the front of its queue. */
    while (!mrd_list_empty(&flow->reserved)) {
        struct mrd_pend *pend = mrd_container_of(flow->reserved.prev, struct mrd_pend, node);

        mrd_list_remove(&pend->node);
        mrd_qp_recv_return(flow->qp, pend->recv);
        mrd_engine_pend_release(e, flow->peer, pend);
    }
    flow->peer->num_gone -= flow->num_gone;
    flow->peer->num_flows_rx--;
    mrd_hash_del(&e->flows_rx, &flow->by_key);
    mrd_list_remove(&flow->peer_node);
    mrd_pool_release(&e->flow_rx_pool, flow);
}

void mrd_engine_flow_closed(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                            const struct mrd_wire_part *part)
{
    struct mrd_flow_rx *flow = flow_find(e, peer, qp, part->src_qpn);

    /* A message that was posted since has come, or is about to: the flow goes on. */
    if (flow && (uint16_t)flow->msn_next == part->msn && mrd_flow_rx_idle(flow))
        mrd_engine_flow_rx_free(e, flow, MRD_WC_SUCCESS);
}

void mrd_engine_flow_gone(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn,
                          bool has_rsn, uint32_t rsn)
{
    struct mrd_pend *pend =
        has_rsn && mrd_seq_before(rsn, flow->rsn_next) ? mrd_flow_rx_claim(flow, rsn) : NULL;

    if (pend) {
        mrd_qp_recv_return(flow->qp, pend->recv);
        mrd_engine_pend_release(e, flow->peer, pend);
    }
    mrd_flow_rx_gone(flow, msn, has_rsn, rsn);
    mrd_engine_flow_deliver(e, flow);
}
