/* SPDX-License-Identifier: BSD-2-Clause */
/* The nscc policy: how the window grows, and what delay and marks take from it. */
#include "tests/kit/kit.h"
#include "tests/unit/cc_fixture.h"

/* A packet for each acked one, up to 3 BDP. */
TEST_F(cc_fixture, nscc_ack__slow_start)
{
    double start = packets(self);

    acks(self, 3, 0.3);
    assert_near(packets(self), start + 12, 0.01);
    acks(self, 100, 3);
    assert_near(self->cc.cwnd_bytes, 3.0 * BDP_BYTES, 1);
    assert_false(self->cc.slow_start);
}

TEST_F(cc_fixture, nscc_ack__slow_start_ends)
{
    /* CE alone does not end it, CE with delay above half of the target does. */
    self->ack.ce_packets = 1;
    acks(self, 1, 0.1);
    assert_true(self->cc.slow_start);
    self->ack.rtt_ns = 3 * BASE_NS;
    acks(self, 10, 0.5);
    assert_false(self->cc.slow_start);

    begin(self, "nscc", &fabric);
    for (unsigned lost = 1; lost <= 2; lost++) {
        lose(self, 1);
        assert_int_equal(self->cc.slow_start, lost < 2);
    }

    /* A round trip in which nearly all was marked. */
    begin(self, "nscc", &fabric);
    self->ack.ce_packets = 4;
    self->ack.acked_packets = 1;
    acks(self, 8, 2);
    assert_false(self->cc.slow_start);
    assert_true(self->cc.cwnd_bytes < 2.0 * BDP_BYTES);
}

/* +8a (target - d) / target / cwnd a packet: a is 0.668 packets, d 0, the window 40: so 0.134. */
TEST_F(cc_fixture, nscc_ack__grows_below_target)
{
    leave_slow_start(self, 40);
    self->cc.round_end_ns = UINT64_MAX;
    acks(self, 1, 0.1);
    assert_near(packets(self), 40 + 4 * 8 * (BDP_BYTES / 36.0 / PACKET) / 40, 1e-3);
}

TEST_F(cc_fixture, nscc_ack__holds_on_mark_below_target)
{
    leave_slow_start(self, 40);
    self->cc.round_end_ns = UINT64_MAX;
    self->ack.ce_packets = 4;
    self->ack.rtt_ns = 2 * BASE_NS;
    acks(self, 10, 0.5);
    assert_near(packets(self), 40, 1e-9);
}

/* A window in a network that marks, of which the mean share of late is `share`. */
static void see_marks(struct cc_fixture *f, double window_packets, double share)
{
    leave_slow_start(f, window_packets);
    f->cc.round_end_ns = UINT64_MAX;
    f->cc.ce_seen = true;
    f->cc.ce_ewma = share;
}

/*
 * By (0.25 + 40 (1 - share / 0.5)^2) u / cwnd an unmarked packet, u being 1% of the rate times the RTT;
 * delay, however long, neither holds nor cuts.
 */
TEST_F(cc_fixture, nscc_ack__grows_by_marks)
{
    static const struct {
        double share, times;
    } rows[] = {{0, 40.25}, {0.25, 10.25}, {0.5, 0.25}, {0.75, 0.25}};
    double unit = BDP_BYTES / 100.0 / PACKET;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(self, "nscc", &fabric);
        see_marks(self, 40, rows[i].share);
        self->cc.delay_ns = 5 * BASE_NS;
        self->cc.delay_valid = true;
        self->ack.rtt_ns = 6 * BASE_NS;
        acks(self, 1, 0.1);
        assert_near(packets(self), 40 + 4 * rows[i].times * unit / 40, 1e-6);
        self->ack.ce_packets = 3; /* the others do not grow it */
        leave_slow_start(self, 40);
        acks(self, 1, 0.1);
        assert_near(packets(self), 40 + rows[i].times * unit / 40, 1e-6);
    }
}

/* All marked in this RTT and most of late, and a delay of 4 base RTTs: an incast, cut as by delay. */
TEST_F(cc_fixture, nscc_ack__cuts_for_an_incast)
{
    static const struct {
        double share, share_rtt;
        bool cut;
    } rows[] = {{1, 0.9, true}, {0.4, 1, false}, {1, 0.8, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(self, "nscc", &fabric);
        see_marks(self, 40, rows[i].share);
        self->cc.ce_rtt = rows[i].share_rtt;
        self->cc.delay_ns = 4 * BASE_NS;
        self->cc.delay_valid = true;
        self->ack.rtt_ns = 5 * BASE_NS;
        self->ack.ce_packets = 4;
        acks(self, 1, 0.1);
        assert_near(packets(self), rows[i].cut ? 40 * (1 - 0.8 * (4 - 2.25) / 4) : 40, 1e-6);
    }
}

/* Unknown rate: u is 4 packets for an RTT of 200 us, for others in proportion, from 30 us to 1.2 ms. */
TEST_F(cc_fixture, nscc_ack__grows_by_marks_where_the_rate_is_unknown)
{
    static const struct {
        uint64_t srtt_ns;
        double unit;
    } rows[] = {{10000, 0.6}, {100000, 2}, {400000, 8}, {5000000, 24}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(self, "nscc", &sockets);
        see_marks(self, 100, 0.5);
        self->ack.rtt_ns = self->ack.srtt_ns = rows[i].srtt_ns;
        acks(self, 1, 0);
        assert_near(packets(self), 100 + 4 * 0.25 * rows[i].unit / 100, 1e-6);
    }
}

/* More than half marked, RTT after RTT: x (1 - ((share - 0.5) / 0.5)^2 / 4) an RTT. Half is no reason. */
TEST_F(cc_fixture, nscc_ack__cuts_for_marks)
{
    leave_slow_start(self, 40);
    self->ack.ce_packets = 4;
    acks(self, 30, 3);
    assert_true(packets(self) > 39); /* three round trips are not yet a habit */
    acks(self, 200, 20);
    assert_true(packets(self) < 2);

    begin_with(self, "nscc", &fabric, 40);
    self->ack.ce_packets = 3;
    acks(self, 300, 30);
    self->cc.cwnd_bytes = 40 * PACKET;
    self->cc.ce_ewma = 0.75;
    self->cc.round_end_ns = self->ack.now_ns;
    acks(self, 1, 0);
    /* And 0.12 a, a being a BDP / 36, and 0.25 u for the packet that is not marked. */
    assert_near(packets(self),
                (40 + 0.12 * (BDP_BYTES / 36.0 / PACKET)) * (1 - 0.0625) +
                    0.25 * (BDP_BYTES / 100.0 / PACKET) / 40,
                0.01);

    begin_with(self, "nscc", &fabric, 40);
    self->ack.ce_packets = 2;
    acks(self, 130, 13);
    assert_true(packets(self) >= 40);
}

/* Few marks in an RTT: what the mean still holds of earlier ones had its cuts. */
TEST_F(cc_fixture, nscc_ack__old_marks_do_not_cut)
{
    leave_slow_start(self, 40);
    self->ack.ce_packets = 4;
    acks(self, 100, 10);
    self->ack.ce_packets = 0;
    acks(self, 10, 1); /* the last marks are of this round */
    double before = packets(self);
    assert_true(self->cc.ce_ewma > 0.6);
    acks(self, 10, 1);
    assert_true(packets(self) >= before);
}

/* Where packets can be marked they leave at 1.25 windows an SRTT: all if the rate is unknown, else of a small window. */
TEST_F(cc_fixture, nscc_pace__by_marks)
{
    leave_slow_start(self, 1.5);
    assert_near(self->cc.ops->pace(&self->cc), 0, 1e-9);
    see_marks(self, 1.5, 0);
    assert_near(self->cc.ops->pace(&self->cc), 1.25, 1e-9);
    see_marks(self, 2, 0);
    assert_near(self->cc.ops->pace(&self->cc), 0, 1e-9);

    begin_with(self, "nscc", &sockets, 100);
    assert_near(self->cc.ops->pace(&self->cc), 0, 1e-9);
    see_marks(self, 100, 0);
    assert_near(self->cc.ops->pace(&self->cc), 1.25, 1e-9);
}

/* Late where nothing ever marks: x (1 - 0.8 (d - target) / d), once an RTT, and not below a BDP. */
TEST_F(cc_fixture, nscc_ack__cuts_above_target)
{
    leave_slow_start(self, 40);
    self->cc.round_end_ns = UINT64_MAX;
    self->cc.delay_ns = 4 * BASE_NS;
    self->ack.rtt_ns = 5 * BASE_NS;
    acks(self, 1, 0.1);
    assert_near(packets(self), 40 * (1 - 0.8 * (4 - 2.25) / 4), 1e-6);
    acks(self, 8, 0.8);
    assert_near(packets(self), 26, 1e-6);
    acks(self, 2, 0.3);
    assert_near(self->cc.cwnd_bytes, mrd_cc_bdp_bytes(&self->cc, BASE_NS), 1);
}

/* In a deep queue what a cut does shows after an RTT of many base RTTs: no second cut before. */
TEST_F(cc_fixture, nscc_ack__cuts_once_an_rtt)
{
    leave_slow_start(self, 70);
    self->ack.rtt_ns = self->ack.srtt_ns = 8 * BASE_NS;
    self->cc.delay_ns = 7 * BASE_NS;
    self->cc.delay_valid = true;
    acks(self, 1, 0);
    double once = packets(self);
    assert_near(once, 35, 0.5);
    acks(self, 15, 0.95);
    assert_true(packets(self) >= once);
    acks(self, 1, 0.1);
    assert_true(packets(self) < once);
}

/* One of eight paths is hot: an eighth of the packets marked and late. The window is not cut. */
TEST_F(cc_fixture, nscc_ack__hot_path_does_not_cut)
{
    leave_slow_start(self, 40);
    self->ack.acked_packets = self->ack.counted_packets = 1;
    self->ack.srtt_ns = 2 * BASE_NS;
    for (int i = 0; i < 8000; i++) {
        double before = self->cc.cwnd_bytes;
        bool hot = i % 8 == 0;

        self->ack.ce_packets = hot;
        self->ack.rtt_ns = hot ? 9 * BASE_NS : BASE_NS;
        acks(self, 1, 1.0 / 40);
        assert_true(self->cc.cwnd_bytes >= before);
    }
}

/* One ack at a tiny window does not make a burst. */
TEST_F(cc_fixture, nscc_ack__never_faster_than_slow_start)
{
    leave_slow_start(self, 0.05);
    self->cc.round_end_ns = UINT64_MAX;
    self->ack.acked_packets = self->ack.counted_packets = 1;
    acks(self, 1, 1);
    assert_near(packets(self), 1.05, 1e-9);
}

/* Unknown rate: late now and then is a host that woke up late, not a queue. */
TEST_F(cc_fixture, nscc_ack__late_wakeups_do_not_cut)
{
    begin_with(self, "nscc", &sockets, 100);
    self->ack.srtt_ns = 100000;
    for (int i = 0; i < 2000; i++) {
        double before = self->cc.cwnd_bytes;

        self->ack.rtt_ns = i % 4 ? 2 * MSEC_NS : 15000;
        acks(self, 1, 0.3);
        assert_true(self->cc.cwnd_bytes >= before);
    }
}

/* Unknown rate: delay alone, however long, leaves the start window; marks or much loss do not. */
TEST_F(cc_fixture, nscc_ack__delay_alone_leaves_start_window)
{
    for (int worse = 0; worse < 3; worse++) {
        begin_with(self, "nscc", &sockets, 100);
        acks(self, 1, 1);
        self->ack.rtt_ns = self->ack.srtt_ns = MSEC_NS;
        self->ack.ce_packets = worse == 1 ? 4 : 0;
        for (int i = 0; i < 100; i++) {
            acks(self, 1, 1);
            if (worse == 2)
                lose(self, 2);
        }
        if (worse == 0)
            assert_near(self->cc.cwnd_bytes, START, 1);
        else
            assert_true(self->cc.cwnd_bytes < START / 4);
    }
}

/* Unknown rate: what a loss took below the start window comes back, though the delay stays long. */
TEST_F(cc_fixture, nscc_ack__delay_does_not_hold_below_the_start_window)
{
    begin_with(self, "nscc", &sockets, 20);
    acks(self, 1, 1);
    self->ack.rtt_ns = self->ack.srtt_ns = MSEC_NS;
    self->cc.nscc.watch.pause = 1000;
    acks(self, 40, 10);
    leave_slow_start(self, START / PACKET / 2.0);
    acks(self, 160, 40);
    assert_true(self->cc.cwnd_bytes > 0.95 * START);
}
