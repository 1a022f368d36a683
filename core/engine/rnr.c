/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that were refused for want of a receive: they are told when receives are posted; or when
 * the receive completion queue has room again, if a shared receive queue has receives.
 */
#include "core/engine/rnr.h"

static uint64_t waiter_hash(const struct mrd_peer *peer, const struct mrd_qp_impl *qp)
{
    return mrd_flow_hash(peer->id, qp->pub.qp_num, 0);
}

/* The list of those who wait for what the queue pair lacks. */
static struct mrd_node *list_of(const struct mrd_qp_impl *qp)
{
    return mrd_qp_receives(qp) < qp->recvq->num_posted ? &mrd_cq_impl(qp->pub.recv_cq)->rnr_waiters
                                                       : &qp->recvq->rnr_waiters;
}

void mrd_rnr_add(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp)
{
    struct mrd_rnr_waiter *waiter;

    for (struct mrd_hash_node *n = mrd_hash_first(&e->rnr_waiters.by_key, waiter_hash(peer, qp)); n;
         n = n->next) {
        waiter = mrd_container_of(n, struct mrd_rnr_waiter, by_key);
        if (waiter->peer == peer && waiter->qp == qp)
            return;
    }
    waiter = mrd_table_alloc(&e->rnr_waiters);
    if (!waiter)
        return;
    waiter->peer = peer;
    waiter->qp = qp;
    waiter->receives = 0;
    waiter->admitted = false;
    mrd_list_init(&waiter->queue_node);
    if (qp->pub.state != MRD_QPS_INIT) /* else receives are of no use yet: mrd_rnr_admit() */
        mrd_list_append(list_of(qp), &waiter->queue_node);
    mrd_list_append(&qp->rnr_waiters, &waiter->qp_node);
    mrd_list_append(&peer->rnr_waiters, &waiter->peer_node);
    mrd_hash_add(&e->rnr_waiters.by_key, &waiter->by_key, waiter_hash(peer, qp));
}

void mrd_rnr_free(struct mrd_engine *e, struct mrd_rnr_waiter *waiter)
{
    mrd_list_remove(&waiter->queue_node);
    mrd_list_remove(&waiter->qp_node);
    mrd_list_remove(&waiter->peer_node);
    mrd_table_release(&e->rnr_waiters, &waiter->by_key, waiter);
}

void mrd_rnr_forget_qp(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&qp->rnr_waiters)))
        mrd_rnr_free(e, mrd_container_of(n, struct mrd_rnr_waiter, qp_node));
}

bool mrd_engine_says_ready(const struct mrd_engine *e)
{
    return e->turns.says_ready;
}

/* The peer of the waiter is to be told of so many receives more. */
static void tell(struct mrd_engine *e, struct mrd_rnr_waiter *waiter, uint32_t receives)
{
    waiter->receives += receives;
    if (waiter->receives > receives)
        return;
    mrd_list_remove(&waiter->peer_node);
    mrd_list_append(&waiter->peer->readies, &waiter->peer_node);
    mrd_tx_ready(e, waiter->peer);
    e->turns.says_ready = true;
}

void mrd_rnr_notify(struct mrd_engine *e, struct mrd_node *waiters, uint32_t num)
{
    while (num-- && !mrd_list_empty(waiters)) {
        struct mrd_node *n = mrd_list_pop(waiters);

        mrd_list_append(waiters, n);
        tell(e, mrd_container_of(n, struct mrd_rnr_waiter, queue_node), 1);
    }
}

void mrd_rnr_notify_all(struct mrd_engine *e, struct mrd_node *waiters)
{
    for (struct mrd_node *n = waiters->next; n != waiters; n = n->next)
        tell(e, mrd_container_of(n, struct mrd_rnr_waiter, queue_node), 1);
}

void mrd_rnr_admit(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    uint32_t num = 0, share;

    for (struct mrd_node *n = qp->rnr_waiters.next; n != &qp->rnr_waiters; n = n->next)
        num++;
    share = num ? mrd_qp_receives(qp) / num : 0;
    for (struct mrd_node *n = qp->rnr_waiters.next; n != &qp->rnr_waiters; n = n->next) {
        struct mrd_rnr_waiter *waiter = mrd_container_of(n, struct mrd_rnr_waiter, qp_node);

        waiter->admitted = true;
        mrd_list_append(list_of(qp), &waiter->queue_node);
        tell(e, waiter, share ? share : 1);
    }
}

void mrd_rnr_notified(struct mrd_engine *e, uint32_t qpn)
{
    struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, qpn);

    if (!qp || !mrd_qp_receives(qp))
        return;
    mrd_rnr_notify(e, &mrd_cq_impl(qp->pub.recv_cq)->rnr_waiters, 1);
    mrd_rnr_notify(e, &qp->recvq->rnr_waiters, 1);
}

void mrd_rnr_postpone(struct mrd_rnr_waiter *waiter)
{
    mrd_list_remove(&waiter->queue_node);
    mrd_list_prepend(list_of(waiter->qp), &waiter->queue_node);
    mrd_list_remove(&waiter->peer_node);
    mrd_list_append(&waiter->peer->rnr_waiters, &waiter->peer_node);
    waiter->receives = 0;
}

void mrd_rnr_unreserve(struct mrd_engine *e, struct mrd_cq_impl *cq)
{
    mrd_cq_unreserve(cq);
    mrd_rnr_notify(e, &cq->rnr_waiters, 1);
}
