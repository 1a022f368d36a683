/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that were refused for want of a receive: they are told when receives are posted; or when
 * the receive completion queue has room again, if a shared receive queue has receives.
 */
#include "core/engine/want.h"

static uint64_t want_hash(const struct mrd_peer *peer, const struct mrd_qp_impl *qp)
{
    return mrd_flow_hash(peer->id, qp->pub.qp_num, 0);
}

/* The list of those who wait for what the queue pair lacks. */
static struct mrd_node *list_of(const struct mrd_qp_impl *qp)
{
    return mrd_qp_receives(qp) < qp->recvq->num_posted ? &mrd_cq_impl(qp->pub.recv_cq)->wants
                                                       : &qp->recvq->wants;
}

void mrd_want_add(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp)
{
    struct mrd_want *want;

    for (struct mrd_hash_node *n = mrd_hash_first(&e->wants.by_key, want_hash(peer, qp)); n;
         n = n->next) {
        want = mrd_container_of(n, struct mrd_want, by_key);
        if (want->peer == peer && want->qp == qp)
            return;
    }
    want = mrd_table_alloc(&e->wants);
    if (!want)
        return;
    want->peer = peer;
    want->qp = qp;
    want->receives = 0;
    want->admitted = false;
    mrd_list_init(&want->queue_node);
    if (qp->pub.state != MRD_QPS_INIT) /* else receives are of no use yet: mrd_want_admit() */
        mrd_list_append(list_of(qp), &want->queue_node);
    mrd_list_append(&qp->wants, &want->qp_node);
    mrd_list_append(&peer->wants, &want->peer_node);
    mrd_hash_add(&e->wants.by_key, &want->by_key, want_hash(peer, qp));
}

void mrd_want_free(struct mrd_engine *e, struct mrd_want *want)
{
    mrd_list_remove(&want->queue_node);
    mrd_list_remove(&want->qp_node);
    mrd_list_remove(&want->peer_node);
    mrd_table_release(&e->wants, &want->by_key, want);
}

void mrd_want_forget_qp(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&qp->wants)))
        mrd_want_free(e, mrd_container_of(n, struct mrd_want, qp_node));
}

bool mrd_engine_says_ready(const struct mrd_engine *e)
{
    return e->turns.says_ready;
}

/* The peer of the want is to be told of so many receives more. */
static void tell(struct mrd_engine *e, struct mrd_want *want, uint32_t receives)
{
    want->receives += receives;
    if (want->receives > receives)
        return;
    mrd_list_remove(&want->peer_node);
    mrd_list_append(&want->peer->readies, &want->peer_node);
    mrd_tx_ready(e, want->peer);
    e->turns.says_ready = true;
}

void mrd_want_meet(struct mrd_engine *e, struct mrd_node *wants, uint32_t num)
{
    while (num-- && !mrd_list_empty(wants)) {
        struct mrd_node *n = mrd_list_pop(wants);

        mrd_list_append(wants, n);
        tell(e, mrd_container_of(n, struct mrd_want, queue_node), 1);
    }
}

void mrd_want_meet_each(struct mrd_engine *e, struct mrd_node *wants)
{
    for (struct mrd_node *n = wants->next; n != wants; n = n->next)
        tell(e, mrd_container_of(n, struct mrd_want, queue_node), 1);
}

void mrd_want_admit(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    uint32_t num = 0, share;

    for (struct mrd_node *n = qp->wants.next; n != &qp->wants; n = n->next)
        num++;
    share = num ? mrd_qp_receives(qp) / num : 0;
    for (struct mrd_node *n = qp->wants.next; n != &qp->wants; n = n->next) {
        struct mrd_want *want = mrd_container_of(n, struct mrd_want, qp_node);

        want->admitted = true;
        mrd_list_append(list_of(qp), &want->queue_node);
        tell(e, want, share ? share : 1);
    }
}

void mrd_want_told(struct mrd_engine *e, uint32_t qpn)
{
    struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, qpn);

    if (!qp || !mrd_qp_receives(qp))
        return;
    mrd_want_meet(e, &mrd_cq_impl(qp->pub.recv_cq)->wants, 1);
    mrd_want_meet(e, &qp->recvq->wants, 1);
}

void mrd_want_postpone(struct mrd_want *want)
{
    mrd_list_remove(&want->queue_node);
    mrd_list_prepend(list_of(want->qp), &want->queue_node);
    mrd_list_remove(&want->peer_node);
    mrd_list_append(&want->peer->wants, &want->peer_node);
    want->receives = 0;
}

void mrd_want_unreserve(struct mrd_engine *e, struct mrd_cq_impl *cq)
{
    mrd_cq_unreserve(cq);
    mrd_want_meet(e, &cq->wants, 1);
}
