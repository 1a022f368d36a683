/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One narrow link that flows without end share: host i below the first leaf sends to host i below
 * the second one, and all of them cross the one link between the first leaf and the only spine.
 *
 * simx_narrow_point() makes the fabric of a configuration, for the hook `point`, and
 * simx_narrow_check() tells what is wrong with it. In a run simx_narrow_look() now and then, and
 * simx_narrow_end(); in its result simx_narrow_add_figures().
 */
#ifndef SIMX_NARROW_H
#define SIMX_NARROW_H

#include "tools/sim/report.h"
#include "tools/sim/run.h"

enum { SIMX_NARROW_FLOWS_MAX = 64 };

/* What the narrow link has done. */
struct simx_narrow_look {
    uint64_t t_ns;
    uint64_t bytes, drops; /* on the wire so far; packets so far */
    uint64_t queue_bytes;  /* now */
};

/* The fabric for `pairs` of hosts, from rtt_us, gbps, speedup and the buffer. */
void simx_narrow_point(struct simx_config *config, uint32_t pairs);
/* 0, or -EINVAL with a sentence: of the configuration of a point. */
int simx_narrow_check(const struct simx_config *config);
/* More than a flow can send in that time. */
uint64_t simx_narrow_endless_bytes(const struct simx_config *config, double seconds);

void simx_narrow_look(const struct simx_run *run, struct simx_narrow_look *look);
/* Of the time between two looks: the share in which the link sent. */
double simx_narrow_utilisation(const struct simx_run *run, const struct simx_narrow_look *from,
                               const struct simx_narrow_look *to);
/* The payload that it carries if it is never idle. */
double simx_narrow_payload_gbps(const struct simx_run *run);
/* Ends the run. 0, or -errno with a sentence: a flow could not be started, or failed. */
int simx_narrow_end(struct simx_run *run);
/* Corrects the keys that every run has, of flows that have no end, and tells of the link. */
void simx_narrow_add_figures(const struct simx_run *run, struct json_object *result);

#endif
