/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment skew: what paths of different lengths may not cost. */
#include "tests/unit/exp_cli.h"

#define SMALL "skew --hosts 8 --leaf-hosts 4 --size 32M"

TEST(simx_exp_skew__points)
{
    struct simx_config config;
    const struct simx_experiment *skew = exp_parse(&config, "skew");

    assert_int_equal(simx_points(skew, &config), 6);
    simx_point(skew, &config, 5);
    assert_true(config.spread == 4);
    skew = exp_parse(&config, "skew --spread 0");
    assert_int_equal(simx_points(skew, &config), 1);
    simx_point(skew, &config, 0);
    assert_true(config.spread == 0);
    exp_assert_refused("skew -tm traffic.cm", "makes its own traffic");
    exp_assert_refused("skew --hosts 16", "two leaves");
    exp_assert_refused("skew --hosts 4 --leaf-hosts 1", "at least two uplinks, not 1");
}

/*
 * The data's way there is longer by up to 3 base RTTs, the acks' way back is not. So a flow of a
 * few packets, sprayed over all paths, ends later than without the spread, but by no more than
 * that.
 */
TEST(simx_exp_skew__lengthens_the_way_of_data)
{
    struct json_object *even = exp_measure_only(SMALL " --size 64K --spread 0");
    struct json_object *uneven = exp_measure_only(SMALL " --size 64K --spread 3");
    double rtt_us = exp_number(even, "config.base_rtt_us");
    double longer_us = exp_number(uneven, "fct_us.max") - exp_number(even, "fct_us.max");

    assert_true(fabs(exp_number(uneven, "spread_us") - 3 * rtt_us) < 1e-6);
    assert_true(longer_us > 0.5 * rtt_us && longer_us < 3.5 * rtt_us);
    /* It ends before 16 round trips: nothing is known of the time after. */
    assert_null(json_get(even, "spurious_share_after_16_rtt"));
    assert_null(json_get(even, "window_bytes_at_16_rtt"));
}

/* Less than a packet in a thousand is sent again in vain, and the window does not shrink. */
TEST(simx_exp_skew__lateness_is_not_loss)
{
    static const char *const lines[] = {SMALL " --spread 0", SMALL " --spread 1",
                                        SMALL " --spread 4"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *result = exp_measure_only(lines[i]);

        assert_true(exp_number(result, "spurious_share_after_16_rtt") < 0.001);
        assert_int_equal(exp_number(result, "window_falls_after_16_rtt"), 0);
        assert_true(exp_number(result, "window_bytes_min_after_16_rtt") >=
                    exp_number(result, "config.bdp_bytes"));
        assert_int_equal(exp_number(result, "lost"), 0);
        assert_int_equal(exp_number(result, "drops"), 0);
        /* By hand: 100 Gb/s, of 4238 bytes on the wire 4096 are payload. */
        assert_true(fabs(exp_number(result, "goodput_gbps") / exp_number(result, "efficiency") -
                         100.0 * 4096 / 4238) < 1e-3);
        assert_true(exp_number(result, "efficiency") > 0.9 && exp_number(result, "efficiency") < 1);
    }
}

/* Nobody counts how often a window or rate was cut: that is not zero times. */
TEST(simx_exp_skew__cuts_are_not_counted)
{
    static const char *const lines[] = {SMALL " --spread 1", SMALL " --spread 1 --transport rc",
                                        SMALL " --spread 1 --transport irn --cc dcqcn"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *result = exp_measure_only(lines[i]), *cuts;

        assert_true(json_object_object_get_ex(result, "cuts", &cuts));
        assert_null(cuts);
    }
}

TEST(simx_exp_skew__same_seed_same_result)
{
    exp_assert_same(SMALL " --spread 2 --seed 4", 0);
}
