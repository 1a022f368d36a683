/* SPDX-License-Identifier: BSD-2-Clause */
/* The nscc policy: how the window grows, and what delay and marks take from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cc_fixture.h"

/* A packet for each acked one, up to 3 BDP. */
static void nscc_ack__slow_start(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    double start = packets(f);
    acks(f, 3, 0.3);
    assert_near(packets(f), start + 12, 0.01);
    acks(f, 100, 3);
    assert_near(f->cc.cwnd_bytes, 3.0 * BDP_BYTES, 1);
    assert_false(f->cc.slow_start);
}

static void nscc_ack__slow_start_ends(void **state)
{
    struct cc_fixture *f = *state;

    /* CE alone does not end it, CE with delay above half of the target does. */
    begin(f, "nscc", &fabric);
    f->ack.ce_packets = 1;
    acks(f, 1, 0.1);
    assert_true(f->cc.slow_start);
    f->ack.rtt_ns = 3 * BASE_NS;
    acks(f, 10, 0.5);
    assert_false(f->cc.slow_start);

    begin(f, "nscc", &fabric);
    lose(f, 1);
    assert_true(f->cc.slow_start);
    lose(f, 1);
    assert_false(f->cc.slow_start);

    /* A round trip in which nearly all was marked. */
    begin(f, "nscc", &fabric);
    f->ack.ce_packets = 4;
    f->ack.acked_packets = 1;
    acks(f, 8, 2);
    assert_false(f->cc.slow_start);
    assert_true(f->cc.cwnd_bytes < 2.0 * BDP_BYTES);
}

/*
 * +8a (target - d) / target / cwnd a packet: a is 0.668 packets, d is 0, the window 40: 0.134
 * a packet.
 */
static void nscc_ack__grows_below_target(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->cc.round_end_ns = UINT64_MAX;
    acks(f, 1, 0.1);
    assert_near(packets(f), 40 + 4 * 8 * (BDP_BYTES / 36.0 / PACKET) / 40, 1e-3);
}

static void nscc_ack__holds_on_mark_below_target(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->cc.round_end_ns = UINT64_MAX;
    f->ack.ce_packets = 4;
    f->ack.rtt_ns = 2 * BASE_NS;
    acks(f, 10, 0.5);
    assert_near(packets(f), 40, 1e-9);
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
static void nscc_ack__grows_by_marks(void **state)
{
    static const struct {
        double share, times;
    } rows[] = {{0, 40.25}, {0.25, 10.25}, {0.5, 0.25}, {0.75, 0.25}};
    struct cc_fixture *f = *state;
    double unit = BDP_BYTES / 100.0 / PACKET;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(f, "nscc", &fabric);
        see_marks(f, 40, rows[i].share);
        f->cc.delay_ns = 5 * BASE_NS;
        f->cc.delay_valid = true;
        f->ack.rtt_ns = 6 * BASE_NS;
        acks(f, 1, 0.1);
        assert_near(packets(f), 40 + 4 * rows[i].times * unit / 40, 1e-6);
        f->ack.ce_packets = 3; /* the others do not grow it */
        leave_slow_start(f, 40);
        acks(f, 1, 0.1);
        assert_near(packets(f), 40 + rows[i].times * unit / 40, 1e-6);
    }
}

/* All marked in this RTT and most of late, and a delay of 4 base RTTs: an incast, cut as by delay. */
static void nscc_ack__cuts_for_an_incast(void **state)
{
    static const struct {
        double share, share_rtt;
        bool cut;
    } rows[] = {{1, 0.9, true}, {0.4, 1, false}, {1, 0.8, false}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(f, "nscc", &fabric);
        see_marks(f, 40, rows[i].share);
        f->cc.ce_rtt = rows[i].share_rtt;
        f->cc.delay_ns = 4 * BASE_NS;
        f->cc.delay_valid = true;
        f->ack.rtt_ns = 5 * BASE_NS;
        f->ack.ce_packets = 4;
        acks(f, 1, 0.1);
        assert_near(packets(f), rows[i].cut ? 40 * (1 - 0.8 * (4 - 2.25) / 4) : 40, 1e-6);
    }
}

/* Unknown rate: u is 4 packets for an RTT of 200 us, for others in proportion, from 30 us to 1.2 ms. */
static void nscc_ack__grows_by_marks_where_the_rate_is_unknown(void **state)
{
    static const struct {
        uint64_t srtt_ns;
        double unit;
    } rows[] = {{10000, 0.6}, {100000, 2}, {400000, 8}, {5000000, 24}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(f, "nscc", &sockets);
        see_marks(f, 100, 0.5);
        f->ack.rtt_ns = f->ack.srtt_ns = rows[i].srtt_ns;
        acks(f, 1, 0);
        assert_near(packets(f), 100 + 4 * 0.25 * rows[i].unit / 100, 1e-6);
    }
}

/* More than half marked, RTT after RTT: x (1 - ((share - 0.5) / 0.5)^2 / 4) an RTT. Half is no reason. */
static void nscc_ack__cuts_for_marks(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 4;
    acks(f, 30, 3);
    assert_true(packets(f) > 39); /* three round trips are not yet a habit */
    acks(f, 200, 20);
    assert_true(packets(f) < 2);

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 3;
    acks(f, 300, 30);
    f->cc.cwnd_bytes = 40 * PACKET;
    f->cc.ce_ewma = 0.75;
    f->cc.round_end_ns = f->ack.now_ns;
    acks(f, 1, 0);
    /* And 0.12 a, a being a BDP / 36, and 0.25 u for the packet that is not marked. */
    assert_near(packets(f),
                (40 + 0.12 * (BDP_BYTES / 36.0 / PACKET)) * (1 - 0.0625) +
                    0.25 * (BDP_BYTES / 100.0 / PACKET) / 40,
                0.01);

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 2;
    acks(f, 130, 13);
    assert_true(packets(f) >= 40);
}

/* Few marks in an RTT: what the mean still holds of earlier ones had its cuts. */
static void nscc_ack__old_marks_do_not_cut(void **state)
{
    struct cc_fixture *f = *state;
    double before;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 4;
    acks(f, 100, 10);
    f->ack.ce_packets = 0;
    acks(f, 10, 1); /* the last marks are of this round */
    before = packets(f);
    assert_true(f->cc.ce_ewma > 0.6);
    acks(f, 10, 1);
    assert_true(packets(f) >= before);
}

/* Where packets can be marked they leave at 1.25 windows an SRTT: all if the rate is unknown, else of a small window. */
static void nscc_pace__by_marks(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 1.5);
    assert_near(f->cc.ops->pace(&f->cc), 0, 1e-9);
    see_marks(f, 1.5, 0);
    assert_near(f->cc.ops->pace(&f->cc), 1.25, 1e-9);
    see_marks(f, 2, 0);
    assert_near(f->cc.ops->pace(&f->cc), 0, 1e-9);

    begin(f, "nscc", &sockets);
    leave_slow_start(f, 100);
    assert_near(f->cc.ops->pace(&f->cc), 0, 1e-9);
    see_marks(f, 100, 0);
    assert_near(f->cc.ops->pace(&f->cc), 1.25, 1e-9);
}

/* Late where nothing ever marks: x (1 - 0.8 (d - target) / d), once an RTT, and not below a BDP. */
static void nscc_ack__cuts_above_target(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->cc.round_end_ns = UINT64_MAX;
    f->cc.delay_ns = 4 * BASE_NS;
    f->ack.rtt_ns = 5 * BASE_NS;
    acks(f, 1, 0.1);
    assert_near(packets(f), 40 * (1 - 0.8 * (4 - 2.25) / 4), 1e-6);
    acks(f, 8, 0.8);
    assert_near(packets(f), 26, 1e-6);
    acks(f, 2, 0.3);
    assert_near(f->cc.cwnd_bytes, mrd_cc_bdp_bytes(&f->cc, BASE_NS), 1);
}

/*
 * In a deep queue the RTT is many base RTTs, and what a cut does shows only after one: no second
 * cut before.
 */
static void nscc_ack__cuts_once_an_rtt(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 70);
    f->ack.rtt_ns = f->ack.srtt_ns = 8 * BASE_NS;
    f->cc.delay_ns = 7 * BASE_NS;
    f->cc.delay_valid = true;
    acks(f, 1, 0);
    double once = packets(f);
    assert_near(once, 35, 0.5);
    acks(f, 15, 0.95);
    assert_true(packets(f) >= once);
    acks(f, 1, 0.1);
    assert_true(packets(f) < once);
}

/* One of eight paths is hot: an eighth of the packets marked and late. The window is not cut. */
static void nscc_ack__hot_path_does_not_cut(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.acked_packets = f->ack.counted_packets = 1;
    f->ack.srtt_ns = 2 * BASE_NS;
    for (int i = 0; i < 8000; i++) {
        double before = f->cc.cwnd_bytes;
        bool hot = i % 8 == 0;

        f->ack.ce_packets = hot;
        f->ack.rtt_ns = hot ? 9 * BASE_NS : BASE_NS;
        acks(f, 1, 1.0 / 40);
        assert_true(f->cc.cwnd_bytes >= before);
    }
}

/* One ack at a tiny window does not make a burst. */
static void nscc_ack__never_faster_than_slow_start(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 0.05);
    f->cc.round_end_ns = UINT64_MAX;
    f->ack.acked_packets = f->ack.counted_packets = 1;
    acks(f, 1, 1);
    assert_near(packets(f), 1.05, 1e-9);
}

/* Unknown rate: late now and then is a host that woke up late, not a queue. */
static void nscc_ack__late_wakeups_do_not_cut(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    leave_slow_start(f, 100);
    f->ack.srtt_ns = 100000;
    for (int i = 0; i < 2000; i++) {
        double before = f->cc.cwnd_bytes;

        f->ack.rtt_ns = i % 4 ? 2 * MSEC_NS : 15000;
        acks(f, 1, 0.3);
        assert_true(f->cc.cwnd_bytes >= before);
    }
}

/* Unknown rate: delay alone, however long, leaves the start window; marks or much loss do not. */
static void nscc_ack__delay_alone_leaves_start_window(void **state)
{
    struct cc_fixture *f = *state;

    for (int worse = 0; worse < 3; worse++) {
        begin(f, "nscc", &sockets);
        leave_slow_start(f, 100);
        acks(f, 1, 1);
        f->ack.rtt_ns = f->ack.srtt_ns = MSEC_NS;
        f->ack.ce_packets = worse == 1 ? 4 : 0;
        for (int i = 0; i < 100; i++) {
            acks(f, 1, 1);
            if (worse == 2)
                lose(f, 2);
        }
        if (worse == 0)
            assert_near(f->cc.cwnd_bytes, START, 1);
        else
            assert_true(f->cc.cwnd_bytes < START / 4);
    }
}

/*
 * Unknown rate: what a loss took below the start window comes back, though the delay is as long
 * as before.
 */
static void nscc_ack__delay_does_not_hold_below_the_start_window(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    leave_slow_start(f, 20);
    acks(f, 1, 1);
    f->ack.rtt_ns = f->ack.srtt_ns = MSEC_NS;
    f->cc.watch.pause = 1000;
    acks(f, 40, 10);
    leave_slow_start(f, START / PACKET / 2.0);
    acks(f, 160, 40);
    assert_true(f->cc.cwnd_bytes > 0.95 * START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nscc_ack__slow_start),
        cmocka_unit_test(nscc_ack__slow_start_ends),
        cmocka_unit_test(nscc_ack__grows_below_target),
        cmocka_unit_test(nscc_ack__holds_on_mark_below_target),
        cmocka_unit_test(nscc_ack__grows_by_marks),
        cmocka_unit_test(nscc_ack__grows_by_marks_where_the_rate_is_unknown),
        cmocka_unit_test(nscc_ack__cuts_for_marks),
        cmocka_unit_test(nscc_ack__cuts_for_an_incast),
        cmocka_unit_test(nscc_ack__old_marks_do_not_cut),
        cmocka_unit_test(nscc_pace__by_marks),
        cmocka_unit_test(nscc_ack__cuts_above_target),
        cmocka_unit_test(nscc_ack__cuts_once_an_rtt),
        cmocka_unit_test(nscc_ack__hot_path_does_not_cut),
        cmocka_unit_test(nscc_ack__never_faster_than_slow_start),
        cmocka_unit_test(nscc_ack__late_wakeups_do_not_cut),
        cmocka_unit_test(nscc_ack__delay_alone_leaves_start_window),
        cmocka_unit_test(nscc_ack__delay_does_not_hold_below_the_start_window),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
