/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/clock.h"
#include "core/limits.h"
#include "tests/kit/kit.h"

#define START_NS (7 * MRD_SEC)

/* A clock that is read twice in two places may seem to go back. */
TEST(mrd_clock_set__never_back)
{
    struct mrd_clock clock;

    mrd_clock_init(&clock, START_NS);
    mrd_clock_set(&clock, START_NS + 50);
    mrd_clock_set(&clock, START_NS);
    assert_true(clock.now_ns == START_NS + 50);
}

/* A stall: over 1 ms later than the last look and the next deadline allow. Nothing due: none. */
TEST(mrd_clock_look__table)
{
    static const struct {
        uint64_t due_ns; /* from the last look */
        uint64_t after_ns;
        uint64_t absent_ns; /* length of the stall; 0: none */
    } table[] = {
        {MRD_NEVER, 100 * MRD_SEC, 0},
        {100, 1 * MRD_MSEC, 0},
        {100, 1 * MRD_MSEC + 100, 0},
        {100, 1 * MRD_MSEC + 101, 1 * MRD_MSEC + 1},
        {5 * MRD_SEC, 5 * MRD_SEC, 0},
        {5 * MRD_SEC, 5 * MRD_SEC + MRD_MSEC + 1, MRD_MSEC + 1},
        {5 * MRD_SEC, 5 * MRD_SEC + 100 * MRD_MSEC + 1, 100 * MRD_MSEC + 1},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint64_t due_ns = table[i].due_ns == MRD_NEVER ? MRD_NEVER : START_NS + table[i].due_ns;
        bool is_long = table[i].absent_ns > MRD_STALL_LONG_NS;
        struct mrd_clock clock;

        mrd_clock_init(&clock, START_NS);
        mrd_clock_set(&clock, START_NS + table[i].after_ns);
        assert_true(mrd_clock_is_late(&clock) || !table[i].absent_ns);
        assert_int_equal(mrd_clock_look(&clock, due_ns), table[i].absent_ns != 0);
        assert_true(clock.absent_ns == (table[i].absent_ns ? clock.now_ns : 0));
        assert_true(clock.absent_long_ns == (is_long ? clock.now_ns : 0));
        assert_true(clock.absent_sum_ns == table[i].absent_ns);
        assert_true(clock.looked_ns == clock.now_ns);
        assert_true(clock.empty_ns == START_NS);
        assert_true(mrd_clock_present_ns(&clock) == clock.now_ns - table[i].absent_ns);
    }
}

/* A deadline that was due before the last look gives no more time than that look. */
TEST(mrd_clock_look__counts_from_the_last_look)
{
    struct mrd_clock clock;

    mrd_clock_init(&clock, START_NS);
    for (int i = 0; i < 10; i++) {
        mrd_clock_set(&clock, clock.now_ns + MRD_STALL_NS);
        assert_false(mrd_clock_is_late(&clock));
        assert_false(mrd_clock_look(&clock, START_NS));
    }
    mrd_clock_set(&clock, clock.now_ns + MRD_STALL_NS + 1);
    assert_true(mrd_clock_is_late(&clock));
    assert_true(mrd_clock_look(&clock, START_NS));
}
