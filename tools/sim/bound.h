/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times that no run can beat, by the links that bytes must cross and their least headers.
 *
 * simx_bounds_init() for all flows of a run, simx_bound_flow_us() for one alone. A flow may spray:
 * parallel links between switches count together. Faults that make links faster are not known.
 */
#ifndef SIMX_BOUND_H
#define SIMX_BOUND_H

#include "tools/sim/run.h"

/* How far apart two hosts are; with two tiers all leaves are of one pod. */
enum simx_distance { SIMX_SAME_LEAF, SIMX_SAME_POD, SIMX_FAR, SIMX_DISTANCES };

enum simx_distance simx_bound_distance(const struct simx_net *net, uint32_t a, uint32_t b);
/* A lone flow of `bytes` over that distance, until its last full packet is there. */
double simx_bound_way_us(const struct simx_net *net, const struct simx_config *config,
                         enum simx_distance distance, uint64_t bytes);
/* An ack back. */
double simx_bound_back_us(const struct simx_net *net, const struct simx_config *config,
                          enum simx_distance distance);
/* A lone flow from `src` to `dst`, until its sender has the last ack. */
double simx_bound_flow_us(const struct simx_net *net, const struct simx_config *config,
                          uint32_t src, uint32_t dst, uint64_t bytes);

struct simx_bounds {
    double fct_us;        /* the longest completion time is at least this */
    double completion_us; /* the last flow does not end before this time */
};

/*
 * Computes the bounds of a run, which need not have begun. False: no memory.
 *
 * fct_us is the greatest of two: the time of each flow alone; and for each host's link, each way,
 * the longest wait in a queue that the flows with a given start join when they start.
 * completion_us takes all flows. Each starts no earlier than the flows that trigger it can end.
 */
bool simx_bounds_init(struct simx_bounds *bounds, const struct simx_run *run);

#endif
