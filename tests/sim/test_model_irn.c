/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of IRN: selective repeat within a BDP. */
#include "tests/support/check.h"
#include "tests/support/flows.h"

#include <inttypes.h>

#define RATE_BPS 100e9

enum {
    PAYLOAD = MODEL_FLOW_PAYLOAD_BYTES,
    LINK_NS = 5000,
};

static struct flows *irn_create(const struct mrd_sim_attr *attr, const struct model_tune *tune)
{
    return flows_create(attr, &(struct model_flows_config){.transport = "irn", .tune = tune});
}

/* ------------------------------------------------------------------------------------ no losses */

/* RETH in every packet. */
TEST(irn_wire_bytes__ethernet)
{
    struct flows *f = irn_create(&flows_pair, NULL);

    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 0), 4096 + 66 + 12 + 16 + 4);
    assert_int_equal(model_flows_wire_bytes(f->model, 10000, 1), 4096 + 66 + 12 + 16 + 4);
    assert_int_equal(f->model->wire_control[MODEL_ACK], 66 + 12 + 4 + 4);
}

/* A lone flow takes exactly what its bytes take: a window of the BDP never holds it up. */
TEST(irn_lone_flow__line_rate)
{
    flows_expect_line_rate("irn", true);
}

/* Many to one: windows bound the queue, so nothing is lost if they fit; the link is never idle. */
TEST(irn_window__bounds_queue)
{
    struct mrd_sim_attr tree = {.seed = test_seed(), .topology = &flows_leaf_spine};
    uint64_t bytes = 500ull * PAYLOAD, wire_ns;

    tree.link.queue_bytes = 2 << 20;
    struct flows *f = irn_create(&tree, NULL);
    for (uint32_t i = 0; i < 8; i++)
        flows_start(f, i, i + 1, 0, bytes);
    flows_finish(f, 8, 10 * MSEC_NS);
    wire_ns = flows_wire_ns(8 * 500ull * model_flows_wire_bytes(f->model, bytes, 1), RATE_BPS);
    assert_int_equal(flows_stats(f).retransmitted, 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_true(f->done_ns[i] <= wire_ns + 15 * USEC_NS);
}

/* --------------------------------------------------------------------------------------- losses */

/*
 * A packet is lost, or several of a window: each is sent again once, and nothing else; no timeout.
 */
TEST(irn_loss__selective_repeat)
{
    static const struct {
        uint64_t mask;
        unsigned lost;
    } cases[] = {{UINT64_C(1) << 20, 1},
                 {UINT64_C(1) << 20 | UINT64_C(1) << 25, 2},
                 {UINT64_C(0x1f) << 20, 5},
                 {UINT64_C(0x5555555) << 10, 14}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct flows *f = irn_create(&flows_pair, NULL);
        uint64_t packet_ns = flows_wire_ns(4194, RATE_BPS);

        flows_lose(f, 0, 1, cases[i].mask);
        flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
        assert_int_equal(flows_stats(f).retransmitted, cases[i].lost);
        assert_int_equal(flows_stats(f).spurious, 0);
        assert_int_equal(flows_stats(f).timeouts, 0);
        /*
         * Packets that a mask loses take no time on the link. But they count as in flight until
         * they are sent again: that costs some packets' time at most.
         */
        assert_in_range(f->done_ns[0], flows_lone_ns(f, 500, 1, LINK_NS) - FLOWS_ROUNDING_NS,
                        flows_lone_ns(f, 500, 1, LINK_NS) + 4 * (cases[i].lost + 2) * packet_ns);
    }
}

/* The last packet is lost: with little in flight the short timeout holds; else the long one. */
TEST(irn_loss__timeouts)
{
    static const uint64_t masks[] = {UINT64_C(1) << 9, UINT64_C(0x1f) << 5};
    struct model_tune tune = model_tune_default;

    assert_int_equal(model_tune_set(&tune, "irn.rto_low_us", 100), 0);
    assert_int_equal(model_tune_set(&tune, "irn.rto_high_us", 320), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct flows *f = irn_create(&flows_pair, &tune);
        /* Five in flight, then four, three, and the last two with the short one. */
        uint64_t rto_ns = i ? 3 * 320000 + 2 * 100000 : 100000;
        uint64_t lone = flows_lone_ns(f, 10, 1, LINK_NS);

        flows_lose(f, 0, 1, masks[i]);
        flows_one(f, 0, 1, 10 * PAYLOAD, 10 * MSEC_NS);
        assert_in_range(f->done_ns[0], rto_ns + lone, rto_ns + 6 * lone);
        /* After a timeout only the first counts as lost: nothing behind it has come. */
        assert_int_equal(flows_stats(f).timeouts, i ? 5 : 1);
        assert_int_equal(flows_stats(f).retransmitted, i ? 5 : 1);
    }
}

/* Defaults: the time of a full queue and the base RTT; a share of it where little is in flight. */
TEST(irn_rto__follows_fabric)
{
    struct mrd_sim_attr attr = flows_pair;
    struct flows *f = irn_create(&attr, NULL);
    uint64_t rtt_ns = f->model->base_rtt_ns;

    assert_in_range(f->model->rto_ns, rtt_ns + 83886, rtt_ns + 83887);
    attr.link.queue_bytes = 0;
    f = irn_create(&attr, NULL);
    assert_int_equal(f->model->rto_ns, 320000);
}

/* A packet lost and its repetition too: once in a recovery, so it waits for the timeout. */
TEST(irn_loss__twice)
{
    struct flows *f = irn_create(&flows_pair, NULL);

    flows_lose(f, 0, 1, 1 << 2);
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    unsigned second = f->model->window_packets + 2; /* sent again after about a window */

    /* All of a stretch in which it must be, but for what tells of it. */
    f = irn_create(&flows_pair, NULL);
    flows_lose(f, 0, 1, 1 << 2 | UINT64_C(0xf) << (second - 3));
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    assert_in_range(flows_stats(f).timeouts, 1, 2);
    assert_in_range(flows_stats(f).retransmitted, 5, 8);
    assert_in_range(f->done_ns[0], f->model->rto_ns,
                    2 * f->model->rto_ns + flows_lone_ns(f, 500, 1, LINK_NS));
}

/* Acks are many and cumulative: losing a third of them costs nothing. */
TEST(irn_loss__of_acks)
{
    struct flows *f = irn_create(&flows_pair, NULL);

    flows_lose(f, 1, 0, UINT64_C(0x4924924924924924));
    flows_one(f, 0, 1, 500 * PAYLOAD, 10 * MSEC_NS);
    assert_int_equal(flows_stats(f).retransmitted, 0);
    assert_in_range(f->done_ns[0], flows_lone_ns(f, 500, 1, LINK_NS) - FLOWS_ROUNDING_NS,
                    flows_lone_ns(f, 500, 1, LINK_NS) + 64 * flows_wire_ns(4194, RATE_BPS));
}

static double goodput(const struct mrd_sim_attr *attr, const struct model_tune *tune,
                      struct model_flows_stats *stats)
{
    enum { PACKETS = 20000 };
    struct flows *f = irn_create(attr, tune);

    flows_one(f, 0, 1, PACKETS * (uint64_t)PAYLOAD, SEC_NS);
    double ns = (double)f->done_ns[0];
    *stats = flows_stats(f);
    return (double)flows_wire_ns(PACKETS * UINT64_C(4194), RATE_BPS) / ns;
}

/* 1% of packets and acks lost: at least 90% of the line. The window of the paper costs a fifth. */
TEST(irn_goodput__random_loss)
{
    struct model_tune narrow = model_tune_default;

    assert_int_equal(model_tune_set(&narrow, "irn.range_windows", 1), 0);
    for (unsigned i = 0; i < 8; i++) {
        struct mrd_sim_attr attr = flows_pair;
        struct model_flows_stats stats;

        attr.seed = test_seed() + i;
        attr.loss_ppb = 10000000;

        double wide_share = goodput(&attr, NULL, &stats);

        test_check(attr.seed, wide_share >= 0.90, "goodput %.3f", wide_share);
        test_check(attr.seed, stats.retransmitted < 20000 / 50, "%" PRIu64 " sent again",
                   stats.retransmitted);

        double narrow_share = goodput(&attr, &narrow, &stats);

        print_message("goodput %.3f, with the paper's window %.3f\n", wide_share, narrow_share);
        test_check(attr.seed, narrow_share >= 0.65 && narrow_share <= 0.85, "goodput %.3f",
                   narrow_share);
    }
}

/* What queues drop is repaired: eight senders whose windows do not fit. */
TEST(irn_goodput__queue_drops)
{
    struct mrd_sim_attr tree = {.seed = test_seed(), .topology = &flows_leaf_spine};

    tree.link.queue_bytes = 400000;
    struct flows *f = irn_create(&tree, NULL);
    for (uint32_t i = 0; i < 8; i++)
        flows_start(f, i, i + 1, 0, 2000 * PAYLOAD);
    flows_finish(f, 8, 20 * MSEC_NS);
    uint64_t wire_ns = flows_wire_ns(8 * 2000 * UINT64_C(4194), RATE_BPS);
    test_check(tree.seed, flows_stats(f).retransmitted > 0, "nothing was dropped");
    for (uint32_t i = 0; i < 8; i++)
        test_check(tree.seed, f->done_ns[i] <= wire_ns * 5 / 4,
                   "flow %u: %" PRIu64 " ns of %" PRIu64, i, f->done_ns[i], wire_ns);
}

/* Corrupted packets are lost, and nothing is read from them. */
TEST(irn_corruption__is_loss)
{
    struct mrd_sim_attr attr = flows_pair;
    struct mrd_sim_stats to, from;

    attr.seed = test_seed();
    attr.link.corrupt_ppm = 5000;
    struct flows *f = irn_create(&attr, NULL);
    flows_one(f, 0, 1, 5000 * PAYLOAD, 100 * MSEC_NS);
    assert_int_equal(mrd_sim_link_stats(f->sim, 0, 1, 0, &to), 0);
    assert_int_equal(mrd_sim_link_stats(f->sim, 1, 0, 0, &from), 0);
    test_check(attr.seed, to.corrupted > 10 && from.corrupted > 10, "hardly any corruption");
    assert_int_equal(flows_stats(f).broken, to.corrupted + from.corrupted);
    assert_true(flows_stats(f).retransmitted >= to.corrupted);
}

/* Loss, duplicates, reordering, many flows: all bytes arrive, and at the same times again. */
TEST(irn_faults__deterministic)
{
    struct mrd_sim_attr attr = {.seed = test_seed(), .topology = &flows_leaf_spine};

    attr.link = (struct mrd_sim_link){.loss_ppm = 2000,
                                      .duplicate_ppm = 2000,
                                      .corrupt_ppm = 2000,
                                      .jitter_ns = 2000,
                                      .queue_bytes = 1 << 20};
    flows_expect_deterministic(&attr, &(struct model_flows_config){.transport = "irn"});
}
