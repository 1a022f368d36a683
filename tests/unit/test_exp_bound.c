/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds by hand: links of 100 Gb/s and 1 us, where a byte takes 0.08 ns. */
#include <math.h>

#include "tests/unit/exp_cli.h"

#define BYTE_US  0.08e-3
#define ROUND_US 1e-3 /* a hop cuts times to whole nanoseconds */

/* By hand: 66 of Ethernet, IP and UDP, 40 of the base header, 24 of the part, 12 of the place. */
enum { PAYLOAD = 4096, ACK = 66 + 40, SINGLE = ACK + 24, FULL = SINGLE + 12 };

static struct simx_config config;
static struct simx_net net;

static void expect_near(double value, double expected)
{
    exp_assert_near(value, expected, 1e-9);
}

static void make_net(const char *line)
{
    const struct simx_experiment *experiment = exp_parse(&config, line);

    (void)experiment;
    assert_int_equal(simx_net_init(&net, &config), 0);
}

/* There and back over so many links each way, the payload in one packet. */
static double lone_us(unsigned links, unsigned bytes)
{
    return links * (2 * (1 - ROUND_US) + (bytes + SINGLE + ACK) * BYTE_US);
}

/* -------------------------------------------------------------------------------------- one way */

TEST(simx_bound_distance__tiers)
{
    make_net("run --hosts 16 --leaf-hosts 4");
    assert_int_equal(simx_bound_distance(&net, 0, 3), SIMX_SAME_LEAF);
    assert_int_equal(simx_bound_distance(&net, 3, 4), SIMX_SAME_POD);
    assert_int_equal(simx_bound_distance(&net, 15, 0), SIMX_SAME_POD);

    make_net("run --hosts 32 --leaf-hosts 4 --tiers 3");
    assert_int_equal(net.topology.pod_hosts, 16);
    assert_int_equal(simx_bound_distance(&net, 28, 31), SIMX_SAME_LEAF);
    assert_int_equal(simx_bound_distance(&net, 0, 15), SIMX_SAME_POD);
    assert_int_equal(simx_bound_distance(&net, 15, 16), SIMX_FAR);
}

/* The first packet is stored and forwarded by 2, 4 or 6 links, and nine follow it. */
TEST(simx_bound_way_us__hops)
{
    make_net("run --hosts 32 --leaf-hosts 4 --tiers 3");
    for (unsigned d = 0; d < SIMX_DISTANCES; d++) {
        enum simx_distance distance = (enum simx_distance)d;
        unsigned links = 2 * (d + 1);
        double packet_us = (PAYLOAD + FULL) * BYTE_US;

        expect_near(simx_bound_way_us(&net, &config, distance, PAYLOAD),
                    links * (1 - ROUND_US + (PAYLOAD + SINGLE) * BYTE_US));
        expect_near(simx_bound_way_us(&net, &config, distance, 10 * PAYLOAD),
                    links * (1 - ROUND_US + packet_us) + 9 * packet_us);
        expect_near(simx_bound_back_us(&net, &config, distance),
                    links * (1 - ROUND_US + ACK * BYTE_US));
    }
    expect_near(simx_bound_flow_us(&net, &config, 0, 31, PAYLOAD), lone_us(6, PAYLOAD));
    expect_near(simx_bound_flow_us(&net, &config, 0, 1, 100), lone_us(2, 100));
}

/*
 * Hosts of 100 Gb/s, uplinks of 40: four of them carry more than the host's link, one carries less.
 */
TEST(simx_bound_way_us__slow_uplinks)
{
    double packet_us = (PAYLOAD + FULL) * BYTE_US, one_us;

    make_net("run --hosts 8 --leaf-hosts 4");
    net.topology.tier[1].rate_bps = 40000000000;
    one_us = 4 * (1 - ROUND_US) + 2 * packet_us + 2 * 2.5 * packet_us;
    expect_near(simx_bound_way_us(&net, &config, SIMX_SAME_POD, 10 * PAYLOAD),
                one_us + 9 * packet_us);
    net.topology.tier[0].radix_up = 1;
    expect_near(simx_bound_way_us(&net, &config, SIMX_SAME_POD, 10 * PAYLOAD),
                one_us + 9 * 2.5 * packet_us);
    /* Two of them: of ten packets each carries five. */
    net.topology.tier[0].radix_up = 2;
    net.topology.tier[1].rate_bps = 10000000000;
    one_us = 4 * (1 - ROUND_US) + 2 * packet_us + 2 * 10 * packet_us;
    expect_near(simx_bound_way_us(&net, &config, SIMX_SAME_POD, 10 * PAYLOAD),
                one_us + 4 * 10 * packet_us);
}

/* 2 links up from the leaf, a bundle of 2 to one agg with 4 up: 4 ways to another pod. */
TEST(simx_bound_way_us__bundles)
{
    double packet_us = (PAYLOAD + FULL) * BYTE_US;

    make_net("run --hosts 32 --leaf-hosts 4 --tiers 3");
    net.topology.tier[0].radix_up = net.topology.tier[1].bundle = 2;
    net.topology.tier[1].radix_up = 4;
    net.topology.tier[2].rate_bps = 5000000000;
    expect_near(simx_bound_way_us(&net, &config, SIMX_FAR, 8 * PAYLOAD),
                6 * (1 - ROUND_US) + 4 * packet_us + 2 * 20 * packet_us + 1 * 20 * packet_us);
}

/*
 * RoCEv2: 12 and 4 bytes, 16 more with the address, 4 in an ack; as htsim counts, all have the
 * same.
 */
TEST(simx_bound_flow_us__headers_of_models)
{
    make_net("run --hosts 8 --leaf-hosts 4 --transport rc");
    expect_near(simx_bound_flow_us(&net, &config, 0, 1, 1000),
                2 * (2 - 2 * ROUND_US + (1000 + 66 + 32 + 66 + 20) * BYTE_US));
    expect_near(simx_bound_way_us(&net, &config, SIMX_SAME_LEAF, 2 * PAYLOAD),
                2 * (1 - ROUND_US) + 3 * (PAYLOAD + 66 + 16) * BYTE_US);
    make_net("run --hosts 8 --leaf-hosts 4 --transport irn");
    expect_near(simx_bound_way_us(&net, &config, SIMX_SAME_LEAF, 2 * PAYLOAD),
                2 * (1 - ROUND_US) + 3 * (PAYLOAD + 66 + 32) * BYTE_US);
    make_net("run --hosts 8 --leaf-hosts 4 --transport rc --wire-overhead htsim");
    expect_near(simx_bound_flow_us(&net, &config, 0, 1, 1000),
                2 * (2 - 2 * ROUND_US + (1000 + 64 + 88) * BYTE_US));
}

/* ------------------------------------------------------------------------------------ all flows */

static struct simx_bounds bounds_of(struct simx_flow *flows, uint32_t num_flows,
                                    struct simx_trigger *triggers, uint32_t num_triggers)
{
    const struct simx_cm cm = {net.topology.hosts, flows, num_flows, triggers, num_triggers};
    struct simx_run run = {.config = &config, .net = net, .cm = &cm};
    struct simx_bounds bounds;

    assert_true(simx_waiting_init(&run.waiting, &cm));
    assert_true(simx_bounds_init(&bounds, &run));
    simx_waiting_fini(&run.waiting);
    return bounds;
}

static struct simx_flow flow(uint32_t src, uint32_t dst, double start_us)
{
    return (struct simx_flow){.src = src,
                              .dst = dst,
                              .send_done = -1,
                              .recv_done = -1,
                              .start_ps = (uint64_t)(start_us * 1e6),
                              .bytes = PAYLOAD};
}

/* Flows of one packet, which a link of a host carries one after the other. */
TEST(simx_bounds_init__shared_links)
{
    double busy_us = (PAYLOAD + SINGLE) * BYTE_US, alone_us;
    struct simx_flow flows[3];

    make_net("run --hosts 8 --leaf-hosts 4");
    alone_us = lone_us(4, PAYLOAD);

    /* Of one host at once, and to one host at once. */
    flows[0] = flow(0, 4, 0), flows[1] = flow(0, 5, 0), flows[2] = flow(0, 6, 0);
    struct simx_bounds b = bounds_of(flows, 3, NULL, 0);
    expect_near(b.fct_us, alone_us + 2 * busy_us);
    expect_near(b.completion_us, alone_us + 2 * busy_us);
    flows[0] = flow(0, 7, 0), flows[1] = flow(1, 7, 0), flows[2] = flow(2, 7, 0);
    b = bounds_of(flows, 3, NULL, 0);
    expect_near(b.fct_us, alone_us + 2 * busy_us);

    /* Nothing in common. */
    flows[0] = flow(0, 4, 0), flows[1] = flow(1, 5, 0), flows[2] = flow(2, 6, 0);
    expect_near(bounds_of(flows, 3, NULL, 0).fct_us, alone_us);

    /* The second starts in the middle of the first, the third when both have gone. */
    flows[0] = flow(0, 4, 10), flows[1] = flow(0, 5, 10.1), flows[2] = flow(0, 6, 20);
    b = bounds_of(flows, 3, NULL, 0);
    expect_near(b.fct_us, alone_us + busy_us - 0.1);
    expect_near(b.completion_us, 20 + alone_us);

    /* One of two below the leaf of the target: the shorter way counts. */
    flows[0] = flow(0, 3, 0), flows[1] = flow(4, 3, 0);
    b = bounds_of(flows, 2, NULL, 0);
    expect_near(b.fct_us, fmax(alone_us, lone_us(2, PAYLOAD) + busy_us));
}

/*
 * A flow starts when others can have ended, so the last end is late though each takes its own time.
 */
TEST(simx_bounds_init__triggers)
{
    struct simx_trigger triggers[] = {{.id = 1, .kind = SIMX_ONESHOT, .count = 1},
                                      {.id = 2, .kind = SIMX_BARRIER, .count = 2}};
    struct simx_flow flows[4];

    make_net("run --hosts 8 --leaf-hosts 4");
    double alone_us = lone_us(4, PAYLOAD);
    double way_us = simx_bound_way_us(&net, &config, SIMX_SAME_POD, PAYLOAD);

    /* One after the other, when the ack of the first is there. */
    flows[0] = flow(0, 4, 5), flows[1] = flow(0, 5, 0);
    flows[0].send_done = 0, flows[1].triggered = true;
    struct simx_bounds b = bounds_of(flows, 2, triggers, 1);
    expect_near(b.fct_us, alone_us);
    expect_near(b.completion_us, 5 + 2 * alone_us);

    /* When its data is there. */
    flows[0].send_done = -1, flows[0].recv_done = 0;
    expect_near(bounds_of(flows, 2, triggers, 1).completion_us, 5 + way_us + alone_us);

    /* The last of two fires the barrier, which the first flow of the file waits for. */
    flows[0] = flow(1, 6, 0), flows[1] = flow(0, 4, 0), flows[2] = flow(2, 5, 30);
    flows[3] = flow(3, 7, 0);
    flows[0].triggered = true, flows[0].trigger = 1;
    flows[1].recv_done = 1, flows[2].send_done = 1;
    b = bounds_of(flows, 4, triggers, 2);
    expect_near(b.fct_us, alone_us);
    expect_near(b.completion_us, 30 + 2 * alone_us);
}

/* Many messages to one host may share packets, of mrd only: the base header counts once in each. */
TEST(simx_bounds_init__small_messages)
{
    enum { NUM = 1000 };
    static struct simx_flow flows[NUM];

    for (unsigned i = 0; i < NUM; i++) {
        flows[i] = flow(0, 4, 0);
        flows[i].bytes = 100;
    }
    make_net("run --hosts 8 --leaf-hosts 4");
    double us = bounds_of(flows, NUM, NULL, 0).fct_us - lone_us(4, 100);
    assert_true(us > 0.99 * NUM * 124 * BYTE_US && us < 1.04 * NUM * 124 * BYTE_US);
    make_net("run --hosts 8 --leaf-hosts 4 --transport rc");
    us = bounds_of(flows, NUM, NULL, 0).fct_us;
    assert_true(us > NUM * (100 + 98) * BYTE_US);
}

/* Nothing that runs is faster. */
TEST(simx_bounds_init__runs)
{
    static const char *const lines[] = {
        "scale --peers 2 --size 64 --leaf-hosts 4",
        "scale --hosts 16 --leaf-hosts 4 --peers 3 --size 5000 --transport irn",
        "loss --size 1000 --loss 0 --hosts 8 --leaf-hosts 4",
        "collision --hosts 16 --leaf-hosts 4 --size 100K --transport rc",
        "incast --hosts 16 --leaf-hosts 4 --tiers 3 --size 64K --senders 3",
        "allreduce --hosts 8 --leaf-hosts 4 --size 100K --wire-overhead htsim",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct json_object *run = exp_measure_ended(lines[i], 0);
        double end = json_get_number(run, "completion_over_ideal");

        if (exp_number(run, "max_over_ideal") < 1 || end < 1)
            fail_msg("%s: %g and %g", lines[i], exp_number(run, "max_over_ideal"), end);
    }
}
