/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment skew: what paths of different lengths may not cost. */
#include "exp_point.h"

#define SMALL "skew --hosts 8 --leaf-hosts 4 --size 32M"

static void simx_exp_skew__points(void **state)
{
    struct simx_config config;
    const struct simx_experiment *skew = point_config(&config, "skew");

    (void)state;
    assert_int_equal(skew->points(&config), 6);
    skew->point(&config, 5);
    assert_true(config.spread == 4);
    skew = point_config(&config, "skew --spread 0");
    assert_int_equal(skew->points(&config), 1);
    skew->point(&config, 0);
    assert_true(config.spread == 0);
    assert_refused("skew -tm traffic.cm", "makes its own traffic");
    assert_refused("skew --hosts 16", "two leaves");
    assert_refused("skew --hosts 4 --leaf-hosts 1", "at least two uplinks, not 1");
}

/*
 * The data's way there is longer by up to 3 base RTTs, the acks' way back is not. So a flow of a
 * few packets, sprayed over all paths, ends later than without the spread, but by no more than
 * that.
 */
static void simx_exp_skew__lengthens_the_way_of_data(void **state)
{
    struct json_object *even = point_measure(SMALL " --size 64K --spread 0");
    struct json_object *uneven = point_measure(SMALL " --size 64K --spread 3");
    double rtt_us = number(even, "config.base_rtt_us");
    double longer_us = number(uneven, "fct_us.max") - number(even, "fct_us.max");

    (void)state;
    assert_true(fabs(number(uneven, "spread_us") - 3 * rtt_us) < 1e-6);
    assert_true(longer_us > 0.5 * rtt_us && longer_us < 3.5 * rtt_us);
    /* It ends before 16 round trips: nothing is known of the time after. */
    assert_null(simx_json_get(even, "spurious_share_after_16_rtt"));
    assert_null(simx_json_get(even, "window_bytes_at_16_rtt"));
    json_object_put(even);
    json_object_put(uneven);
}

/* Less than a packet in a thousand is sent again in vain, and the window does not shrink. */
static void simx_exp_skew__lateness_is_not_loss(void **state)
{
    static const char *const lines[] = {SMALL " --spread 0", SMALL " --spread 1",
                                        SMALL " --spread 4"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *result = point_measure(lines[i]);

        assert_true(number(result, "spurious_share_after_16_rtt") < 0.001);
        assert_int_equal(number(result, "window_falls_after_16_rtt"), 0);
        assert_true(number(result, "window_bytes_min_after_16_rtt") >=
                    number(result, "config.bdp_bytes"));
        assert_int_equal(number(result, "lost"), 0);
        assert_int_equal(number(result, "drops"), 0);
        /* By hand: 100 Gb/s, of 4238 bytes on the wire 4096 are payload. */
        assert_true(fabs(number(result, "goodput_gbps") / number(result, "efficiency") -
                         100.0 * 4096 / 4238) < 1e-3);
        assert_true(number(result, "efficiency") > 0.9 && number(result, "efficiency") < 1);
        json_object_put(result);
    }
}

/* Nobody counts how often a window or rate was cut: that is not zero times. */
static void simx_exp_skew__cuts_are_not_counted(void **state)
{
    static const char *const lines[] = {SMALL " --spread 1", SMALL " --spread 1 --transport rc",
                                        SMALL " --spread 1 --transport irn --cc dcqcn"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *result = point_measure(lines[i]), *cuts;

        assert_true(json_object_object_get_ex(result, "cuts", &cuts));
        assert_null(cuts);
        json_object_put(result);
    }
}

static void simx_exp_skew__same_seed_same_result(void **state)
{
    (void)state;
    assert_repeats(SMALL " --spread 2 --seed 4", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simx_exp_skew__points),
        cmocka_unit_test(simx_exp_skew__lengthens_the_way_of_data),
        cmocka_unit_test(simx_exp_skew__lateness_is_not_loss),
        cmocka_unit_test(simx_exp_skew__cuts_are_not_counted),
        cmocka_unit_test(simx_exp_skew__same_seed_same_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
