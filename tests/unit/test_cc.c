/* SPDX-License-Identifier: BSD-2-Clause */
/* What the congestion control policies share, and the two simplest ones. */
#include "mrd/mrd.h"
#include "tests/kit/kit.h"
#include "tests/unit/cc_fixture.h"

TEST_F(cc_fixture, mrd_cc_find__by_name)
{
    assert_ptr_equal(mrd_cc_find(NULL), &mrd_cc_nscc);
    assert_ptr_equal(mrd_cc_find("nscc"), &mrd_cc_nscc);
    assert_ptr_equal(mrd_cc_find("dctcp"), &mrd_cc_dctcp);
    assert_ptr_equal(mrd_cc_find("swift"), &mrd_cc_swift);
    assert_ptr_equal(mrd_cc_find("none"), &mrd_cc_none);
    assert_null(mrd_cc_find("cubic"));
}

TEST(mrd_cc_names__each_is_found)
{
    const char *const *names = mrd_cc_names();

    assert_string_equal(names[0], mrd_cc_find(NULL)->name);
    for (; *names; names++)
        assert_string_equal(mrd_cc_find(*names)->name, *names);
}

TEST_F(cc_fixture, mrd_cc_init__start_window)
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

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(self, "nscc", &table[i].config);
        assert_near(self->cc.cwnd_bytes, table[i].expect_bytes, 1);
        assert_true(self->cc.slow_start);
    }
}

/* The first loss takes memory for what losses tell. It comes back with the window, once. */
TEST_F(cc_fixture, mrd_cc_fini__gives_back_what_was_learnt)
{
    begin(self, "nscc", &sockets);
    assert_int_equal(cc_alloc.live_bytes, 0);
    lose(self, 1);
    assert_int_equal(cc_alloc.live_bytes, sizeof(*self->cc.losses));
    mrd_cc_fini(&self->cc);
    assert_int_equal(cc_alloc.live_bytes, 0);
    assert_null(self->cc.losses);
}

TEST_F(cc_fixture, mrd_cc_base_rtt_ns__within_bounds)
{
    assert_int_equal(mrd_cc_base_rtt_ns(&self->cc, 0), BASE_NS);
    assert_int_equal(mrd_cc_base_rtt_ns(&self->cc, 9000), 9000);
    assert_int_equal(mrd_cc_base_rtt_ns(&self->cc, 70000), 12000);
    begin(self, "nscc", &(struct mrd_cc_config){0});
    assert_int_equal(mrd_cc_base_rtt_ns(&self->cc, 0), 0);
    assert_int_equal(mrd_cc_base_rtt_ns(&self->cc, 70000), 70000);
}

TEST_F(cc_fixture, mrd_cc_bdp_bytes__link_or_start_window)
{
    assert_near(mrd_cc_bdp_bytes(&self->cc, BASE_NS), BDP_BYTES, 1);
    begin(self, "nscc", &sockets);
    assert_near(mrd_cc_bdp_bytes(&self->cc, 0), START / 1.5, 1);
}

/* 8 packets each 10 us: 26.6 Gb/s, and with a base of at least 50 us a BDP of 166 kB. */
TEST_F(cc_fixture, mrd_cc_count__measures_delivered_rate)
{
    begin(self, "nscc", &sockets);
    self->ack.acked_packets = 8;
    self->ack.acked_bytes = 8 * PACKET;
    acks(self, 100, 100 * 10000.0 / BASE_NS);
    assert_near(self->cc.rate_bps, 8 * PACKET * 8e9 / 10000, 1e6);
    assert_near(mrd_cc_bdp_bytes(&self->cc, BASE_NS), 8 * PACKET * 5, 1000);
}

/* Ten limited round trips at a lower rate, and the higher one is forgotten; not before five. */
TEST_F(cc_fixture, mrd_cc_count__rate_is_windowed)
{
    begin(self, "nscc", &sockets);
    self->ack.acked_bytes = 40000;
    acks(self, 100, 100 * 10000.0 / BASE_NS);
    self->ack.acked_bytes = 4000;
    acks(self, 5 * 5, 25 * 10000.0 / BASE_NS);
    assert_near(self->cc.rate_bps, 32e9, 1e6);
    acks(self, 6 * 5, 30 * 10000.0 / BASE_NS);
    assert_near(self->cc.rate_bps, 3.2e9, 1e6);
}

/* `num` acks, so much time apart. */
static void count(struct cc_fixture *f, unsigned num, uint64_t apart_ns)
{
    for (; num; num--) {
        f->ack.now_ns += apart_ns;
        mrd_cc_count(&f->cc, &f->ack);
    }
}

/*
 * A mover's cap ends where more is on its way: what is measured and half of the cap, or in proportion to a way of up to
 * a millisecond, 4 of it. What late hosts add to the round trip counts, but not a queue that stands, nor, for the first,
 * what was taken for length.
 */
TEST_F(cc_fixture, mrd_cc_count__cap_by_what_is_on_its_way)
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

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        for (unsigned fast = 0; fast < 2; fast++) {
            double bps = fast ? 100e9 : 1e9, each = bps * 100000 / 8e9;
            double bytes = table[i].near * each + CAP / 2;

            if (bytes < table[i].far * each)
                bytes = table[i].far * each;
            begin(self, "nscc", &sockets);
            self->ack.rtt_min_ns = table[i].rtt_min_ns;
            self->ack.srtt_ns = self->ack.rtt_ns = table[i].srtt_ns;
            self->ack.acked_bytes = (uint32_t)(bps * (double)table[i].srtt_ns / 8e9);
            self->cc.delay_ns = table[i].delay_ns;
            self->cc.length_ns = table[i].length_ns;
            count(self, 4, table[i].srtt_ns);
            assert_near(self->cc.cap_bytes, bytes > CAP ? bytes : CAP, bytes / 1000);
        }
    begin(self, "nscc", &fabric);
    self->ack.rtt_min_ns = self->ack.srtt_ns = MSEC_NS;
    acks(self, 8, 8);
    assert_near(self->cc.cap_bytes, MRD_CC_UNBOUNDED, 0);
}

/* While losses follow the window its cap is little more than what gets through in an SRTT. */
TEST_F(cc_fixture, mrd_cc_count__cap_where_losses_follow)
{
    begin(self, "nscc", &sockets);
    self->ack.srtt_ns = self->ack.rtt_ns = MSEC_NS;
    self->ack.rtt_min_ns = MSEC_NS / 2;
    self->cc.length_ns = MSEC_NS;
    self->ack.acked_bytes = 2 * CAP;
    lose(self, 1);
    assert_non_null(self->cc.losses);
    self->cc.losses->elastic.gain = 0.01;
    count(self, 4, MSEC_NS);
    assert_near(self->cc.cap_bytes, 2.2 * CAP, CAP / 1000.0);
    self->cc.losses->elastic.gain = 0;
    count(self, 1, MSEC_NS);
    assert_near(self->cc.cap_bytes, 8.0 * CAP, CAP / 100.0);
}

/* An idle application says nothing about the way. */
TEST_F(cc_fixture, mrd_cc_count__idle_keeps_rate)
{
    begin(self, "nscc", &sockets);
    self->ack.acked_bytes = 40000;
    acks(self, 100, 100 * 10000.0 / BASE_NS);
    self->ack.acked_bytes = 64;
    self->ack.limited = false;
    self->ack.inflight_bytes = 64;
    acks(self, 1000, 100000);
    assert_near(self->cc.rate_bps, 32e9, 1e6);
}

/* The window follows use up to twice what is used, and no further. */
TEST_F(cc_fixture, mrd_cc_may_grow__application_limited)
{
    static const char *const names[] = {"nscc", "dctcp"};

    for (int k = 0; k < 2; k++) {
        begin(self, names[k], &sockets);
        self->ack.limited = false;
        self->ack.inflight_bytes = 10 * PACKET;
        acks(self, 1000, 100);
        assert_in_range((unsigned)packets(self), 15, 24);
        self->ack.limited = true;
        acks(self, 1000, 100);
        assert_true(self->cc.cwnd_bytes > 30 * PACKET);
    }
}

/* For an RTT after a cut acks are of packets sent before it; for two where only losses tell. */
TEST_F(cc_fixture, mrd_cc_may_grow__not_right_after_loss)
{
    for (unsigned rtts = 1; rtts <= 2; rtts++) {
        unsigned num = 10 * rtts - 1;

        begin_with(self, "nscc", &fabric, 40);
        self->cc.ce_seen = rtts == 1;
        lose(self, 10);
        acks(self, num, num / 10.0);
        assert_near(packets(self), 28, 1e-9);
        acks(self, 2, 0.2);
        assert_true(packets(self) > 28.1);
    }
}

TEST_F(cc_fixture, mrd_cc_losses__threshold_once_per_rtt)
{
    begin(self, "none", &fabric);
    assert_false(mrd_cc_count_losses(&self->cc, 3, 4, 1000, 100));
    assert_false(mrd_cc_count_losses(&self->cc, 3, 4, 1100, 100)); /* another RTT */
    assert_true(mrd_cc_count_losses(&self->cc, 1, 4, 1199, 100));
    assert_false(mrd_cc_count_losses(&self->cc, 100, 4, 1298, 100)); /* sent before the cut */
    assert_true(mrd_cc_count_losses(&self->cc, 4, 4, 1299, 100));
}

/* Guards hold at times beyond 32 bits of nanoseconds (trap: a wrapped timestamp). */
TEST_F(cc_fixture, mrd_cc_losses__late_clock)
{
    const uint64_t late_ns = UINT64_C(0xffffffff) - 50;

    begin(self, "none", &fabric);
    assert_true(mrd_cc_count_losses(&self->cc, 4, 4, late_ns, 100));
    assert_false(mrd_cc_count_losses(&self->cc, 4, 4, late_ns + 99, 100));
    assert_true(mrd_cc_count_losses(&self->cc, 4, 4, late_ns + 100, 100));
}

TEST_F(cc_fixture, mrd_cc_halve__not_below_one_packet)
{
    leave_slow_start(self, 6);
    self->cc.ops->timeout(&self->cc, MSEC_NS);
    assert_near(packets(self), 3, 1e-9);
    for (int i = 0; i < 10; i++)
        self->cc.ops->timeout(&self->cc, MSEC_NS);
    assert_near(packets(self), 1, 1e-9);
    leave_slow_start(self, 0.2);
    self->cc.ops->timeout(&self->cc, MSEC_NS);
    assert_near(packets(self), 0.2, 1e-9);
}

/* What is no queue adds to the BDP; a fabric whose longest way is known bounds it. */
TEST_F(cc_fixture, mrd_cc_queue_ns__length_counts_in_bdp)
{
    begin(self, "nscc", &far_fabric);
    self->ack.rtt_ns = self->ack.srtt_ns = 5 * BASE_NS;
    self->ack.queue_valid = true;
    self->ack.queue_ns = BASE_NS;
    acks(self, 1, 0);
    assert_near(mrd_cc_bdp_bytes(&self->cc, BASE_NS), 4.0 * BDP_BYTES, 1);
    begin(self, "nscc", &fabric);
    self->ack.rtt_ns = 5 * BASE_NS;
    self->ack.queue_valid = true;
    acks(self, 1, 0);
    assert_near(mrd_cc_bdp_bytes(&self->cc, BASE_NS), 1.5 * BDP_BYTES, 1);
}

/* Part of the delay was the way's length. The rest may be as well: ask again soon. */
TEST_F(cc_fixture, mrd_cc_calibrated__asks_again_soon)
{
    static const struct {
        double after_ns;
        uint32_t rest;
    } table[] = {{900, 0}, {100, 16}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_with(self, "nscc", &far_fabric, 40);
        acks(self, 1, 1);
        self->cc.nscc.watch =
            (struct mrd_cc_watch){.rest = 256, .before_ns = 1000, .after_ns = table[i].after_ns};
        mrd_cc_calibrated(&self->cc, 10000);
        assert_int_equal(self->cc.nscc.watch.rest, table[i].rest);
        assert_near(self->cc.length_ns, 10000, 1e-9);
        assert_near(self->cc.delay_ns, 0, 1e-9);
        assert_false(self->cc.slow_start);
    }
    mrd_cc_calibrated(&self->cc, 100000);
    assert_true(self->cc.slow_start);
}

/* All that was declared lost came: the window is as it was. */
TEST_F(cc_fixture, mrd_cc_found__undoes_the_cut)
{
    leave_slow_start(self, 40);
    lose(self, 10);
    assert_near(packets(self), 28, 1e-9);
    for (int i = 0; i < 9; i++)
        mrd_cc_found(&self->cc);
    assert_near(packets(self), 28, 1e-9);
    mrd_cc_found(&self->cc);
    assert_near(packets(self), 40, 1e-9);
    mrd_cc_found(&self->cc);
    assert_near(packets(self), 40, 1e-9);
}

/* Marks in a tenth of the packets: alpha comes to 0.1, and the window is cut by 1/20 an RTT. */
TEST_F(cc_fixture, dctcp_ack__alpha)
{
    begin(self, "dctcp", &fabric);
    self->ack.acked_packets = self->ack.counted_packets = 10;
    self->ack.ce_packets = 1;
    acks(self, 200, 200);
    assert_near(self->cc.ce_ewma, 0.1, 1e-3);
    leave_slow_start(self, 50);
    acks(self, 1, 1);
    assert_near(packets(self), 50 * 0.95 + 10 / 47.5, 0.05);
}

TEST_F(cc_fixture, dctcp_lost__halves)
{
    begin_with(self, "dctcp", &fabric, 40);
    lose(self, 1);
    assert_near(packets(self), 20, 1e-9);
    begin_with(self, "dctcp", &fabric, 40);
    self->cc.ce_seen = true; /* marks tell of congestion here */
    lose(self, 9);
    assert_near(packets(self), 40, 1e-9);
    lose(self, 1);
    assert_near(packets(self), 20, 1e-9);
}

/* Neither acks nor losses nor timeouts change the window of fixed. */
TEST_F(cc_fixture, fixed_ack__constant)
{
    struct mrd_tune tune = mrd_tune_default;
    struct mrd_cc_config config = fabric;

    assert_int_equal(mrd_tune_set(&tune, "fixed.window_packets", 20), 0);
    config.tune = &tune;
    begin(self, "fixed", &config);
    for (int i = 0; i < 100; i++) {
        assert_near(self->cc.cwnd_bytes, 20 * PACKET, 1);
        acks(self, 10, 1);
        lose(self, 10);
        self->cc.ops->timeout(&self->cc, self->ack.now_ns);
    }
    config.cwnd_cap_bytes = 5 * PACKET;
    begin(self, "fixed", &config);
    assert_near(self->cc.cwnd_bytes, 5 * PACKET, 1);
}

TEST_F(cc_fixture, none_ack__constant)
{
    begin(self, "none", &sockets);
    assert_near(self->cc.cwnd_bytes, CAP, 1e-9);
    self->ack.ce_packets = 4;
    acks(self, 100, 10);
    lose(self, 100);
    self->cc.ops->timeout(&self->cc, MSEC_NS);
    assert_near(self->cc.cwnd_bytes, CAP, 1e-9);
    begin(self, "none", &fabric);
    acks(self, 1, 1);
    assert_near(self->cc.cwnd_bytes, 3.0 * BDP_BYTES, 1);
}
