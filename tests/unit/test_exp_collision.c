/* SPDX-License-Identifier: BSD-2-Clause */
/* The experiment collision: its points, the load of the links, and that spraying beats one path. */
#include "tests/unit/exp_cli.h"

#define SMALL "collision --hosts 32 --leaf-hosts 8 --size 512K"

enum { SINGLE, RR, RANDOM, REPS, ADAPTIVE, NUM_SPRAYS };

TEST(simx_exp_collision__points)
{
    static const char *const sprays[] = {"single", "rr", "random", "reps", "adaptive"};
    struct simx_config asked, config;
    const struct simx_experiment *collision = exp_parse(&asked, "collision");

    assert_int_equal(simx_points(collision, &asked), NUM_SPRAYS + 1);
    for (unsigned i = 0; i < NUM_SPRAYS; i++) {
        config = asked;
        simx_point(collision, &config, i);
        assert_string_equal(config.transport, "mrd");
        assert_string_equal(config.spray, sprays[i]);
    }
    assert_int_equal(asked.hosts, 128);
    assert_int_equal(asked.bytes, 2 << 20);
    exp_assert_refused("collision -tm traffic.cm", "makes its own traffic");
    exp_assert_refused("collision --spray rr", "leave out --spray");
    exp_assert_refused("collision --hosts 16", "two leaves");
}

/* Flows that leave their leaf cross one uplink; nothing else but acks does. */
TEST(simx_exp_collision__bytes_of_links)
{
    struct json_object *result = exp_measure_ended(SMALL, ADAPTIVE);
    struct json_object *links = json_get(result, "links");
    struct simx_cm cm;
    double crossing = 0, carried = 0, packets = 128;   /* of a flow of 512 KiB */
    double last_us = exp_number(result, "fct_us.max"); /* all start at 0 */

    assert_int_equal(simx_cm_permutation(&cm, 32, 512 << 10, 1), 0);
    for (uint32_t i = 0; i < cm.num_flows; i++)
        crossing += cm.flows[i].src / 8 != cm.flows[i].dst / 8;
    assert_int_equal(json_object_array_length(links), 4 * 8);
    for (size_t i = 0; i < 4 * 8; i++) {
        struct json_object *link = json_object_array_get_idx(links, i);

        assert_non_null(strstr(json_object_get_string(json_get(link, "name")), ">spine"));
        carried += exp_number(link, "share") * last_us * 100e9 / 8e6;
    }
    /* 4238 bytes a packet; acks have at least 106. */
    assert_true(carried > crossing * packets * 4238);
    assert_true(carried < crossing * packets * 4238 * 1.02 + exp_number(result, "acks") * 300);
    assert_true(exp_number(result, "util.min") <= exp_number(result, "util.mean"));
    assert_true(exp_number(result, "util.max") <= 1);
    assert_true(fabs(exp_number(result, "util.mean") * 32 * last_us * 100e9 / 8e6 - carried) <
                1e-6 * carried);
    exp_assert_columns(simx_experiment_find("collision"), result);
    simx_cm_fini(&cm);
}

TEST(simx_exp_collision__spraying_beats_one_path)
{
    struct json_object *single = exp_measure_ended(SMALL, SINGLE);

    for (unsigned i = RR; i < NUM_SPRAYS; i++) {
        struct json_object *spray = exp_measure_ended(SMALL, i);

        assert_true(exp_number(single, "fct_us.max") > 1.5 * exp_number(spray, "fct_us.max"));
        assert_true(exp_number(single, "util.stddev") > exp_number(spray, "util.stddev"));
    }
}

TEST(simx_exp_collision__same_seed_same_result)
{
    exp_assert_same(SMALL " --seed 5", REPS);
}
