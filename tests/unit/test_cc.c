/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cc_fixture.h"

static void mrd_cc_find__by_name(void **state)
{
    (void)state;
    assert_ptr_equal(mrd_cc_find(NULL), &mrd_cc_nscc);
    assert_ptr_equal(mrd_cc_find("nscc"), &mrd_cc_nscc);
    assert_ptr_equal(mrd_cc_find("dctcp"), &mrd_cc_dctcp);
    assert_ptr_equal(mrd_cc_find("swift"), &mrd_cc_swift);
    assert_ptr_equal(mrd_cc_find("none"), &mrd_cc_none);
    assert_null(mrd_cc_find("cubic"));
}

static void mrd_cc_init__start_window(void **state)
{
    static const struct {
        struct mrd_cc_config config;
        double expect_bytes;
    } table[] = {
        {{.packet_bytes = PACKET, .link_bps = LINK_BPS, .base_rtt_ns = BASE_NS}, 150000},
        {{.packet_bytes = PACKET, .link_bps = LINK_BPS, .base_rtt_max_ns = 12000}, 225000},
        {{.packet_bytes = PACKET, .link_bps = LINK_BPS}, 187500},
        {{.packet_bytes = PACKET, .cwnd_start_bytes = START}, START},
        {{.packet_bytes = PACKET}, 10 * PACKET},
        {{.packet_bytes = PACKET, .cwnd_start_bytes = START, .cwnd_cap_bytes = 10000}, 10000},
    };
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, "nscc", &table[i].config);
        assert_near(f->cc.cwnd_bytes, table[i].expect_bytes, 1);
        assert_true(f->cc.slow_start);
    }
}

static void mrd_cc_base_rtt_ns__within_bounds(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 0), BASE_NS);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 9000), 9000);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 70000), 12000);
    begin(f, "nscc", &(struct mrd_cc_config){.packet_bytes = PACKET});
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 0), 0);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 70000), 70000);
}

static void mrd_cc_bdp_bytes__link_or_start_window(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    assert_near(mrd_cc_bdp_bytes(&f->cc, BASE_NS), BDP_BYTES, 1);
    begin(f, "nscc", &sockets);
    assert_near(mrd_cc_bdp_bytes(&f->cc, 0), START / 1.5, 1);
}

/* 8 packets each 10 us: 26.6 Gb/s, and with a base of at least 50 us a BDP of 166 kB. */
static void mrd_cc_count__measures_delivered_rate(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    f->ack.acked_packets = 8;
    f->ack.acked_bytes = 8 * PACKET;
    acks(f, 100, 100 * 10000.0 / BASE_NS);
    assert_near(f->cc.rate_bps, 8 * PACKET * 8e9 / 10000, 1e6);
    assert_near(mrd_cc_bdp_bytes(&f->cc, BASE_NS), 8 * PACKET * 5, 1000);
}

/* Ten limited round trips at a lower rate, and the higher one is forgotten; not before five. */
static void mrd_cc_count__rate_is_windowed(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    f->ack.acked_bytes = 40000;
    acks(f, 100, 100 * 10000.0 / BASE_NS);
    f->ack.acked_bytes = 4000;
    acks(f, 5 * 5, 25 * 10000.0 / BASE_NS);
    assert_near(f->cc.rate_bps, 32e9, 1e6);
    acks(f, 6 * 5, 30 * 10000.0 / BASE_NS);
    assert_near(f->cc.rate_bps, 3.2e9, 1e6);
}

/* An idle application says nothing about the way. */
static void mrd_cc_count__idle_keeps_rate(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    f->ack.acked_bytes = 40000;
    acks(f, 100, 100 * 10000.0 / BASE_NS);
    f->ack.acked_bytes = 64;
    f->ack.limited = false;
    f->ack.inflight_bytes = 64;
    acks(f, 1000, 100000);
    assert_near(f->cc.rate_bps, 32e9, 1e6);
}

/* The window follows use up to twice what is used, and no further. */
static void mrd_cc_may_grow__application_limited(void **state)
{
    static const char *const names[] = {"nscc", "dctcp"};
    struct cc_fixture *f = *state;

    for (int k = 0; k < 2; k++) {
        begin(f, names[k], &sockets);
        f->ack.limited = false;
        f->ack.inflight_bytes = 10 * PACKET;
        acks(f, 1000, 100);
        assert_in_range((unsigned)packets(f), 15, 24);
        f->ack.limited = true;
        acks(f, 1000, 100);
        assert_true(f->cc.cwnd_bytes > 30 * PACKET);
    }
}

/*
 * For an RTT after a cut by loss the acks are of packets sent before it; two where losses are all
 * that tells of queues.
 */
static void mrd_cc_may_grow__not_right_after_loss(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    lose(f, 10);
    acks(f, 19, 1.9);
    assert_near(packets(f), 28, 1e-9);
    acks(f, 2, 0.2);
    assert_true(packets(f) > 28.1);
    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->cc.ce_seen = true;
    lose(f, 10);
    acks(f, 9, 0.9);
    assert_near(packets(f), 28, 1e-9);
    acks(f, 2, 0.2);
    assert_true(packets(f) > 28.1);
}

static void mrd_cc_losses__threshold_once_per_rtt(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "none", &fabric);
    assert_false(mrd_cc_losses(&f->cc, 3, 4, 1000, 100));
    assert_false(mrd_cc_losses(&f->cc, 3, 4, 1100, 100)); /* another RTT */
    assert_true(mrd_cc_losses(&f->cc, 1, 4, 1199, 100));
    assert_false(mrd_cc_losses(&f->cc, 100, 4, 1298, 100)); /* sent before the cut */
    assert_true(mrd_cc_losses(&f->cc, 4, 4, 1299, 100));
}

/* Guards hold at times beyond 32 bits of nanoseconds (trap: a wrapped timestamp). */
static void mrd_cc_losses__late_clock(void **state)
{
    struct cc_fixture *f = *state;
    const uint64_t late_ns = UINT64_C(0xffffffff) - 50;

    begin(f, "none", &fabric);
    assert_true(mrd_cc_losses(&f->cc, 4, 4, late_ns, 100));
    assert_false(mrd_cc_losses(&f->cc, 4, 4, late_ns + 99, 100));
    assert_true(mrd_cc_losses(&f->cc, 4, 4, late_ns + 100, 100));
}

static void mrd_cc_halve__not_below_one_packet(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 6);
    f->cc.ops->timeout(&f->cc, MSEC_NS);
    assert_near(packets(f), 3, 1e-9);
    for (int i = 0; i < 10; i++)
        f->cc.ops->timeout(&f->cc, MSEC_NS);
    assert_near(packets(f), 1, 1e-9);
    leave_slow_start(f, 0.2);
    f->cc.ops->timeout(&f->cc, MSEC_NS);
    assert_near(packets(f), 0.2, 1e-9);
}

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

/* Unmarked and late, on a way that marks: a little growth. */
static void nscc_ack__creeps_above_target(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->cc.round_end_ns = UINT64_MAX;
    f->cc.ce_seen = true;
    f->cc.delay_ns = 5 * BASE_NS;
    f->ack.rtt_ns = 6 * BASE_NS;
    acks(f, 1, 0.1);
    assert_near(packets(f), 40 + 4 * 0.75 * (BDP_BYTES / 36.0 / PACKET) / 40, 1e-4);
}

/*
 * Late and marked, or late where nothing ever marks: x (1 - 0.8 (d - target) / d), once an RTT.
 * Without marks not below a BDP.
 */
static void nscc_ack__cuts_above_target(void **state)
{
    struct cc_fixture *f = *state;

    for (int marks = 0; marks < 2; marks++) {
        begin(f, "nscc", &fabric);
        leave_slow_start(f, 40);
        f->cc.round_end_ns = UINT64_MAX;
        f->cc.delay_ns = 4 * BASE_NS;
        f->ack.rtt_ns = 5 * BASE_NS;
        f->ack.ce_packets = marks;
        acks(f, 1, 0.1);
        assert_near(packets(f), 40 * (1 - 0.8 * (4 - 2.25) / 4), 1e-6);
        acks(f, 8, 0.8);
        assert_near(packets(f), 26, 1e-6);
        acks(f, 2, 0.3);
        if (marks)
            assert_near(packets(f), 26 * 0.65, 1e-6);
        else
            assert_near(f->cc.cwnd_bytes, mrd_cc_bdp_bytes(&f->cc, BASE_NS), 1);
    }
}

/*
 * In a deep queue the RTT is many base RTTs, and what a cut does shows only after one: no second
 * cut before.
 */
static void nscc_ack__cuts_once_an_rtt(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 1; /* below the share of an incast */
    f->ack.rtt_ns = f->ack.srtt_ns = 8 * BASE_NS;
    f->cc.delay_ns = 7 * BASE_NS;
    f->cc.delay_valid = true;
    acks(f, 1, 0);
    double once = packets(f);
    assert_true(once < 30);
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

/*
 * At least 0.85 of all packets marked, RTT after RTT: the last hop. x (1 - 0.3 share) an RTT even
 * at low delay.
 */
static void nscc_ack__incast_by_share_of_marks(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 4;
    acks(f, 30, 3);
    assert_true(packets(f) > 39); /* three round trips are not yet a habit */
    acks(f, 100, 10);
    assert_true(packets(f) < 10);

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    f->ack.ce_packets = 2;
    acks(f, 130, 13);
    assert_true(packets(f) >= 40);
}

/*
 * Losses of a quarter of the window in an RTT: x 0.7; fewer: nothing, for loss on one path of many
 * is not congestion.
 */
static void nscc_lost__quarter_of_window(void **state)
{
    static const struct {
        double window;
        uint32_t lost;
        double expect;
    } table[] = {{40, 9, 40},    {40, 10, 28},  {40, 40, 28}, {4, 1, 2.8},
                 {0.5, 1, 0.35}, {0.1, 1, 0.1}, {8, 1, 8}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, "nscc", &fabric);
        leave_slow_start(f, table[i].window);
        lose(f, table[i].lost);
        assert_near(packets(f), table[i].expect, 1e-9);
    }
}

/* The whole first flight lost: cut, but there is no RTT yet to pace less than a packet by. */
static void nscc_lost__first_flight(void **state)
{
    struct cc_fixture *f = *state;

    for (int k = 0; k < 2; k++) {
        begin(f, k ? "dctcp" : "nscc", &(struct mrd_cc_config){.packet_bytes = PACKET});
        f->ack.srtt_ns = f->ack.rtt_min_ns = 0;
        for (int i = 0; i < 100; i++)
            lose(f, 1);
        assert_near(packets(f), 1, 1e-9);
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
        f->ack.ce_packets = worse == 1 ? 1 : 0;
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
 * Marks in a tenth of the packets: alpha comes to 0.1, and the window is cut by a twentieth an RTT.
 */
static void dctcp_ack__alpha(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "dctcp", &fabric);
    f->ack.acked_packets = f->ack.counted_packets = 10;
    f->ack.ce_packets = 1;
    acks(f, 200, 200);
    assert_near(f->cc.ce_ewma, 0.1, 1e-3);
    leave_slow_start(f, 50);
    acks(f, 1, 1);
    assert_near(packets(f), 50 * 0.95 + 10 / 47.5, 0.05);
}

/*
 * The window is held while it is tested whether losses follow it. A network that marks ends the
 * test: it grows again.
 */
static void nscc_ack__a_mark_ends_the_test_of_losses(void **state)
{
    struct cc_fixture *f = *state;
    double held;

    begin(f, "nscc", &sockets);
    f->ack.srtt_ns = f->ack.rtt_ns = f->ack.rtt_min_ns = 50000;
    leave_slow_start(f, 40);
    for (unsigned i = 0; i < 50 && !f->cc.elastic.testing; i++) {
        acks(f, 10, 1.1);
        lose(f, 3);
    }
    assert_true(f->cc.elastic.testing);
    held = packets(f);
    f->ack.ce_packets = 1;
    acks(f, 1, 0.1);
    f->ack.ce_packets = 0;
    acks(f, 50, 5);
    assert_false(f->cc.elastic.testing);
    assert_true(packets(f) > 1.1 * held);
}

/*
 * Much is lost. The delay is the hosts' where it jumps from ack to ack and is at times none; else
 * it is a queue's, whether acks are late or not.
 */
static void nscc_ack__late_hosts_are_no_queue(void **state)
{
    static const struct {
        uint64_t least_ns, jump_ns;
        bool hosts;
    } table[] = {{140000, 1000, false},
                 {58000, 1000, false},
                 {160000, 180000, false},
                 {60000, 180000, true}};
    struct cc_fixture *f = *state;

    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        begin(f, "nscc", &sockets);
        f->ack.srtt_ns = 150000;
        f->ack.rtt_min_ns = 50000;
        leave_slow_start(f, 4);
        for (unsigned i = 0; i < 400; i++) {
            f->ack.rtt_ns = table[k].least_ns + i % 2 * table[k].jump_ns;
            acks(f, 1, 0.25);
            if (i % 8 == 0)
                lose(f, 4);
        }
        assert_int_equal(f->cc.jitter.hosts, table[k].hosts);
        if (table[k].hosts)
            assert_true(f->cc.elastic.testing || f->cc.elastic.gain > 0);
    }
    /* From now on it does not jump: a queue may have come. */
    f->ack.rtt_ns = 150000;
    acks(f, 400, 100);
    assert_false(f->cc.jitter.hosts);
}

static void dctcp_lost__halves(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "dctcp", &fabric);
    leave_slow_start(f, 40);
    lose(f, 1);
    assert_near(packets(f), 20, 1e-9);
    begin(f, "dctcp", &fabric);
    leave_slow_start(f, 40);
    f->cc.ce_seen = true; /* marks tell of congestion here */
    lose(f, 9);
    assert_near(packets(f), 40, 1e-9);
    lose(f, 1);
    assert_near(packets(f), 20, 1e-9);
}

static void none_ack__constant(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "none", &sockets);
    assert_near(f->cc.cwnd_bytes, CAP, 1e-9);
    f->ack.ce_packets = 4;
    acks(f, 100, 10);
    lose(f, 100);
    f->cc.ops->timeout(&f->cc, MSEC_NS);
    assert_near(f->cc.cwnd_bytes, CAP, 1e-9);
    begin(f, "none", &fabric);
    acks(f, 1, 1);
    assert_near(f->cc.cwnd_bytes, 3.0 * BDP_BYTES, 1);
}

static const struct mrd_cc_config far_fabric = {
    .packet_bytes = PACKET, .link_bps = LINK_BPS, .base_rtt_ns = BASE_NS};

/* What is no queue adds to the BDP; a fabric whose longest way is known bounds it. */
static void mrd_cc_queue_ns__length_counts_in_bdp(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &far_fabric);
    f->ack.rtt_ns = f->ack.srtt_ns = 5 * BASE_NS;
    f->ack.queue_valid = true;
    f->ack.queue_ns = BASE_NS;
    acks(f, 1, 0);
    assert_near(mrd_cc_bdp_bytes(&f->cc, BASE_NS), 4.0 * BDP_BYTES, 1);
    begin(f, "nscc", &fabric);
    f->ack.rtt_ns = 5 * BASE_NS;
    f->ack.queue_valid = true;
    acks(f, 1, 0);
    assert_near(mrd_cc_bdp_bytes(&f->cc, BASE_NS), 1.5 * BDP_BYTES, 1);
}

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
 * Part of the delay was the way's length. The rest of it may be as well: that is not left for long.
 */
static void mrd_cc_learnt__asks_again_soon(void **state)
{
    struct cc_fixture *f = *state;
    static const struct {
        double after_ns;
        uint32_t rest;
    } table[] = {{900, 0}, {100, 16}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, "nscc", &far_fabric);
        leave_slow_start(f, 40);
        acks(f, 1, 1);
        f->cc.watch =
            (struct mrd_cc_watch){.rest = 256, .before_ns = 1000, .after_ns = table[i].after_ns};
        mrd_cc_learnt(&f->cc, 10000);
        assert_int_equal(f->cc.watch.rest, table[i].rest);
        assert_near(f->cc.length_ns, 10000, 1e-9);
        assert_near(f->cc.delay_ns, 0, 1e-9);
        assert_false(f->cc.slow_start);
    }
    mrd_cc_learnt(&f->cc, 100000);
    assert_true(f->cc.slow_start);
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

/* All that was declared lost came: the window is as it was. */
static void mrd_cc_found__undoes_the_cut(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    leave_slow_start(f, 40);
    lose(f, 10);
    assert_near(packets(f), 28, 1e-9);
    for (int i = 0; i < 9; i++)
        mrd_cc_found(&f->cc);
    assert_near(packets(f), 28, 1e-9);
    mrd_cc_found(&f->cc);
    assert_near(packets(f), 40, 1e-9);
    mrd_cc_found(&f->cc);
    assert_near(packets(f), 40, 1e-9);
}

/*
 * A few losses while there is a queue cut by their share where nothing marks; without a queue, or
 * where a path fails, not.
 */
static void nscc_ack__cuts_by_share_of_loss(void **state)
{
    static const struct {
        uint64_t queue_ns;
        bool marks, fails, cut;
    } table[] = {{BASE_NS, false, false, true},
                 {0, false, false, false},
                 {BASE_NS, true, false, false},
                 {BASE_NS, false, true, false}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, "nscc", &far_fabric);
        leave_slow_start(f, 40);
        f->cc.ce_seen = table[i].marks;
        f->ack.limited = false;
        f->ack.inflight_bytes = 0;
        f->ack.queue_valid = true;
        f->ack.queue_ns = table[i].queue_ns;
        f->ack.rtt_ns = f->ack.srtt_ns = BASE_NS + table[i].queue_ns;
        acks(f, 20, 0.5);
        lose(f, 6);
        if (table[i].fails)
            mrd_cc_path_fails(&f->cc, f->ack.now_ns);
        acks(f, 1, 1);
        assert_true(table[i].cut ? packets(f) < 39 : packets(f) >= 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_cc_find__by_name),
        cmocka_unit_test(mrd_cc_init__start_window),
        cmocka_unit_test(mrd_cc_base_rtt_ns__within_bounds),
        cmocka_unit_test(mrd_cc_bdp_bytes__link_or_start_window),
        cmocka_unit_test(mrd_cc_count__measures_delivered_rate),
        cmocka_unit_test(mrd_cc_count__rate_is_windowed),
        cmocka_unit_test(mrd_cc_count__idle_keeps_rate),
        cmocka_unit_test(mrd_cc_may_grow__application_limited),
        cmocka_unit_test(mrd_cc_may_grow__not_right_after_loss),
        cmocka_unit_test(mrd_cc_losses__threshold_once_per_rtt),
        cmocka_unit_test(mrd_cc_losses__late_clock),
        cmocka_unit_test(mrd_cc_halve__not_below_one_packet),
        cmocka_unit_test(nscc_ack__slow_start),
        cmocka_unit_test(nscc_ack__slow_start_ends),
        cmocka_unit_test(nscc_ack__grows_below_target),
        cmocka_unit_test(nscc_ack__holds_on_mark_below_target),
        cmocka_unit_test(nscc_ack__creeps_above_target),
        cmocka_unit_test(nscc_ack__cuts_above_target),
        cmocka_unit_test(nscc_ack__cuts_once_an_rtt),
        cmocka_unit_test(nscc_ack__hot_path_does_not_cut),
        cmocka_unit_test(nscc_ack__incast_by_share_of_marks),
        cmocka_unit_test(nscc_lost__quarter_of_window),
        cmocka_unit_test(nscc_lost__first_flight),
        cmocka_unit_test(nscc_ack__never_faster_than_slow_start),
        cmocka_unit_test(nscc_ack__late_wakeups_do_not_cut),
        cmocka_unit_test(nscc_ack__delay_alone_leaves_start_window),
        cmocka_unit_test(dctcp_ack__alpha),
        cmocka_unit_test(nscc_ack__a_mark_ends_the_test_of_losses),
        cmocka_unit_test(nscc_ack__late_hosts_are_no_queue),
        cmocka_unit_test(dctcp_lost__halves),
        cmocka_unit_test(none_ack__constant),
        cmocka_unit_test(mrd_cc_queue_ns__length_counts_in_bdp),
        cmocka_unit_test(nscc_ack__asks_whether_it_is_our_queue),
        cmocka_unit_test(nscc_ack__drains_seldom_in_vain),
        cmocka_unit_test(nscc_ack__asks_at_the_cap),
        cmocka_unit_test(mrd_cc_learnt__asks_again_soon),
        cmocka_unit_test(nscc_ack__a_loss_ends_the_drain),
        cmocka_unit_test(nscc_ack__delay_does_not_hold_below_the_start_window),
        cmocka_unit_test(mrd_cc_found__undoes_the_cut),
        cmocka_unit_test(nscc_ack__cuts_by_share_of_loss),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
