/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics at their requester, and fences. */
#ifndef MRD_CORE_ENGINE_REQUEST_H
#define MRD_CORE_ENGINE_REQUEST_H

#include "core/engine/state.h"

/*
 * Begin a message that was posted: it gets its number and token. False: it is held back, behind a
 * fence or too many reads and atomics of its queue pair, and goes onto its queue later.
 */
bool mrd_msg_begin(struct mrd_engine *e, struct mrd_msg *msg);

/* A message is one of several packets if it is longer than the peer's path takes in one. */
static inline void mrd_msg_measure(struct mrd_msg *msg)
{
    msg->multi = mrd_msg_payload(msg) > msg->peer->tx->pmtu.payload;
    if (msg->multi)
        msg->wr.part_flags |= MRD_PART_MULTI;
    else
        msg->wr.part_flags &= (uint8_t)~MRD_PART_MULTI;
}

/*
 * A message that waits on its queue, or is held back, and was never sent, goes to another entry of the peer
 * instead. Returns false, and leaves it, if a table is full.
 */
bool mrd_msg_move(struct mrd_engine *e, struct mrd_msg *msg, struct mrd_peer *to);
/*
 * It ends without having begun: in ordered mode behind all that have numbers, and without one of
 * its own. What waited behind it may begin.
 */
void mrd_msg_end_held(struct mrd_engine *e, struct mrd_msg *msg);
/* The request of that token that the peer has not answered; NULL: there is none. */
struct mrd_msg *mrd_msg_find_request(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     uint32_t token);
/*
 * Nothing that answers the request is placed from now on. Others may begin in its place. Of a
 * message that is no request, or was forgotten: nothing.
 */
void mrd_msg_forget_request(struct mrd_engine *e, struct mrd_msg *msg);

#endif
