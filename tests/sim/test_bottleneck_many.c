/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some flows from hosts of their own over one link, alike in all but their seeds: each has its share,
 * and little is dropped. With a queue that marks nothing, and with a short one that marks.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

enum { ECN_QUEUE_BYTES = 100000 };

struct row {
    uint32_t flows;
    double gbps, speedup, rtt_us, queue_bdp;
    uint32_t knows;
    double warm_ms, span_ms;
    struct bottleneck_bound goodput, drops, jain, least;
};

struct ecn_row {
    uint32_t flows;
    double gbps, speedup, rtt_us;
    uint32_t knows;
    double warm_ms, span_ms;
    struct bottleneck_bound goodput, drops, jain, least;
};

/* clang-format off */
static const struct row rows[] = {
    {2, 10, 1, 20, 1, RDMA, 20, 30, {0.93, 0.91}, {0.02, 0.03}, {0.39, 0.34}, {0, 0}},
    {2, 10, 4, 20, 1, RDMA, 20, 30, {0.91, 0.88}, {0.04, 0.37}, {0.8, 0.39}, {0.71, 0.07}},
    {2, 10, 4, 100, 1, FABRIC, 20, 30, {0.93, 0.91}, {0.02, 0.02}, {0.81, 0.69}, {0.75, 0.58}},
    {2, 10, 4, 100, 1, RDMA, 20, 30, {0.93, 0.9}, {0.02, 0.02}, {0.79, 0.69}, {0.69, 0.59}},
    {2, 10, 4, 100, 1, SOCKETS, 20, 30, {0.93, 0.9}, {0.02, 0.03}, {0.81, 0.69}, {0.75, 0.6}},
    {4, 10, 1, 100, 1, RDMA, 20, 30, {0.93, 0.91}, {0.03, 0.04}, {0.75, 0.15}, {0.49, 0}},
    {4, 10, 1, 100, 1, SOCKETS, 20, 30, {0.93, 0.91}, {0.02, 0.03}, {0.78, 0.62}, {0.61, 0.4}},
    {4, 10, 4, 100, 0.5, FABRIC, 20, 30, {0.93, 0.9}, {0.02, 0.03}, {0.77, 0.64}, {0.58, 0.45}},
    {4, 10, 4, 100, 0.5, RDMA, 20, 30, {0.93, 0.91}, {0.03, 0.03}, {0.79, 0.63}, {0.64, 0.45}},
    {4, 10, 4, 100, 0.5, SOCKETS, 20, 30, {0.93, 0.91}, {0.04, 0.06}, {0.79, 0.67}, {0.61, 0.49}},
    {4, 25, 4, 20, 4, FABRIC, 10, 15, {0.93, 0.91}, {0.01, 0.02}, {0.73, 0.62}, {0.55, 0.3}},
    {4, 25, 4, 20, 4, RDMA, 10, 15, {0.93, 0.91}, {0.02, 0.03}, {0.78, 0.62}, {0.56, 0.32}},
    {4, 25, 4, 20, 4, SOCKETS, 10, 15, {0.93, 0.91}, {0.02, 0.02}, {0.76, 0.6}, {0.5, 0.38}},
    {4, 100, 4, 20, 1, RDMA, 6, 6, {0.93, 0.91}, {0.01, 0.02}, {0.72, 0.56}, {0.48, 0.2}},
    {4, 100, 1, 10, 2, RDMA, 6, 6, {0.93, 0.91}, {0.01, 0.03}, {0.78, 0.58}, {0.6, 0.33}},
    {4, 100, 1, 10, 2, SOCKETS, 6, 6, {0.93, 0.91}, {0.01, 0.02}, {0.8, 0.67}, {0.5, 0.35}},
    {8, 10, 4, 100, 2, FABRIC, 25, 25, {0.93, 0.91}, {0.04, 0.04}, {0.76, 0.59}, {0.49, 0.33}},
    {8, 10, 4, 100, 2, RDMA, 25, 25, {0.93, 0.91}, {0.04, 0.05}, {0.73, 0.59}, {0.44, 0.24}},
    {8, 10, 4, 100, 2, SOCKETS, 25, 25, {0.93, 0.91}, {0.05, 0.09}, {0.69, 0.41}, {0.38, 0.21}},
    {8, 25, 1, 50, 1, RDMA, 10, 15, {0.93, 0.91}, {0.04, 0.09}, {0.62, 0.35}, {0.36, 0.16}},
    {8, 25, 1, 50, 1, SOCKETS, 10, 15, {0.93, 0.9}, {0.03, 0.07}, {0.54, 0.36}, {0.28, 0.04}},
    {8, 100, 1, 20, 1, RDMA, 5, 5, {0.93, 0.91}, {0.02, 0.03}, {0.49, 0.4}, {0.2, 0.14}},
    {8, 100, 1, 20, 1, SOCKETS, 5, 5, {0.93, 0.91}, {0.02, 0.05}, {0.38, 0.22}, {0.25, 0.03}},
    {16, 10, 4, 100, 1, FABRIC, 25, 25, {0.93, 0.91}, {0.05, 0.06}, {0.76, 0.62}, {0.47, 0.25}},
    {16, 10, 4, 100, 1, RDMA, 25, 25, {0.93, 0.91}, {0.08, 0.1}, {0.67, 0.51}, {0.35, 0.16}},
    {16, 10, 4, 100, 1, SOCKETS, 25, 25, {0.92, 0.9}, {0.09, 0.13}, {0.41, 0.21}, {0.11, 0.02}},
    {16, 25, 4, 20, 4, RDMA, 10, 15, {0.93, 0.91}, {0.05, 0.07}, {0.6, 0.44}, {0.24, 0.1}},
    {16, 100, 1, 10, 4, RDMA, 5, 5, {0.93, 0.91}, {0.05, 0.06}, {0.41, 0.21}, {0.07, 0.02}},
    {16, 100, 1, 10, 4, SOCKETS, 5, 5, {0.93, 0.91}, {0.03, 0.06}, {0.26, 0.17}, {0.14, 0.04}},
    {2, 100, 1, 150, 1, RDMA, 20, 10, {0.93, 0.91}, {0.01, 0.01}, {0.99, 0.95}, {0.95, 0.9}},
    {2, 100, 1, 150, 1, SOCKETS, 20, 10, {0.93, 0.91}, {0.01, 0.01}, {0.99, 0.95}, {0.95, 0.9}},
    {4, 100, 1, 150, 0.1, SOCKETS, 30, 10, {0.93, 0.91}, {0.01, 0.01}, {0.9, 0.8}, {0.7, 0.55}},
    {4, 10, 1, 100, 0.24, FABRIC, 60, 40, {0.91, 0.88}, {0.03, 0.05}, {0.68, 0.42}, {0.52, 0.29}},
};

static const struct ecn_row ecn_rows[] = {
    {4, 10, 4, 20, FABRIC, 20, 25, {0.94, 0.91}, {0.01, 0.01}, {0.81, 0.69}, {0.7, 0.49}},
    {4, 10, 4, 20, RDMA, 20, 25, {0.94, 0.91}, {0.01, 0.01}, {0.81, 0.7}, {0.71, 0.55}},
    {4, 10, 4, 20, SOCKETS, 20, 25, {0.94, 0.91}, {0.01, 0.01}, {0.82, 0.69}, {0.73, 0.5}},
    {4, 10, 4, 100, RDMA, 20, 25, {0.94, 0.91}, {0.01, 0.01}, {0.81, 0.69}, {0.72, 0.57}},
    {8, 10, 4, 100, RDMA, 20, 25, {0.94, 0.91}, {0.01, 0.02}, {0.81, 0.69}, {0.69, 0.5}},
    {8, 10, 4, 100, SOCKETS, 20, 25, {0.94, 0.91}, {0.01, 0.02}, {0.81, 0.7}, {0.67, 0.5}},
    {8, 25, 4, 20, FABRIC, 10, 10, {0.94, 0.91}, {0.01, 0.01}, {0.81, 0.69}, {0.71, 0.54}},
    {8, 25, 4, 20, RDMA, 10, 10, {0.94, 0.91}, {0.01, 0.02}, {0.81, 0.7}, {0.74, 0.55}},
    {8, 25, 4, 20, SOCKETS, 10, 10, {0.94, 0.91}, {0.01, 0.01}, {0.81, 0.68}, {0.67, 0.45}},
    {16, 10, 4, 100, FABRIC, 20, 25, {0.94, 0.91}, {0.01, 0.02}, {0.82, 0.7}, {0.7, 0.56}},
    {16, 10, 4, 100, RDMA, 20, 25, {0.94, 0.91}, {0.01, 0.02}, {0.82, 0.7}, {0.68, 0.49}},
    {16, 10, 4, 100, SOCKETS, 20, 25, {0.94, 0.9}, {0.02, 0.03}, {0.79, 0.65}, {0.4, 0.06}},
    {16, 25, 4, 20, RDMA, 10, 10, {0.94, 0.91}, {0.01, 0.02}, {0.82, 0.7}, {0.7, 0.49}},
    {16, 25, 4, 20, SOCKETS, 10, 10, {0.94, 0.91}, {0.01, 0.02}, {0.8, 0.65}, {0.55, 0.12}},
};
/* clang-format on */

TEST(sim_bottleneck__many)
{
    struct bottleneck_judge judge = {.name = "many"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .queue_bdp = r->queue_bdp,
                                 .flows = r->flows,
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

TEST(sim_bottleneck__many_with_marks)
{
    struct bottleneck_judge judge = {.name = "many_ecn"};

    for (size_t i = 0; i < sizeof(ecn_rows) / sizeof(ecn_rows[0]); i++) {
        const struct ecn_row *r = &ecn_rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .queue_bytes = ECN_QUEUE_BYTES,
                                 .ecn = true,
                                 .flows = r->flows,
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
