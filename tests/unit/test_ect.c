/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether packets to a peer may be marked: silence, tests of one packet, and how they get rare. */
#include "core/ect.h"
#include "tests/kit/kit.h"

#include "core/limits.h"

static bool marks(struct mrd_ect *x, uint32_t psn, uint64_t now_ns)
{
    return mrd_ect_may_mark(x, psn, true, true, now_ns);
}

/* Two probes that nobody answered; one is no reason. */
TEST(mrd_ect_silent__two_probes)
{
    struct mrd_ect x = {0};

    assert_false(mrd_ect_silent(&x, 1, 0));
    assert_true(marks(&x, 0, 0));
    assert_true(mrd_ect_silent(&x, 2, 0));
    assert_false(mrd_ect_silent(&x, 3, 0)); /* it is off already */
    assert_false(mrd_ect_may_mark(&x, 0, false, false, 0));
    assert_false(mrd_ect_may_mark(&x, 1, true, false, 0));
}

/* A new packet is the test, once the peer answers. No other has ECT meanwhile. */
TEST(mrd_ect_may_mark__tests_one_packet)
{
    struct mrd_ect x = {0};

    mrd_ect_silent(&x, 2, 0);
    assert_false(mrd_ect_may_mark(&x, 6, false, true, 1000));
    assert_true(marks(&x, 7, 1000));
    assert_int_equal(x.test_psn, 7);
    assert_false(marks(&x, 8, 1000));
    assert_true(x.testing);
    mrd_ect_passed(&x, 2000);
    assert_true(marks(&x, 9, 2000));
    assert_true(mrd_ect_may_mark(&x, 9, false, false, 3000));
}

/* The test is sent again: it was lost. The next ones come after 1, 4, 16 ms ..., and never stop. */
TEST(mrd_ect_may_mark__tests_get_rare)
{
    static const uint64_t waits_ms[] = {1,     4,     16,     64,      256,     1024,    4096,
                                        16384, 65536, 262144, 1048576, 4194304, 4194304, 4194304};
    struct mrd_ect x = {0};
    uint64_t now_ns = 0;
    uint32_t psn = 0;

    mrd_ect_silent(&x, 2, now_ns);
    for (unsigned i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        assert_true(marks(&x, psn, now_ns));
        assert_false(mrd_ect_may_mark(&x, psn, false, true, now_ns));
        assert_false(x.testing);
        now_ns += waits_ms[i] * MRD_MSEC;
        assert_false(marks(&x, ++psn, now_ns - 1));
    }
    for (unsigned i = 0; i < 300; i++) { /* and the counter does not wrap */
        assert_true(marks(&x, psn, now_ns));
        assert_false(mrd_ect_may_mark(&x, psn++, false, true, now_ns));
        now_ns += 4194304 * MRD_MSEC;
        assert_false(marks(&x, psn, now_ns - 1));
    }
}

/* Tests pass, but with ECT on all the peer falls silent: tests get rare. A late silence is new. */
TEST(mrd_ect_silent__relapses)
{
    struct mrd_ect x = {0};

    mrd_ect_silent(&x, 2, 0);
    assert_true(marks(&x, 0, 1));
    mrd_ect_passed(&x, 2);
    mrd_ect_silent(&x, 2, MRD_SEC);
    assert_false(marks(&x, 1, MRD_SEC)); /* now it is to wait */
    assert_false(marks(&x, 1, MRD_SEC + MRD_MSEC - 1));
    assert_true(marks(&x, 1, MRD_SEC + MRD_MSEC));
    mrd_ect_passed(&x, 2 * MRD_SEC);
    mrd_ect_silent(&x, 2, 3 * MRD_SEC);
    assert_false(marks(&x, 2, 3 * MRD_SEC));
    assert_false(marks(&x, 2, 3 * MRD_SEC + 4 * MRD_MSEC - 1));
    assert_true(marks(&x, 2, 3 * MRD_SEC + 4 * MRD_MSEC));
    mrd_ect_passed(&x, 7 * MRD_SEC);
    mrd_ect_silent(&x, 2, 1000 * MRD_SEC);
    assert_true(marks(&x, 3, 1000 * MRD_SEC));
}

/* What a record of a peer that rested has: no time of the next test, so it waits from now on. */
TEST(mrd_ect_may_mark__after_rest)
{
    struct mrd_ect x = {.off = true, .failed = 2};

    assert_false(marks(&x, 0, 50 * MRD_SEC));
    assert_false(marks(&x, 1, 50 * MRD_SEC + 4 * MRD_MSEC - 1));
    assert_true(marks(&x, 2, 50 * MRD_SEC + 4 * MRD_MSEC));
}
