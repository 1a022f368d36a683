/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches in tiers: which nodes a wire joins, and which wires lead towards a host.
 *
 * mrd_sim_tree_init() numbers nodes and wires. Nodes: hosts, then leaves (tier 0), then aggs and
 * cores, or spines. Wires: each host's up, then each switch's down and up. A switch asks
 * mrd_sim_tree_ways() for the wires it may use, and mrd_sim_tree_hash() which of them.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_TREE_H
#define MRD_TRANSPORT_SIM_SIM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mrd/sim.h"

struct mrd_sim_switch {
    uint64_t seed;                  /* of its hash */
    uint32_t tier, number;          /* `number` counts the switches of the tier */
    uint32_t host_first, num_hosts; /* the hosts below it */
    uint32_t hosts_a_port;          /* of them, below each of its neighbours below */
    uint32_t down_first, up_first;  /* its first wires; those down in order of neighbours */
    uint32_t num_up;                /* wires up */
    uint32_t bundle;                /* parallel wires to each neighbour below */
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

/* 0; -EINVAL after mrd_error_set(): there is no such tree; -ENOMEM. */
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
/* The wires from a switch towards a host, all equally good: returns the first of *num. */
uint32_t mrd_sim_tree_ways(const struct mrd_sim_switch *node, uint32_t host, uint32_t *num);
/* The hash by which the switch chooses among equal wires: ECMP. */
uint64_t mrd_sim_tree_hash(const struct mrd_sim_switch *node, const struct mrd_sim_tuple *tuple);
/* A link on a way. The delay includes that of the switch at its end. */
struct mrd_sim_hop {
    uint64_t rate_bps;
    uint64_t delay_ns;
};
enum { MRD_SIM_HOPS_MAX = 2 * MRD_SIM_TIERS_MAX };
/* Fill in the links on the longest way between hosts. Returns how many: <= MRD_SIM_HOPS_MAX. */
unsigned mrd_sim_tree_longest(const struct mrd_sim_topology *topology, struct mrd_sim_hop *hops);
/* How long a packet takes on that way if it never waits in a queue. */
double mrd_sim_tree_longest_ns(const struct mrd_sim_topology *topology, double wire_bytes);
/* Write a node's name: "host3", "leaf0", "agg1", "core2", "spine2". Its length or -ENOSPC. */
int mrd_sim_tree_node_name(const struct mrd_sim_tree *tree, uint32_t node, char *name, size_t len);

#endif
