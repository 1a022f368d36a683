/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers in a binary heap, earliest first.
 *
 * mrd_timer_init() once for each; mrd_heap_arm() to have it fire by a certain time,
 * mrd_heap_disarm() to take it out. The caller compares mrd_heap_next_ns() with the clock, and
 * takes mrd_heap_first() out when it is due. The array of pointers is the caller's: one place for
 * each timer that can be armed at once.
 */
#ifndef MRD_CORE_HEAP_H
#define MRD_CORE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/limits.h"

struct mrd_timer {
    uint64_t at_ns; /* MRD_NEVER: it is not in the heap */
    uint32_t index; /* index in mrd_heap.timer */
};

struct mrd_heap {
    struct mrd_timer **timer;
    uint32_t num;
};

static inline void mrd_timer_init(struct mrd_timer *timer)
{
    timer->at_ns = MRD_NEVER;
}

/* Returns the earliest timer; NULL: none is armed. */
static inline struct mrd_timer *mrd_heap_first(const struct mrd_heap *heap)
{
    return heap->num ? heap->timer[0] : NULL;
}

static inline uint64_t mrd_heap_next_ns(const struct mrd_heap *heap)
{
    return heap->num ? heap->timer[0]->at_ns : MRD_NEVER;
}

/*
 * Makes the timer fire at `at_ns` or earlier. A timer armed for an earlier time stays there: it
 * fires, its owner finds nothing due and arms it again. That is cheaper than moving it with each
 * packet. MRD_NEVER: no change.
 */
void mrd_heap_arm(struct mrd_heap *heap, struct mrd_timer *timer, uint64_t at_ns);
void mrd_heap_disarm(struct mrd_heap *heap, struct mrd_timer *timer);

#endif
