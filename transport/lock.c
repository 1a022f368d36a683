/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 100 }; /* a few microseconds: the lock is held for about one */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool replace(struct mrd_lock *lock, unsigned *word, unsigned by)
{
    return atomic_compare_exchange_weak_explicit(&lock->word, word, by, memory_order_acquire,
                                                 memory_order_relaxed);
}

static bool is_open(unsigned word, bool sleeper)
{
    return !(word & MRD_LOCK_HELD) && (sleeper || !(word & MRD_LOCK_IN_TURN));
}

/*
 * Did a sleeper wait for too long? The more there are, the longer: with fewer cores than threads all
 * wait, and if each of them lost patience the lock would go from sleeper to sleeper for ever, with a
 * switch of threads each time.
 */
static bool is_impatient(unsigned word, uint64_t start_ns)
{
    uint64_t sleepers = (word & MRD_LOCK_SLEEPERS) / MRD_LOCK_SLEEPER;

    return now_ns() - start_ns >= MRD_LOCK_PATIENCE_NS * (sleepers ? sleepers : 1);
}

/* The word when a sleeper takes the lock. */
static unsigned sleeper_takes(unsigned word, uint64_t start_ns)
{
    word = ((word | MRD_LOCK_HELD) & ~MRD_LOCK_WOKEN) - MRD_LOCK_SLEEPER;
    if (!(word & MRD_LOCK_SLEEPERS) || !is_impatient(word, start_ns))
        word &= ~MRD_LOCK_IN_TURN;
    return word;
}

/* Takes the lock if it comes free soon. `sleeper`: the caller is counted as one. */
static bool spin(struct mrd_lock *lock, bool sleeper, uint64_t start_ns)
{
    unsigned word = atomic_load_explicit(&lock->word, memory_order_relaxed);

    for (unsigned i = 0; i < SPINS;) {
        if (is_open(word, sleeper)) {
            if (replace(lock, &word,
                        sleeper ? sleeper_takes(word, start_ns) : word | MRD_LOCK_HELD))
                return true;
            continue;
        }
        if (word & MRD_LOCK_IN_TURN && !sleeper)
            return false;
        mrd_pause_cpu();
        word = atomic_load_explicit(&lock->word, memory_order_relaxed);
        i++;
    }
    return false;
}

/*
 * Who finds the lock held counts itself, and sleeps while the word stays as it left it. A release
 * that wakes changes the word by the same step that frees the lock, and the count of wakes keeps it
 * from becoming what it was: so either the sleeper is woken, or it does not begin to sleep. Who
 * finds the lock free but is not in turn sleeps, too: the sleeper is awake who will take it.
 */
void mrd_lock_take_slow(struct mrd_lock *lock)
{
    uint64_t start_ns = 0;
    bool sleeper = false;

    while (!spin(lock, sleeper, start_ns)) {
        unsigned word = atomic_load_explicit(&lock->word, memory_order_relaxed), by;

        if (!sleeper && (word & MRD_LOCK_SLEEPERS) == MRD_LOCK_SLEEPERS) {
            sched_yield(); /* more sleepers than can be counted */
            continue;
        }
        by = word & ~MRD_LOCK_WOKEN;
        if (!sleeper)
            by += MRD_LOCK_SLEEPER;
        else if (is_impatient(word, start_ns))
            by |= MRD_LOCK_IN_TURN;
        if (is_open(word, sleeper) || !replace(lock, &word, by))
            continue;
        if (!sleeper)
            start_ns = now_ns();
        sleeper = true;
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, by, NULL, NULL, 0);
    }
}

void mrd_lock_release_slow(struct mrd_lock *lock)
{
    unsigned word = atomic_load_explicit(&lock->word, memory_order_relaxed), by;
    bool wake;

    do {
        by = word & ~MRD_LOCK_HELD;
        wake = word & MRD_LOCK_SLEEPERS && (word & MRD_LOCK_IN_TURN || !(word & MRD_LOCK_WOKEN));
        if (wake)
            by = (by | MRD_LOCK_WOKEN) + MRD_LOCK_WAKE;
    } while (!atomic_compare_exchange_weak_explicit(&lock->word, &word, by, memory_order_release,
                                                    memory_order_relaxed));
    if (wake)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
