/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "core/rng.h"
#include "transport/backend.h"

enum { HOSTS_MAX = 1 << 16, WIRES_MAX = 1 << 22 };

/* How many switches a topology has. */
struct shape {
    uint32_t leaves, leaves_a_pod; /* two tiers are one pod */
    uint32_t pods, aggs;           /* `aggs` in each pod; with two tiers: spines */
    uint32_t cores;                /* only with three tiers */
};

static int refuse(const char *what)
{
    mrd_error_set("impossible topology: %s", what);
    return -EINVAL;
}

static int check_numbers(const struct mrd_sim_topology *t)
{
    /* Wires below a tier, both directions counted, and those of all tiers so far. */
    uint64_t below = 2 * (uint64_t)t->hosts, links = 0;

    if (t->tiers < 2 || t->tiers > MRD_SIM_TIERS_MAX)
        return refuse("neither 2 nor 3 tiers");
    if (t->hosts < 2 || t->hosts > HOSTS_MAX)
        return refuse("not 2 to 65536 hosts");
    for (uint32_t i = 0; i < t->tiers; i++) {
        const struct mrd_sim_tier *tier = &t->tier[i];

        if (tier->rate_bps == 0)
            return refuse("a link with rate zero");
        if (tier->radix_down == 0 || (tier->radix_up == 0) != (i + 1 == t->tiers))
            return refuse("a switch without links up or down, or a top tier with links up");
        if (tier->radix_down > HOSTS_MAX || tier->radix_up > HOSTS_MAX)
            return refuse("a switch with more than 65536 links");
        links += below;
        if (links > WIRES_MAX)
            return refuse("too many links");
        below = below * tier->radix_up / tier->radix_down;
    }
    return 0;
}

static uint32_t bundle_of(const struct mrd_sim_topology *t, uint32_t tier)
{
    return t->tier[tier].bundle ? t->tier[tier].bundle : 1;
}

static int find_shape(const struct mrd_sim_topology *t, struct shape *s)
{
    uint32_t bundle1 = bundle_of(t, 1);
    uint32_t pod_hosts = t->tiers == 2 ? t->hosts : t->pod_hosts;

    if (bundle_of(t, 0) != 1)
        return refuse("hosts with more than one link");
    if (t->tiers == 2 && t->pod_hosts != 0 && t->pod_hosts != t->hosts)
        return refuse("two tiers are one pod");
    if (pod_hosts == 0 || t->hosts % pod_hosts != 0 || pod_hosts % t->tier[0].radix_down != 0)
        return refuse("hosts do not fill the pods, or those the leaves");
    s->pods = t->hosts / pod_hosts;
    s->leaves = t->hosts / t->tier[0].radix_down;
    s->leaves_a_pod = s->leaves / s->pods;
    if (t->tier[0].radix_up % bundle1 != 0 || t->tier[1].radix_down != s->leaves_a_pod * bundle1)
        return refuse("the links between tier 0 and tier 1 do not match");
    s->aggs = t->tier[0].radix_up / bundle1;
    s->cores = 0;
    if (t->tiers == 2)
        return 0;

    uint32_t bundle2 = bundle_of(t, 2);

    if (t->tier[1].radix_up % bundle2 != 0 || t->tier[2].radix_down != s->pods * bundle2)
        return refuse("the links between tier 1 and tier 2 do not match");
    s->cores = s->aggs * (t->tier[1].radix_up / bundle2);
    return 0;
}

static void add_switch(struct mrd_sim_tree *tree, struct mrd_sim_switch node, struct mrd_rng *rng)
{
    uint32_t index = tree->num_switches++;

    node.seed = mrd_rng_u64(rng);
    node.number = index - tree->tier_first[node.tier];
    node.down_first = tree->num_wires;
    node.up_first = node.down_first + tree->topology.tier[node.tier].radix_down;
    node.num_up = tree->topology.tier[node.tier].radix_up;
    node.bundle = bundle_of(&tree->topology, node.tier);
    tree->num_wires = node.up_first + node.num_up;
    tree->switches[index] = node;
}

static void add_switches(struct mrd_sim_tree *tree, const struct shape *s, struct mrd_rng *rng)
{
    const struct mrd_sim_topology *t = &tree->topology;
    uint32_t leaf_hosts = t->tier[0].radix_down, pod_hosts = t->hosts / s->pods;

    tree->num_wires = t->hosts;
    for (uint32_t i = 0; i < s->leaves; i++)
        add_switch(tree,
                   (struct mrd_sim_switch){.tier = 0,
                                           .host_first = i * leaf_hosts,
                                           .num_hosts = leaf_hosts,
                                           .hosts_a_port = 1},
                   rng);
    tree->tier_first[1] = tree->num_switches;
    for (uint32_t i = 0; i < s->pods * s->aggs; i++)
        add_switch(tree,
                   (struct mrd_sim_switch){.tier = 1,
                                           .host_first = i / s->aggs * pod_hosts,
                                           .num_hosts = pod_hosts,
                                           .hosts_a_port = leaf_hosts},
                   rng);
    tree->tier_first[2] = tree->num_switches;
    for (uint32_t i = 0; i < s->cores; i++)
        add_switch(
            tree,
            (struct mrd_sim_switch){.tier = 2, .num_hosts = t->hosts, .hosts_a_port = pod_hosts},
            rng);
    tree->tier_first[3] = tree->num_switches;
}

int mrd_sim_tree_init(struct mrd_sim_tree *tree, const struct mrd_sim_topology *topology,
                      uint64_t seed)
{
    struct mrd_rng rng;
    struct shape s;
    int ret = check_numbers(topology);

    if (ret == 0)
        ret = find_shape(topology, &s);
    if (ret != 0)
        return ret;
    mrd_rng_init(&rng, seed);
    *tree = (struct mrd_sim_tree){.topology = *topology};
    if (topology->tiers == 2)
        tree->topology.pod_hosts = topology->hosts;
    tree->switches = calloc(s.leaves + s.pods * s.aggs + s.cores, sizeof(tree->switches[0]));
    if (!tree->switches)
        return -ENOMEM;
    add_switches(tree, &s, &rng);
    return 0;
}

void mrd_sim_tree_fini(struct mrd_sim_tree *tree)
{
    free(tree->switches);
    tree->switches = NULL;
}

/* -------------------------------------------------------------------------------------- wiring */

/* The switch that a wire leaves from: each has the numbers from down_first on. */
static uint32_t owner(const struct mrd_sim_tree *tree, uint32_t wire)
{
    uint32_t low = 0, high = tree->num_switches;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (tree->switches[middle].down_first <= wire)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The neighbour of `node` on the way down to `host`. */
static uint32_t switch_below(const struct mrd_sim_tree *tree, const struct mrd_sim_switch *node,
                             uint32_t host)
{
    const struct mrd_sim_topology *t = &tree->topology;

    if (node->tier == 1)
        return host / t->tier[0].radix_down;

    /* A core is joined to one agg of each pod, which has the same place in every pod. */
    uint32_t aggs = t->tier[0].radix_up / bundle_of(t, 1);
    uint32_t cores_an_agg = t->tier[1].radix_up / node->bundle;

    return tree->tier_first[1] + host / t->pod_hosts * aggs + node->number / cores_an_agg;
}

static uint32_t switch_above(const struct mrd_sim_tree *tree, const struct mrd_sim_switch *node,
                             uint32_t neighbour)
{
    const struct mrd_sim_topology *t = &tree->topology;
    uint32_t aggs = t->tier[0].radix_up / bundle_of(t, 1);

    if (node->tier == 0)
        return tree->tier_first[1] + node->host_first / t->pod_hosts * aggs + neighbour;
    return tree->tier_first[2] + node->number % aggs * (t->tier[1].radix_up / bundle_of(t, 2)) +
           neighbour;
}

struct mrd_sim_ends mrd_sim_tree_ends(const struct mrd_sim_tree *tree, uint32_t wire)
{
    uint32_t hosts = tree->topology.hosts;

    if (wire < hosts)
        return (struct mrd_sim_ends){.from = wire,
                                     .to = hosts + wire / tree->topology.tier[0].radix_down,
                                     .num_parallel = 1,
                                     .is_up = true};

    uint32_t index = owner(tree, wire);
    const struct mrd_sim_switch *node = &tree->switches[index];
    struct mrd_sim_ends ends = {.from = hosts + index};

    if (wire < node->up_first) {
        uint32_t port = wire - node->down_first;
        uint32_t host = node->host_first + port / node->bundle * node->hosts_a_port;

        ends.to = node->tier == 0 ? host : hosts + switch_below(tree, node, host);
        ends.parallel = port % node->bundle;
        ends.num_parallel = node->bundle;
        ends.tier = node->tier;
        return ends;
    }
    ends.num_parallel = bundle_of(&tree->topology, node->tier + 1);
    ends.parallel = (wire - node->up_first) % ends.num_parallel;
    ends.to = hosts + switch_above(tree, node, (wire - node->up_first) / ends.num_parallel);
    ends.tier = node->tier + 1;
    ends.is_up = true;
    return ends;
}

uint32_t mrd_sim_tree_ways(const struct mrd_sim_switch *node, uint32_t host, uint32_t *num)
{
    uint32_t below = host - node->host_first;

    if (below >= node->num_hosts) {
        *num = node->num_up;
        return node->up_first;
    }
    *num = node->bundle;
    return node->down_first + below / node->hosts_a_port * node->bundle;
}

uint64_t mrd_sim_tree_hash(const struct mrd_sim_switch *node, const struct mrd_sim_tuple *tuple)
{
    return XXH3_64bits_withSeed(tuple, sizeof(*tuple), node->seed);
}

unsigned mrd_sim_tree_longest(const struct mrd_sim_topology *topology, struct mrd_sim_hop *hops)
{
    bool is_one_leaf = topology->hosts <= topology->tier[0].radix_down;
    bool is_one_pod = topology->tiers == 2 || topology->hosts <= topology->pod_hosts;
    unsigned num = is_one_leaf ? 2 : is_one_pod ? 4 : 6;

    for (unsigned i = 0; i < num; i++) {
        bool is_up = i < num / 2;
        const struct mrd_sim_tier *tier = &topology->tier[is_up ? i : num - 1 - i];
        uint64_t switch_ns = is_up ? tier->switch_ns : 0;

        if (!is_up && i + 1 < num)
            switch_ns = topology->tier[num - 2 - i].switch_ns;
        hops[i] = (struct mrd_sim_hop){tier->rate_bps, tier->delay_ns + switch_ns};
    }
    return num;
}

double mrd_sim_tree_longest_ns(const struct mrd_sim_topology *topology, double wire_bytes)
{
    struct mrd_sim_hop hops[MRD_SIM_HOPS_MAX];
    unsigned num = mrd_sim_tree_longest(topology, hops);
    double ns = 0;

    for (unsigned i = 0; i < num; i++)
        ns += wire_bytes * 8e9 / (double)hops[i].rate_bps + (double)hops[i].delay_ns;
    return ns;
}

int mrd_sim_tree_node_name(const struct mrd_sim_tree *tree, uint32_t node, char *name, size_t len)
{
    static const char *const names[][MRD_SIM_TIERS_MAX] = {{"leaf", "spine", ""},
                                                           {"leaf", "agg", "core"}};
    uint32_t hosts = tree->topology.hosts;
    int n;

    if (node < hosts) {
        n = snprintf(name, len, "host%u", node);
    } else {
        const struct mrd_sim_switch *s = &tree->switches[node - hosts];

        assert(node - hosts < tree->num_switches);
        n = snprintf(name, len, "%s%u", names[tree->topology.tiers == 3][s->tier], s->number);
    }
    return n >= 0 && (size_t)n < len ? n : -ENOSPC;
}
