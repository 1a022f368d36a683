/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows beside TCP with CUBIC at one queue that marks nothing, from short to long round trips: neither
 * starves the other. In fair shares, of which each flow of either kind would have one. RDMA devices
 * have no way that takes more than a millisecond.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

struct row {
    uint32_t flows, cubics;
    double gbps, speedup, rtt_us, queue_bdp;
    uint32_t knows, mtu, mss;
    double warm_ms, span_ms;
    struct bottleneck_bound goodput, ours, cubic;
};

/* clang-format off */
static const struct row rows[] = {
    {1, 1, 10, 4, 80, 0.25, RDMA, 4096, 4096, 80, 80, {0.9, 0.88}, {0.71, 0.57}, {0.91, 0.67}},
    {1, 1, 10, 4, 80, 0.25, SOCKETS, 4096, 4096, 80, 80, {0.88, 0.85}, {0.98, 0.32}, {0.61, 0.52}},
    {4, 1, 10, 4, 80, 0.25, RDMA, 4096, 4096, 80, 80, {0.93, 0.9}, {0.76, 0.58}, {0.55, 0}},
    {4, 1, 10, 4, 80, 0.25, SOCKETS, 4096, 4096, 80, 80, {0.81, 0.75}, {0.64, 0.24}, {1.47, 0}},
    {1, 1, 10, 4, 80, 1, RDMA, 4096, 4096, 80, 80, {0.94, 0.92}, {0.62, 0.4}, {0.92, 0.71}},
    {1, 1, 10, 4, 80, 1, SOCKETS, 4096, 4096, 80, 80, {0.94, 0.91}, {0.44, 0.29}, {1.06, 0.76}},
    {4, 1, 10, 4, 80, 1, RDMA, 4096, 4096, 80, 80, {0.93, 0.91}, {0.82, 0.7}, {0.79, 0.49}},
    {4, 1, 10, 4, 80, 1, SOCKETS, 4096, 4096, 80, 80, {0.93, 0.91}, {0.84, 0.71}, {0.6, 0}},
    {1, 1, 1, 10, 80, 2, RDMA, 1408, 1448, 150, 250, {0.89, 0.87}, {0.53, 0.45}, {1.07, 0.92}},
    {1, 1, 1, 10, 80, 2, SOCKETS, 1408, 1448, 150, 250, {0.89, 0.87}, {0.55, 0.43}, {1.08, 0.97}},
    {4, 1, 1, 10, 80, 2, RDMA, 1408, 1448, 150, 250, {0.87, 0.85}, {0.83, 0.69}, {0, 0}},
    {4, 1, 1, 10, 80, 2, SOCKETS, 1408, 1448, 150, 250, {0.87, 0.85}, {0.77, 0.7}, {0.66, 0}},
    {1, 1, 1, 10, 300, 0.5, RDMA, 4096, 4096, 300, 600, {0.89, 0.8}, {0.83, 0.65}, {0.61, 0}},
    {1, 1, 1, 10, 300, 0.5, SOCKETS, 4096, 4096, 300, 600, {0.88, 0.83}, {1.13, 0.82}, {0.4, 0.17}},
    {4, 1, 1, 10, 300, 0.5, RDMA, 4096, 4096, 300, 600, {0.93, 0.9}, {1.01, 0.84}, {0.05, 0}},
    {4, 1, 1, 10, 300, 0.5, SOCKETS, 4096, 4096, 300, 600, {0.92, 0.86}, {1, 0.76}, {0.07, 0}},
    {1, 1, 1, 10, 1000, 0.1, RDMA, 4096, 4096, 400, 800, {0.83, 0.8}, {1.6, 1.27}, {0.03, 0}},
    {1, 1, 1, 10, 1000, 0.1, SOCKETS, 4096, 4096, 400, 800, {0.56, 0.52}, {1.56, 1.32}, {0.06, 0}},
    {4, 1, 1, 10, 1000, 0.1, SOCKETS, 4096, 4096, 400, 800, {0.55, 0.45}, {0.87, 0.65}, {0.09, 0}},
    {1, 1, 1, 10, 1000, 1, RDMA, 4096, 4096, 400, 800, {0.93, 0.91}, {1.12, 0.92}, {0.51, 0.42}},
    {1, 1, 1, 10, 1000, 1, SOCKETS, 4096, 4096, 400, 800, {0.94, 0.92}, {0.88, 0.72}, {0.74, 0.6}},
    {4, 1, 1, 10, 1000, 1, RDMA, 4096, 4096, 400, 800, {0.93, 0.91}, {0.84, 0.71}, {0.71, 0.62}},
    {4, 1, 1, 10, 1000, 1, SOCKETS, 4096, 4096, 400, 800, {0.93, 0.91}, {0.84, 0.7}, {0.72, 0.51}},
    {1, 1, 0.1, 100, 5000, 0.5, SOCKETS, 1408, 1448, 2000, 4000, {0.85, 0.83}, {1.47, 1.26}, {0.16, 0.14}},
    {4, 1, 0.1, 100, 5000, 0.5, SOCKETS, 1408, 1448, 2000, 4000, {0.87, 0.85}, {0.95, 0.81}, {0.28, 0.25}},
    {1, 1, 0.1, 100, 20000, 1, SOCKETS, 1408, 1448, 3000, 6000, {0.88, 0.86}, {0.88, 0.67}, {0.7, 0.43}},
    {4, 1, 0.1, 100, 20000, 1, SOCKETS, 1408, 1448, 3000, 6000, {0.87, 0.85}, {0.93, 0.79}, {0.35, 0.29}},
};
/* clang-format on */

TEST(sim_bottleneck__tcp)
{
    struct bottleneck_judge judge = {.name = "tcp"};

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
                                 .cubics = r->cubics,
                                 .mtu = r->mtu,
                                 .mss = r->mss,
                             },
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_GOODPUT] = r->goodput,
                                 [BOTTLENECK_OURS] = r->ours,
                                 [BOTTLENECK_CUBIC] = r->cubic,
                             }});
    }
    bottleneck_judge_end(&judge);
}
