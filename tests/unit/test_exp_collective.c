/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allreduce and alltoall: bandwidths and ideals by hand, and that nothing starts before what it
 * waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "tests/kit/kit.h"
#include "tests/unit/exp_cli.h"

#define SMALL "--hosts 6 --leaf-hosts 3 --clock-skew 0 "

/* At 100 Gb/s a byte takes 0.08 ns. */
#define BYTE_US 0.08e-3

/* ------------------------------------------------------------------------------------- triggers */

/* A run of a matrix to its end, on the fabric of SMALL. */
static void run_all(struct simx_run *run, struct simx_config *config, const struct simx_cm *cm)
{
    const struct simx_experiment *experiment;
    struct simx_net net;

    exp_configure("allreduce " SMALL, 0, &experiment, config);
    assert_int_equal(simx_net_init(&net, config), 0);
    assert_int_equal(simx_run_create(run, config, &net, cm), 0);
    assert_int_equal(simx_run_all(run), 0);
    assert_int_equal(run->num_done, cm->num_flows);
}

/*
 * Step k of a host begins when step k - 1 of the one before it is there: before that one's sender
 * has the ack.
 */
TEST(simx_run__ring_order)
{
    enum { HOSTS = 6, STEPS = 2 * (HOSTS - 1), BYTES = 6 * 8192 };
    struct simx_config config;
    struct simx_run run;
    struct simx_cm cm;

    assert_int_equal(simx_cm_ring_allreduce(&cm, HOSTS, BYTES), 0);
    run_all(&run, &config, &cm);

    uint64_t way_ns =
        (uint64_t)(simx_bound_way_us(&run.net, &config, SIMX_SAME_LEAF, BYTES / HOSTS) * 1e3);

    for (uint32_t i = 0; i < cm.num_flows; i++) {
        uint32_t host = i % HOSTS, before = (host + HOSTS - 1) % HOSTS;

        if (i < HOSTS) {
            assert_int_equal(run.flows[i].start_ns, 0);
            continue;
        }
        const struct simx_run_flow *waited = &run.flows[(i / HOSTS - 1) * HOSTS + before];

        assert_true(run.flows[i].start_ns >= waited->start_ns + way_ns);
        assert_true(run.flows[i].start_ns < waited->done_ns);
    }
    simx_run_destroy(&run);
    simx_cm_fini(&cm);
}

TEST(simx_run__serial_order)
{
    enum { HOSTS = 6, SENDS = HOSTS - 1 };
    struct simx_config config;
    struct simx_run run;
    struct simx_cm cm;

    assert_int_equal(simx_cm_alltoall(&cm, HOSTS, 8192, true), 0);
    run_all(&run, &config, &cm);
    for (uint32_t i = 0; i < cm.num_flows; i++)
        assert_int_equal(run.flows[i].start_ns, i % SENDS ? run.flows[i - 1].done_ns : 0);
    simx_run_destroy(&run);
    simx_cm_fini(&cm);
}

/*
 * Two flows fire a barrier for which the first and the last one wait; another trigger lies before
 * it.
 */
TEST(simx_run__barrier)
{
    struct simx_flow flows[] = {
        {.src = 0, .dst = 3, .triggered = true, .trigger = 1, .send_done = -1, .recv_done = -1},
        {.src = 1, .dst = 3, .send_done = 1, .recv_done = 0},
        {.src = 2, .dst = 4, .send_done = -1, .recv_done = 1, .start_ps = 50000000},
        {.src = 3, .dst = 5, .triggered = true, .trigger = 0, .send_done = -1, .recv_done = -1},
        {.src = 4, .dst = 5, .triggered = true, .trigger = 1, .send_done = -1, .recv_done = -1},
    };
    struct simx_trigger triggers[] = {{.id = 1, .kind = SIMX_ONESHOT, .count = 1},
                                      {.id = 2, .kind = SIMX_BARRIER, .count = 2}};
    const struct simx_cm cm = {6, flows, 5, triggers, 2};
    struct simx_config config;
    struct simx_run run;

    for (int i = 0; i < 5; i++)
        flows[i].bytes = 4096;
    run_all(&run, &config, &cm);
    assert_true(run.flows[3].start_ns > 0);
    assert_true(run.flows[3].start_ns < run.flows[1].done_ns);
    assert_true(run.flows[1].done_ns < 50000);
    assert_true(run.flows[0].start_ns > 50000);
    assert_true(run.flows[0].start_ns < run.flows[2].done_ns);
    assert_int_equal(run.flows[0].start_ns, run.flows[4].start_ns);
    simx_run_destroy(&run);
}

TEST(simx_cm_alltoall__pairs)
{
    uint8_t seen[5][5] = {0};
    struct simx_cm cm;

    assert_int_equal(simx_cm_alltoall(&cm, 5, 100, false), 0);
    assert_int_equal(cm.num_flows, 20);
    assert_int_equal(cm.num_triggers, 0);
    for (uint32_t i = 0; i < 20; i++) {
        assert_false(cm.flows[i].triggered);
        assert_int_equal(cm.flows[i].bytes, 100);
        seen[cm.flows[i].src][cm.flows[i].dst]++;
    }
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++)
            assert_int_equal(seen[i][j], i != j);
    }
    simx_cm_fini(&cm);
}

/* ---------------------------------------------------------------------------------- experiments */

TEST(simx_collective_point__sizes)
{
    const struct simx_experiment *experiment;
    struct simx_config config;

    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(exp_configure("allreduce", i, &experiment, &config), 7);
        assert_int_equal(config.bytes, 1048576u << i);
    }
    assert_int_equal(exp_configure("alltoall --size 3M", 0, &experiment, &config), 1);
    assert_int_equal(config.bytes, 3 * 1048576);
}

/*
 * 6 hosts, 48 KiB: the bandwidths of the NCCL tests from the time, with factors 2 * 5 / 6 and 5 /
 * 6.
 */
static void check_bandwidths(const char *line, double factor)
{
    struct json_object *run = exp_measure(line, 0);
    double bits = 49152 * 8, us = exp_number(run, "completion_us");

    assert_true(exp_number(run, "unfinished") == 0);
    assert_true(exp_number(run, "size_bytes") == 49152);
    exp_assert_near(exp_number(run, "algbw_gbps"), bits / us / 1e3, 1e-6);
    exp_assert_near(exp_number(run, "busbw_gbps"), bits / us / 1e3 * factor, 1e-6);
    exp_assert_near(exp_number(run, "ideal_busbw_gbps"),
                    bits / exp_number(run, "ideal_completion_us") / 1e3 * factor, 1e-6);
    exp_assert_near(exp_number(run, "completion_over_ideal"),
                    us / exp_number(run, "ideal_completion_us"), 1e-6);
    assert_true(exp_number(run, "fct_us.max") <= us);
}

TEST(simx_collective_measure__bandwidths)
{
    check_bandwidths("allreduce --size 48K " SMALL, 10.0 / 6);
    check_bandwidths("alltoall --size 48K " SMALL, 5.0 / 6);
    check_bandwidths("alltoall --size 48K --at-once " SMALL, 5.0 / 6);
}

/*
 * Pieces of 8 KiB on 6 hosts in 2 leaves: of the ways around, 4 stay in a leaf (2 links) and 2 do
 * not (4 links). Ten steps are twice around but for two ways: those in a leaf. Nothing is in their
 * way, so the engine comes near to it.
 */
TEST(simx_exp_allreduce__ideal)
{
    struct json_object *run = exp_measure("allreduce --size 48K " SMALL, 0);
    double packet_us = (exp_number(run, "config.payload_bytes") + 66 + 64) * BYTE_US;
    double ideal_us = exp_number(run, "ideal_completion_us");
    double near_us = 2 * (1 + packet_us) + packet_us, far_us = 4 * (1 + packet_us) + packet_us;

    exp_assert_columns(&simx_exp_allreduce, run);
    assert_string_equal(json_object_get_string(json_get(run, "pattern")), "ring");
    assert_true(exp_number(run, "flows") == 6 * 10);
    /* The headers differ by some bytes from 66 + 64, and there is the last ack. */
    assert_true(ideal_us > 6 * near_us + 4 * far_us);
    assert_true(ideal_us < 6 * near_us + 4 * far_us + 5);
    assert_true(exp_number(run, "completion_over_ideal") >= 1);
    assert_true(exp_number(run, "completion_over_ideal") < 1.05);
}

/* An ideal is one: nothing is faster, whatever the fabric. */
TEST(simx_collective_measure__not_below_ideal)
{
    static const char *const lines[] = {
        "allreduce --size 48K --hosts 6 --leaf-hosts 6",
        "allreduce --size 300K --hosts 6 --leaf-hosts 1",
        "allreduce --size 1000 --hosts 16 --leaf-hosts 2 --tiers 3",
        "alltoall --size 48K --hosts 6 --leaf-hosts 6",
        "alltoall --size 48K --hosts 6 --leaf-hosts 6 --at-once",
        "alltoall --size 300K --hosts 6 --leaf-hosts 1",
        "alltoall --size 300K --hosts 6 --leaf-hosts 1 --at-once",
        "alltoall --size 1000 --hosts 16 --leaf-hosts 2 --tiers 3",
        "alltoall --size 1000 --hosts 16 --leaf-hosts 2 --tiers 3 --at-once",
        "alltoall --size 1M --hosts 2 --leaf-hosts 1 --wire-overhead htsim",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *run = exp_measure(lines[i], 0);
        double ratio = exp_number(run, "completion_over_ideal");

        if (!(ratio >= 1 && ratio < 2.5))
            fail_msg("%s: %g of the ideal", lines[i], ratio);
    }
}

/* 100 bytes do not divide by 6: each of them gets 16. */
TEST(simx_exp_alltoall__rest)
{
    struct json_object *run = exp_measure("alltoall --size 100 " SMALL, 0);

    assert_true(exp_number(run, "size_bytes") == 96);
    assert_true(exp_number(run, "flows") == 30);
}

TEST(simx_collective_measure__same_seed)
{
    exp_assert_same("allreduce --size 48K " SMALL, 0);
    exp_assert_same("alltoall --size 48K " SMALL, 0);
    exp_assert_same("alltoall --size 48K --at-once " SMALL, 0);
}

TEST(simx_collective_measure__refuses)
{
    assert_non_null(strstr(exp_refusal("allreduce --size 5 " SMALL), "each host"));
    assert_non_null(strstr(exp_refusal("alltoall --size 5 " SMALL), "each host"));
    exp_assert_refused("alltoall -tm x.cm", "takes no -tm");
}
