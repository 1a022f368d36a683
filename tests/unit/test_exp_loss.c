/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment loss: its points, and what loss costs. */
#include "exp_point.h"

static void simx_exp_loss__points(void **state)
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

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct simx_experiment *loss = point_config(&config, cases[i].line);

        assert_int_equal(loss->points(&config), cases[i].points);
        loss->point(&config, cases[i].points - 1);
        assert_true(config.bytes > 0 && config.loss >= 0);
    }
    assert_refused("loss -tm traffic.cm", "makes its own traffic");
}

/*
 * By hand, around a payload of 4096 bytes: 66 of Ethernet, IP and UDP, 40 of the base header, 12 of
 * the part, 12 of the remote key and address, and 12 of the place in the message where it has
 * several packets.
 */
static void simx_exp_loss__full_link_without_loss(void **state)
{
    struct json_object *many = point_measure("loss --size 1M --loss 0 --hosts 4 --leaf-hosts 2");
    struct json_object *one = point_measure("loss --size 4096 --loss 0 --hosts 4 --leaf-hosts 2");
    double bytes = number(many, "flows") * (1 << 20);

    (void)state;
    assert_true(fabs(number(many, "full_gbps") - 100.0 * 4096 / 4238) < 1e-6);
    assert_true(fabs(number(one, "full_gbps") - 100.0 * 4096 / 4226) < 1e-6);
    assert_true(number(many, "efficiency") > 0.995 && number(many, "efficiency") <= 1);
    assert_true(number(one, "efficiency") > 0.99 && number(one, "efficiency") <= 1);
    assert_int_equal(number(many, "packets"), bytes / 4096);
    assert_int_equal(number(many, "retransmitted"), 0);
    assert_int_equal(number(many, "config.size_bytes"), 1 << 20);
    json_object_put(many);
    json_object_put(one);
}

/* A lost packet costs its own time on the link, and little more. */
static void simx_exp_loss__goodput_falls_by_loss(void **state)
{
    static const struct {
        const char *line;
        double efficiency;
    } cases[] = {
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.0009765625", 0.99},
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.01", 0.96},
        {"loss --size 16M --hosts 4 --leaf-hosts 2 --loss 0.05", 0.88},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_object *result = point_measure(cases[i].line);
        double loss = number(result, "loss"), lost = number(result, "lost");
        double sent = number(result, "packets") + number(result, "acks");

        assert_true(number(result, "efficiency") > cases[i].efficiency);
        /* Five standard deviations of so many coins. */
        assert_true(fabs(lost - loss * sent) < 5 * sqrt(loss * sent));
        assert_true(number(result, "fct_us.p999") >= number(result, "fct_us.p99"));
        assert_columns(simx_experiment_find("loss"), result);
        json_object_put(result);
    }
}

static void simx_exp_loss__same_seed_same_result(void **state)
{
    (void)state;
    assert_repeats("loss --size 64K --hosts 4 --leaf-hosts 2 --loss 0.02 --seed 3", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simx_exp_loss__points),
        cmocka_unit_test(simx_exp_loss__full_link_without_loss),
        cmocka_unit_test(simx_exp_loss__goodput_falls_by_loss),
        cmocka_unit_test(simx_exp_loss__same_seed_same_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
