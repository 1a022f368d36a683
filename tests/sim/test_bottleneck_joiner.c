/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow joins another one that has filled the queue long ago: what it measures from its first packet
 * on has that queue in it, and it has its share soon all the same. Its hosts do not know the RTT.
 */
#include "tests/support/bottleneck.h"

enum { SOCKETS = MRD_SIM_KNOWS_SOCKETS, RDMA = MRD_SIM_KNOWS_RDMA, FABRIC = MRD_SIM_KNOWS_FABRIC };

/* Of the 200 ms after it joined, the last quarter is measured. */
enum { ALONE_MS = 40, WARM_MS = 150, SPAN_MS = 50 };

struct row {
    double gbps, speedup, rtt_us, queue_bdp;
    bool ecn;
    uint32_t knows;
    struct bottleneck_bound goodput, last, least;
};

/* clang-format off */
static const struct row rows[] = {
    {1, 10, 100, 4, false, RDMA, {0.93, 0.91}, {0.76, 0.39}, {0.69, 0.39}},
    {1, 10, 100, 4, false, SOCKETS, {0.93, 0.91}, {0.84, 0.59}, {0.74, 0.59}},
    {10, 1, 100, 1, false, RDMA, {0.93, 0.9}, {0.81, 0.67}, {0.74, 0.6}},
    {10, 1, 100, 1, false, SOCKETS, {0.93, 0.91}, {0.83, 0.49}, {0.73, 0}},
    {10, 4, 20, 4, false, RDMA, {0.93, 0.91}, {0.82, 0.56}, {0.67, 0.56}},
    {10, 4, 20, 4, false, SOCKETS, {0.93, 0.91}, {0.78, 0.58}, {0.76, 0.58}},
    {10, 4, 100, 1, false, RDMA, {0.93, 0.9}, {0.85, 0.63}, {0.71, 0.59}},
    {10, 4, 100, 1, false, SOCKETS, {0.93, 0.91}, {0.82, 0.65}, {0.76, 0.65}},
    {25, 1, 200, 1, false, SOCKETS, {0.93, 0.91}, {0.9, 0.75}, {0.9, 0.75}},
    {100, 1, 100, 4, false, RDMA, {0.93, 0.91}, {0.95, 0.9}, {0.95, 0.9}},
    {100, 1, 100, 4, false, SOCKETS, {0.93, 0.91}, {0.95, 0.9}, {0.95, 0.9}},
    {1, 10, 100, 4, true, RDMA, {0.94, 0.9}, {0.73, 0.43}, {0.67, 0.43}},
    {1, 10, 100, 4, true, SOCKETS, {0.94, 0.9}, {0.78, 0.57}, {0.77, 0.57}},
    {10, 1, 100, 1, true, RDMA, {0.94, 0.91}, {0.78, 0.62}, {0.78, 0.62}},
    {10, 1, 100, 1, true, SOCKETS, {0.94, 0.91}, {0.72, 0.53}, {0.7, 0.53}},
    {10, 4, 20, 4, true, RDMA, {0.94, 0.91}, {0.8, 0.67}, {0.8, 0.67}},
    {10, 4, 20, 4, true, SOCKETS, {0.94, 0.91}, {0.82, 0.68}, {0.79, 0.62}},
    {10, 4, 100, 1, true, RDMA, {0.94, 0.91}, {0.79, 0.62}, {0.79, 0.62}},
    {10, 4, 100, 1, true, SOCKETS, {0.94, 0.91}, {0.81, 0.52}, {0.7, 0.52}},
};
/* clang-format on */

TEST(sim_bottleneck__joiner)
{
    struct bottleneck_judge judge = {.name = "joiner"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){
                                 .knows = r->knows,
                                 .gbps = r->gbps,
                                 .speedup = r->speedup,
                                 .rtt_us = r->rtt_us,
                                 .queue_bdp = r->queue_bdp,
                                 .ecn = r->ecn,
                                 .flows = 2,
                                 .stagger_ms = ALONE_MS,
                                 .warm_ms = WARM_MS,
                                 .span_ms = SPAN_MS,
                             },
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_GOODPUT] = r->goodput,
                                 [BOTTLENECK_LAST] = r->last,
                                 [BOTTLENECK_LEAST] = r->least,
                             }});
    }
    bottleneck_judge_end(&judge);
}
