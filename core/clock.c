/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/clock.h"

#include <string.h>

#include "core/limits.h"

void mrd_clock_init(struct mrd_clock *clock, uint64_t now_ns)
{
    memset(clock, 0, sizeof(*clock));
    clock->now_ns = clock->opened_ns = clock->looked_ns = clock->empty_ns = now_ns;
}

bool mrd_clock_is_late(const struct mrd_clock *clock)
{
    return clock->now_ns > clock->looked_ns + MRD_STALL_NS;
}

bool mrd_clock_look(struct mrd_clock *clock, uint64_t due_ns)
{
    uint64_t expected_ns = due_ns > clock->looked_ns ? due_ns : clock->looked_ns;
    bool stall = due_ns != MRD_NEVER && clock->now_ns > expected_ns + MRD_STALL_NS;

    if (stall) {
        clock->absent_ns = clock->now_ns;
        clock->absent_sum_ns += clock->now_ns - expected_ns;
        if (clock->now_ns - expected_ns > MRD_STALL_LONG_NS)
            clock->absent_long_ns = clock->now_ns;
    }
    clock->looked_ns = clock->now_ns;
    return stall;
}
