/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows by sockets over long ways: the window is soon as wide, and random loss leaves most. */
#include "tests/support/bottleneck.h"

/* clang-format off */
static const struct bottleneck_row rows[] = {
    /* From the 10th round trip on. */
    {SOCKETS, 1, 1, 10, 5000, 1, 50, 200, .bound = {{0.93, 0.9}, {0.01, 0.01}}},
    {SOCKETS, 1, 1, 10, 20000, 1, 200, 400, .bound = {{0.91, 0.87}, {0.08, 0.09}}},
    {SOCKETS, 1, 1, 10, 80000, 1, 800, 1600, .bound = {{0.95, 0.92}, {0.01, 0.01}}},
    {SOCKETS, 1, 1, 10, 20000, 0.1, 200, 400, .bound = {{0.86, 0.83}, {0.04, 0.05}}},
    {SOCKETS, 1, 1, 10, 80000, 0.2, 800, 1600, .bound = {{0.87, 0.84}, {0.03, 0.04}}},
    {SOCKETS, 1, 0.3, 10, 40000, 0.5, 400, 800, .bound = {{0.93, 0.89}, {0.07, 0.08}}},
    {SOCKETS, 1, 1, 1, 30000, 1, 300, 600, .bound = {{0.96, 0.93}, {0.01, 0.01}}},
    {SOCKETS, 1, 10, 1, 20000, 1, 200, 200, .bound = {{0.52, 0.48}, {0.01, 0.01}}},
    {SOCKETS, 1, 10, 4, 10000, 0.5, 100, 200, .bound = {{0.9, 0.86}, {0.01, 0.01}}},
    /* Later. */
    {SOCKETS, 1, 1, 10, 20000, 1, 2000, 2000, .bound = {{0.97, 0.94}, {0.01, 0.02}}},
    {SOCKETS, 1, 1, 10, 80000, 1, 3000, 2500, .bound = {{0.95, 0.92}, {0.01, 0.01}}},
    {SOCKETS, 1, 1, 10, 20000, 0.3, 2000, 2000, .bound = {{0.96, 0.93}, {0.01, 0.02}}},
    {SOCKETS, 1, 1, 10, 80000, 0.3, 3000, 2500, .bound = {{0.97, 0.93}, {0.01, 0.01}}},
    {SOCKETS, 1, 1, 10, 20000, 0.1, 2000, 2000, .bound = {{0.9, 0.87}, {0.01, 0.02}}},
    /* Losses at random. */
    {SOCKETS, 1, 1, 10, 20000, 1, 1000, 2000, .bound = {{0.91, 0.87}, {0.01, 0.01}}, .loss = 1e-4},
    {SOCKETS, 1, 1, 10, 20000, 1, 1000, 2000, .bound = {{0.9, 0.82}, {0.01, 0.01}}, .loss = 1e-3},
    {SOCKETS, 1, 1, 10, 80000, 1, 3000, 2500, .bound = {{0.84, 0.77}, {0.01, 0.01}}, .loss = 1e-3},
    {SOCKETS, 1, 1, 10, 30000, 0.2, 1000, 2000, .bound = {{0.89, 0.77}, {0.01, 0.01}}, .loss = 1e-3},
    {SOCKETS, 1, 1, 10, 20000, 1, 1000, 2000, .bound = {{0.84, 0.78}, {0.01, 0.01}}, .loss = 1e-2},
    {SOCKETS, 1, 0.1, 10, 50000, 1, 2000, 4000, .bound = {{0.93, 0.86}, {0.01, 0.01}}, .loss = 1e-3},
    /* Jitter. */
    {SOCKETS, 1, 1, 10, 20000, 1, 1000, 2000, .bound = {{0.97, 0.89}, {0.01, 0.01}}, .jitter_us = 1000},
    {SOCKETS, 1, 1, 10, 20000, 1, 1000, 2000, .bound = {{0.81, 0.62}, {0.01, 0.01}}, .loss = 1e-3, .jitter_us = 500},
    /* Several. */
    {SOCKETS, 2, 1, 10, 20000, 1, 2000, 2000, .bound = {{0.96, 0.93}, {0.01, 0.02}}},
    {SOCKETS, 8, 1, 10, 20000, 0.5, 2000, 2000, .bound = {{0.97, 0.93}, {0.01, 0.02}}},
    {SOCKETS, 4, 0.5, 10, 60000, 0.5, 4000, 4000, .bound = {{0.96, 0.92}, {0.01, 0.02}}},
};
/* clang-format on */

TEST(sim_bottleneck__wan)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_UTILISATION, BOTTLENECK_DROPS};

    bottleneck_judge("wan", rows, sizeof(rows) / sizeof(rows[0]), &(struct bottleneck){.mtu = 1408},
                     bounded);
}
