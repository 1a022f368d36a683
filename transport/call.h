/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every public call does first and last: mrd_call_enter(), calls of the engine,
 * mrd_call_leave(). In a forked child mrd_call_enter() fails.
 */
#ifndef MRD_TRANSPORT_CALL_H
#define MRD_TRANSPORT_CALL_H

#include "transport/channel.h"
#include "transport/context.h"
#include "transport/thread.h"

/* Sets the error sentence of a forked child, and returns -EPERM. */
int mrd_call_forked(void);

/*
 * Takes the lock. 0; or -EPERM in a forked child, then without the lock and with mrd_error_set().
 */
static inline int mrd_call_enter(struct mrd_context_impl *c)
{
    if (!*c->alive)
        return mrd_call_forked();
    if (c->locks)
        mrd_lock_take(&c->lock);
    return 0;
}

/*
 * Tells completion channels of new events, wakes the progress thread if it would sleep beyond the
 * new deadline, and releases the lock.
 */
static inline void mrd_call_leave(struct mrd_context_impl *c)
{
    if (c->channels.num)
        mrd_channels_check(c);
    if (c->thread.asleep)
        mrd_thread_check(c);
    if (c->locks)
        mrd_lock_release(&c->lock);
}

/*
 * Ends a call that failed: copies the engine's error sentence, releases the lock, returns `error`.
 */
int mrd_call_fail(struct mrd_context_impl *c, int error);

#endif
