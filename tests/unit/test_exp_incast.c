/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment incast: its points, the ideal, and the flow beside it. */
#include "tests/unit/exp_cli.h"

#define SMALL "incast --hosts 16 --leaf-hosts 4 --size 512K"

TEST(simx_exp_incast__points)
{
    static const struct {
        const char *line;
        unsigned points;
        uint32_t last;
    } cases[] = {
        {"incast", 8, 127},           {"incast --victim", 8, 126},
        {"incast --hosts 64", 7, 63}, {"incast --hosts 2 --leaf-hosts 1", 1, 1},
        {"incast --senders 5", 1, 5},
    };
    struct simx_config config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct simx_experiment *incast = exp_parse(&config, cases[i].line);

        assert_int_equal(simx_check(incast, &config), 0);
        assert_int_equal(simx_points(incast, &config), cases[i].points);
        simx_point(incast, &config, cases[i].points - 1);
        assert_int_equal(config.senders, cases[i].last);
    }
}

TEST(simx_exp_incast__refused)
{
    exp_assert_refused("incast -tm traffic.cm", "makes its own traffic");
    exp_assert_refused(SMALL " --senders 16", "at most 15 of 16 hosts, found 16");
    exp_assert_refused(SMALL " --senders 15 --victim", "at most 14 of 16 hosts with --victim");
    exp_assert_refused("incast --hosts 16 --victim", "two leaves");
    exp_assert_refused("incast --hosts 4 --leaf-hosts 1 --victim", "second host");
    exp_assert_refused("incast -topo nosuch.topo", "nosuch.topo");
}

/*
 * By hand: 8 flows of 128 packets, 4238 bytes each, over the last link of 100 Gb/s; before the
 * first bit and after the last one 2 us of links each way, as a sender may be below the target's
 * leaf, and an ack.
 */
TEST(simx_exp_incast__ideal)
{
    struct json_object *result = exp_measure_only(SMALL " --senders 8");
    double wire_us = 8 * 128 * 4238 * 8 / 100e3;

    assert_true(exp_number(result, "ideal_us") > wire_us + 4);
    assert_true(exp_number(result, "ideal_us") < wire_us + 9);
    /* How near it comes is the engine's affair. */
    assert_true(exp_number(result, "max_over_ideal") >= 1 &&
                exp_number(result, "max_over_ideal") < 2);
    assert_true(fabs(exp_number(result, "goodput_gbps") -
                     8 * 524288 * 8 / 1e3 / exp_number(result, "fct_us.max")) < 1e-3);
    assert_true(exp_number(result, "jain") > 0.8 && exp_number(result, "jain") <= 1);
    assert_int_equal(exp_number(result, "senders"), 8);
    assert_int_equal(exp_number(result, "flows"), 8);
    assert_null(json_get(result, "victim_fct_us"));
}

/* As many senders as there can be: one of them gives its place to the flow beside. */
TEST(simx_exp_incast__victim_hardly_suffers)
{
    static const char *const lines[] = {
        SMALL " --victim --senders 1", SMALL " --victim --senders 1 --seed 2",
        SMALL " --victim --senders 7", SMALL " --victim --senders 14"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *result = exp_measure_only(lines[i]);

        assert_int_equal(exp_number(result, "flows"), exp_number(result, "senders") + 1);
        assert_true(exp_number(result, "victim_over_lone") >= 1);
        assert_true(exp_number(result, "victim_over_lone") < 2);
        assert_true(exp_number(result, "goodput_gbps") < 96.7);
        exp_assert_columns(simx_experiment_find("incast"), result);
    }
}

TEST(simx_exp_incast__same_seed_same_result)
{
    exp_assert_same(SMALL " --victim --senders 6 --seed 7", 0);
}
