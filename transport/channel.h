/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: descriptors that tell of completions.
 *
 * A channel's descriptor is an epoll set. It holds an eventfd, which is readable while the engine
 * has events of the channel; the mover's descriptor; and an alarm for the engine's deadline. So
 * whoever sleeps on the channel wakes up when there is work, and mrd_get_cq_event() does it, without
 * a detour over the progress thread. That steps in if nobody comes (thread.h). A channel of events
 * only has the eventfd alone; its sleepers leave the loop to the thread.
 */
#ifndef MRD_TRANSPORT_CHANNEL_H
#define MRD_TRANSPORT_CHANNEL_H

#include <stdatomic.h>

#include "core/cq.h"
#include "transport/context.h"

/* What mrd_create_comp_channel() makes. */
struct mrd_channel {
    struct mrd_channel_impl impl; /* first: the user's and the engine's pointer */
    int event_fd;                 /* -1 in virtual time */
    bool events_only;             /* who sleeps on it leaves progress to the thread */
    atomic_uint waiting;          /* threads in mrd_get_cq_event() that found no event */
};

static inline struct mrd_channel *mrd_channel_of(struct mrd_comp_channel *channel)
{
    return (struct mrd_channel *)(void *)channel;
}

/*
 * Opens a channel's descriptors, which are -1 before. 0, or -errno with mrd_error_set(): close it
 * after that, too.
 */
int mrd_channel_open(struct mrd_context_impl *c, struct mrd_channel *ch);
void mrd_channel_close(struct mrd_channel *ch);
/*
 * After calls of the engine: makes the descriptors of channels with new events readable, and sets
 * the alarm if work is due before it would go off.
 */
void mrd_channels_check(struct mrd_context_impl *c);
/* Sets the alarm; UINT64_MAX: it never goes off. */
void mrd_channels_set_alarm(struct mrd_context_impl *c, uint64_t deadline_ns);
/* Does whoever sleeps on this queue's channel hear of events only? */
bool mrd_channel_has_events_only(const struct mrd_cq *cq);
/* Events were taken, or went with their queue: if none is left, the descriptor is unreadable. */
void mrd_channel_quiet(struct mrd_comp_channel *channel);
/* For tests: what tells of events alone. */
int mrd_channel_event_fd(struct mrd_comp_channel *channel);
/* The context closes. */
void mrd_channels_fini(struct mrd_context_impl *c);

#endif
