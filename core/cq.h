/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: rings of completions. Posting work reserves room, so a ring cannot overflow.
 *
 * mrd_cq_reserve() at post, or when a message takes a shared receive; then exactly one of mrd_cq_push() and mrd_cq_unreserve() for each;
 * mrd_cq_take() polls.
 *
 * Completion channels: mrd_cq_arm() asks for one event, which the push of a completion raises.
 * mrd_channel_take() takes it; mrd_cq_notify.taken counts those that were not acked.
 */
#ifndef MRD_CORE_CQ_H
#define MRD_CORE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"
#include "mrd/mrd.h"

/* What the channels of an engine share. */
struct mrd_channel_news {
    struct mrd_node channels; /* mrd_channel_impl.news_node: with new events */
    uint32_t num_armed;       /* completion queues that somebody waits for */
};

/* Where completion queues tell that they have completions. The caller of the engine owns it. */
struct mrd_channel_impl {
    struct mrd_comp_channel pub; /* first: the user's pointer */
    struct mrd_node cqs;         /* mrd_cq_notify.node: with events that nobody took, in turn */
    struct mrd_node news_node;   /* on news->channels: until mrd_engine_take_news() */
    struct mrd_channel_news *news;
    uint32_t users; /* completion queues */
};

enum mrd_cq_arm {
    MRD_CQ_QUIET = 0,
    MRD_CQ_SOLICITED, /* the next solicited or failed completion raises an event, */
    MRD_CQ_NEXT,      /* or the next one of any kind */
};

/* The events of a completion queue. */
struct mrd_cq_notify {
    struct mrd_channel_impl *channel; /* NULL: none */
    struct mrd_node node;             /* on channel->cqs */
    enum mrd_cq_arm armed;
    uint32_t raised; /* events that nobody took */
    uint32_t taken;  /* events taken, and not given back */
};

struct mrd_cq_impl {
    struct mrd_cq pub; /* first: the user's pointer */
    struct mrd_wc *ring;
    uint32_t mask;               /* ring size - 1; the size is at least pub.cqe */
    uint32_t head, tail;         /* free-running; head: next to poll */
    uint32_t reserved;           /* places reserved for posted work */
    uint32_t users;              /* queue pairs that use it */
    struct mrd_node rnr_waiters; /* mrd_rnr_waiter.queue_node: peers refused for want of room */
    struct mrd_cq_notify notify;
};

static inline struct mrd_cq_impl *mrd_cq_impl(struct mrd_cq *cq)
{
    return (struct mrd_cq_impl *)(void *)cq;
}

/* Returns how many places can be reserved. */
static inline uint32_t mrd_cq_room(const struct mrd_cq_impl *cq)
{
    return (uint32_t)cq->pub.cqe - cq->reserved - (cq->tail - cq->head);
}

/* Reserves a place. false: the queue is full. */
bool mrd_cq_reserve(struct mrd_cq_impl *cq);
void mrd_cq_unreserve(struct mrd_cq_impl *cq);
void mrd_cq_push(struct mrd_cq_impl *cq, const struct mrd_wc *wc);
int mrd_cq_take(struct mrd_cq_impl *cq, int n, struct mrd_wc *wc);

/* The queue's events go to this channel. */
void mrd_cq_set_channel(struct mrd_cq_impl *cq, struct mrd_channel_impl *channel);
/* Leaves its channel, and takes the events along that nobody took. */
void mrd_cq_leave_channel(struct mrd_cq_impl *cq);
/* The next completion, or solicited completion, raises an event. It has a channel. */
void mrd_cq_arm(struct mrd_cq_impl *cq, bool solicited_only);
/* Takes the oldest event of a channel, which is its queue's to be acked; NULL: there is none. */
struct mrd_cq_impl *mrd_channel_take(struct mrd_channel_impl *channel);

#endif
