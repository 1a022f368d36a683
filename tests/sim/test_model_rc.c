/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of RoCE's reliable connection, and what all models share: turns, paths, ends of flows.
 */
#include "tests/support/check.h"
#include "tests/support/flows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define RATE_BPS 100e9

enum {
    PAYLOAD = MODEL_FLOW_PAYLOAD_BYTES,
    LINK_NS = 1000,
    TREE_HOPS = 4,
};

static struct mrd_sim_attr tree_attr(uint64_t seed)
{
    return (struct mrd_sim_attr){.seed = seed, .topology = &flows_leaf_spine};
}

/* ------------------------------------------------------------------------------------ no losses */

/*
 * Bytes of RoCEv2 on Ethernet: BTH 12 and ICRC 4 in each, RETH 16 in the first, AETH 4 in an ack.
 */
TEST(model_flows_wire_bytes__ethernet_and_htsim)
{
    struct mrd_sim_attr htsim = flows_pair;
    struct flows *f = flows_create(&flows_pair, NULL);

    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 0), 4096 + 66 + 12 + 4 + 16);
    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 1), 4096 + 66 + 12 + 4);
    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 2), 10000 - 8192 + 66 + 12 + 4);
    assert_int_equal(f->model->wire_control[MODEL_ACK], 66 + 12 + 4 + 4);

    htsim.wire_overhead = MRD_SIM_WIRE_HTSIM;
    f = flows_create(&htsim, NULL);
    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 0), 4096 + 64);
    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 1), 4096 + 64);
    assert_int_equal(f->model->wire_control[MODEL_ACK], 88);
}

/* A lone flow takes just what its bytes take, on any fabric: the window never holds it up. */
TEST(rc_lone_flow__line_rate)
{
    flows_expect_line_rate("rc", false);
}

/* The base RTT is that of one packet and its ack between the hosts furthest apart. */
TEST(model_flows_base_rtt_ns__measured)
{
    struct mrd_sim_attr attr = tree_attr(1);
    struct flows *f = flows_create(&attr, NULL);

    flows_start(f, 0, 0, 15, PAYLOAD - 16); /* room for the RETH that only the first packet has */
    flows_finish(f, 1, MSEC_NS);
    uint64_t rtt_ns = f->model->base_rtt_ns;
    assert_in_range(f->done_ns[0], rtt_ns - FLOWS_ROUNDING_NS, rtt_ns + FLOWS_ROUNDING_NS);
}

/* An ack for every four packets, and for the last one; a flow of no bytes is a packet too. */
TEST(rc_ack__coalesced)
{
    struct flows *f = flows_create(&flows_pair, NULL);

    flows_one(f, 0, 1, 10 * PAYLOAD, MSEC_NS);
    assert_int_equal(flows_stats(f).acks, 3);
    flows_start(f, 1, 1, 0, 0);
    flows_finish(f, 2, MSEC_NS);
    assert_int_equal(flows_stats(f).acks, 4);
    assert_int_equal(flows_stats(f).packets, 11);
}

/* A window smaller than the BDP makes W packets a round trip. */
TEST(rc_window__limits)
{
    struct model_tune tune = model_tune_default;

    assert_int_equal(model_tune_set(&tune, "rc.window_packets", 8), 0);
    struct flows *f = flows_create(&flows_pair, &(struct model_flows_config){.tune = &tune});
    assert_int_equal(f->model->window_packets, 8);
    flows_one(f, 0, 1, 800 * PAYLOAD, 10 * MSEC_NS);
    uint64_t rtt_ns = f->model->base_rtt_ns;
    /* Acks come for four packets, so a round trip begins when the fourth has left. */
    assert_in_range(f->done_ns[0], 99 * rtt_ns, 100 * (rtt_ns + flows_wire_ns(4 * 4178, RATE_BPS)));
}

/* Flows of a host take turns: equal ones end together, a short one does not wait for a long one. */
TEST(rc_turns__round_robin)
{
    struct mrd_sim_attr attr = tree_attr(test_seed());
    struct flows *f = flows_create(&attr, NULL);

    for (uint32_t i = 0; i < 3; i++)
        flows_start(f, i, 0, i + 1, 300 * PAYLOAD); /* hosts of the same leaf: one way */
    flows_start(f, 3, 0, 1, 3 * PAYLOAD);
    flows_finish(f, 4, 10 * MSEC_NS);
    assert_true(f->done_ns[2] - f->done_ns[0] <= 5 * flows_wire_ns(4178, RATE_BPS));
    assert_in_range(f->done_ns[2], flows_wire_ns(903ull * 4178, RATE_BPS),
                    flows_wire_ns(903ull * 4178, RATE_BPS) + 10 * USEC_NS);
    assert_true(f->done_ns[3] < 20 * flows_wire_ns(4178, RATE_BPS) + 10 * USEC_NS);
}

struct chain {
    struct model_flows *model;
    uint32_t done;
};

static void chain_done(void *arg, uint32_t flow, uint64_t now_ns)
{
    struct chain *c = arg;

    (void)now_ns;
    assert_int_equal(flow, c->done);
    c->done++;
    if (c->done < 1000)
        assert_int_equal(model_flows_start(c->model, c->done, 0, 1, 5 * PAYLOAD), 0);
}

/* A flow may be started when another ends, in its place; the other's stray packets are nobody's. */
TEST(model_flows_start__from_done)
{
    struct mrd_sim_attr attr = flows_pair;
    struct chain c = {0};

    attr.link.duplicate_ppm = 200000;
    attr.link.jitter_ns = 3000; /* the copy may come much later */
    struct mrd_sim *sim = test_sim(&attr);

    c.model = model_flows_create(sim, &(struct model_flows_config){.done = chain_done, .arg = &c});
    assert_non_null(c.model);
    assert_int_equal(model_flows_start(c.model, 0, 0, 1, 5 * PAYLOAD), 0);
    mrd_sim_run_until(sim, 1000 * MSEC_NS);
    assert_int_equal(c.done, 1000);
    model_flows_destroy(c.model);
}

/* ---------------------------------------------------------------------------------------- paths */

/* All data of a flow takes one way up, and all its acks one way back. */
TEST(rc_path__one_a_flow)
{
    struct mrd_sim_attr attr = tree_attr(test_seed());
    struct flows *f = flows_create(&attr, NULL);
    unsigned used;

    flows_one(f, 0, 13, 1000 * PAYLOAD, 10 * MSEC_NS);
    assert_int_equal(flows_packets(f, "leaf0>spine*", &used), 1000);
    assert_int_equal(used, 1);
    assert_int_equal(flows_packets(f, "leaf3>spine*", &used), flows_stats(f).acks);
    assert_int_equal(used, 1);
}

/* Two flows between different hosts: when they are over, and how many ways up they had. */
static uint64_t two_flows_ns(uint64_t seed, unsigned *ways)
{
    struct mrd_sim_attr attr = tree_attr(test_seed());
    struct flows *f = flows_create(&attr, &(struct model_flows_config){.seed = seed});

    flows_start(f, 0, 0, 4, 1000 * PAYLOAD);
    flows_start(f, 1, 1, 9, 1000 * PAYLOAD);
    flows_finish(f, 2, 10 * MSEC_NS);
    flows_packets(f, "leaf0>spine*", ways);
    uint64_t ns = f->done_ns[0] > f->done_ns[1] ? f->done_ns[0] : f->done_ns[1];
    return ns;
}

/* The seed decides whether they collide, a quarter of the time, and if they do, each gets half. */
TEST(rc_path__collisions)
{
    enum { SEEDS = 64 };
    uint64_t alone_ns = flows_wire_ns(1000ull * 4178, RATE_BPS), slack_ns = 15 * USEC_NS;
    unsigned collisions = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        unsigned ways;
        uint64_t ns = two_flows_ns(seed, &ways);
        uint64_t least_ns = ways == 1 ? 2 * alone_ns : alone_ns;

        test_check(test_seed(), ns >= least_ns && ns <= least_ns + slack_ns,
                   "seed %" PRIu64 ": %u ways, %" PRIu64 " ns", seed, ways, ns);
        collisions += ways == 1;
    }
    assert_in_range(collisions, 5, 30); /* 16 expected, standard deviation 3.5 */
}

/* Same seed, same times; the ports are the same for another transport too. */
TEST(rc_path__deterministic)
{
    struct mrd_sim_attr attr = tree_attr(test_seed());

    attr.loss_ppb = 1000000;
    flows_expect_deterministic(&attr, &(struct model_flows_config){.seed = 7});
}

/* --------------------------------------------------------------------------------------- losses */

/* A packet is lost: one NAK, and everything from it on is sent again. */
TEST(rc_loss__one_nak_a_gap)
{
    struct flows *f = flows_create(&flows_pair, NULL);

    flows_lose(f, 0, 1, UINT64_C(1) << 20);
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    struct model_flows_stats stats = flows_stats(f);
    uint64_t lone = flows_lone_ns(f, 500, 1, 5000);
    assert_int_equal(stats.naks, 1);
    assert_int_equal(stats.timeouts, 0);
    assert_int_equal(stats.spurious, 0);
    assert_int_equal(stats.retransmitted, stats.out_of_order + 1);
    assert_in_range(stats.retransmitted, f->model->window_packets - 5, f->model->window_packets);
    assert_in_range(f->done_ns[0], lone + 10 * USEC_NS, lone + 13 * USEC_NS); /* a round trip */
}

/* Two gaps, two NAKs; the same packet lost again gets no second NAK, and waits for the timeout. */
TEST(rc_loss__of_what_was_repeated)
{
    struct flows *f = flows_create(&flows_pair, NULL);
    uint64_t window;

    flows_lose(f, 0, 1, UINT64_C(1) << 2 | UINT64_C(1) << 62);
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    assert_int_equal(flows_stats(f).naks, 2);
    assert_int_equal(flows_stats(f).timeouts, 0);
    window = flows_stats(f).out_of_order / 2; /* sent after a loss, before its NAK was there */

    f = flows_create(&flows_pair, NULL);
    flows_lose(f, 0, 1, UINT64_C(1) << 2 | UINT64_C(1) << (2 + 1 + window));
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    assert_int_equal(flows_stats(f).naks, 1);
    assert_int_equal(flows_stats(f).timeouts, 1);
}

/* The last packet is lost: nothing follows, so only the timeout helps; also if an ack is lost. */
TEST(rc_loss__last_packet)
{
    uint64_t lone;

    for (int direction = 0; direction < 2; direction++) {
        struct flows *f = flows_create(&flows_pair, NULL);
        uint64_t rto_ns = f->model->rto_ns;

        assert_int_equal(rto_ns, 524288);
        flows_lose(f, direction, !direction, direction ? 1 << 2 : 1 << 9);
        flows_one(f, 0, 1, 10 * PAYLOAD, 10 * MSEC_NS);
        lone = flows_lone_ns(f, 10, 1, 5000);
        assert_int_equal(flows_stats(f).timeouts, 1);
        assert_int_equal(flows_stats(f).naks, 0);
        /* The ack of packets 0 .. 7 started the timer; the two others were sent before it came. */
        assert_in_range(f->done_ns[0], rto_ns + lone, rto_ns + 2 * lone);
        assert_int_equal(flows_stats(f).spurious, direction ? 2 : 1);
    }
}

/*
 * A dead path is tried for ever, more often than a connection would; when it heals, the flow ends.
 */
TEST(rc_loss__all)
{
    struct mrd_sim_attr attr = tree_attr(test_seed());
    struct flows *f = flows_create(&attr, NULL);

    assert_int_equal(mrd_sim_schedule(f->sim, 50 * USEC_NS, "host0>leaf0", "blackhole", "on"), 0);
    assert_int_equal(mrd_sim_schedule(f->sim, 10 * MSEC_NS, "host0>leaf0", "heal", "on"), 0);
    flows_start(f, 0, 0, 13, 1000 * PAYLOAD);
    mrd_sim_run_until(f->sim, 10 * MSEC_NS - 1);
    assert_int_equal(f->num_done, 0);
    assert_in_range(flows_stats(f).timeouts, 18, 19);
    assert_int_equal(flows_stats(f).retries_exceeded, flows_stats(f).timeouts - 7);
    flows_finish(f, 1, 10 * MSEC_NS);
    assert_in_range(flows_stats(f).spurious, 0, 3); /* had come, and no ack for so few */
}

/* Corrupted packets do not pass the ICRC: they are lost, acks too, and nobody reads them. */
TEST(rc_corruption__is_loss)
{
    struct mrd_sim_attr attr = flows_pair;
    struct mrd_sim_stats to, from;

    attr.seed = test_seed();
    attr.link.corrupt_ppm = 10000;
    struct flows *f = flows_create(&attr, NULL);
    flows_one(f, 0, 1, 5000 * PAYLOAD, 100 * MSEC_NS);
    assert_int_equal(mrd_sim_link_stats(f->sim, 0, 1, 0, &to), 0);
    assert_int_equal(mrd_sim_link_stats(f->sim, 1, 0, 0, &from), 0);
    test_check(attr.seed, to.corrupted > 10 && from.corrupted > 0, "hardly any corruption");
    assert_int_equal(flows_stats(f).broken, to.corrupted + from.corrupted);
    assert_in_range(flows_stats(f).naks + flows_stats(f).timeouts, 10,
                    to.corrupted + from.corrupted);
}

/* ------------------------------------------------------------------------------------ go-back-N */

/* Loss and packets in flight that they are compared at. */
struct go_back {
    double loss;
    uint32_t window_packets;
};

static const struct go_back go_back_cases[] = {{0.0002, 64}, {0.001, 16}, {0.001, 64},
                                               {0.001, 250}, {0.005, 32}, {0.01, 16},
                                               {0.01, 64},   {0.02, 32},  {0.05, 16}};

enum { GO_BACK_CASES = sizeof(go_back_cases) / sizeof(go_back_cases[0]), GO_BACK_PACKETS = 30000 };

#define PACKET_NS (4178 * 8e9 / RATE_BPS)

/* A long flow whose window is just the BDP, all packets lost alike: its share of the line. */
static double go_back(const struct go_back *c, uint64_t seed, double rto_ns,
                      struct model_flows_stats *stats)
{
    struct model_tune tune = model_tune_default;
    struct mrd_sim_attr attr = flows_pair;

    attr.seed = seed;
    attr.loss_ppb = (uint32_t)(c->loss * 1e9);
    attr.link.delay_ns = (uint64_t)((c->window_packets - 4) * PACKET_NS / 2);
    assert_int_equal(model_tune_set(&tune, "rc.window_packets", c->window_packets), 0);
    assert_int_equal(model_tune_set(&tune, "rc.rto_us", rto_ns / 1e3), 0);

    struct flows *f = flows_create(&attr, &(struct model_flows_config){.tune = &tune});

    flows_one(f, 0, 1, GO_BACK_PACKETS * (uint64_t)PAYLOAD, SEC_NS);
    double ns = (double)f->done_ns[0];
    *stats = flows_stats(f);
    return GO_BACK_PACKETS * PACKET_NS / ns;
}

static double go_back_theory(const struct go_back *c)
{
    double p = c->loss, w = c->window_packets;

    return (1 - p) / (1 - p + p * w);
}

/* The textbook's go-back-N. It knows no timeouts: the one here is as short as the path allows. */
TEST(rc_go_back__theory)
{
    for (unsigned i = 0; i < GO_BACK_CASES; i++) {
        const struct go_back *c = &go_back_cases[i];
        uint64_t seed = test_seed() + i;
        struct model_flows_stats stats;
        double theory = go_back_theory(c);
        double goodput = go_back(c, seed, 2 * c->window_packets * PACKET_NS, &stats);

        print_message("p %.4f W %3u: goodput %.3f, theory %.3f\n", c->loss, c->window_packets,
                      goodput, theory);
        test_check(seed, fabs(goodput / theory - 1) < 0.15, "p %g W %u: %g, not %g", c->loss,
                   c->window_packets, goodput, theory);
    }
}

/*
 * What is lost again, and a lost NAK, wait for the timeout, for there is one NAK a gap: 2 p^2 of
 * the packets. With the default timeout, which is that of a fabric with queues, this is most of
 * what loss costs.
 */
TEST(rc_go_back__timeouts)
{
    for (unsigned i = 0; i < GO_BACK_CASES; i++) {
        const struct go_back *c = &go_back_cases[i];
        uint64_t seed = test_seed() + i;
        struct model_flows_stats stats;
        double rto_ns = model_tune_default.rc.rto_us * 1e3;
        double goodput = go_back(c, seed, rto_ns, &stats);
        double expected = 2 * c->loss * c->loss * GO_BACK_PACKETS;
        double late = (double)stats.timeouts - expected;
        double theory = 1 / (1 / go_back_theory(c) +
                             (double)stats.timeouts * rto_ns / (GO_BACK_PACKETS * PACKET_NS));

        print_message("p %.4f W %3u: goodput %.3f, theory %.3f with %" PRIu64
                      " timeouts, %.1f expected\n",
                      c->loss, c->window_packets, goodput, theory, stats.timeouts, expected);
        test_check(seed, fabs(goodput / theory - 1) < 0.15, "p %g W %u: %g, not %g", c->loss,
                   c->window_packets, goodput, theory);
        test_check(seed, late * late <= 16 * expected + 4, "p %g W %u: %" PRIu64 " timeouts",
                   c->loss, c->window_packets, stats.timeouts);
    }
}

/* -------------------------------------------------------------------------------- configuration */

TEST(model_flows_create__refuses)
{
    static const struct model_flows_config bad[] = {{.transport = "tcp"},
                                                    {.payload_bytes = 2 << 20}};
    static const char *const bad_zero[] = {"rc.rto_us", "dcqcn.timer_us", "dcqcn.bytes"};
    struct mrd_sim *sim = test_sim(&flows_pair);

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(model_flows_create(sim, &bad[i]));
        assert_int_equal(errno, EINVAL);
    }
    for (unsigned i = 0; i < sizeof(bad_zero) / sizeof(bad_zero[0]); i++) {
        struct model_tune tune = model_tune_default;

        assert_int_equal(model_tune_set(&tune, bad_zero[i], 0), 0);
        assert_null(
            model_flows_create(sim, &(struct model_flows_config){.dcqcn = true, .tune = &tune}));
    }
    struct model_flows *model = model_flows_create(sim, &(struct model_flows_config){0});
    assert_non_null(model);
    assert_null(model_flows_create(sim, &(struct model_flows_config){0})); /* hosts in use */
    assert_int_equal(model_flows_start(model, 0, 0, 0, 1), -EINVAL);
    assert_int_equal(model_flows_start(model, 0, 0, 2, 1), -EINVAL);
    assert_int_equal(model_flows_start(model, 0, 0, 1, UINT64_C(1) << 62), -EINVAL);
    model_flows_destroy(model);
    model = model_flows_create(sim, &(struct model_flows_config){0});
    assert_non_null(model); /* given back */
    model_flows_destroy(model);
}

TEST(model_tune_set__by_name)
{
    struct model_tune tune = model_tune_default;
    unsigned num;

    const struct mrd_tune_entry *entries = model_tune_entries(&num);
    assert_int_equal(num * sizeof(double), sizeof(tune));
    for (unsigned i = 0; i < num; i++)
        assert_int_equal(model_tune_set(&tune, entries[i].name, entries[i].value_default), 0);
    assert_memory_equal(&tune, &model_tune_default, sizeof(tune));
    assert_int_equal(model_tune_set(&tune, "rc.rto_us", 100), 0);
    assert_true(tune.rc.rto_us == 100);
    assert_int_equal(model_tune_set(&tune, "rc.rto", 100), -ENOENT);
    assert_int_equal(model_tune_set(&tune, "rc.rto_us", -1), -EINVAL);
    assert_int_equal(model_tune_set(&tune, "rc.rto_us", NAN), -EINVAL);
    assert_true(tune.rc.rto_us == 100);
}
