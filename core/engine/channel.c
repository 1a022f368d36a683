/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: events of completion queues, for callers that sleep. */
#include <errno.h>

#include "core/engine/query.h"
#include "core/engine/state.h"

void mrd_engine_open_channel(struct mrd_engine *e, struct mrd_channel_impl *channel)
{
    mrd_list_init(&channel->cqs);
    mrd_list_init(&channel->news_node);
    channel->news = &e->turns.news;
    channel->users = 0;
    e->objects.num_channels++;
}

int mrd_engine_close_channel(struct mrd_engine *e, struct mrd_channel_impl *channel)
{
    if (channel->users)
        return mrd_error_keep(e, -EBUSY,
                              "the completion channel is still used by a completion queue");
    mrd_list_remove(&channel->news_node);
    e->objects.num_channels--;
    return 0;
}

void mrd_engine_set_channel(struct mrd_cq *cq, struct mrd_channel_impl *channel)
{
    mrd_cq_set_channel(mrd_cq_impl(cq), channel);
}

int mrd_engine_arm_cq(struct mrd_engine *e, struct mrd_cq *cq, bool solicited_only)
{
    if (!mrd_cq_impl(cq)->notify.channel)
        return mrd_error_keep(e, -EINVAL, "the completion queue has no completion channel");
    mrd_cq_arm(mrd_cq_impl(cq), solicited_only);
    return 0;
}

struct mrd_comp_channel *mrd_engine_cq_channel(const struct mrd_cq *cq)
{
    struct mrd_channel_impl *channel =
        ((const struct mrd_cq_impl *)(const void *)cq)->notify.channel;

    return channel ? &channel->pub : NULL;
}

bool mrd_engine_cq_armed(const struct mrd_cq *cq)
{
    return ((const struct mrd_cq_impl *)(const void *)cq)->notify.armed != MRD_CQ_QUIET;
}

bool mrd_engine_is_awaited(const struct mrd_engine *e)
{
    return e->turns.news.num_armed > 0;
}

struct mrd_channel_impl *mrd_engine_take_news(struct mrd_engine *e)
{
    struct mrd_node *n = mrd_list_pop(&e->turns.news.channels);

    return n ? mrd_container_of(n, struct mrd_channel_impl, news_node) : NULL;
}

struct mrd_cq *mrd_engine_take_cq_event(struct mrd_channel_impl *channel)
{
    struct mrd_cq_impl *cq = mrd_channel_take(channel);

    return cq ? &cq->pub : NULL;
}

int mrd_engine_ack_cq_events(struct mrd_engine *e, struct mrd_cq *cq, unsigned n)
{
    struct mrd_cq_notify *notify = &mrd_cq_impl(cq)->notify;

    if (n > notify->taken)
        return mrd_error_keep(e, -EINVAL, "more events are acked than were taken");
    notify->taken -= n;
    return 0;
}
