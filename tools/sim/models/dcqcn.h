/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate of a flow by DCQCN: Zhu et al., Congestion Control for Large-Scale RDMA Deployments,
 * SIGCOMM 2015, section 3.1.
 *
 * model_dcqcn_init() at line rate; model_dcqcn_cut() for each CNP; model_dcqcn_pace() for each
 * packet sent, which returns how long the next one waits. The timers of the paper have no events:
 * their steps are made up for at each call, so a new rate holds from the next packet on.
 */
#ifndef MODELS_DCQCN_H
#define MODELS_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/sim/models/tune.h"

/* What all flows have in common. */
struct model_dcqcn_limits {
    const struct model_tune_dcqcn *tune; /* borrowed */
    double line_bps;
    double min_bps;              /* at most line_bps */
    uint64_t cnp_ns;             /* least time between two CNPs */
    uint64_t alpha_ns, timer_ns; /* periods of the two timers */
    uint64_t bytes;              /* period of the byte counter */
    uint32_t recoveries;         /* steps of fast recovery */
};

struct model_dcqcn {
    double rate_bps, target_bps; /* R_C, R_T */
    double alpha;
    uint64_t alpha_at_ns, timer_at_ns; /* when the next step of each timer is due */
    uint64_t bytes;                    /* sent since the last step of the byte counter */
    uint32_t timer_steps, byte_steps;  /* T, BC: since the last cut */
    bool is_limited;                   /* a CNP came; until then the rate is line rate */
};

/* 0, or -EINVAL: a period, the byte counter or the least rate is zero, or the gain above 1. */
int model_dcqcn_limits_init(struct model_dcqcn_limits *limits, const struct model_tune_dcqcn *tune,
                            double line_bps);
void model_dcqcn_init(struct model_dcqcn *d, const struct model_dcqcn_limits *limits);
/* A CNP came: reduce the rate. */
void model_dcqcn_cut(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                     uint64_t now_ns);
/* A packet was sent. Returns its time at the flow's rate, in ps; 0: line rate, the link paces. */
uint64_t model_dcqcn_pace(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                          uint32_t wire_bytes, uint64_t now_ns);

#endif
