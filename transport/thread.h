/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread: drives the loop while the application does not.
 *
 * Each poll of the application leases the loop for MRD_LEASE_NS. While the lease is fresh, the
 * thread only checks it now and then. When it has ended, the thread makes a turn, then sleeps until
 * the mover's descriptors or the engine's deadline wake it. Without packets, deadlines and calls it
 * never wakes up. What wakes it wakes an application that sleeps on a completion channel, too: that
 * has the lease then, and the thread makes its turn if it does not come; and all further ones until
 * it comes.
 *
 * Call mrd_thread_start() once the context works, mrd_thread_stop() before any part of it
 * is destroyed.
 */
#ifndef MRD_TRANSPORT_THREAD_H
#define MRD_TRANSPORT_THREAD_H

#include "transport/context.h"

#define MRD_LEASE_NS 200000ull /* how long a poll keeps the thread out */
/* The longest nap of the thread while the application renews the lease again and again. */
#define MRD_LEASE_NAP_NS 1000000ull

/* Starts the thread of a context. 0, or -errno with mrd_error_set(). */
int mrd_thread_start(struct mrd_context_impl *c);
/* Ends the thread and waits for its end; does nothing if it never started. */
void mrd_thread_stop(struct mrd_context_impl *c);
/* Under the lock: ends the thread's sleep in the mover's wait(); once for each sleep. */
void mrd_thread_kick(struct mrd_context_impl *c);
/* Under the lock: the application sleeps, and nothing but the thread handles what comes. */
void mrd_thread_take_over(struct mrd_context_impl *c);
/* Under the lock, if `asleep`: wakes the thread if work is due before it would wake by itself. */
void mrd_thread_check(struct mrd_context_impl *c);
/*
 * Under the lock: the application drives the loop. For MRD_LEASE_NS the thread leaves it to it.
 */
static inline void mrd_thread_lease(struct mrd_context_impl *c, uint64_t now_ns)
{
    atomic_store_explicit(&c->thread.lease_until_ns, now_ns + MRD_LEASE_NS, memory_order_relaxed);
    c->thread.app_came = true;
}

#endif
