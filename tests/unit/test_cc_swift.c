/* SPDX-License-Identifier: BSD-2-Clause */
/* swift: one target of delay, which grows where the window is small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
    begin(f, "swift", &even);
    leave_slow_start(f, window_packets);
    fill_delay(f, rtts);
}

static void swift_ack__slow_start_until_the_target(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "swift", &even);
    double start = packets(f);
    acks(f, 1, 1);
    assert_near(packets(f), start + 4, 1e-9);
    assert_true(f->cc.slow_start);
    fill_delay(f, 3);
    acks(f, 1, 1);
    assert_false(f->cc.slow_start);
}

/* A packet an RTT below the target, whatever the marks say. */
static void swift_ack__grows_below_target(void **state)
{
    struct cc_fixture *f = *state;

    for (uint32_t ce = 0; ce <= 4; ce += 4) {
        begin_at(f, 40, 1.5);
        f->ack.ce_packets = ce;
        acks(f, 10, 1);
        assert_near(packets(f), 41, 0.02);
    }
}

/* Below one packet it grows by what is acked, not by its square. */
static void swift_ack__grows_below_a_packet(void **state)
{
    struct cc_fixture *f = *state;

    begin_at(f, 0.25, 1.5);
    f->ack.acked_packets = 1;
    acks(f, 1, 1);
    assert_near(packets(f), 1.25, 1e-9);
}

/* At 100 packets the target is 2 base RTTs: beta times the share beyond, at most half. */
static void swift_ack__cuts_above_target(void **state)
{
    static const struct {
        double rtts, factor;
    } table[] = {{2.5, 1 - 0.8 * 0.5 / 2.5}, {4, 1 - 0.8 * 2 / 4}, {20, 0.5}};
    struct cc_fixture *f = *state;
    struct mrd_cc_config config;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(f, 100, table[i].rtts);
        config = *f->cc.config;
        config.link_bps *= 4; /* room for such a window */
        f->cc.config = &config;
        f->cc.rate_bps *= 4;
        acks(f, 1, 1);
        assert_near(packets(f), 100 * table[i].factor, 1e-6);
    }
}

static void swift_ack__cuts_once_per_rtt(void **state)
{
    struct cc_fixture *f = *state;

    begin_at(f, 50, 20);
    acks(f, 8, 0.9);
    assert_near(packets(f), 25, 1e-9);
    acks(f, 1, 0.3);
    assert_near(packets(f), 12.5, 1e-9);
}

/*
 * The delay that is borne: 2 base RTTs from 100 packets on, 6 from 0.1 down, (1/2 - 1/10) /
 * (sqrt(10) - 1/10) at 4.
 */
static void swift_ack__small_windows_bear_more(void **state)
{
    static const struct {
        double window, target_rtts;
    } table[] = {
        {0.1, 6}, {0.2, 2 + 4 * 2.1360680 / 3.0622777}, {4, 2 + 4 * 0.4 / 3.0622777}, {50, 2.0541}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(f, table[i].window, table[i].target_rtts - 0.01);
        acks(f, 1, 1);
        assert_true(packets(f) > table[i].window);
        begin_at(f, table[i].window, table[i].target_rtts + 0.01);
        acks(f, 1, 1);
        assert_true(packets(f) < table[i].window || table[i].window < 0.11);
    }
}

/* One path is hot: the least of the samples is that of the others. */
static void swift_ack__hot_path_does_not_cut(void **state)
{
    struct cc_fixture *f = *state;

    begin_at(f, 40, 1.5);
    for (int i = 0; i < 1000; i++) {
        double before = packets(f);

        f->ack.rtt_ns = i % 4 ? 10 * BASE_NS : 3 * BASE_NS / 2;
        acks(f, 1, 1);
        assert_true(packets(f) >= before);
    }
}

static void swift_lost__quarter_of_window(void **state)
{
    static const struct {
        double window;
        uint32_t lost;
        double expect;
    } table[] = {{40, 9, 40}, {40, 10, 20}, {2, 1, 1}, {0.5, 1, 0.25}};
    struct cc_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin_at(f, table[i].window, 1);
        lose(f, table[i].lost);
        assert_near(packets(f), table[i].expect, 1e-9);
    }
}

/* As the paper has it, if one likes. */
static void swift_lost__any_loss_if_set(void **state)
{
    struct cc_fixture *f = *state;
    struct mrd_tune tune = mrd_tune_default;
    struct mrd_cc_config config = even;

    config.tune = &tune;
    assert_int_equal(mrd_tune_set(&tune, "swift.loss_share", 0), 0);
    begin(f, "swift", &config);
    leave_slow_start(f, 40);
    lose(f, 1);
    assert_near(packets(f), 20, 1e-9);
}

/* Losses and delay of the same RTT are one event. */
static void swift_lost__one_cut_with_delay(void **state)
{
    struct cc_fixture *f = *state;

    begin_at(f, 40, 20);
    acks(f, 1, 0.1);
    lose(f, 20);
    assert_near(packets(f), 20, 1e-9);
}

static void swift_lost__first_flight(void **state)
{
    struct cc_fixture *f = *state;

    begin(f, "swift", &(struct mrd_cc_config){0});
    f->ack.srtt_ns = f->ack.rtt_min_ns = 0;
    for (int i = 0; i < 100; i++)
        lose(f, 1);
    assert_true(packets(f) >= 1);
    assert_true(packets(f) <= 5);
    assert_false(f->cc.slow_start);
}

/* Half each, not below a packet; after five in a row the least window; an ack begins a new row. */
static void swift_timeout__row_of_five(void **state)
{
    struct cc_fixture *f = *state;

    begin_at(f, 40, 1);
    for (int i = 0; i < 4; i++)
        f->cc.ops->timeout(&f->cc, f->ack.now_ns);
    assert_near(packets(f), 2.5, 1e-9);
    acks(f, 1, 1);
    f->cc.ops->timeout(&f->cc, f->ack.now_ns);
    assert_true(packets(f) >= 1);
    for (int i = 0; i < 4; i++)
        f->cc.ops->timeout(&f->cc, f->ack.now_ns);
    assert_near(packets(f), 0.1, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swift_ack__slow_start_until_the_target),
        cmocka_unit_test(swift_ack__grows_below_target),
        cmocka_unit_test(swift_ack__grows_below_a_packet),
        cmocka_unit_test(swift_ack__cuts_above_target),
        cmocka_unit_test(swift_ack__cuts_once_per_rtt),
        cmocka_unit_test(swift_ack__small_windows_bear_more),
        cmocka_unit_test(swift_ack__hot_path_does_not_cut),
        cmocka_unit_test(swift_lost__quarter_of_window),
        cmocka_unit_test(swift_lost__any_loss_if_set),
        cmocka_unit_test(swift_lost__one_cut_with_delay),
        cmocka_unit_test(swift_lost__first_flight),
        cmocka_unit_test(swift_timeout__row_of_five),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
