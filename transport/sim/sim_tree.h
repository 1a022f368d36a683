/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches in tiers: who is joined to whom, and which way a packet takes.
 *
 * mrd_sim_tree_init() lays out nodes and wires by number; mrd_sim_tree_next() is a switch's decision. Nodes: hosts
 * first, then leaves (tier 0), then aggs and cores, or spines. Wires: hosts' up, then each switch's down and up.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_TREE_H
#define MRD_TRANSPORT_SIM_SIM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mrd/sim.h"

struct mrd_sim_switch {
    uint64_t seed;                  /* of its hash */
    uint32_t tier, number;          /* in its tier */
    uint32_t host_first, num_hosts; /* below it */
    uint32_t hosts_a_port;          /* hosts below each neighbour below */
    uint32_t down_first, up_first;  /* its wires; the down ones neighbour by neighbour */
    uint32_t num_up;
    uint32_t bundle; /* parallel wires to a neighbour below */
};

struct mrd_sim_tree {
    struct mrd_sim_topology topology;
    struct mrd_sim_switch *switches; /* owned; node number - hosts is the index */
    uint32_t num_switches;
    uint32_t tier_first[MRD_SIM_TIERS_MAX + 1]; /* first switch of each tier */
    uint32_t num_wires;
};

/* What a switch hashes: the fields of the 5-tuple as bytes of a header. */
struct mrd_sim_tuple {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint8_t protocol;
} __attribute__((packed));

/* -EINVAL with mrd_error_set(): impossible; -ENOMEM. */
int mrd_sim_tree_init(struct mrd_sim_tree *tree, const struct mrd_sim_topology *topology,
                      uint64_t seed);
void mrd_sim_tree_fini(struct mrd_sim_tree *tree);
/* Where a wire begins and ends, and which of several parallel ones it is. */
struct mrd_sim_ends {
    uint32_t from, to; /* nodes */
    uint32_t parallel, num_parallel;
    uint32_t tier; /* of the switch at its upper end */
    bool is_up;
};
struct mrd_sim_ends mrd_sim_tree_ends(const struct mrd_sim_tree *tree, uint32_t wire);
/* The wires that lead from a switch towards a host, equally good: first and number. */
uint32_t mrd_sim_tree_ways(const struct mrd_sim_switch *node, uint32_t host, uint32_t *num);
uint64_t mrd_sim_tree_hash(const struct mrd_sim_switch *node, const struct mrd_sim_tuple *tuple);
/* A link of a way, and the switch at its end. */
struct mrd_sim_hop {
    uint64_t rate_bps;
    uint64_t delay_ns;
};
enum { MRD_SIM_HOPS_MAX = 2 * MRD_SIM_TIERS_MAX };
/* The longest way between two hosts: its links, MRD_SIM_HOPS_MAX at most. */
unsigned mrd_sim_tree_longest(const struct mrd_sim_topology *topology, struct mrd_sim_hop *hops);
/* What a packet of so many bytes on the wire needs for it where nothing else is. */
double mrd_sim_tree_longest_ns(const struct mrd_sim_topology *topology, double wire_bytes);
/* "host3", "leaf0", "agg1", "core2", "spine2". */
int mrd_sim_tree_node_name(const struct mrd_sim_tree *tree, uint32_t node, char *name, size_t len);

#endif
