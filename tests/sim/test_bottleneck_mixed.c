/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows that are not alike at one queue: one that has a short message at a time waits not much longer
 * for it beside four that always have data, and flows with a short way leave a share to those with a long one.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

enum { BULKS = 4, WARM_MS = 20, SPAN_MS = 20 };

struct rpc_row {
    double gbps, speedup, rtt_us, queue_bdp;
    bool ecn;
    uint32_t knows;
    double warm_ms, span_ms;
    struct bottleneck_bound goodput, drops, p99;
};

struct far_row {
    uint32_t flows; /* half of them far */
    double gbps, speedup, rtt_us, far_rtt_us, queue_bytes;
    bool ecn;
    uint32_t knows;
    struct bottleneck_bound goodput, drops, far, least;
};

/* The bound is in microseconds; the queue alone is up to queue_bdp round trips. */
/* clang-format off */
static const struct rpc_row rpc_rows[] = {
    {10, 1, 100, 1, false, RDMA, 20, 40, {0.93, 0.91}, {0.03, 0.05}, {1110, 21500}},
    {10, 1, 100, 1, false, SOCKETS, 20, 40, {0.93, 0.91}, {0.03, 0.04}, {920, 1210}},
    {10, 4, 20, 4, false, RDMA, 20, 40, {0.93, 0.91}, {0.03, 0.04}, {460, 620}},
    {10, 4, 20, 4, false, SOCKETS, 20, 40, {0.93, 0.91}, {0.03, 0.04}, {630, 730}},
    {25, 4, 20, 2, false, FABRIC, 10, 15, {0.93, 0.91}, {0.01, 0.02}, {200, 270}},
    {25, 4, 20, 2, false, RDMA, 10, 15, {0.93, 0.91}, {0.02, 0.03}, {90, 110}},
    {25, 4, 20, 2, false, SOCKETS, 10, 15, {0.93, 0.91}, {0.02, 0.03}, {110, 660}},
    {100, 1, 10, 2, false, RDMA, 5, 6, {0.93, 0.91}, {0.01, 0.02}, {50, 60}},
    {100, 1, 10, 2, false, SOCKETS, 5, 6, {0.93, 0.91}, {0.01, 0.02}, {50, 610}},
    {10, 1, 100, 1, true, RDMA, 20, 40, {0.94, 0.91}, {0.01, 0.01}, {250, 360}},
    {10, 1, 100, 1, true, SOCKETS, 20, 40, {0.94, 0.91}, {0.01, 0.01}, {270, 420}},
    {10, 4, 20, 4, true, RDMA, 20, 40, {0.94, 0.91}, {0.01, 0.01}, {120, 170}},
    {10, 4, 20, 4, true, SOCKETS, 20, 40, {0.94, 0.91}, {0.01, 0.01}, {150, 630}},
    {25, 4, 20, 2, true, FABRIC, 10, 15, {0.94, 0.91}, {0.01, 0.01}, {70, 110}},
    {25, 4, 20, 2, true, RDMA, 10, 15, {0.94, 0.91}, {0.01, 0.01}, {80, 90}},
    {25, 4, 20, 2, true, SOCKETS, 10, 15, {0.94, 0.91}, {0.01, 0.01}, {70, 100}},
    {100, 1, 10, 2, true, RDMA, 5, 6, {0.94, 0.91}, {0.01, 0.01}, {40, 50}},
    {100, 1, 10, 2, true, SOCKETS, 5, 6, {0.94, 0.91}, {0.01, 0.01}, {40, 40}},
    {100, 1, 150, 4, false, SOCKETS, 30, 20, {0.94, 0.91}, {0.01, 0.01}, {280, 300}},
};

static const struct far_row far_rows[] = {
    {2, 10, 4, 10, 200, 100000, false, RDMA, {0.93, 0.91}, {0.02, 0.03}, {0.66, 0.5}, {0.66, 0.5}},
    {2, 10, 4, 10, 200, 100000, false, SOCKETS, {0.93, 0.91}, {0.03, 0.04}, {0.7, 0.28}, {0.69, 0.38}},
    {4, 10, 1, 10, 200, 250000, false, RDMA, {0.93, 0.91}, {0.02, 0.04}, {0.54, 0.37}, {0.42, 0.25}},
    {4, 10, 1, 10, 200, 250000, false, SOCKETS, {0.93, 0.91}, {0.03, 0.08}, {0.54, 0.37}, {0.43, 0.19}},
    {8, 25, 4, 10, 200, 300000, false, FABRIC, {0.94, 0.91}, {0.02, 0.03}, {0.47, 0.23}, {0.34, 0.15}},
    {8, 25, 4, 10, 200, 300000, false, RDMA, {0.93, 0.91}, {0.02, 0.03}, {0.87, 0.66}, {0.48, 0.33}},
    {8, 25, 4, 10, 200, 300000, false, SOCKETS, {0.93, 0.91}, {0.05, 0.07}, {1.27, 1.02}, {0.21, 0.1}},
    {4, 50, 1, 10, 200, 500000, false, RDMA, {0.93, 0.91}, {0.01, 0.02}, {0.87, 0.66}, {0.69, 0.49}},
    {4, 50, 1, 10, 200, 500000, false, SOCKETS, {0.93, 0.91}, {0.01, 0.02}, {0.94, 0.79}, {0.28, 0.2}},
    {2, 10, 4, 10, 200, 100000, true, RDMA, {0.94, 0.9}, {0.01, 0.01}, {0.73, 0.59}, {0.73, 0.59}},
    {2, 10, 4, 10, 200, 100000, true, SOCKETS, {0.94, 0.91}, {0.01, 0.01}, {0.7, 0.54}, {0.69, 0.54}},
    {4, 10, 1, 10, 200, 250000, true, RDMA, {0.94, 0.91}, {0.01, 0.01}, {0.75, 0.58}, {0.68, 0.49}},
    {4, 10, 1, 10, 200, 250000, true, SOCKETS, {0.94, 0.91}, {0.01, 0.01}, {0.76, 0.6}, {0.66, 0.48}},
    {8, 25, 4, 10, 200, 300000, true, RDMA, {0.94, 0.91}, {0.01, 0.01}, {0.84, 0.7}, {0.75, 0.61}},
    {8, 25, 4, 10, 200, 300000, true, SOCKETS, {0.94, 0.91}, {0.01, 0.01}, {0.73, 0.58}, {0.65, 0.48}},
    {4, 50, 1, 10, 200, 500000, true, RDMA, {0.94, 0.91}, {0.01, 0.01}, {0.79, 0.64}, {0.74, 0.58}},
    {4, 50, 1, 10, 200, 500000, true, SOCKETS, {0.94, 0.91}, {0.01, 0.01}, {0.5, 0.38}, {0.47, 0.34}},
};
/* clang-format on */

TEST(sim_bottleneck__rpc)
{
    struct bottleneck_judge judge = {.name = "rpc"};

    for (size_t i = 0; i < sizeof(rpc_rows) / sizeof(rpc_rows[0]); i++) {
        const struct rpc_row *r = &rpc_rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .queue_bdp = r->queue_bdp,
                                 .warm_ms = r->warm_ms,
                                 .span_ms = r->span_ms,
                                 .ecn = r->ecn,
                                 .flows = BULKS,
                                 .rpcs = 1,
                             },
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_GOODPUT] = r->goodput,
                                 [BOTTLENECK_DROPS] = r->drops,
                                 [BOTTLENECK_RPC_P99] = r->p99,
                             }});
    }
    bottleneck_judge_end(&judge);
}

TEST(sim_bottleneck__far)
{
    struct bottleneck_judge judge = {.name = "far"};

    for (size_t i = 0; i < sizeof(far_rows) / sizeof(far_rows[0]); i++) {
        const struct far_row *r = &far_rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .flows = r->flows,
                                 .far_rtt_us = r->far_rtt_us,
                                 .queue_bytes = r->queue_bytes,
                                 .ecn = r->ecn,
                                 .warm_ms = WARM_MS,
                                 .span_ms = SPAN_MS,
                             },
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_GOODPUT] = r->goodput,
                                 [BOTTLENECK_DROPS] = r->drops,
                                 [BOTTLENECK_FAR] = r->far,
                                 [BOTTLENECK_LEAST] = r->least,
                             }});
    }
    bottleneck_judge_end(&judge);
}
