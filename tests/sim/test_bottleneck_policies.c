/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each policy of congestion control in a fabric, with marks and without, and with random losses: a
 * flow fills its link, two share it, and an incast does not make them collapse.
 */
#include "tests/support/bottleneck.h"

/* clang-format off */
static const struct bottleneck_row rows[] = {
    {.cc = "nscc", .flows = 1, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 1, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 1, .ecn = true, .loss = 0.001, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 1, .ecn = true, .loss = 0.01, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 1, .ecn = true, .loss = 0.05, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 2, .stagger_ms = 0.5, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}, {0.96, 0.93}}},
    {.cc = "nscc", .flows = 32, .incast = true, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}, {0.94, 0.92}}},
    {.cc = "nscc", .flows = 64, .incast = true, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "nscc", .flows = 64, .incast = true, .bound = {{0.97, 0.97}, {0.02, 0.025}}},
    {.cc = "dctcp", .flows = 1, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "dctcp", .flows = 1, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "dctcp", .flows = 2, .stagger_ms = 0.5, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}}},
    {.cc = "swift", .flows = 1, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 1, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 1, .ecn = true, .loss = 0.001, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 1, .ecn = true, .loss = 0.01, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 1, .ecn = true, .loss = 0.05, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 2, .stagger_ms = 0.5, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}}},
    {.cc = "swift", .flows = 32, .incast = true, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
    {.cc = "swift", .flows = 64, .incast = true, .ecn = true, .bound = {{0.97, 0.97}, {0.001, 0.001}, {0.98, 0.98}}},
    {.cc = "swift", .flows = 64, .incast = true, .bound = {{0.97, 0.97}, {0.001, 0.001}}},
};
/* clang-format on */

TEST(sim_bottleneck__policies)
{
    static const enum bottleneck_figure bounded[] = {BOTTLENECK_UTILISATION, BOTTLENECK_DROPS,
                                                     BOTTLENECK_JAIN};
    static const struct bottleneck common = {.knows = FABRIC,
                                             .gbps = 100,
                                             .rtt_us = 8,
                                             .queue_bytes = 800 * 1024,
                                             .warm_ms = 5,
                                             .span_ms = 5};

    bottleneck_judge("policies", rows, sizeof(rows) / sizeof(rows[0]), &common, bounded);
}
