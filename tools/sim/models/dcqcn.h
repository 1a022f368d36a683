/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN's rate of a flow: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1.
 *
 * model_dcqcn_init() at line rate; model_dcqcn_cnp() for each CNP; model_dcqcn_sent() for each packet, which
 * tells how long it keeps the flow from sending. The timers have no events: their steps are caught up with whenever the
 * flow does something, so that a new rate holds from the next packet on.
 */
#ifndef MODELS_DCQCN_H
#define MODELS_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/sim/models/tune.h"

/* What all flows have in common. */
struct model_dcqcn_limits {
    const struct mrd_sim_tune_dcqcn *tune; /* borrowed */
    double line_bps;
    double min_bps;              /* at most line_bps */
    uint64_t cnp_ns;             /* least time between CNPs */
    uint64_t alpha_ns, timer_ns; /* periods */
    uint64_t bytes;              /* of the byte counter */
    uint32_t recoveries;         /* steps of fast recovery */
};

struct model_dcqcn {
    double rate_bps, target_bps; /* R_C, R_T */
    double alpha;
    uint64_t alpha_at_ns, timer_at_ns; /* when the next step of each timer is due */
    uint64_t bytes;                    /* since the byte counter's last step */
    uint32_t timer_steps, byte_steps;  /* T, BC: since the last cut */
    bool is_limited;                   /* a CNP came: before that nothing runs */
};

/* 0, or -EINVAL: a period, the byte counter or the least rate is zero, or the gain above 1. */
int model_dcqcn_limits_init(struct model_dcqcn_limits *limits,
                            const struct mrd_sim_tune_dcqcn *tune, double line_bps);
void model_dcqcn_init(struct model_dcqcn *d, const struct model_dcqcn_limits *limits);
void model_dcqcn_cnp(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                     uint64_t now_ns);
/* Picoseconds that the packet takes at the flow's rate; 0: at line rate, where the link paces. */
uint64_t model_dcqcn_sent(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                          uint32_t wire_bytes, uint64_t now_ns);

#endif
