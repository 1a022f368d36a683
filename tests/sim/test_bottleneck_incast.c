/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that all send to one, over a link with a queue that marks nothing: the link is used, each
 * of them gets something, and not too much is dropped.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

struct row {
    uint32_t flows;
    double gbps, speedup, rtt_us, queue_bytes;
    uint32_t knows;
    double warm_ms, span_ms;
    struct bottleneck_bound goodput, drops, jain, least;
};

/* clang-format off */
static const struct row rows[] = {
    {8, 10, 4, 100, 100000, RDMA, 20, 20, {0.93, 0.91}, {0.04, 0.06}, {0.74, 0.61}, {0.45, 0.31}},
    {8, 10, 4, 100, 100000, SOCKETS, 20, 20, {0.93, 0.91}, {0.05, 0.11}, {0.67, 0.47}, {0.12, 0.03}},
    {8, 25, 4, 20, 300000, RDMA, 10, 20, {0.93, 0.91}, {0.03, 0.04}, {0.67, 0.5}, {0.32, 0.2}},
    {8, 25, 4, 20, 300000, SOCKETS, 10, 20, {0.93, 0.91}, {0.03, 0.05}, {0.65, 0.31}, {0.31, 0.17}},
    {8, 100, 1, 10, 200000, RDMA, 3, 5, {0.93, 0.91}, {0.02, 0.05}, {0.59, 0.05}, {0.34, 0}},
    {8, 100, 1, 10, 200000, SOCKETS, 3, 5, {0.93, 0.91}, {0.03, 0.04}, {0.46, 0.28}, {0.19, 0.04}},
    {8, 100, 1, 10, 1000000, RDMA, 3, 5, {0.93, 0.91}, {0.03, 0.05}, {0.68, 0.5}, {0.37, 0.1}},
    {8, 100, 1, 10, 1000000, SOCKETS, 3, 5, {0.93, 0.91}, {0.01, 0.02}, {0.75, 0.61}, {0.5, 0.3}},
    {32, 10, 4, 100, 100000, RDMA, 20, 20, {0.93, 0.91}, {0.12, 0.14}, {0.66, 0.5}, {0.29, 0.24}},
    {32, 10, 4, 100, 100000, SOCKETS, 20, 20, {0.92, 0.89}, {0.14, 0.19}, {0.38, 0.18}, {0.19, 0.09}},
    {32, 25, 4, 20, 300000, FABRIC, 10, 20, {0.93, 0.91}, {0.05, 0.06}, {0.75, 0.61}, {0.4, 0.25}},
    {32, 25, 4, 20, 300000, RDMA, 10, 20, {0.93, 0.91}, {0.08, 0.12}, {0.53, 0.4}, {0.25, 0.16}},
    {32, 25, 4, 20, 300000, SOCKETS, 10, 20, {0.92, 0.9}, {0.07, 0.11}, {0.28, 0.14}, {0.15, 0.11}},
    {32, 100, 1, 10, 200000, RDMA, 3, 5, {0.93, 0.91}, {0.11, 0.22}, {0.36, 0}, {0.15, 0}},
    {32, 100, 1, 10, 200000, SOCKETS, 3, 5, {0.93, 0.91}, {0.06, 0.08}, {0.35, 0.19}, {0, 0}},
    {32, 100, 1, 10, 1000000, FABRIC, 3, 5, {0.93, 0.91}, {0.02, 0.03}, {0.63, 0.49}, {0.27, 0.18}},
    {32, 100, 1, 10, 1000000, RDMA, 3, 5, {0.94, 0.9}, {0.08, 0.2}, {0.36, 0.24}, {0.03, 0}},
    {32, 100, 1, 10, 1000000, SOCKETS, 3, 5, {0.93, 0.91}, {0.05, 0.08}, {0.29, 0.14}, {0.14, 0}},
    {128, 10, 4, 100, 100000, RDMA, 20, 20, {0.94, 0.91}, {0.39, 0.46}, {0.48, 0.37}, {0, 0}},
    {128, 10, 4, 100, 100000, SOCKETS, 20, 20, {0.89, 0.86}, {0.51, 0.57}, {0.55, 0.44}, {0, 0}},
    {128, 25, 4, 20, 300000, RDMA, 5, 10, {0.91, 0.88}, {0.55, 0.65}, {0.28, 0.22}, {0, 0}},
    {128, 25, 4, 20, 300000, SOCKETS, 5, 10, {0.91, 0.88}, {0.26, 0.29}, {0.48, 0.37}, {0, 0}},
    {128, 100, 1, 10, 1000000, RDMA, 3, 5, {0.93, 0.89}, {0.49, 0.58}, {0.14, 0.1}, {0, 0}},
    {128, 100, 1, 10, 1000000, SOCKETS, 3, 5, {0.92, 0.9}, {0.14, 0.17}, {0.28, 0.09}, {0, 0}},
};
/* clang-format on */

TEST(sim_bottleneck__incast)
{
    struct bottleneck_judge judge = {.name = "incast"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .shape = BOTTLENECK_INCAST,
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .flows = r->flows,
                                 .queue_bytes = r->queue_bytes,
                                 .warm_ms = r->warm_ms,
                                 .span_ms = r->span_ms,
                             },
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_GOODPUT] = r->goodput,
                                 [BOTTLENECK_DROPS] = r->drops,
                                 [BOTTLENECK_JAIN] = r->jain,
                                 [BOTTLENECK_LEAST] = r->least,
                             }});
    }
    bottleneck_judge_end(&judge);
}
