/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow joins another one that has filled the queue long ago: what it measures from its first packet
 * on has that queue in it, and it has its share soon all the same. Its hosts do not know the RTT.
 */
#include "tests/support/bottleneck.h"

/* Of the 200 ms after it joined, the last quarter is measured. */
enum { ALONE_MS = 40 };

/* clang-format off */
static const struct bottleneck_row rows[] = {
    {RDMA, 2, 1, 10, 100, 4, 150, 50, .bound = {{0.93, 0.91}, {0.76, 0.39}, {0.69, 0.39}}},
    {SOCKETS, 2, 1, 10, 100, 4, 150, 50, .bound = {{0.93, 0.91}, {0.84, 0.59}, {0.74, 0.59}}},
    {RDMA, 2, 10, 1, 100, 1, 150, 50, .bound = {{0.93, 0.9}, {0.81, 0.67}, {0.74, 0.6}}},
    {SOCKETS, 2, 10, 1, 100, 1, 150, 50, .bound = {{0.93, 0.91}, {0.83, 0.49}, {0.73, 0}}},
    {RDMA, 2, 10, 4, 20, 4, 150, 50, .bound = {{0.93, 0.91}, {0.82, 0.56}, {0.67, 0.56}}},
    {SOCKETS, 2, 10, 4, 20, 4, 150, 50, .bound = {{0.93, 0.91}, {0.78, 0.58}, {0.76, 0.58}}},
    {RDMA, 2, 10, 4, 100, 1, 150, 50, .bound = {{0.93, 0.9}, {0.85, 0.63}, {0.71, 0.59}}},
    {SOCKETS, 2, 10, 4, 100, 1, 150, 50, .bound = {{0.93, 0.91}, {0.82, 0.65}, {0.76, 0.65}}},
    {SOCKETS, 2, 25, 1, 200, 1, 150, 50, .bound = {{0.93, 0.91}, {0.9, 0.75}, {0.9, 0.75}}},
    {RDMA, 2, 100, 1, 100, 4, 150, 50, .bound = {{0.93, 0.91}, {0.95, 0.9}, {0.95, 0.9}}},
    {SOCKETS, 2, 100, 1, 100, 4, 150, 50, .bound = {{0.93, 0.91}, {0.95, 0.9}, {0.95, 0.9}}},
    {RDMA, 2, 1, 10, 100, 4, 150, 50, .bound = {{0.94, 0.9}, {0.73, 0.43}, {0.67, 0.43}}, .ecn = true},
    {SOCKETS, 2, 1, 10, 100, 4, 150, 50, .bound = {{0.94, 0.9}, {0.78, 0.57}, {0.77, 0.57}}, .ecn = true},
    {RDMA, 2, 10, 1, 100, 1, 150, 50, .bound = {{0.94, 0.91}, {0.78, 0.62}, {0.78, 0.62}}, .ecn = true},
    {SOCKETS, 2, 10, 1, 100, 1, 150, 50, .bound = {{0.94, 0.91}, {0.72, 0.53}, {0.7, 0.53}}, .ecn = true},
    {RDMA, 2, 10, 4, 20, 4, 150, 50, .bound = {{0.94, 0.91}, {0.8, 0.67}, {0.8, 0.67}}, .ecn = true},
    {SOCKETS, 2, 10, 4, 20, 4, 150, 50, .bound = {{0.94, 0.91}, {0.82, 0.68}, {0.79, 0.62}}, .ecn = true},
    {RDMA, 2, 10, 4, 100, 1, 150, 50, .bound = {{0.94, 0.91}, {0.79, 0.62}, {0.79, 0.62}}, .ecn = true},
    {SOCKETS, 2, 10, 4, 100, 1, 150, 50, .bound = {{0.94, 0.91}, {0.81, 0.52}, {0.7, 0.52}}, .ecn = true},
};
/* clang-format on */

TEST(sim_bottleneck__joiner)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_GOODPUT, BOTTLENECK_LAST,
                                                     BOTTLENECK_LEAST};

    bottleneck_judge("joiner", rows, sizeof(rows) / sizeof(rows[0]),
                     &(struct bottleneck){.stagger_ms = ALONE_MS}, bounded);
}
