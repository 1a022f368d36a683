/* SPDX-License-Identifier: BSD-2-Clause */
/* What the congestion control policies share, and the two simplest ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrd/mrd.h"
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

static void mrd_cc_names__each_is_found(void **state)
{
    const char *const *names = mrd_cc_names();

    (void)state;
    assert_string_equal(names[0], mrd_cc_find(NULL)->name);
    for (; *names; names++)
        assert_string_equal(mrd_cc_find(*names)->name, *names);
}

static void mrd_cc_init__start_window(void **state)
{
    static const struct {
        struct mrd_cc_config config;
        double expect_bytes;
    } table[] = {
        {{.link_bps = LINK_BPS, .base_rtt_ns = BASE_NS}, 150000},
        {{.link_bps = LINK_BPS, .base_rtt_max_ns = 12000}, 225000},
        {{.link_bps = LINK_BPS}, 187500},
        {{.cwnd_start_bytes = START}, START},
        {{0}, 10 * PACKET},
        {{.cwnd_start_bytes = START, .cwnd_cap_bytes = 10000}, 10000},
    };
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, "nscc", &table[i].config);
        assert_near(f->cc.cwnd_bytes, table[i].expect_bytes, 1);
        assert_true(f->cc.slow_start);
    }
}

/* The first loss takes memory for what losses tell. It comes back with the window, once. */
static void mrd_cc_fini__gives_back_what_was_learnt(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    assert_int_equal(cc_alloc.live_bytes, 0);
    lose(f, 1);
    assert_int_equal(cc_alloc.live_bytes, sizeof(*f->cc.losses));
    mrd_cc_fini(&f->cc);
    assert_int_equal(cc_alloc.live_bytes, 0);
    assert_null(f->cc.losses);
}

static void mrd_cc_base_rtt_ns__within_bounds(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &fabric);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 0), BASE_NS);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 9000), 9000);
    assert_int_equal(mrd_cc_base_rtt_ns(&f->cc, 70000), 12000);
    begin(f, "nscc", &(struct mrd_cc_config){0});
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

/*
 * A mover's cap ends where more is on its way: what is measured and half of the cap, or in proportion to a way of up to
 * a millisecond, 4 of it. What late hosts add to the round trip counts, but not a queue that stands, nor, for the first,
 * what was taken for length.
 */
static void mrd_cc_count__cap_by_what_is_on_its_way(void **state)
{
    static const struct {
        uint64_t rtt_min_ns, srtt_ns;
        double delay_ns, length_ns, near, far; /* bytes in 100 us */
    } table[] = {
        {1000000, 1000000, 0, 0, 10, 40},         {500000, 500000, 0, 0, 5, 10},
        {10000000, 10000000, 0, 0, 100, 400},     {100000, 100000, 0, 0, 1, 0.4},
        {100000, 200000, 100000, 0, 1, 0.4},      {100000, 200000, 50000, 120000, 1.3, 0.9},
        {100000, 300000, 100000, 200000, 1, 1.6}, {20000, 20000, 0, 0, 0.2, 0.016},
        {100000, 2000000, 0, 0, 20, 80},          {100000, 500000, 0, 0, 5, 10},
        {100000, 5000000, 3000000, 0, 20, 80},    {2000000, 5000000, 4000000, 0, 20, 80}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        for (unsigned fast = 0; fast < 2; fast++) {
            double bps = fast ? 100e9 : 1e9, each = bps * 100000 / 8e9;
            double bytes = table[i].near * each + CAP / 2;

            if (bytes < table[i].far * each)
                bytes = table[i].far * each;
            begin(f, "nscc", &sockets);
            f->ack.rtt_min_ns = table[i].rtt_min_ns;
            f->ack.srtt_ns = f->ack.rtt_ns = table[i].srtt_ns;
            f->ack.acked_bytes = (uint32_t)(bps * (double)table[i].srtt_ns / 8e9);
            f->cc.delay_ns = table[i].delay_ns;
            f->cc.length_ns = table[i].length_ns;
            for (unsigned k = 0; k < 4; k++) {
                f->ack.now_ns += table[i].srtt_ns;
                mrd_cc_count(&f->cc, &f->ack);
            }
            assert_near(f->cc.cap_bytes, bytes > CAP ? bytes : CAP, bytes / 1000);
        }
    begin(f, "nscc", &fabric);
    f->ack.rtt_min_ns = f->ack.srtt_ns = MSEC_NS;
    acks(f, 8, 8);
    assert_near(f->cc.cap_bytes, MRD_CC_UNBOUNDED, 0);
}

/* While losses follow the window its cap is little more than what gets through in an SRTT. */
static void mrd_cc_count__cap_where_losses_follow(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "nscc", &sockets);
    f->ack.srtt_ns = f->ack.rtt_ns = MSEC_NS;
    f->ack.rtt_min_ns = MSEC_NS / 2;
    f->cc.length_ns = MSEC_NS;
    f->ack.acked_bytes = 2 * CAP;
    lose(f, 1);
    assert_non_null(f->cc.losses);
    f->cc.losses->elastic.gain = 0.01;
    for (unsigned k = 0; k < 4; k++) {
        f->ack.now_ns += MSEC_NS;
        mrd_cc_count(&f->cc, &f->ack);
    }
    assert_near(f->cc.cap_bytes, 2.2 * CAP, CAP / 1000.0);
    f->cc.losses->elastic.gain = 0;
    f->ack.now_ns += MSEC_NS;
    mrd_cc_count(&f->cc, &f->ack);
    assert_near(f->cc.cap_bytes, 8.0 * CAP, CAP / 100.0);
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
    assert_false(mrd_cc_count_losses(&f->cc, 3, 4, 1000, 100));
    assert_false(mrd_cc_count_losses(&f->cc, 3, 4, 1100, 100)); /* another RTT */
    assert_true(mrd_cc_count_losses(&f->cc, 1, 4, 1199, 100));
    assert_false(mrd_cc_count_losses(&f->cc, 100, 4, 1298, 100)); /* sent before the cut */
    assert_true(mrd_cc_count_losses(&f->cc, 4, 4, 1299, 100));
}

/* Guards hold at times beyond 32 bits of nanoseconds (trap: a wrapped timestamp). */
static void mrd_cc_losses__late_clock(void **state)
{
    struct cc_fixture *f = *state;
    const uint64_t late_ns = UINT64_C(0xffffffff) - 50;

    begin(f, "none", &fabric);
    assert_true(mrd_cc_count_losses(&f->cc, 4, 4, late_ns, 100));
    assert_false(mrd_cc_count_losses(&f->cc, 4, 4, late_ns + 99, 100));
    assert_true(mrd_cc_count_losses(&f->cc, 4, 4, late_ns + 100, 100));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_cc_find__by_name),
        cmocka_unit_test(mrd_cc_names__each_is_found),
        cmocka_unit_test(mrd_cc_init__start_window),
        cmocka_unit_test(mrd_cc_fini__gives_back_what_was_learnt),
        cmocka_unit_test(mrd_cc_base_rtt_ns__within_bounds),
        cmocka_unit_test(mrd_cc_bdp_bytes__link_or_start_window),
        cmocka_unit_test(mrd_cc_count__measures_delivered_rate),
        cmocka_unit_test(mrd_cc_count__rate_is_windowed),
        cmocka_unit_test(mrd_cc_count__cap_by_what_is_on_its_way),
        cmocka_unit_test(mrd_cc_count__cap_where_losses_follow),
        cmocka_unit_test(mrd_cc_count__idle_keeps_rate),
        cmocka_unit_test(mrd_cc_may_grow__application_limited),
        cmocka_unit_test(mrd_cc_may_grow__not_right_after_loss),
        cmocka_unit_test(mrd_cc_losses__threshold_once_per_rtt),
        cmocka_unit_test(mrd_cc_losses__late_clock),
        cmocka_unit_test(mrd_cc_halve__not_below_one_packet),
        cmocka_unit_test(mrd_cc_queue_ns__length_counts_in_bdp),
        cmocka_unit_test(mrd_cc_learnt__asks_again_soon),
        cmocka_unit_test(mrd_cc_found__undoes_the_cut),
        cmocka_unit_test(dctcp_ack__alpha),
        cmocka_unit_test(dctcp_lost__halves),
        cmocka_unit_test(none_ack__constant),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
