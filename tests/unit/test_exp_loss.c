/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment loss: its points, and what loss costs. */
#include "tests/unit/exp_cli.h"

TEST(simx_exp_loss__points)
{
    static const struct {
        const char *line;
        unsigned points;
    } cases[] = {
        {"loss", 32},
        {"loss --size 4K", 8},
        {"loss --loss 0", 4},
        {"loss --loss 0.01 --size 4K", 1},
    };
    struct simx_config config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct simx_experiment *loss = exp_parse(&config, cases[i].line);

        assert_int_equal(simx_points(loss, &config), cases[i].points);
        simx_point(loss, &config, cases[i].points - 1);
        assert_true(config.bytes > 0 && config.loss >= 0);
    }
    exp_assert_refused("loss -tm traffic.cm", "makes its own traffic");
}

/*
 * By hand, around a payload of 4096 bytes: 66 of Ethernet, IP and UDP, 40 of the base header, 12 of
 * the part, 12 of the remote key and address, and 12 of the place in the message where it has
 * several packets.
 */
TEST(simx_exp_loss__full_link_without_loss)
{
    struct json_object *many = exp_measure_only("loss --size 1M --loss 0 --hosts 4 --leaf-hosts 2");
    struct json_object *one =
        exp_measure_only("loss --size 4096 --loss 0 --hosts 4 --leaf-hosts 2");
    double bytes = exp_number(many, "flows") * (1 << 20);

    assert_true(fabs(exp_number(many, "full_gbps") - 100.0 * 4096 / 4238) < 1e-6);
    assert_true(fabs(exp_number(one, "full_gbps") - 100.0 * 4096 / 4226) < 1e-6);
    assert_true(exp_number(many, "efficiency") > 0.995 && exp_number(many, "efficiency") <= 1);
    assert_true(exp_number(one, "efficiency") > 0.99 && exp_number(one, "efficiency") <= 1);
    assert_int_equal(exp_number(many, "packets"), bytes / 4096);
    assert_int_equal(exp_number(many, "retransmitted"), 0);
    assert_int_equal(exp_number(many, "config.size_bytes"), 1 << 20);
}

/* A lost packet costs its own time on the link, and little more. */
TEST(simx_exp_loss__goodput_falls_by_loss)
{
    static const struct {
        const char *line;
        double efficiency;
    } cases[] = {
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.0009765625", 0.99},
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.01", 0.96},
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.05", 0.88},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_object *result = exp_measure_only(cases[i].line);
        double loss = exp_number(result, "loss"), lost = exp_number(result, "lost");
        double sent = exp_number(result, "packets") + exp_number(result, "acks");

        assert_true(exp_number(result, "efficiency") > cases[i].efficiency);
        /* Five standard deviations of so many coins. */
        assert_true(fabs(lost - loss * sent) < 5 * sqrt(loss * sent));
        assert_true(exp_number(result, "fct_us.p999") >= exp_number(result, "fct_us.p99"));
        exp_assert_columns(simx_experiment_find("loss"), result);
    }
}

TEST(simx_exp_loss__same_seed_same_result)
{
    exp_assert_same("loss --size 64K --hosts 4 --leaf-hosts 2 --loss 0.02 --seed 3", 0);
}
