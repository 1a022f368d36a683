/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each policy of congestion control in a fabric, with marks and without, and with random losses: a
 * flow fills its link, two share it, and an incast does not make them collapse.
 */
#include "tests/support/bottleneck.h"

enum { QUEUE_BYTES = 800 * 1024 };

struct row {
    const char *cc;
    uint32_t flows; /* more than two: to one host */
    bool ecn;
    double loss;
    struct bottleneck_bound utilisation, drops, jain;
};

/* clang-format off */
static const struct row rows[] = {
    {"nscc", 1, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 1, false, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 1, true, 0.001, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 1, true, 0.01, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 1, true, 0.05, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 2, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0.96, 0.93}},
    {"nscc", 32, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0.94, 0.92}},
    {"nscc", 64, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"nscc", 64, false, 0, {0.97, 0.97}, {0.02, 0.025}, {0, 0}},
    {"dctcp", 1, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"dctcp", 1, false, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"dctcp", 2, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}},
    {"swift", 1, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 1, false, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 1, true, 0.001, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 1, true, 0.01, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 1, true, 0.05, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 2, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}},
    {"swift", 32, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
    {"swift", 64, true, 0, {0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}},
    {"swift", 64, false, 0, {0.97, 0.97}, {0.001, 0.001}, {0, 0}},
};
/* clang-format on */

TEST(sim_bottleneck__policies)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_UTILISATION, BOTTLENECK_DROPS,
                                                     BOTTLENECK_JAIN};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct bottleneck common = {.shape = r->flows > 2 ? BOTTLENECK_INCAST : BOTTLENECK_DUMBBELL,
                                    .cc = r->cc,
                                    .stagger_ms = r->flows == 2 ? 0.5 : 0};
        struct bottleneck_row row = {FABRIC,
                                     r->flows,
                                     100,
                                     0,
                                     8,
                                     QUEUE_BYTES,
                                     5,
                                     5,
                                     .bound = {r->utilisation, r->drops, r->jain},
                                     .ecn = r->ecn,
                                     .loss = r->loss};

        bottleneck_judge(r->cc, &row, 1, &common, bounded);
    }
}
