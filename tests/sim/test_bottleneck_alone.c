/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One flow from a host that is faster than a link on its way, whose queue is short and marks nothing:
 * the flow uses that link, and little is dropped there.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

struct row {
    double gbps, speedup, rtt_us, queue_bdp, jitter_us;
    uint32_t knows;
    double warm_ms, span_ms;
    struct bottleneck_bound utilisation, goodput, drops;
};

/* The windows of sockets and RDMA end at 512 KiB, or what is on its way and half of that: the last rows need that. */
/* clang-format off */
static const struct row rows[] = {
    {1, 10, 100, 1, 0, FABRIC, 30, 50, {0.91, 0.84}, {0.88, 0.81}, {0.04, 0.05}},
    {1, 10, 100, 1, 0, RDMA, 30, 50, {0.88, 0.83}, {0.84, 0.8}, {0.04, 0.05}},
    {1, 10, 100, 1, 0, SOCKETS, 30, 50, {0.92, 0.89}, {0.89, 0.86}, {0.04, 0.05}},
    {1, 10, 1000, 0.25, 0, RDMA, 200, 200, {0.91, 0.89}, {0.88, 0.86}, {0.03, 0.04}},
    {1, 10, 1000, 0.25, 0, SOCKETS, 200, 200, {0.96, 0.92}, {0.93, 0.88}, {0.03, 0.04}},
    {10, 2.5, 100, 0.25, 0, FABRIC, 20, 30, {0.88, 0.85}, {0.84, 0.82}, {0.01, 0.02}},
    {10, 2.5, 100, 0.25, 0, RDMA, 20, 30, {0.94, 0.85}, {0.9, 0.82}, {0.02, 0.03}},
    {10, 2.5, 100, 0.25, 0, SOCKETS, 20, 30, {0.95, 0.83}, {0.91, 0.8}, {0.03, 0.04}},
    {10, 4, 20, 1, 0, FABRIC, 20, 30, {0.88, 0.85}, {0.85, 0.82}, {0.02, 0.02}},
    {10, 4, 20, 1, 0, RDMA, 20, 30, {0.93, 0.88}, {0.89, 0.85}, {0.02, 0.17}},
    {10, 4, 20, 1, 0, SOCKETS, 20, 30, {0.95, 0.92}, {0.92, 0.89}, {0.1, 0.1}},
    {10, 4, 100, 1, 0, FABRIC, 20, 30, {0.95, 0.92}, {0.92, 0.89}, {0.01, 0.02}},
    {10, 4, 100, 1, 0, RDMA, 20, 30, {0.95, 0.92}, {0.92, 0.89}, {0.01, 0.02}},
    {10, 4, 100, 1, 0, SOCKETS, 20, 30, {0.96, 0.94}, {0.93, 0.9}, {0.01, 0.02}},
    {10, 4, 100, 1, 20, FABRIC, 20, 30, {0.94, 0.87}, {0.9, 0.85}, {0.02, 0.05}},
    {10, 4, 100, 1, 20, RDMA, 20, 30, {0.93, 0.89}, {0.9, 0.86}, {0.01, 0.03}},
    {10, 4, 100, 1, 20, SOCKETS, 20, 30, {0.96, 0.92}, {0.92, 0.89}, {0.01, 0.02}},
    {10, 10, 100, 0.5, 0, RDMA, 20, 30, {0.92, 0.86}, {0.89, 0.83}, {0.01, 0.02}},
    {10, 10, 100, 0.5, 0, SOCKETS, 20, 30, {0.96, 0.94}, {0.92, 0.9}, {0.02, 0.02}},
    {10, 10, 300, 0.1, 0, RDMA, 60, 60, {0.9, 0.87}, {0.86, 0.84}, {0.02, 0.04}},
    {10, 10, 300, 0.1, 0, SOCKETS, 60, 60, {0.95, 0.86}, {0.92, 0.83}, {0.03, 0.05}},
    {5, 1, 500, 1, 1000, SOCKETS, 100, 100, {0.95, 0.93}, {0.92, 0.9}, {0.01, 0.01}},
    {5, 1, 500, 1, 2000, SOCKETS, 100, 100, {0.65, 0.5}, {0.62, 0.48}, {0.01, 0.01}},
    {5, 1, 500, 1, 2000, RDMA, 100, 100, {0.85, 0.73}, {0.82, 0.69}, {0.01, 0.01}},
    {25, 1, 100, 2, 1000, SOCKETS, 100, 100, {0.7, 0.5}, {0.67, 0.48}, {0.01, 0.01}},
    {25, 4, 20, 0.5, 0, FABRIC, 10, 20, {0.81, 0.79}, {0.79, 0.76}, {0.01, 0.02}},
    {25, 4, 20, 0.5, 0, RDMA, 10, 20, {0.92, 0.87}, {0.89, 0.84}, {0.02, 0.02}},
    {25, 4, 20, 0.5, 0, SOCKETS, 10, 20, {0.96, 0.94}, {0.93, 0.9}, {0.03, 0.03}},
    {40, 2.5, 100, 0.1, 0, FABRIC, 15, 15, {0.91, 0.89}, {0.88, 0.86}, {0.02, 0.03}},
    {40, 2.5, 50, 0.1, 0, RDMA, 15, 15, {0.89, 0.86}, {0.86, 0.83}, {0.06, 0.07}},
    {40, 10, 50, 0.5, 0, RDMA, 10, 15, {0.95, 0.93}, {0.92, 0.9}, {0.01, 0.02}},
    {40, 10, 50, 0.5, 0, SOCKETS, 10, 15, {0.96, 0.94}, {0.93, 0.91}, {0.01, 0.02}},
    {100, 4, 20, 0.5, 0, FABRIC, 5, 10, {0.93, 0.81}, {0.9, 0.78}, {0.01, 0.02}},
    {100, 4, 20, 0.5, 0, RDMA, 5, 10, {0.95, 0.93}, {0.92, 0.9}, {0.01, 0.02}},
    {100, 4, 20, 0.5, 0, SOCKETS, 5, 10, {0.97, 0.95}, {0.93, 0.91}, {0.02, 0.03}},
    {100, 2.5, 30, 0.1, 0, RDMA, 10, 10, {0.91, 0.89}, {0.88, 0.85}, {0.03, 0.04}},
    {200, 2.5, 50, 0.25, 0, FABRIC, 5, 10, {0.96, 0.94}, {0.93, 0.91}, {0.01, 0.02}},
    {200, 2.5, 15, 0.25, 0, RDMA, 5, 10, {0.96, 0.94}, {0.93, 0.9}, {0.01, 0.02}},
    {25, 4, 200, 0.1, 0, SOCKETS, 30, 30, {0.94, 0.82}, {0.91, 0.79}, {0.01, 0.02}},
    {40, 2.5, 150, 0.5, 0, SOCKETS, 20, 20, {0.97, 0.95}, {0.93, 0.91}, {0.01, 0.01}},
    {100, 2.5, 100, 0.25, 0, SOCKETS, 10, 10, {0.97, 0.95}, {0.93, 0.91}, {0.01, 0.01}},
    {100, 2.5, 100, 0.25, 0, RDMA, 10, 10, {0.97, 0.95}, {0.93, 0.91}, {0.01, 0.01}},
    {200, 1, 80, 1, 20, SOCKETS, 15, 5, {0.94, 0.86}, {0.9, 0.83}, {0.01, 0.01}},
    {400, 1, 20, 0.1, 0, SOCKETS, 10, 5, {0.97, 0.95}, {0.93, 0.91}, {0.01, 0.01}},
};

/* And packets that are lost at random: with hosts that are late those are not a queue's. */
static const struct {
    struct row row;
    double loss;
} lossy_rows[] = {
    {{10, 1, 2000, 1, 200, SOCKETS, 250, 100, {0.95, 0.8}, {0.91, 0.77}, {0.01, 0.01}}, 0.01},
    {{25, 4, 500, 0.3, 60, SOCKETS, 100, 40, {0.8, 0.48}, {0.76, 0.46}, {0.01, 0.01}}, 0.01},
    {{100, 4, 50, 1, 5, SOCKETS, 24, 10, {0.9, 0.75}, {0.84, 0.7}, {0.01, 0.01}}, 0.03},
};
/* clang-format on */

static void play(struct bottleneck_judge *judge, const struct row *r, double loss)
{
    bottleneck_judge_row(judge,
                         &(struct bottleneck){.knows = r->knows,
                                              .gbps = r->gbps,
                                              .speedup = r->speedup,
                                              .rtt_us = r->rtt_us,
                                              .queue_bdp = r->queue_bdp,
                                              .jitter_us = r->jitter_us,
                                              .loss = loss,
                                              .flows = 1,
                                              .warm_ms = r->warm_ms,
                                              .span_ms = r->span_ms},
                         &(struct bottleneck_bounds){{
                             [BOTTLENECK_UTILISATION] = r->utilisation,
                             [BOTTLENECK_GOODPUT] = r->goodput,
                             [BOTTLENECK_DROPS] = r->drops,
                         }});
}

TEST(sim_bottleneck__alone)
{
    struct bottleneck_judge judge = {.name = "alone"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        play(&judge, &rows[i], 0);
    for (size_t i = 0; i < sizeof(lossy_rows) / sizeof(lossy_rows[0]); i++)
        play(&judge, &lossy_rows[i].row, lossy_rows[i].loss);
    bottleneck_judge_end(&judge);
}
