/* SPDX-License-Identifier: BSD-2-Clause */
/* swift: one target of delay, which grows where the window is small. */
#include "tests/kit/kit.h"
#include "tests/unit/cc_fixture.h"

/* A fabric whose base RTT is the same everywhere. */
static const struct mrd_cc_config even = {
    .link_bps = LINK_BPS, .base_rtt_ns = BASE_NS, .base_rtt_max_ns = BASE_NS};

/* Acks whose round trips take `rtts` base RTTs: enough that the least of the samples is that. */
static void fill_delay(struct cc_fixture *f, double rtts)
{
    f->ack.rtt_ns = (uint64_t)(rtts * BASE_NS);
    f->cc.delay_valid = false;
    f->cc.least_delay = (struct mrd_cc_least){0};
}

static void begin_at(struct cc_fixture *f, double window_packets, double rtts)
{
    begin_with(f, "swift", &even, window_packets);
    fill_delay(f, rtts);
}

TEST_F(cc_fixture, swift_ack__slow_start_until_the_target)
{
    begin(self, "swift", &even);
    double start = packets(self);
    acks(self, 1, 1);
    assert_near(packets(self), start + 4, 1e-9);
    assert_true(self->cc.slow_start);
    fill_delay(self, 3);
    acks(self, 1, 1);
    assert_false(self->cc.slow_start);
}

/* A packet an RTT below the target, whatever the marks say. */
TEST_F(cc_fixture, swift_ack__grows_below_target)
{
    for (uint32_t ce = 0; ce <= 4; ce += 4) {
        begin_at(self, 40, 1.5);
        self->ack.ce_packets = ce;
        acks(self, 10, 1);
        assert_near(packets(self), 41, 0.02);
    }
}

/* Below one packet it grows by what is acked, not by its square. */
TEST_F(cc_fixture, swift_ack__grows_below_a_packet)
{
    begin_at(self, 0.25, 1.5);
    self->ack.acked_packets = 1;
    acks(self, 1, 1);
    assert_near(packets(self), 1.25, 1e-9);
}

/* At 100 packets the target is 2 base RTTs: beta times the share beyond, at most half. */
TEST_F(cc_fixture, swift_ack__cuts_above_target)
{
    static const struct {
        double rtts, factor;
    } table[] = {{2.5, 1 - 0.8 * 0.5 / 2.5}, {4, 1 - 0.8 * 2 / 4}, {20, 0.5}};
    struct mrd_cc_config config;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(self, 100, table[i].rtts);
        config = *self->cc.config;
        config.link_bps *= 4; /* room for such a window */
        self->cc.config = &config;
        self->cc.rate_bps *= 4;
        acks(self, 1, 1);
        assert_near(packets(self), 100 * table[i].factor, 1e-6);
    }
}

TEST_F(cc_fixture, swift_ack__cuts_once_per_rtt)
{
    begin_at(self, 50, 20);
    acks(self, 8, 0.9);
    assert_near(packets(self), 25, 1e-9);
    acks(self, 1, 0.3);
    assert_near(packets(self), 12.5, 1e-9);
}

/*
 * The delay that is borne: 2 base RTTs from 100 packets on, 6 from 0.1 down, (1/2 - 1/10) /
 * (sqrt(10) - 1/10) at 4.
 */
TEST_F(cc_fixture, swift_ack__small_windows_bear_more)
{
    static const struct {
        double window, target_rtts;
    } table[] = {
        {0.1, 6}, {0.2, 2 + 4 * 2.1360680 / 3.0622777}, {4, 2 + 4 * 0.4 / 3.0622777}, {50, 2.0541}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(self, table[i].window, table[i].target_rtts - 0.01);
        acks(self, 1, 1);
        assert_true(packets(self) > table[i].window);
        begin_at(self, table[i].window, table[i].target_rtts + 0.01);
        acks(self, 1, 1);
        assert_true(packets(self) < table[i].window || table[i].window < 0.11);
    }
}

/* One path is hot: the least of the samples is that of the others. */
TEST_F(cc_fixture, swift_ack__hot_path_does_not_cut)
{
    begin_at(self, 40, 1.5);
    for (int i = 0; i < 1000; i++) {
        double before = packets(self);

        self->ack.rtt_ns = i % 4 ? 10 * BASE_NS : 3 * BASE_NS / 2;
        acks(self, 1, 1);
        assert_true(packets(self) >= before);
    }
}

TEST_F(cc_fixture, swift_lost__quarter_of_window)
{
    static const struct {
        double window;
        uint32_t lost;
        double expect;
    } table[] = {{40, 9, 40}, {40, 10, 20}, {2, 1, 1}, {0.5, 1, 0.25}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(self, table[i].window, 1);
        lose(self, table[i].lost);
        assert_near(packets(self), table[i].expect, 1e-9);
    }
}

/* As the paper has it, if one likes. */
TEST_F(cc_fixture, swift_lost__any_loss_if_set)
{
    struct mrd_tune tune = mrd_tune_default;
    struct mrd_cc_config config = even;

    config.tune = &tune;
    assert_int_equal(mrd_tune_set(&tune, "swift.loss_share", 0), 0);
    begin_with(self, "swift", &config, 40);
    lose(self, 1);
    assert_near(packets(self), 20, 1e-9);
}

/* Losses and delay of the same RTT are one event. */
TEST_F(cc_fixture, swift_lost__one_cut_with_delay)
{
    begin_at(self, 40, 20);
    acks(self, 1, 0.1);
    lose(self, 20);
    assert_near(packets(self), 20, 1e-9);
}

TEST_F(cc_fixture, swift_lost__first_flight)
{
    begin(self, "swift", &(struct mrd_cc_config){0});
    self->ack.srtt_ns = self->ack.rtt_min_ns = 0;
    for (int i = 0; i < 100; i++)
        lose(self, 1);
    assert_true(packets(self) >= 1);
    assert_true(packets(self) <= 5);
    assert_false(self->cc.slow_start);
}

/* Half each, not below a packet; after five in a row the least window; an ack begins a new row. */
TEST_F(cc_fixture, swift_timeout__row_of_five)
{
    begin_at(self, 40, 1);
    for (int i = 0; i < 4; i++)
        self->cc.ops->timeout(&self->cc, self->ack.now_ns);
    assert_near(packets(self), 2.5, 1e-9);
    acks(self, 1, 1);
    self->cc.ops->timeout(&self->cc, self->ack.now_ns);
    assert_true(packets(self) >= 1);
    for (int i = 0; i < 4; i++)
        self->cc.ops->timeout(&self->cc, self->ack.now_ns);
    assert_near(packets(self), 0.1, 1e-9);
}
