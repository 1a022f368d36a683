/* SPDX-License-Identifier: BSD-2-Clause */
/* The nscc policy: is a delay our own queue, or a longer way? */
#include "tests/kit/kit.h"
#include "tests/unit/cc_fixture.h"

/* Delay stays with the window at its floor: drain our queue, ask the paths, restore the window. */
TEST_F(cc_fixture, nscc_ack__asks_whether_it_is_our_queue)
{
    unsigned watches = 0, calibrations = 0;
    double least = 1e9;

    begin_with(self, "nscc", &far_fabric, 60);
    self->ack.rtt_ns = self->ack.srtt_ns = 8 * BASE_NS;
    for (int i = 0; i < 40 && !calibrations; i++) {
        self->cc.request = MRD_CC_REQUEST_NONE;
        acks(self, 1, 1);
        watches += self->cc.request == MRD_CC_REQUEST_WATCH;
        calibrations += self->cc.request == MRD_CC_REQUEST_CALIBRATE;
        least = packets(self) < least ? packets(self) : least;
    }
    assert_int_equal(calibrations, 1);
    assert_true(watches >= 2);
    assert_true(least < 5);
    assert_true(self->cc.cwnd_bytes >= 0.9 * BDP_BYTES);
}

/* Of 1,000 round trips, those with a drained window. */
static unsigned drained_rounds(struct cc_fixture *f, uint64_t rtt_ns)
{
    unsigned drained = 0;

    f->ack.rtt_ns = f->ack.srtt_ns = rtt_ns;
    for (int i = 0; i < 1000; i++) {
        f->cc.request = MRD_CC_REQUEST_NONE;
        f->cc.nscc.watch.rest = 0; /* as if there were more delay each time */
        acks(f, 1, 1.1);
        drained += f->cc.nscc.watch.state != 0;
    }
    return drained;
}

/* A queue that another flow fills anew each time: a drained window is a rare loss. */
TEST_F(cc_fixture, nscc_ack__drains_seldom_in_vain)
{
    begin_with(self, "nscc", &sockets, 20);
    acks(self, 1, 1);

    unsigned drained = drained_rounds(self, MSEC_NS);

    assert_true(drained > 0 && drained < 80);
}

/* Unknown rate: a window at its cap is not looked at by what the delay does, so it asks as well. */
TEST_F(cc_fixture, nscc_ack__asks_at_the_cap)
{
    for (int at_cap = 0; at_cap < 2; at_cap++) {
        begin(self, "nscc", &sockets);
        self->ack.rtt_min_ns = 50000;
        leave_slow_start(self, (at_cap ? 0.9 : 0.5) * CAP / PACKET);
        hold_back(self); /* it does not grow */
        assert_true(at_cap ? drained_rounds(self, 80000) > 0 : drained_rounds(self, 80000) == 0);
    }
}

/* A loss ends the drain. The window is what it was, or what the loss or a timeout leaves of it. */
TEST_F(cc_fixture, nscc_ack__a_loss_ends_the_drain)
{
    for (int timeout = 0; timeout < 2; timeout++) {
        begin_with(self, "nscc", &sockets, 20);
        acks(self, 1, 1);
        self->ack.rtt_ns = self->ack.srtt_ns = MSEC_NS;
        for (int i = 0; i < 100 && self->cc.nscc.watch.state == 0; i++)
            acks(self, 1, 1.1);
        assert_true(self->cc.nscc.watch.state != 0 && packets(self) < 5);
        if (timeout)
            self->cc.ops->timeout(&self->cc, self->ack.now_ns);
        lose(self, 1);
        acks(self, 2, 2.2);
        assert_int_equal(self->cc.nscc.watch.state, 0);
        assert_true(timeout ? self->cc.cwnd_bytes < 0.6 * START
                            : self->cc.cwnd_bytes >= 0.7 * START);
    }
}
