/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/cq.h"

#include <assert.h>

bool mrd_cq_reserve(struct mrd_cq_impl *cq)
{
    if (!mrd_cq_room(cq))
        return false;
    cq->reserved++;
    return true;
}

void mrd_cq_unreserve(struct mrd_cq_impl *cq)
{
    assert(cq->reserved > 0);
    cq->reserved--;
}

static void set_armed(struct mrd_cq_notify *n, enum mrd_cq_arm armed)
{
    n->channel->news->num_armed -= n->armed != MRD_CQ_QUIET;
    n->channel->news->num_armed += armed != MRD_CQ_QUIET;
    n->armed = armed;
}

static void raise_event(struct mrd_cq_notify *n)
{
    set_armed(n, MRD_CQ_QUIET);
    n->raised++;
    if (mrd_list_empty(&n->node))
        mrd_list_append(&n->channel->cqs, &n->node);
    if (mrd_list_empty(&n->channel->news_node))
        mrd_list_append(&n->channel->news->channels, &n->channel->news_node);
}

void mrd_cq_push(struct mrd_cq_impl *cq, const struct mrd_wc *wc)
{
    mrd_cq_unreserve(cq);
    cq->ring[cq->tail++ & cq->mask] = *wc;
    if (cq->notify.armed == MRD_CQ_NEXT ||
        (cq->notify.armed == MRD_CQ_SOLICITED &&
         (wc->wc_flags & MRD_WC_SOLICITED || wc->status != MRD_WC_SUCCESS)))
        raise_event(&cq->notify);
}

int mrd_cq_take(struct mrd_cq_impl *cq, int n, struct mrd_wc *wc)
{
    int taken = 0;

    while (taken < n && cq->head != cq->tail)
        wc[taken++] = cq->ring[cq->head++ & cq->mask];
    return taken;
}

void mrd_cq_set_channel(struct mrd_cq_impl *cq, struct mrd_channel_impl *channel)
{
    cq->notify.channel = channel;
    mrd_list_init(&cq->notify.node);
    channel->users++;
}

void mrd_cq_leave_channel(struct mrd_cq_impl *cq)
{
    if (!cq->notify.channel)
        return;
    set_armed(&cq->notify, MRD_CQ_QUIET);
    mrd_list_remove(&cq->notify.node);
    cq->notify.channel->users--;
    cq->notify.channel = NULL;
}

void mrd_cq_arm(struct mrd_cq_impl *cq, bool solicited_only)
{
    /* Who asked for any completion gets it, though somebody asks for a solicited one later. */
    if (!solicited_only)
        set_armed(&cq->notify, MRD_CQ_NEXT);
    else if (cq->notify.armed == MRD_CQ_QUIET)
        set_armed(&cq->notify, MRD_CQ_SOLICITED);
}

struct mrd_cq_impl *mrd_channel_take(struct mrd_channel_impl *channel)
{
    struct mrd_node *n = mrd_list_pop(&channel->cqs);
    struct mrd_cq_impl *cq;

    if (!n)
        return NULL;
    cq = mrd_container_of(n, struct mrd_cq_impl, notify.node);
    cq->notify.raised--;
    cq->notify.taken++;
    if (cq->notify.raised)
        mrd_list_append(&channel->cqs, n);
    return cq;
}
