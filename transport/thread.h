/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread: does what the application does not.
 *
 * A poll of the application leases progress for MRD_LEASE_NS. While the lease is fresh the thread
 * only looks at it now and then; once it ended, the thread steps and sleeps on the mover's
 * descriptors and the engine's deadline. With no packets, no deadline and no application calls it
 * never wakes up.
 *
 * mrd_thread_start() once the context works, mrd_thread_stop() before anything of it goes.
 */
#ifndef MRD_TRANSPORT_THREAD_H
#define MRD_TRANSPORT_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mrd_context_impl;

#define MRD_LEASE_NS 200000ull /* how long a poll keeps the thread out */
#define MRD_LEASE_NAP_NS                                                                           \
    1000000ull /* longest nap of the thread while the lease is renewed over and over */

struct mrd_progress_thread {
    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd; -1 without a thread */
    atomic_bool stop;
    atomic_uint_fast64_t lease_until_ns; /* written under the lock, read without */
    atomic_uint_fast64_t wakeups;        /* times that a sleep of it ended */
    bool asleep;              /* under the lock: it is in, or on its way into, the mover's wait() */
    bool kicked;              /* under the lock: wake_fd was made readable */
    uint64_t asleep_until_ns; /* with `asleep` */
};

/* 0 or -errno with mrd_error_set(). */
int mrd_thread_start(struct mrd_context_impl *c);
/* Also for a thread that never started. */
void mrd_thread_stop(struct mrd_context_impl *c);
/* Under the lock: end its sleep in the mover's wait(), once. */
void mrd_thread_kick(struct mrd_context_impl *c);
/* Under the lock, when `asleep`: wake it if there is work before it would wake up by itself. */
void mrd_thread_check(struct mrd_context_impl *c);

#endif
