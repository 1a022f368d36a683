/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress of endpoints: completions, messages, events.
 *
 * What ends an operation puts it on mrd_ofi_turn.ended, and so does an answer that it goes on with:
 * nothing is posted, and no other event is taken, while completions or events are being dealt with.
 * The list is walked at the end of a turn, and is empty whenever the lock is released.
 *
 * Only what libfabric calls makes progress: calls that post do mrd_ofi_progress_make_room(),
 * mrd_ofi_take_events() if the operation will wait for the peer, then post, then
 * mrd_ofi_progress_end_turn().
 */
#ifndef MRD_OFI_PROGRESS_H
#define MRD_OFI_PROGRESS_H

#include "transport/adapters/ofi/ep.h"

/* Handles completions and events that are there: all completions, if it was armed just before. */
void mrd_ofi_ep_progress(struct mrd_ofi_ep *ep);
/*
 * Asks for an event at the next completion; events so far are forgotten. mrd_ofi_ep_progress() once
 * more before sleeping: what is complete already raises none.
 */
void mrd_ofi_ep_arm(struct mrd_ofi_ep *ep);
/*
 * Deals with events of mrd: what peers that are gone owe will not come. Messages that came before
 * are dealt with first. Returns whether there were any events.
 */
bool mrd_ofi_take_events(struct mrd_ofi_ep *ep);

/* Reports operations that ended, and goes on with those whose answer came. */
void mrd_ofi_progress_end_ops(struct mrd_ofi_ep *ep);
static inline void mrd_ofi_progress_end_turn(struct mrd_ofi_ep *ep)
{
    if (!mrd_list_empty(&ep->turn.ended))
        mrd_ofi_progress_end_ops(ep);
}

/* Makes progress, and returns whether there is room then. */
bool mrd_ofi_progress_has_room(struct mrd_ofi_ep *ep);
/* May the application post one more? Makes progress if not. */
static inline bool mrd_ofi_progress_make_room(struct mrd_ofi_ep *ep)
{
    return mrd_ofi_ep_has_room(ep) || mrd_ofi_progress_has_room(ep);
}

#endif
