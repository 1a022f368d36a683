/* SPDX-License-Identifier: BSD-2-Clause */
/* DCQCN, by itself and on flows that share a link. */
#include "tests/support/check.h"
#include "tests/support/flows.h"

#include <inttypes.h>
#include <math.h>

#include "tools/sim/models/dcqcn.h"
#include "transport/movers/sim/sim_world.h"

enum { PAYLOAD = MODEL_FLOW_PAYLOAD_BYTES };

#define LINE_BPS 40e9

static struct model_dcqcn_limits paper_limits(void)
{
    struct model_dcqcn_limits limits;

    assert_int_equal(model_dcqcn_limits_init(&limits, &model_tune_default.dcqcn, LINE_BPS), 0);
    return limits;
}

static void assert_near(double value, double expected)
{
    test_check(test_seed(), fabs(value - expected) <= 1e-9 * fabs(expected), "%.12g, not %.12g",
               value, expected);
}

/* ---------------------------------------------------------------------------------- arithmetic */

/* Line rate until the first CNP, which halves it; alpha starts at 1 and moves by g. */
TEST(model_dcqcn_cut__by_alpha)
{
    struct model_dcqcn_limits limits = paper_limits();
    struct model_dcqcn d;

    model_dcqcn_init(&d, &limits);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(model_dcqcn_pace(&d, &limits, 4178, 1000 * i), 0);
    model_dcqcn_cut(&d, &limits, 1000000);
    assert_near(d.rate_bps, 20e9);
    assert_near(d.target_bps, 40e9);
    assert_near(d.alpha, 1);
    /* 4178 bytes at 20 Gb/s */
    assert_int_equal(model_dcqcn_pace(&d, &limits, 4178, 1000000), 1671200);

    /* 54 us later: the timer has not fired. */
    model_dcqcn_cut(&d, &limits, 1054000);
    assert_near(d.rate_bps, 10e9);
    assert_near(d.target_bps, 20e9);

    /* 55 us later: alpha decayed once, and one step of recovery. */
    model_dcqcn_cut(&d, &limits, 1109000);
    assert_near(d.target_bps, 15e9);
    assert_near(d.rate_bps, 15e9 * (1 - (255. / 256) / 2));
    assert_near(d.alpha, (255. / 256) * (255. / 256) + 1. / 256);

    /* Never below the least. */
    for (unsigned i = 0; i < 100; i++)
        model_dcqcn_cut(&d, &limits, 1109000);
    assert_near(d.rate_bps, 100e6);
}

/* Steps of the timer: four halve the distance to the target, from the fifth on it grows too. */
TEST(model_dcqcn_pace__timer_steps)
{
    struct model_dcqcn_limits limits = paper_limits();
    double rate = 10e9, goal = 20e9;
    struct model_dcqcn d;

    model_dcqcn_init(&d, &limits);
    model_dcqcn_cut(&d, &limits, 0);
    model_dcqcn_cut(&d, &limits, 0);
    for (unsigned step = 1; step <= 12; step++) {
        if (step >= 5)
            goal += 40e6;
        rate = (rate + goal) / 2;
        model_dcqcn_pace(&d, &limits, 1, step * 55000 - 1);
        assert_true(d.rate_bps < rate);
        model_dcqcn_pace(&d, &limits, 1, step * 55000);
        assert_near(d.rate_bps, rate);
        assert_near(d.target_bps, goal);
    }
}

/* Steps by bytes count as those of the timer do; when both are past F, the target grows fast. */
TEST(model_dcqcn_pace__byte_steps)
{
    struct model_dcqcn_limits limits = paper_limits();
    double rate = 10e9, goal = 20e9;
    struct model_dcqcn d;

    model_dcqcn_init(&d, &limits);
    model_dcqcn_cut(&d, &limits, 0);
    model_dcqcn_cut(&d, &limits, 0);
    for (unsigned step = 1; step <= 6; step++) {
        if (step >= 5)
            goal += 40e6;
        rate = (rate + goal) / 2;
        for (unsigned i = 0; i < 2500; i++)
            model_dcqcn_pace(&d, &limits, 4000, 0);
        assert_near(d.rate_bps, rate);
    }
    for (unsigned step = 1; step <= 8; step++) {
        goal += step > 5 ? 400e6 : 40e6;
        rate = (rate + goal) / 2;
        model_dcqcn_pace(&d, &limits, 1, step * 55000);
        assert_near(d.rate_bps, rate);
    }
    /* In the end line rate, and no pacing. */
    assert_int_equal(model_dcqcn_pace(&d, &limits, 4178, SEC_NS), 0);
    assert_near(d.rate_bps, LINE_BPS);
}

/* --------------------------------------------------------------------------------------- flows */

/* Eight hosts a leaf at 40 Gb/s; long queues that mark. */
static struct mrd_sim_attr marking_attr(void)
{
    static const struct mrd_sim_topology topology = {
        .hosts = 16,
        .tiers = 2,
        .tier = {{.radix_down = 8, .radix_up = 4, .rate_bps = 40000000000, .delay_ns = 1000},
                 {.radix_down = 2, .rate_bps = 40000000000, .delay_ns = 1000}}};

    return (struct mrd_sim_attr){.seed = test_seed(),
                                 .topology = &topology,
                                 .link = {.ecn_min_bytes = 100000, .ecn_max_bytes = 400000}};
}

/* Windows that would let queues grow to tens of megabytes: only DCQCN keeps them short. */
static struct model_tune wide_tune(void)
{
    struct model_tune tune = model_tune_default;

    assert_int_equal(model_tune_set(&tune, "rc.window_packets", 4096), 0);
    assert_int_equal(model_tune_set(&tune, "irn.window_packets", 4096), 0);
    assert_int_equal(model_tune_set(&tune, "rc.rto_us", 100000), 0);
    assert_int_equal(model_tune_set(&tune, "irn.rto_high_us", 100000), 0);
    assert_int_equal(model_tune_set(&tune, "irn.rto_low_us", 100000), 0);
    return tune;
}

struct shares {
    double bps[8];
    double total_bps;
    double queue_avg_bytes, queue_max_bytes;
};

/* The link from leaf 0 to host 7. */
static const struct mrd_sim_wire *bottleneck(const struct mrd_sim *sim)
{
    return &sim->fabric.wires[sim->fabric.tree->switches[0].down_first + 7];
}

/* What each of `flows` flows to host 7 gets between from_ns and to_ns, and what queues there. */
static struct shares share(struct flows *f, unsigned flows, uint64_t from_ns, uint64_t to_ns)
{
    enum { STEP_NS = 10000 };
    struct shares s = {0};
    uint64_t before[8], num = 0;

    for (uint32_t i = 0; i < flows; i++)
        flows_start(f, i, i, 7, UINT64_C(1) << 40);
    mrd_sim_run_until(f->sim, from_ns);
    for (unsigned i = 0; i < flows; i++)
        before[i] = f->received[i];
    for (uint64_t ns = from_ns; ns < to_ns; ns += STEP_NS) {
        mrd_sim_run_until(f->sim, ns + STEP_NS);
        double backlog = (double)mrd_sim_wire_backlog(bottleneck(f->sim), mrd_sim_now(f->sim));
        s.queue_avg_bytes += backlog;
        s.queue_max_bytes = backlog > s.queue_max_bytes ? backlog : s.queue_max_bytes;
        num++;
    }
    s.queue_avg_bytes /= (double)num;
    for (unsigned i = 0; i < flows; i++) {
        s.bps[i] = (double)(f->received[i] - before[i]) * 8e9 / (double)(to_ns - from_ns);
        s.total_bps += s.bps[i];
    }
    return s;
}

/* Flows that share a link get equal shares of all of it, and the queue stays where it is marked. */
TEST(dcqcn_flows__fair_and_short)
{
    static const struct {
        const char *transport;
        unsigned flows;
    } cases[] = {{"rc", 2}, {"irn", 2}, {"rc", 6}};
    struct mrd_sim_attr attr = marking_attr();
    struct model_tune tune = wide_tune();

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned num = cases[i].flows;
        struct flows *f =
            flows_create(&attr, &(struct model_flows_config){
                                    .transport = cases[i].transport, .dcqcn = true, .tune = &tune});
        struct shares s = share(f, num, 50 * MSEC_NS, 250 * MSEC_NS);

        print_message("%s, %u flows: %.1f Gb/s, queue %.0f KB, at most %.0f KB\n",
                      cases[i].transport, num, s.total_bps / 1e9, s.queue_avg_bytes / 1e3,
                      s.queue_max_bytes / 1e3);
        test_check(attr.seed, s.total_bps > 0.94 * LINE_BPS, "%g b/s", s.total_bps);
        for (unsigned j = 0; j < num; j++)
            test_check(attr.seed, fabs(s.bps[j] * num / s.total_bps - 1) < 0.15,
                       "flow %u of %u: %g of %g b/s", j, num, s.bps[j], s.total_bps);
        test_check(attr.seed, s.queue_avg_bytes < 150000 && s.queue_max_bytes < 250000,
                   "queue of %g bytes, at most %g", s.queue_avg_bytes, s.queue_max_bytes);
        assert_int_equal(model_flows_get_stats(f->model).timeouts, 0);
    }
}

/* Without it the windows stand in the queue, nothing is marked and nobody sends CNPs. */
TEST(dcqcn_flows__off)
{
    struct mrd_sim_attr attr = marking_attr();
    struct model_tune tune = wide_tune();
    struct flows *f = flows_create(&attr, &(struct model_flows_config){.tune = &tune});
    struct shares s = share(f, 2, 10 * MSEC_NS, 20 * MSEC_NS);

    assert_true(s.queue_avg_bytes > 2 * 4000 * 4178.);
    assert_int_equal(bottleneck(f->sim)->stats.ce, 0);
    assert_int_equal(model_flows_get_stats(f->model).cnps, 0);
}

/* However many packets are marked, a flow has one CNP in 50 us. */
TEST(dcqcn_flows__cnps_spaced)
{
    struct mrd_sim_attr attr = marking_attr();
    struct model_tune tune = wide_tune();
    struct flows *f;

    attr.link.ecn_min_bytes = 0;
    attr.link.ecn_max_bytes = 1; /* every packet that finds another */
    f = flows_create(&attr, &(struct model_flows_config){.dcqcn = true, .tune = &tune});
    share(f, 4, 0, 4990 * USEC_NS);
    uint64_t cnps = model_flows_get_stats(f->model).cnps;
    assert_true(bottleneck(f->sim)->stats.ce > 3 * cnps);
    assert_in_range(cnps, 20, 4 * 100);
}

/* A lone flow is never marked: DCQCN costs it nothing. */
TEST(dcqcn_flows__lone)
{
    struct mrd_sim_attr attr = marking_attr();
    uint64_t ns[2];

    for (unsigned i = 0; i < 2; i++) {
        struct flows *f = flows_create(&attr, &(struct model_flows_config){.dcqcn = i});

        flows_one(f, 0, 13, 5000 * (uint64_t)PAYLOAD, 10 * MSEC_NS);
        ns[i] = f->done_ns[0];
    }
    assert_int_equal(ns[0], ns[1]);
}
