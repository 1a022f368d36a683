/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows that are not alike at one queue: one that has a short message at a time waits not much longer
 * for it beside four that always have data, and flows with a short way leave a share to those with a long one.
 */
#include "tests/support/bottleneck.h"

/* The bound of RPCs is in microseconds; the queue alone is up to that many round trips. */
/* clang-format off */
static const struct bottleneck_row rpc_rows[] = {
    {RDMA, 4, 10, 1, 100, 1, 20, 40, .bound = {{0.93, 0.91}, {0.03, 0.05}, {1110, 21500}}},
    {SOCKETS, 4, 10, 1, 100, 1, 20, 40, .bound = {{0.93, 0.91}, {0.03, 0.04}, {920, 1210}}},
    {RDMA, 4, 10, 4, 20, 4, 20, 40, .bound = {{0.93, 0.91}, {0.03, 0.04}, {460, 620}}},
    {SOCKETS, 4, 10, 4, 20, 4, 20, 40, .bound = {{0.93, 0.91}, {0.03, 0.04}, {630, 730}}},
    {FABRIC, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.93, 0.91}, {0.01, 0.02}, {200, 270}}},
    {RDMA, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.93, 0.91}, {0.02, 0.03}, {90, 110}}},
    {SOCKETS, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.93, 0.91}, {0.02, 0.03}, {110, 660}}},
    {RDMA, 4, 100, 1, 10, 2, 5, 6, .bound = {{0.93, 0.91}, {0.01, 0.02}, {50, 60}}},
    {SOCKETS, 4, 100, 1, 10, 2, 5, 6, .bound = {{0.93, 0.91}, {0.01, 0.02}, {50, 610}}},
    {RDMA, 4, 10, 1, 100, 1, 20, 40, .bound = {{0.94, 0.91}, {0.01, 0.01}, {250, 360}}, .ecn = true},
    {SOCKETS, 4, 10, 1, 100, 1, 20, 40, .bound = {{0.94, 0.91}, {0.01, 0.01}, {270, 420}}, .ecn = true},
    {RDMA, 4, 10, 4, 20, 4, 20, 40, .bound = {{0.94, 0.91}, {0.01, 0.01}, {120, 170}}, .ecn = true},
    {SOCKETS, 4, 10, 4, 20, 4, 20, 40, .bound = {{0.94, 0.91}, {0.01, 0.01}, {150, 630}}, .ecn = true},
    {FABRIC, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.94, 0.91}, {0.01, 0.01}, {70, 110}}, .ecn = true},
    {RDMA, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.94, 0.91}, {0.01, 0.01}, {80, 90}}, .ecn = true},
    {SOCKETS, 4, 25, 4, 20, 2, 10, 15, .bound = {{0.94, 0.91}, {0.01, 0.01}, {70, 100}}, .ecn = true},
    {RDMA, 4, 100, 1, 10, 2, 5, 6, .bound = {{0.94, 0.91}, {0.01, 0.01}, {40, 50}}, .ecn = true},
    {SOCKETS, 4, 100, 1, 10, 2, 5, 6, .bound = {{0.94, 0.91}, {0.01, 0.01}, {40, 40}}, .ecn = true},
    {SOCKETS, 4, 100, 1, 150, 4, 30, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {280, 300}}},
};

/* Half of the flows are far. */
static const struct bottleneck_row far_rows[] = {
    {RDMA, 2, 10, 4, 10, 100000, 20, 20, .bound = {{0.93, 0.91}, {0.02, 0.03}, {0.66, 0.5}, {0.66, 0.5}}},
    {SOCKETS, 2, 10, 4, 10, 100000, 20, 20, .bound = {{0.93, 0.91}, {0.03, 0.04}, {0.7, 0.28}, {0.69, 0.38}}},
    {RDMA, 4, 10, 1, 10, 250000, 20, 20, .bound = {{0.93, 0.91}, {0.02, 0.04}, {0.54, 0.37}, {0.42, 0.25}}},
    {SOCKETS, 4, 10, 1, 10, 250000, 20, 20, .bound = {{0.93, 0.91}, {0.03, 0.08}, {0.54, 0.37}, {0.43, 0.19}}},
    {FABRIC, 8, 25, 4, 10, 300000, 20, 20, .bound = {{0.94, 0.91}, {0.02, 0.03}, {0.47, 0.23}, {0.34, 0.15}}},
    {RDMA, 8, 25, 4, 10, 300000, 20, 20, .bound = {{0.93, 0.91}, {0.02, 0.03}, {0.87, 0.66}, {0.48, 0.33}}},
    {SOCKETS, 8, 25, 4, 10, 300000, 20, 20, .bound = {{0.93, 0.91}, {0.05, 0.07}, {1.27, 1.02}, {0.21, 0.1}}},
    {RDMA, 4, 50, 1, 10, 500000, 20, 20, .bound = {{0.93, 0.91}, {0.01, 0.02}, {0.87, 0.66}, {0.69, 0.49}}},
    {SOCKETS, 4, 50, 1, 10, 500000, 20, 20, .bound = {{0.93, 0.91}, {0.01, 0.02}, {0.94, 0.79}, {0.28, 0.2}}},
    {RDMA, 2, 10, 4, 10, 100000, 20, 20, .bound = {{0.94, 0.9}, {0.01, 0.01}, {0.73, 0.59}, {0.73, 0.59}}, .ecn = true},
    {SOCKETS, 2, 10, 4, 10, 100000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.7, 0.54}, {0.69, 0.54}}, .ecn = true},
    {RDMA, 4, 10, 1, 10, 250000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.75, 0.58}, {0.68, 0.49}}, .ecn = true},
    {SOCKETS, 4, 10, 1, 10, 250000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.76, 0.6}, {0.66, 0.48}}, .ecn = true},
    {RDMA, 8, 25, 4, 10, 300000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.84, 0.7}, {0.75, 0.61}}, .ecn = true},
    {SOCKETS, 8, 25, 4, 10, 300000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.73, 0.58}, {0.65, 0.48}}, .ecn = true},
    {RDMA, 4, 50, 1, 10, 500000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.79, 0.64}, {0.74, 0.58}}, .ecn = true},
    {SOCKETS, 4, 50, 1, 10, 500000, 20, 20, .bound = {{0.94, 0.91}, {0.01, 0.01}, {0.5, 0.38}, {0.47, 0.34}}, .ecn = true},
};
/* clang-format on */

TEST(sim_bottleneck__rpc)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_GOODPUT, BOTTLENECK_DROPS,
                                                     BOTTLENECK_RPC_P99};

    bottleneck_judge("rpc", rpc_rows, sizeof(rpc_rows) / sizeof(rpc_rows[0]),
                     &(struct bottleneck){.rpcs = 1}, bounded);
}

TEST(sim_bottleneck__far)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_GOODPUT, BOTTLENECK_DROPS,
                                                     BOTTLENECK_FAR, BOTTLENECK_LEAST};

    bottleneck_judge("far", far_rows, sizeof(far_rows) / sizeof(far_rows[0]),
                     &(struct bottleneck){.far_rtt_us = 200}, bounded);
}
