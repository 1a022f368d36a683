/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that were refused for want of a receive: they are told when receives are posted. */
#include "core/engine/message.h"

static uint64_t want_hash(const struct mrd_peer *peer, const struct mrd_qp_impl *qp)
{
    return mrd_flow_hash(peer->id, qp->pub.qp_num, 0);
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
    want->due = false;
    mrd_list_prepend(&qp->wants, &want->qp_node);
    mrd_list_append(&peer->wants, &want->peer_node);
    mrd_hash_add(&e->wants.by_key, &want->by_key, want_hash(peer, qp));
}

void mrd_want_free(struct mrd_engine *e, struct mrd_want *want)
{
    mrd_list_remove(&want->qp_node);
    mrd_list_remove(&want->peer_node);
    mrd_table_release(&e->wants, &want->by_key, want);
}

bool mrd_engine_says_ready(const struct mrd_engine *e)
{
    return e->turns.says_ready;
}

void mrd_want_meet(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&qp->wants))) {
        struct mrd_want *want = mrd_container_of(n, struct mrd_want, qp_node);
        struct mrd_peer *peer = want->peer;

        if (want->due)
            return;
        want->due = true;
        mrd_list_remove(n);
        mrd_list_append(&qp->wants, n);
        mrd_list_remove(&want->peer_node);
        mrd_list_append(&peer->readies, &want->peer_node);
        mrd_tx_ready(e, peer);
        e->turns.says_ready = true;
    }
}

void mrd_want_postpone(struct mrd_want *want)
{
    want->due = false;
    mrd_list_remove(&want->qp_node);
    mrd_list_prepend(&want->qp->wants, &want->qp_node);
    mrd_list_remove(&want->peer_node);
    mrd_list_append(&want->peer->wants, &want->peer_node);
}
