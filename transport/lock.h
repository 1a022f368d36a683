/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a context. Whoever runs takes it, ahead of threads that sleep on it: so short calls
 * follow each other without a switch of threads. But nobody starves: once a sleeper has waited for
 * MRD_LOCK_PATIENCE_NS times the number of sleepers, only sleepers get the lock, until one of them
 * waited for less than that.
 *
 * A mutex of the C library lets threads pass the sleepers for ever. With more threads than cores
 * that call in a loop, a thread then got the lock once in a time slice.
 *
 * mrd_lock_take() and mrd_lock_release(). A zeroed lock is free; there is nothing to destroy. Its
 * memory may be freed as soon as a release let the next one in.
 */
#ifndef MRD_TRANSPORT_LOCK_H
#define MRD_TRANSPORT_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

/* Longer than a sleeper takes to wake up on a core that is free. */
#define MRD_LOCK_PATIENCE_NS 50000ull

#define MRD_LOCK_HELD     1u
#define MRD_LOCK_IN_TURN  2u      /* a sleeper lost patience: only sleepers may take the lock */
#define MRD_LOCK_WOKEN    4u      /* a sleeper was woken and did not try yet: wake no other one */
#define MRD_LOCK_SLEEPER  8u      /* the number of sleepers, in units of this */
#define MRD_LOCK_SLEEPERS 0x7ff8u /* its bits */
#define MRD_LOCK_WAKE     0x8000u /* this and what is above counts wakes, and wraps */

struct mrd_lock {
    atomic_uint word;
};

void mrd_lock_take_slow(struct mrd_lock *lock);
void mrd_lock_release_slow(struct mrd_lock *lock);

static inline void mrd_lock_take(struct mrd_lock *lock)
{
    unsigned word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    if (word & (MRD_LOCK_HELD | MRD_LOCK_IN_TURN) ||
        !atomic_compare_exchange_strong_explicit(&lock->word, &word, word | MRD_LOCK_HELD,
                                                 memory_order_acquire, memory_order_relaxed))
        mrd_lock_take_slow(lock);
}

static inline void mrd_lock_release(struct mrd_lock *lock)
{
    unsigned word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    if (word & MRD_LOCK_SLEEPERS ||
        !atomic_compare_exchange_strong_explicit(&lock->word, &word, word & ~MRD_LOCK_HELD,
                                                 memory_order_release, memory_order_relaxed))
        mrd_lock_release_slow(lock);
}

/* Did a thread ever sleep on it? Then several use it. */
static inline bool mrd_lock_is_shared(const struct mrd_lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) >= MRD_LOCK_WAKE;
}

/* How many threads sleep until they get the lock. */
static inline unsigned mrd_lock_sleepers(const struct mrd_lock *lock)
{
    return (atomic_load_explicit(&lock->word, memory_order_relaxed) & MRD_LOCK_SLEEPERS) /
           MRD_LOCK_SLEEPER;
}

/* Tells the processor that this thread looks at a word until another thread changes it. */
static inline void mrd_pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
