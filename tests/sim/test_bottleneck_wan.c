/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows by sockets over long ways: the window becomes as wide as the way, soon, and random losses leave
 * most of it.
 */
#include "tests/support/bottleneck.h"

struct row {
    double gbps, speedup, rtt_us, queue_bdp, loss, jitter_us;
    uint32_t flows, mtu;
    double warm_ms, span_ms;
    struct bottleneck_bound utilisation, drops;
};

/* clang-format off */
static const struct row rows[] = {
    /* From the 10th round trip on. */
    {1, 10, 5000, 1, 0, 0, 1, 1408, 50, 200, {0.93, 0.9}, {0.01, 0.01}},
    {1, 10, 20000, 1, 0, 0, 1, 1408, 200, 400, {0.91, 0.87}, {0.08, 0.09}},
    {1, 10, 80000, 1, 0, 0, 1, 1408, 800, 1600, {0.95, 0.92}, {0.01, 0.01}},
    {1, 10, 20000, 0.1, 0, 0, 1, 1408, 200, 400, {0.86, 0.83}, {0.04, 0.05}},
    {1, 10, 80000, 0.2, 0, 0, 1, 1408, 800, 1600, {0.87, 0.84}, {0.03, 0.04}},
    {0.3, 10, 40000, 0.5, 0, 0, 1, 1408, 400, 800, {0.93, 0.89}, {0.07, 0.08}},
    {1, 1, 30000, 1, 0, 0, 1, 1408, 300, 600, {0.96, 0.93}, {0.01, 0.01}},
    {10, 1, 20000, 1, 0, 0, 1, 1408, 200, 200, {0.52, 0.48}, {0.01, 0.01}},
    {10, 4, 10000, 0.5, 0, 0, 1, 1408, 100, 200, {0.9, 0.86}, {0.01, 0.01}},
    /* Later. */
    {1, 10, 20000, 1, 0, 0, 1, 1408, 2000, 2000, {0.97, 0.94}, {0.01, 0.02}},
    {1, 10, 80000, 1, 0, 0, 1, 1408, 3000, 2500, {0.95, 0.92}, {0.01, 0.01}},
    {1, 10, 20000, 0.3, 0, 0, 1, 1408, 2000, 2000, {0.96, 0.93}, {0.01, 0.02}},
    {1, 10, 80000, 0.3, 0, 0, 1, 1408, 3000, 2500, {0.97, 0.93}, {0.01, 0.01}},
    {1, 10, 20000, 0.1, 0, 0, 1, 1408, 2000, 2000, {0.9, 0.87}, {0.01, 0.02}},
    /* Losses at random. */
    {1, 10, 20000, 1, 1e-4, 0, 1, 1408, 1000, 2000, {0.91, 0.87}, {0.01, 0.01}},
    {1, 10, 20000, 1, 1e-3, 0, 1, 1408, 1000, 2000, {0.9, 0.82}, {0.01, 0.01}},
    {1, 10, 80000, 1, 1e-3, 0, 1, 1408, 3000, 2500, {0.84, 0.77}, {0.01, 0.01}},
    {1, 10, 30000, 0.2, 1e-3, 0, 1, 1408, 1000, 2000, {0.89, 0.77}, {0.01, 0.01}},
    {1, 10, 20000, 1, 1e-2, 0, 1, 1408, 1000, 2000, {0.84, 0.78}, {0.01, 0.01}},
    {0.1, 10, 50000, 1, 1e-3, 0, 1, 1408, 2000, 4000, {0.93, 0.86}, {0.01, 0.01}},
    /* Jitter. */
    {1, 10, 20000, 1, 0, 1000, 1, 1408, 1000, 2000, {0.97, 0.89}, {0.01, 0.01}},
    {1, 10, 20000, 1, 1e-3, 500, 1, 1408, 1000, 2000, {0.81, 0.62}, {0.01, 0.01}},
    /* Several. */
    {1, 10, 20000, 1, 0, 0, 2, 1408, 2000, 2000, {0.96, 0.93}, {0.01, 0.02}},
    {1, 10, 20000, 0.5, 0, 0, 8, 1408, 2000, 2000, {0.97, 0.93}, {0.01, 0.02}},
    {0.5, 10, 60000, 0.5, 0, 0, 4, 1408, 4000, 4000, {0.96, 0.92}, {0.01, 0.02}},
};
/* clang-format on */

TEST(sim_bottleneck__wan)
{
    struct bottleneck_judge judge = {.name = "wan"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        bottleneck_judge_row(&judge,
                             &(struct bottleneck){.knows = MRD_SIM_KNOWS_SOCKETS,
                                                  .gbps = r->gbps,
                                                  .speedup = r->speedup,
                                                  .rtt_us = r->rtt_us,
                                                  .queue_bdp = r->queue_bdp,
                                                  .loss = r->loss,
                                                  .jitter_us = r->jitter_us,
                                                  .flows = r->flows,
                                                  .mtu = r->mtu,
                                                  .warm_ms = r->warm_ms,
                                                  .span_ms = r->span_ms},
                             &(struct bottleneck_bounds){{
                                 [BOTTLENECK_UTILISATION] = r->utilisation,
                                 [BOTTLENECK_DROPS] = r->drops,
                             }});
    }
    bottleneck_judge_end(&judge);
}
