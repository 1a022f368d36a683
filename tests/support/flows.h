/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of a model on a simulated fabric, for its tests: when each was over and what arrived.
 *
 * flows_create(); flows_start(); flows_finish(), or mrd_sim_run_until(); look.
 */
#ifndef MRD_TESTS_SUPPORT_FLOWS_H
#define MRD_TESTS_SUPPORT_FLOWS_H

#include "tools/sim/models/qp.h"

enum { FLOWS_MAX = 1024 };

struct flows {
    struct mrd_sim *sim;
    struct model_flows *model;
    uint64_t bytes[FLOWS_MAX];    /* of each flow */
    uint64_t received[FLOWS_MAX]; /* in order */
    uint64_t done_ns[FLOWS_MAX];  /* 0: not yet */
    unsigned num_done;
};

/* 16 hosts, 4 leaves with as many links up as down, 4 spines: 100 Gb/s, 1 us a link. */
extern const struct mrd_sim_topology flows_leaf_spine;

/* config: NULL: rc with the defaults. Its callbacks are taken. */
struct flows *flows_create(const struct mrd_sim_attr *attr,
                           const struct model_flows_config *config);
void flows_start(struct flows *f, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes);
/* Run until `num` flows are over, each with all its bytes; later than budget_ns fails the test. */
void flows_finish(struct flows *f, unsigned num, uint64_t budget_ns);
/* Starts flow 0, and runs until it is over. */
void flows_one(struct flows *f, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t budget_ns);
/* Packets on the links whose names match a pattern as of fnmatch(3); and how many of those links had any. */
uint64_t flows_packets(struct flows *f, const char *links, unsigned *num_used);
/* A packet's time at a rate. */
uint64_t flows_wire_ns(uint64_t bytes, double bps);

#endif
