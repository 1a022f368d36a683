/* SPDX-License-Identifier: BSD-2-Clause */
/* failure: the arithmetic on made-up series, and a small transfer that loses one way of four. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "tests/kit/kit.h"
#include "tests/unit/exp_cli.h"
#include "tools/sim/goodput.h"

#define SMALL "failure --hosts 8 --leaf-hosts 4 --size 2M --at 80 "

/* A look each 10 us; rates[i], in Gb/s, is that of the step that ends at (i + 1) * 10 us. */
static struct simx_goodput series(const double *rates, size_t num)
{
    struct simx_goodput g = {0};
    double bytes = 0;

    assert_true(simx_goodput_add(&g, 0, 0));
    for (size_t i = 0; i < num; i++) {
        bytes += rates[i] * 1e3 / 8 * 10;
        assert_true(simx_goodput_add(&g, (double)(i + 1) * 10, bytes));
    }
    return g;
}

static void expect(double value, double expected)
{
    if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) < 1e-6))
        fail_msg("expected %g, found %g", expected, value);
}

/* The mean over parts of steps: 5 us at 100 and 5 us at 50. */
TEST(simx_goodput_gbps__between_looks)
{
    struct simx_goodput g = series((const double[]){100, 50, 0}, 3), none = {0};

    expect(simx_goodput_gbps(&g, 0, 10), 100);
    expect(simx_goodput_gbps(&g, 5, 15), 75);
    expect(simx_goodput_gbps(&g, 0, 30), 50);
    expect(simx_goodput_gbps(&g, -100, 100), 50); /* cut to what was looked at */
    expect(simx_goodput_gbps(&g, 10, 10), NAN);
    expect(simx_goodput_gbps(&g, 30, 40), NAN);
    expect(simx_goodput_gbps(&none, 0, 10), NAN);
}

/*
 * It fails at 20 us. Steps below 10 Gb/s are dark; the longest row of them counts, not their sum.
 */
TEST(simx_goodput_blackout_us__table)
{
    static const struct {
        double rates[8], blackout_us;
    } cases[] = {
        {{100, 100, 100, 100, 100, 100, 100, 100}, 0},
        {{100, 100, 9, 100, 100, 100, 100, 100}, 10},
        {{100, 100, 10, 100, 100, 100, 100, 100}, 0},
        {{100, 100, 100, 0, 0, 0, 100, 100}, 30},
        {{100, 100, 0, 50, 0, 0, 100, 0}, 20},
        {{100, 100, 100, 100, 100, 100, 0, 0}, 20}, /* to the end of the series */
        {{0, 0, 100, 100, 100, 100, 100, 100}, 0},  /* before the failure */
        {{0, 0, 0, 100, 100, 100, 100, 100}, 10},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simx_goodput g = series(cases[i].rates, 8);

        expect(simx_goodput_blackout_us(&g, 20, 10), cases[i].blackout_us);
    }
}

/*
 * Windows of 20 us, two steps; below 90 is slow. The first one that lies behind the failure at 20
 * us ends at 40 us.
 */
TEST(simx_goodput_back_us__table)
{
    static const struct {
        double rates[8], lowest, first_us, good_us;
    } cases[] = {
        {{0, 0, 100, 100, 100, 100, 100, 100}, 100, 0, 0},
        {{100, 100, 90, 90, 100, 100, 100, 100}, 90, 0, 0},
        {{100, 100, 0, 100, 100, 100, 100, 100}, 50, 30, 30}, /* slow until 40, well at 50 */
        {{100, 100, 100, 100, 60, 100, 100, 100}, 80, 50, 50},
        {{100, 100, 0, 100, 100, 0, 100, 100}, 50, 30, 60}, /* again until 70 */
        {{100, 100, 0, 100, 100, 100, 100, 0}, 50, 30, NAN},
        {{100, 100, 50, 50, 50, 50, 50, 50}, 50, NAN, NAN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simx_goodput g = series(cases[i].rates, 8);

        expect(simx_goodput_lowest_gbps(&g, 20, 20), cases[i].lowest);
        expect(simx_goodput_first_back_us(&g, 20, 20, 90), cases[i].first_us);
        expect(simx_goodput_back_us(&g, 20, 20, 90), cases[i].good_us);
        expect(simx_goodput_back_us(&g, 70, 20, 90), NAN); /* no window fits */
        expect(simx_goodput_first_back_us(&g, 70, 20, 90), NAN);
        expect(simx_goodput_lowest_gbps(&g, 70, 20), NAN);
    }
}

/* Without --failure each kind is a point, with it only that. */
TEST(simx_exp_failure__points)
{
    static const char *const kinds[] = {"blackhole", "down", "flap", "degrade"};
    const struct simx_experiment *experiment;
    struct simx_config config;

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(exp_configure("failure", i, &experiment, &config), 4);
        assert_string_equal(config.failure, kinds[i]);
    }
    assert_int_equal(exp_configure("failure --failure flap", 0, &experiment, &config), 1);
    assert_string_equal(config.failure, "flap");
}

/* Seen from outside: the samples say the same as the figures. */
TEST(simx_exp_failure__blackhole)
{
    struct json_object *run = exp_measure(SMALL "--failure blackhole", 0);
    struct json_object *samples = json_get(run, "samples");
    double rtt_us = exp_number(run, "base_rtt_us"), least = INFINITY;

    exp_assert_columns(&simx_exp_failure, run);
    assert_string_equal(json_object_get_string(json_get(run, "failure_kind")), "blackhole");
    assert_memory_equal(json_object_get_string(json_get(run, "failure_links")), "leaf0-spine", 11);
    assert_true(exp_number(run, "failure_at_us") == 80);
    assert_true(exp_number(run, "unfinished") == 0);
    assert_true(exp_number(run, "lost") > 0);
    assert_true(exp_number(run, "retransmitted") > 0);
    assert_true(exp_number(run, "paths_suspended") > 0);
    assert_true(exp_number(run, "before_gbps") > 90);
    assert_true(exp_number(run, "possible_gbps") <= exp_number(run, "before_gbps"));
    assert_true(exp_number(run, "blackout_us") < 3 * rtt_us);
    assert_true(exp_number(run, "lowest_gbps") < exp_number(run, "before_gbps"));
    assert_true(exp_number(run, "first_90_us") > 0);

    assert_true((double)json_object_array_length(samples) > 160 / (rtt_us / 4 + 0.002));
    for (size_t i = 0; i < json_object_array_length(samples); i++) {
        struct json_object *sample = json_object_array_get_idx(samples, i);

        if (exp_number(sample, "t_us") > 80)
            least = fmin(least, exp_number(sample, "gbps"));
    }
    assert_true(least < exp_number(run, "lowest_gbps"));
}

/* A path that never comes back, and no other: dark to the end of what is watched. */
TEST(simx_exp_failure__single_path)
{
    struct json_object *run =
        exp_measure(SMALL "--failure blackhole --spray single --limit 0.002", 0);

    assert_true(exp_number(run, "unfinished") == 1);
    assert_true(exp_number(run, "blackout_us") > 1800);
    assert_null(json_get(run, "to_90_us"));
    assert_null(json_get(run, "first_90_us"));
}

/*
 * The leaf sends a part to each of its four uplinks, and leaves the slow one while others wait
 * there.
 */
TEST(simx_exp_failure__failing_link)
{
    struct json_object *run = exp_measure(SMALL "--failure degrade", 0);
    struct json_object *samples = json_get(run, "samples"), *sample = NULL;
    double share = exp_number(run, "share_before"), all = 0, failing = 0, queue_most = 0;

    assert_true(share >= 0.25 && share < 0.5);
    for (size_t i = 0; i < json_object_array_length(samples); i++) {
        sample = json_object_array_get_idx(samples, i);
        if (exp_number(sample, "t_us") <= 80) {
            assert_null(json_get(sample, "packets"));
            continue;
        }
        all += exp_number(sample, "packets");
        failing += exp_number(sample, "failing_packets");
        queue_most = fmax(queue_most, exp_number(sample, "queue_bytes"));
    }
    assert_true(failing > 0 && failing < 0.5 * share * all);
    assert_true(queue_most > 4096);
    assert_true(exp_number(sample, "queue_bytes") < queue_most);
}

/* Switches that know send the other way. */
TEST(simx_exp_failure__down)
{
    struct json_object *run = exp_measure(SMALL "--failure down --spray single", 0);

    assert_true(exp_number(run, "unfinished") == 0);
    assert_true(exp_number(run, "blackout_us") < exp_number(run, "base_rtt_us"));
}

TEST(simx_exp_failure__pairs)
{
    struct json_object *run = exp_measure(SMALL "--failure blackhole --senders 4", 0);

    assert_true(exp_number(run, "flows") == 4);
    /* All four links were full, three are left. */
    assert_true(exp_number(run, "possible_gbps") < 3 * 100);
    assert_true(exp_number(run, "before_gbps") > 3 * 100);
}

TEST(simx_exp_failure__same_seed)
{
    exp_assert_same(SMALL, 0);
    exp_assert_same(SMALL, 2);
}

TEST(simx_exp_failure__refuses)
{
    assert_non_null(strstr(exp_refusal("failure --hosts 4 --leaf-hosts 4"), "two leaves"));
    assert_non_null(strstr(exp_refusal(SMALL "--senders 5"), "two leaves"));
    assert_non_null(strstr(exp_refusal(SMALL "--size 64K"), "ended before --at 80"));
}
