/* SPDX-License-Identifier: BSD-2-Clause */
/* scale: its traffic, and what it says of state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "tests/kit/kit.h"
#include "tests/unit/exp_cli.h"

#define SMALL "scale --leaf-hosts 4 --size 512 "

TEST(simx_cm_pairs__hosts)
{
    struct simx_cm cm;

    assert_int_equal(simx_cm_pairs(&cm, 8, 4, 3, 100), 0);
    assert_int_equal(cm.num_flows, 3);
    assert_int_equal(cm.nodes, 8);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(cm.flows[i].src, i);
        assert_int_equal(cm.flows[i].dst, 4 + i);
        assert_int_equal(cm.flows[i].bytes, 100);
    }
    simx_cm_fini(&cm);
    assert_int_equal(simx_cm_pairs(&cm, 8, 4, 0, 100), -EINVAL);
    assert_int_equal(simx_cm_pairs(&cm, 8, 4, 5, 100), -EINVAL);
    assert_int_equal(simx_cm_pairs(&cm, 8, 2, 3, 100), -EINVAL); /* 2 would send to itself */
    assert_int_equal(simx_cm_pairs(&cm, 8, 8, 1, 100), -EINVAL);
}

TEST(simx_cm_fan_out__round_robin)
{
    static const uint32_t to[] = {1, 2, 3, 1, 2, 3, 1};
    struct simx_cm cm;

    assert_int_equal(simx_cm_fan_out(&cm, 8, 3, 7, 100), 0);
    assert_int_equal(cm.num_flows, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(cm.flows[i].src, 0);
        assert_int_equal(cm.flows[i].dst, to[i]);
    }
    simx_cm_fini(&cm);
    assert_int_equal(simx_cm_fan_out(&cm, 8, 0, 7, 100), -EINVAL);
    assert_int_equal(simx_cm_fan_out(&cm, 8, 8, 7, 100), -EINVAL);
    assert_int_equal(simx_cm_fan_out(&cm, 8, 3, 0, 100), -EINVAL);
}

/* Nobody sends to itself, nor twice to one; all receive from as many as they send to. */
TEST(simx_cm_spread__is_fair)
{
    static const struct {
        uint32_t hosts, peers;
    } cases[] = {{2, 1}, {8, 1}, {8, 3}, {8, 7}, {7, 4}, {100, 17}, {64, 63}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint32_t hosts = cases[c].hosts, peers = cases[c].peers;
        uint8_t *sends = calloc(hosts, hosts);
        struct simx_cm cm;

        assert_int_equal(simx_cm_spread(&cm, hosts, peers, 100), 0);
        assert_int_equal(cm.num_flows, hosts * peers);
        for (uint32_t i = 0; i < cm.num_flows; i++) {
            assert_int_not_equal(cm.flows[i].src, cm.flows[i].dst);
            assert_int_equal(sends[cm.flows[i].src * hosts + cm.flows[i].dst]++, 0);
        }
        for (uint32_t i = 0; i < hosts; i++) {
            uint32_t out = 0, in = 0;

            for (uint32_t j = 0; j < hosts; j++) {
                out += sends[i * hosts + j];
                in += sends[j * hosts + i];
            }
            assert_int_equal(out, peers);
            assert_int_equal(in, peers);
        }
        simx_cm_fini(&cm);
        free(sends);
    }

    struct simx_cm cm;

    assert_int_equal(simx_cm_spread(&cm, 8, 8, 100), -EINVAL);
    assert_int_equal(simx_cm_spread(&cm, 65536, 65535, 100), -EINVAL);
}

TEST(simx_exp_scale__points)
{
    static const uint32_t peers[] = {1, 4, 16, 64, 256, 1024, 4096};
    const struct simx_experiment *experiment;
    struct simx_config config;

    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(exp_configure("scale", i, &experiment, &config), 7);
        assert_int_equal(config.peers, peers[i]);
        assert_true(config.hosts > peers[i] && config.hosts % config.leaf_hosts == 0);
        assert_true(config.hosts >= 2 * config.leaf_hosts);
    }
    assert_int_equal(exp_configure("scale --peers 17", 0, &experiment, &config), 1);
    assert_int_equal(config.peers, 17);
    assert_false(config.is_all_hosts);
    assert_int_equal(exp_configure("scale --hosts 64", 0, &experiment, &config), 1);
    assert_int_equal(config.peers, 1);
    assert_int_equal(config.hosts, 64);
    assert_true(config.is_all_hosts);
}

/*
 * All peers are active: what one costs depends on its packets in flight, not on how many peers there
 * are, and idle ones cost much less.
 */
TEST(simx_exp_scale__state)
{
    struct json_object *few = exp_measure("scale --peers 8 --size 8K", 0);
    struct json_object *many = exp_measure("scale --peers 20 --size 8K", 0);
    double idle = exp_number(many, "idle_peer_bytes"),
           active = exp_number(many, "active_peer_bytes");

    exp_assert_columns(&simx_exp_scale, few);
    assert_true(exp_number(few, "unfinished") == 0);
    assert_true(exp_number(few, "flows") == 4096);
    assert_true(exp_number(many, "flows") == 4080);
    double ratio =
        exp_number(few, "state_bytes_per_peer") / exp_number(many, "state_bytes_per_peer");
    assert_true(ratio > 0.9 && ratio < 1.1);
    assert_true(exp_number(many, "state_bytes") == 20 * exp_number(many, "state_bytes_per_peer"));
    assert_true(10 * idle < active);
    /* An entry and a half at each end, and records of packets. */
    assert_true(exp_number(many, "state_bytes_per_peer") >= idle + active);
    assert_true(exp_number(many, "state_bytes_per_peer") < 2 * active);
    /* More paths are more state. */
    struct json_object *narrow = exp_measure("scale --peers 8 --size 8K --paths 4", 0);
    assert_true(exp_number(narrow, "active_peer_bytes") < active);
    assert_true(exp_number(narrow, "idle_peer_bytes") == idle);
}

TEST(simx_exp_scale__rates)
{
    struct json_object *run = exp_measure("scale --peers 3 --size 64K", 0);
    double us = exp_number(run, "completion_us");
    double messages = exp_number(run, "flows");

    assert_true(messages == 4095);
    assert_true(exp_number(run, "messages_per_s") > 0.999e6 * messages / us);
    assert_true(exp_number(run, "messages_per_s") < 1.001e6 * messages / us);
    assert_true(exp_number(run, "goodput_gbps") > 0.999 * messages * 65536 * 8 / us / 1e3);
    assert_true(exp_number(run, "goodput_gbps") < 1.001 * messages * 65536 * 8 / us / 1e3);
    assert_true(exp_number(run, "rss_mb") > 1);
}

TEST(simx_exp_scale__all_hosts)
{
    struct json_object *run = exp_measure(SMALL "--hosts 16 --peers 5", 0);

    assert_string_equal(json_object_get_string(json_get(run, "pattern")), "all_hosts");
    assert_true(exp_number(run, "flows") == 16 * 5);
    assert_true(exp_number(run, "unfinished") == 0);
    assert_true(exp_number(run, "state_bytes") > 16 * 5 * exp_number(run, "idle_peer_bytes"));
}

TEST(simx_exp_scale__same_seed)
{
    exp_assert_same(SMALL "--peers 5", 0);
    exp_assert_same(SMALL "--hosts 16", 0);
}

TEST(simx_exp_scale__refuses)
{
    exp_assert_refused(SMALL "-tm x.cm --peers 2", "takes no -tm");
    assert_non_null(strstr(exp_refusal(SMALL "--hosts 8 --peers 8"), "fewer peers than hosts"));
}
