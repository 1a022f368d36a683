/* SPDX-License-Identifier: BSD-2-Clause */
/* The nscc policy: is a delay our own queue, or a longer way? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cc_fixture.h"

/*
 * Delay that stays when the window is at its floor: our queue is drained, the paths are asked, and
 * the window comes back.
 */
static void nscc_ack__asks_whether_it_is_our_queue(void **state)
{
    struct cc_fixture *f = *state;
    unsigned watches = 0, lessons = 0;
    double least = 1e9;

    begin(f, "nscc", &far_fabric);
    leave_slow_start(f, 60);
    f->ack.rtt_ns = f->ack.srtt_ns = 8 * BASE_NS;
    for (int i = 0; i < 40 && !lessons; i++) {
        f->cc.watch.wish = MRD_CC_WISH_NONE;
        acks(f, 1, 1);
        watches += f->cc.watch.wish == MRD_CC_WISH_WATCH;
        lessons += f->cc.watch.wish == MRD_CC_WISH_LEARN;
        least = packets(f) < least ? packets(f) : least;
    }
    assert_int_equal(lessons, 1);
    assert_true(watches >= 2);
    assert_true(least < 5);
    assert_true(f->cc.cwnd_bytes >= 0.9 * BDP_BYTES);
}

/* Of 1,000 round trips, those with a drained window. */
static unsigned drained_rounds(struct cc_fixture *f, uint64_t rtt_ns)
{
    unsigned drained = 0;

    f->ack.rtt_ns = f->ack.srtt_ns = rtt_ns;
    for (int i = 0; i < 1000; i++) {
        f->cc.watch.wish = MRD_CC_WISH_NONE;
        f->cc.watch.rest = 0; /* as if there were more delay each time */
        acks(f, 1, 1.1);
        drained += f->cc.watch.state != 0;
    }
    return drained;
}

/* A queue that another flow fills anew each time: a drained window is a rare loss. */
static void nscc_ack__drains_seldom_in_vain(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    leave_slow_start(f, 20);
    acks(f, 1, 1);

    unsigned drained = drained_rounds(f, MSEC_NS);

    assert_true(drained > 0 && drained < 80);
}

/* Unknown rate: a window at its cap is not looked at by what the delay does, so it asks as well. */
static void nscc_ack__asks_at_the_cap(void **state)
{
    struct cc_fixture *f = *state;

    for (int at_cap = 0; at_cap < 2; at_cap++) {
        begin(f, "nscc", &sockets);
        f->ack.rtt_min_ns = 50000;
        leave_slow_start(f, (at_cap ? 0.9 : 0.5) * CAP / PACKET);
        f->ack.limited = false; /* it does not grow */
        f->ack.inflight_bytes = 0;
        assert_true(at_cap ? drained_rounds(f, 80000) > 0 : drained_rounds(f, 80000) == 0);
    }
}

/*
 * A loss ends it when our queue is drained. The window is what it was, or what the loss or a
 * timeout leaves of it.
 */
static void nscc_ack__a_loss_ends_the_drain(void **state)
{
    struct cc_fixture *f = *state;

    for (int timeout = 0; timeout < 2; timeout++) {
        begin(f, "nscc", &sockets);
        leave_slow_start(f, 20);
        acks(f, 1, 1);
        f->ack.rtt_ns = f->ack.srtt_ns = MSEC_NS;
        for (int i = 0; i < 100 && f->cc.watch.state == 0; i++)
            acks(f, 1, 1.1);
        assert_true(f->cc.watch.state != 0 && packets(f) < 5);
        if (timeout)
            f->cc.ops->timeout(&f->cc, f->ack.now_ns);
        lose(f, 1);
        acks(f, 2, 2.2);
        assert_int_equal(f->cc.watch.state, 0);
        assert_true(timeout ? f->cc.cwnd_bytes < 0.6 * START : f->cc.cwnd_bytes >= 0.7 * START);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nscc_ack__asks_whether_it_is_our_queue),
        cmocka_unit_test(nscc_ack__drains_seldom_in_vain),
        cmocka_unit_test(nscc_ack__asks_at_the_cap),
        cmocka_unit_test(nscc_ack__a_loss_ends_the_drain),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
