/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock that callers set, and stalls: times when nobody read the receive queue.
 *
 * mrd_clock_set() with each call: time never goes back. mrd_clock_look() each time the receive
 * queue is looked at, mrd_clock_empty() when it was seen empty. A look much later than the last one
 * and than the earliest deadline is a stall: the process was stopped, or its caller came late.
 * A peer must not be judged by what could not be received during a stall.
 */
#ifndef MRD_CORE_CLOCK_H
#define MRD_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct mrd_clock {
    uint64_t now_ns;         /* time of the current call */
    uint64_t opened_ns;      /* at mrd_clock_init() */
    uint64_t looked_ns;      /* when the receive queue was last looked at */
    uint64_t empty_ns;       /* when it was last seen empty: a peer's silence counts up to here */
    uint64_t absent_ns;      /* end of the last stall: RTT samples across it are void */
    uint64_t absent_long_ns; /* end of the last long one: unanswered probes are counted anew */
    uint64_t absent_sum_ns;  /* length of all stalls */
};

void mrd_clock_init(struct mrd_clock *clock, uint64_t now_ns);

static inline uint64_t mrd_later(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

static inline void mrd_clock_set(struct mrd_clock *clock, uint64_t now_ns)
{
    if (now_ns > clock->now_ns)
        clock->now_ns = now_ns;
}

/*
 * May a look at the queue now be a stall? Only then need mrd_clock_look() know the
 * earliest deadline.
 */
bool mrd_clock_is_late(const struct mrd_clock *clock);
/*
 * The receive queue is looked at now. due_ns: the earliest deadline, until which a caller may
 * sleep; MRD_NEVER: nobody is to be judged, so there is no stall. Returns true if it was a stall.
 */
bool mrd_clock_look(struct mrd_clock *clock, uint64_t due_ns);

static inline void mrd_clock_empty(struct mrd_clock *clock)
{
    clock->empty_ns = clock->now_ns;
}

/* Time without the stalls, in which packets could be received. */
static inline uint64_t mrd_clock_present_ns(const struct mrd_clock *clock)
{
    return clock->now_ns - clock->absent_sum_ns;
}

#endif
