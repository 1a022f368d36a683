/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows beside TCP with CUBIC at one queue that marks nothing, from short to long round trips: neither
 * starves the other. In fair shares, of which each flow of either kind would have one. RDMA devices
 * have no way that takes more than a millisecond.
 */
#include "tests/support/bottleneck.h"

/* clang-format off */
static const struct bottleneck_row rows[] = {
    {RDMA, 1, 10, 4, 80, 0.25, 80, 80, .bound = {{0.9, 0.88}, {0.71, 0.57}, {0.91, 0.67}}},
    {SOCKETS, 1, 10, 4, 80, 0.25, 80, 80, .bound = {{0.88, 0.85}, {0.98, 0.32}, {0.61, 0.52}}},
    {RDMA, 4, 10, 4, 80, 0.25, 80, 80, .bound = {{0.93, 0.9}, {0.76, 0.58}, {0.55, 0}}},
    {SOCKETS, 4, 10, 4, 80, 0.25, 80, 80, .bound = {{0.81, 0.75}, {0.64, 0.24}, {1.47, 0}}},
    {RDMA, 1, 10, 4, 80, 1, 80, 80, .bound = {{0.94, 0.92}, {0.62, 0.4}, {0.92, 0.71}}},
    {SOCKETS, 1, 10, 4, 80, 1, 80, 80, .bound = {{0.94, 0.91}, {0.44, 0.29}, {1.06, 0.76}}},
    {RDMA, 4, 10, 4, 80, 1, 80, 80, .bound = {{0.93, 0.91}, {0.82, 0.7}, {0.79, 0.49}}},
    {SOCKETS, 4, 10, 4, 80, 1, 80, 80, .bound = {{0.93, 0.91}, {0.84, 0.71}, {0.6, 0}}},
    {RDMA, 1, 1, 10, 80, 2, 150, 250, .bound = {{0.89, 0.87}, {0.53, 0.45}, {1.07, 0.92}}, .mtu = 1408, .mss = 1448},
    {SOCKETS, 1, 1, 10, 80, 2, 150, 250, .bound = {{0.89, 0.87}, {0.55, 0.43}, {1.08, 0.97}}, .mtu = 1408, .mss = 1448},
    {RDMA, 4, 1, 10, 80, 2, 150, 250, .bound = {{0.87, 0.85}, {0.83, 0.69}, {0, 0}}, .mtu = 1408, .mss = 1448},
    {SOCKETS, 4, 1, 10, 80, 2, 150, 250, .bound = {{0.87, 0.85}, {0.77, 0.7}, {0.66, 0}}, .mtu = 1408, .mss = 1448},
    {RDMA, 1, 1, 10, 300, 0.5, 300, 600, .bound = {{0.89, 0.8}, {0.83, 0.65}, {0.61, 0}}},
    {SOCKETS, 1, 1, 10, 300, 0.5, 300, 600, .bound = {{0.88, 0.83}, {1.13, 0.82}, {0.4, 0.17}}},
    {RDMA, 4, 1, 10, 300, 0.5, 300, 600, .bound = {{0.93, 0.9}, {1.01, 0.84}, {0.05, 0}}},
    {SOCKETS, 4, 1, 10, 300, 0.5, 300, 600, .bound = {{0.92, 0.86}, {1, 0.76}, {0.07, 0}}},
    {RDMA, 1, 1, 10, 1000, 0.1, 400, 800, .bound = {{0.83, 0.8}, {1.6, 1.27}, {0.03, 0}}},
    {SOCKETS, 1, 1, 10, 1000, 0.1, 400, 800, .bound = {{0.56, 0.52}, {1.56, 1.32}, {0.06, 0}}},
    {SOCKETS, 4, 1, 10, 1000, 0.1, 400, 800, .bound = {{0.55, 0.45}, {0.87, 0.65}, {0.09, 0}}},
    {RDMA, 1, 1, 10, 1000, 1, 400, 800, .bound = {{0.93, 0.91}, {1.12, 0.92}, {0.51, 0.42}}},
    {SOCKETS, 1, 1, 10, 1000, 1, 400, 800, .bound = {{0.94, 0.92}, {0.88, 0.72}, {0.74, 0.6}}},
    {RDMA, 4, 1, 10, 1000, 1, 400, 800, .bound = {{0.93, 0.91}, {0.84, 0.71}, {0.71, 0.62}}},
    {SOCKETS, 4, 1, 10, 1000, 1, 400, 800, .bound = {{0.93, 0.91}, {0.84, 0.7}, {0.72, 0.51}}},
    {SOCKETS, 1, 0.1, 100, 5000, 0.5, 2000, 4000, .bound = {{0.85, 0.83}, {1.47, 1.26}, {0.16, 0.14}}, .mtu = 1408, .mss = 1448},
    {SOCKETS, 4, 0.1, 100, 5000, 0.5, 2000, 4000, .bound = {{0.87, 0.85}, {0.95, 0.81}, {0.28, 0.25}}, .mtu = 1408, .mss = 1448},
    {SOCKETS, 1, 0.1, 100, 20000, 1, 3000, 6000, .bound = {{0.88, 0.86}, {0.88, 0.67}, {0.7, 0.43}}, .mtu = 1408, .mss = 1448},
    {SOCKETS, 4, 0.1, 100, 20000, 1, 3000, 6000, .bound = {{0.87, 0.85}, {0.93, 0.79}, {0.35, 0.29}}, .mtu = 1408, .mss = 1448},
};
/* clang-format on */

TEST(sim_bottleneck__tcp)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_GOODPUT, BOTTLENECK_OURS,
                                                     BOTTLENECK_CUBIC};

    bottleneck_judge("tcp", rows, sizeof(rows) / sizeof(rows[0]), &(struct bottleneck){.cubics = 1},
                     bounded);
}
