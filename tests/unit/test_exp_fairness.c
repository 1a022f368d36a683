/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment fairness: the narrow link, and what is told of the flows that share it. */
#include "tests/unit/exp_cli.h"

#define SHORT "fairness --stagger 2000 --duration 0.03 "

static double element(struct json_object *run, const char *key, size_t i)
{
    return json_object_get_double(json_object_array_get_idx(json_get(run, key), i));
}

static size_t length(struct json_object *run, const char *key)
{
    return json_object_array_length(json_get(run, key));
}

TEST(simx_exp_fairness__refusals)
{
    exp_assert_refused("fairness -tm traffic.cm", "makes its own traffic");
    exp_assert_refused("fairness --topo absent.topo", "absent.topo");
    exp_assert_refused("fairness --flows 60 --tcp 5", "--tcp: expected at most 4");
    exp_assert_refused("fairness --transport rc --tcp 1", "--tcp: it runs beside mrd only");
    exp_assert_refused("fairness --rtt 8", "--rtt: expected at least");
}

/* The link, the RTT and the BDP are those of the options; hosts are faster. */
TEST(simx_exp_fairness__the_narrow_link)
{
    struct json_object *result =
        exp_measure_only(SHORT "--flows 2 --gbps 5 --rtt 200 --speedup 3 --buffer 0.5");

    assert_int_equal(exp_number(result, "hosts"), 4);
    exp_assert_near(exp_number(result, "config.base_rtt_us"), 200, 0.01);
    exp_assert_near(exp_number(result, "config.gbps"), 15, 1e-9);
    exp_assert_near(exp_number(result, "config.narrow_gbps"), 5, 1e-9);
    exp_assert_near(exp_number(result, "config.bdp_bytes"), 125000, 10);
    exp_assert_near(exp_number(result, "config.buffer_bytes"), 62500, 10);
    assert_null(json_get(result, "config.queue_packets"));

    result = exp_measure_only(SHORT "--flows 2 --buffer-bytes 20000");
    assert_int_equal(exp_number(result, "config.buffer_bytes"), 20000);
    assert_true(exp_number(result, "narrow_drops_all") > 0);
    for (size_t i = 0; i < length(result, "samples"); i++) {
        struct json_object *sample = json_object_array_get_idx(json_get(result, "samples"), i);

        assert_true(exp_number(sample, "queue_bytes") <= 20000);
    }
}

/* A flow by itself has all, from the first look on. 4096 of 4238 bytes are payload. */
TEST(simx_exp_fairness__one_flow)
{
    struct json_object *result = exp_measure_only(SHORT "--flows 1 --knows fabric");

    assert_true(exp_number(result, "jain") == 1);
    assert_true(exp_number(result, "least_over_fair") == 1);
    assert_true(exp_number(result, "flows_over_fair") == 1);
    assert_null(json_get(result, "tcp_over_fair"));
    exp_assert_near(exp_number(result, "even_us"), 200, 1e-6); /* two base RTTs */
    assert_true(exp_number(result, "utilisation") > 0.9);
    assert_true(exp_number(result, "utilisation") <= 1);
    exp_assert_near(exp_number(result, "goodput_gbps"),
                    10 * exp_number(result, "utilisation") * 4096 / 4238, 0.2);
    assert_int_equal(length(result, "shares"), 1);
    assert_int_equal(length(result, "names"), 1);
    /* Flows without end: no time of theirs is known, and none is missing. */
    assert_int_equal(exp_number(result, "unfinished"), 0);
    assert_null(json_get(result, "ideal_us"));
    assert_null(json_get(result, "fct_us.max"));
}

/* By hand from the shares, with TCP beside mrd. */
TEST(simx_exp_fairness__figures)
{
    struct json_object *result = exp_measure_only(SHORT "--flows 2 --tcp 1");
    double share[3], sum = 0, squares = 0, least = 1;

    assert_int_equal(exp_number(result, "flows"), 2);
    assert_int_equal(exp_number(result, "tcp_flows"), 1);
    assert_int_equal(length(result, "shares"), 3);
    for (size_t i = 0; i < 3; i++) {
        share[i] = element(result, "shares", i);
        assert_true(share[i] > 0);
        sum += share[i];
        squares += share[i] * share[i];
        least = fmin(least, share[i]);
    }
    exp_assert_near(exp_number(result, "goodput_gbps"), 10 * sum, 1e-6);
    exp_assert_near(exp_number(result, "jain"), sum * sum / (3 * squares), 1e-6);
    exp_assert_near(exp_number(result, "least_over_fair"), least * 3 / sum, 1e-6);
    exp_assert_near(exp_number(result, "flows_over_fair"), (share[0] + share[1]) / 2 * 3 / sum,
                    1e-6);
    exp_assert_near(exp_number(result, "tcp_over_fair"), share[2] * 3 / sum, 1e-6);
}

/* Nobody has anything before the own start; names are in the order of the starts. */
TEST(simx_exp_fairness__one_after_the_other)
{
    static const char *const lines[] = {SHORT "--flows 1 --tcp 2",
                                        SHORT "--flows 1 --tcp 2 --tcp-first"};
    static const char *const names[2][3] = {{"1 mrd", "2 TCP", "3 TCP"},
                                            {"1 TCP", "2 TCP", "3 mrd"}};

    for (size_t i = 0; i < 2; i++) {
        struct json_object *result = exp_measure_only(lines[i]);
        struct json_object *samples = json_get(result, "samples");

        for (size_t j = 0; j < 3; j++) {
            const char *name =
                json_object_get_string(json_object_array_get_idx(json_get(result, "names"), j));

            assert_string_equal(name, names[i][j]);
        }
        for (size_t j = 0; j < json_object_array_length(samples); j++) {
            struct json_object *sample = json_object_array_get_idx(samples, j);
            double t_us = exp_number(sample, "t_us");

            for (size_t k = 0; k < 3; k++) {
                double share = element(sample, "shares", k);

                assert_true(share >= 0 && share <= 1.01);
                if (t_us <= 2000 * (double)k)
                    assert_true(share == 0);
            }
        }
    }
}

/* Marks are there where they are asked for, and models run alone. */
TEST(simx_exp_fairness__marks_and_models)
{
    struct json_object *without = exp_measure_only(SHORT "--flows 2 --cc dctcp");
    struct json_object *with = exp_measure_only(SHORT "--flows 2 --cc dctcp --ecn 0.2,0.8");
    struct json_object *rc =
        exp_measure_only(SHORT "--flows 3 --transport rc --cc dcqcn --ecn 0.2,0.8");

    assert_int_equal(exp_number(without, "ce"), 0);
    assert_true(exp_number(with, "ce") > 0);
    assert_true(exp_number(rc, "ce") > 0);
    assert_true(exp_number(rc, "jain") > 0.5);
}

TEST(simx_exp_fairness__same_seed_same_result)
{
    exp_assert_same(SHORT "--flows 2 --tcp 1 --loss 0.001 --seed 4", 0);
}
