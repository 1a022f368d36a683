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

#include "transport/context.h"

/*
 * After calls of the engine: makes the descriptors of channels with new events readable, and sets
 * the alarm if work is due before it would go off.
 */
void mrd_channels_check(struct mrd_context_impl *c);
/* Does whoever sleeps on this queue's channel hear of events only? */
bool mrd_channel_has_events_only(const struct mrd_cq *cq);
/* Events were taken, or went with their queue: if none is left, the descriptor is unreadable. */
void mrd_channel_quiet(struct mrd_comp_channel *channel);
/* For tests: what tells of events alone. */
int mrd_channel_event_fd(struct mrd_comp_channel *channel);
/* The context closes. */
void mrd_channels_fini(struct mrd_context_impl *c);

#endif
