/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment wan: a long path with losses, and the formulas beside it. */
#include "tests/unit/exp_cli.h"
#include "tests/unit/exp_file.h"

#define SHORT "wan --duration 0.4 "

TEST(simx_exp_wan__points)
{
    struct simx_config config;
    const struct simx_experiment *wan = exp_parse(&config, "wan");

    assert_int_equal(simx_points(wan, &config), 16);
    wan = exp_parse(&config, "wan --rtt 40000");
    assert_int_equal(simx_points(wan, &config), 4);
    wan = exp_parse(&config, "wan --loss 0");
    assert_int_equal(simx_points(wan, &config), 4);
    wan = exp_parse(&config, "wan --loss 0.02 --rtt 40000");
    assert_int_equal(simx_points(wan, &config), 1);
    simx_point(wan, &config, 0);
    assert_true(config.loss == 0.02 && config.rtt_us == 40000);
    exp_assert_refused("wan -tm traffic.cm", "makes its own traffic");
    exp_assert_refused("wan --transport irn", "--transport: wan is of mrd only");
    exp_assert_refused("wan --rtt 20", "--rtt: expected at least");
    exp_assert_refused("wan --gbps 0.001", "--rtt: expected at least"); /* of the first point */
}

/*
 * By hand. 1408 of 1506 bytes are payload with TCP. At a loss of 1% and 20 ms CUBIC is in the
 * Reno-friendly region: sqrt(1.5 / 0.01) packets an RTT. At 0.01% and 80 ms it is not: 1.0538
 * (0.08 / 0.0001)^0.75.
 */
TEST(simx_exp_wan__formulas)
{
    struct json_object *reno = exp_measure_only(SHORT "--rtt 20000 --loss 0.01");
    struct json_object *cubic = exp_measure_only(SHORT "--rtt 80000 --loss 0.0001");
    struct json_object *none = exp_measure_only(SHORT "--rtt 80000 --loss 0");

    exp_assert_near(exp_number(reno, "cubic_gbps"), 12.2474 * 1408 * 8 / 20e6 * 0.99, 1e-5);
    exp_assert_near(exp_number(reno, "bbr_gbps"), 0.98 * 0.99 * 1408 / 1506, 1e-6);
    exp_assert_near(exp_number(cubic, "cubic_gbps"), 158.52 * 1408 * 8 / 80e6 * 0.9999, 1e-4);
    exp_assert_near(exp_number(none, "cubic_gbps"), 1408. / 1506, 1e-6);
    exp_assert_near(exp_number(reno, "over_cubic"),
                    exp_number(reno, "goodput_gbps") / exp_number(reno, "cubic_gbps"), 1e-6);
    exp_assert_near(exp_number(reno, "config.base_rtt_us"), 20000, 0.01);
    exp_assert_near(exp_number(reno, "rtt_ms"), 20, 1e-9);
}

/* A path that is not long is full without losses, and nearly so with few. */
TEST(simx_exp_wan__a_short_path_is_full)
{
    struct json_object *clean = exp_measure_only(SHORT "--rtt 1000 --loss 0");
    struct json_object *lossy = exp_measure_only(SHORT "--rtt 1000 --loss 0.001");

    /* 1408 of 1550 bytes are payload with mrd. */
    exp_assert_near(exp_number(clean, "full_gbps"), 1408. / 1550, 1e-6);
    assert_true(exp_number(clean, "efficiency") > 0.8);
    assert_true(exp_number(clean, "efficiency") < 1.01);
    assert_true(exp_number(clean, "utilisation") > 0.8 && exp_number(clean, "utilisation") <= 1);
    assert_int_equal(exp_number(clean, "lost"), 0);
    assert_true(exp_number(lossy, "efficiency") > 0.5);
    assert_true(exp_number(lossy, "lost") > 0);
}

/*
 * What is posted does not hold it up: more than the two pieces of 4 MiB that are enough in a fabric
 * are in flight, 1280 packets, as many as the engine lets.
 */
TEST(simx_exp_wan__a_long_path_has_enough_posted)
{
    struct json_object *result =
        exp_measure_only("wan --rtt 80000 --loss 0 --gbps 10 --duration 2 --cc none --knows fabric "
                         "--payload 8192");

    assert_true(exp_number(result, "goodput_gbps") > 1.1 * (8 << 20) * 8 / 80e6);
}

/* A flow that fails is an error that says where and why. */
TEST(simx_exp_wan__a_flow_that_fails)
{
    static const char fault[] = "100000 leaf0>spine0 blackhole on\n";
    char line[EXP_LINE_BYTES];

    exp_file_put(fault, sizeof(fault) - 1);
    snprintf(line, sizeof(line), "wan --rtt 1000 --loss 0 --duration 40 --faults %s", exp_path);

    const char *sentence = exp_refusal(line);

    if (!strstr(sentence,
                "wan: with an RTT of 1000 us and a loss of 0 the flow of host 0 had failed by"))
        fail_msg("'%s'", sentence);
    assert_non_null(strstr(sentence, "s: peer unreachable"));
}

TEST(simx_exp_wan__same_seed_same_result)
{
    exp_assert_same(SHORT "--rtt 5000 --loss 0.001 --seed 4", 0);
}
