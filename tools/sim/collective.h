/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What experiments with collective operations of all hosts share: sizes, bandwidths, the table and
 * the picture.
 *
 * Bandwidths are those of the NCCL tests, in Gb/s: the algorithm's is size / time, the bus's is
 * that times a factor which makes it comparable with the rate of a host's link, whatever the number
 * n of hosts is: 2 (n - 1) / n for all-reduce, (n - 1) / n for all-to-all. Size is that of a host's
 * whole buffer. Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
 */
#ifndef SIMX_COLLECTIVE_H
#define SIMX_COLLECTIVE_H

#include "tools/sim/experiment.h"

struct simx_collective {
    const char *pattern; /* how it is done: a word of the results */
    /* What it sends, of the buffer: less where that does not divide by the hosts. */
    uint64_t (*size)(const struct simx_config *config, uint32_t hosts);
    double (*bus_factor)(uint32_t hosts);
    /* No run can be faster, until the last sender has its completion. */
    double (*ideal_us)(const struct simx_net *net, const struct simx_config *config);
};

/* Hooks of an experiment. The points: 1 MiB, 2 MiB, ... 64 MiB, or config->bytes. */
void simx_collective_defaults(struct simx_config *config);
unsigned simx_collective_points(const struct simx_config *config);
void simx_collective_point(struct simx_config *config, unsigned index);
void simx_collective_figures(const struct simx_collective *what, const struct simx_run *run,
                             struct json_object *result);

enum { SIMX_COLLECTIVE_COLUMNS = 20 };
extern const struct simx_column simx_collective_columns[SIMX_COLLECTIVE_COLUMNS];
extern const struct simx_picture simx_collective_picture;

#endif
