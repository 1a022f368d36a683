/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines of peers.
 *
 * mrd_timer_touch() for each peer whose deadlines may have changed in this turn; they are computed
 * once, at its end, by mrd_timer_settle(). mrd_timer_fire_due() does what is due. Nobody is judged
 * for our own absence: losses and silence are looked at only when the receive queue was read until
 * it was empty.
 */
#ifndef MRD_CORE_ENGINE_TIMER_H
#define MRD_CORE_ENGINE_TIMER_H

#include "core/engine/state.h"

/*
 * The peer's timer is to be set. Not with each packet, and not before a packet that may leave now.
 */
void mrd_timer_touch(struct mrd_engine *e, struct mrd_peer *peer);
/* Set the timers of all that were touched, as of then: what was due since is late, not due now. */
void mrd_timer_settle(struct mrd_engine *e);
/* When the next timer fires; MRD_NEVER: none is armed. */
uint64_t mrd_timer_next_ns(struct mrd_engine *e);
/* The receive queue is looked at: was that later than anyone could expect? */
void mrd_timer_look(struct mrd_engine *e);
/* Do what is due. */
void mrd_timer_fire_due(struct mrd_engine *e);

#endif
