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

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mrd_context_impl;

#define MRD_LEASE_NS 200000ull /* how long a poll keeps the thread out */
/* The longest nap of the thread while the application renews the lease again and again. */
#define MRD_LEASE_NAP_NS 1000000ull

struct mrd_progress_thread {
    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd; -1 without a thread */
    atomic_bool stop;
    atomic_uint_fast64_t lease_until_ns; /* written under the lock, read without it */
    /* Sleeps of the thread that ended; any thread may read it. */
    atomic_uint_fast64_t wakeups;
    /* Under the lock: the thread is in, or on its way into, the mover's wait(). */
    bool asleep;
    bool kicked;              /* under the lock: wake_fd was made readable and not yet read */
    uint64_t asleep_until_ns; /* with `asleep`: the deadline at which wait() returns by itself */
    bool app_came;            /* under the lock: since the thread left it something to do */
};

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

#endif
