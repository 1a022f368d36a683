/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of a model on a simulated fabric, for its tests: when each was over and what arrived.
 *
 * flows_create(); flows_start(); flows_finish(), or mrd_sim_run_until(); look.
 */
#ifndef MRD_TESTS_SUPPORT_FLOWS_H
#define MRD_TESTS_SUPPORT_FLOWS_H

#include "tools/sim/models/qp.h"

enum {
    FLOWS_MAX = 1024,
    FLOWS_ROUNDING_NS = 16, /* a nanosecond a hop each way */
};

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

/* Two hosts, one link: 100 Gb/s, 5 us. */
extern const struct mrd_sim_attr flows_pair;

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

/* Loses those of the next 64 packets from -> to whose bits are set. */
void flows_lose(struct flows *f, int from, int to, uint64_t mask);
struct model_flows_stats flows_stats(const struct flows *f);
/*
 * What a lone flow of full packets takes over `hops` equal links of 100 Gb/s: the first packet,
 * which is the longest, crosses all of them, the others follow it in a row, and the ack of the last
 * comes back.
 */
uint64_t flows_lone_ns(const struct flows *f, unsigned packets, unsigned hops, uint64_t link_ns);
/* Lone flows of a transport, from one packet to many, take just that; acks: one for each packet. */
void flows_expect_line_rate(const char *transport, bool acks);
/* 16 flows at a time have the same times in each of two runs. */
void flows_expect_deterministic(const struct mrd_sim_attr *attr,
                                const struct model_flows_config *config);

#endif
