/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/topo_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/sim/fail.h"
#include "tools/sim/topo.h"

static int fault_at(struct simx_topo_fault *fault, uint32_t tier, enum simx_topo_field field,
                    uint64_t found, const char *expected, ...)
    __attribute__((format(printf, 5, 6)));

static int fault_at(struct simx_topo_fault *fault, uint32_t tier, enum simx_topo_field field,
                    uint64_t found, const char *expected, ...)
{
    va_list args;

    fault->tier = tier;
    fault->field = field;
    snprintf(fault->found, sizeof(fault->found), "%" PRIu64, found);
    va_start(args, expected);
    vsnprintf(fault->expected, sizeof(fault->expected), expected, args);
    va_end(args);
    return -EINVAL;
}

static uint32_t bundle_of(const struct mrd_sim_tier *tier)
{
    return tier->bundle ? tier->bundle : 1;
}

/* With these bounds no product below overflows, and no divisor is 0. */
static int check_ranges(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault)
{
    if (topo->hosts < 2 || topo->hosts > SIMX_TOPO_HOSTS_MAX)
        return fault_at(fault, 0, SIMX_TOPO_NODES, topo->hosts, "Nodes of 2 .. %d",
                        SIMX_TOPO_HOSTS_MAX);
    if (topo->tiers < 2 || topo->tiers > MRD_SIM_TIERS_MAX)
        return fault_at(fault, 0, SIMX_TOPO_TIERS, topo->tiers, "Tiers of 2 .. %d",
                        MRD_SIM_TIERS_MAX);
    for (uint32_t i = 0; i < topo->tiers; i++) {
        const struct mrd_sim_tier *tier = &topo->tier[i];
        bool is_top = i + 1 == topo->tiers;

        if (tier->rate_bps == 0 || tier->rate_bps > SIMX_TOPO_GBPS_MAX * 1000000000ull)
            return fault_at(fault, i, SIMX_TOPO_SPEED, tier->rate_bps,
                            "1 b/s .. %d Gb/s in tier %u", SIMX_TOPO_GBPS_MAX, i);
        if (tier->radix_down == 0 || tier->radix_down > SIMX_TOPO_RADIX_MAX)
            return fault_at(fault, i, SIMX_TOPO_RADIX_DOWN, tier->radix_down,
                            "Radix_Down of 1 .. %d in tier %u", SIMX_TOPO_RADIX_MAX, i);
        if (is_top && tier->radix_up != 0)
            return fault_at(fault, i, SIMX_TOPO_RADIX_UP, tier->radix_up,
                            "no Radix_Up in the top tier, %u", i);
        if (!is_top && (tier->radix_up == 0 || tier->radix_up > SIMX_TOPO_RADIX_MAX))
            return fault_at(fault, i, SIMX_TOPO_RADIX_UP, tier->radix_up,
                            "Radix_Up of 1 .. %d in tier %u", SIMX_TOPO_RADIX_MAX, i);
    }
    return 0;
}

static int check_bundles(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault)
{
    if (bundle_of(&topo->tier[0]) != 1)
        return fault_at(fault, 0, SIMX_TOPO_BUNDLE, topo->tier[0].bundle,
                        "Bundle 1 in tier 0, as a host has one link");
    for (uint32_t i = 1; i < topo->tiers; i++) {
        const struct mrd_sim_tier *tier = &topo->tier[i], *below = tier - 1;
        uint32_t bundle = bundle_of(tier);

        if (tier->radix_down % bundle)
            return fault_at(fault, i, SIMX_TOPO_BUNDLE, bundle,
                            "a Bundle in tier %u that divides its Radix_Down %u", i,
                            tier->radix_down);
        if (below->radix_up % bundle)
            return fault_at(fault, i, SIMX_TOPO_BUNDLE, bundle,
                            "a Bundle in tier %u that divides Radix_Up %u of tier %u", i,
                            below->radix_up, i - 1);
    }
    return 0;
}

/* The links down of each switch of tier `i` are one bundle to each of `count` switches below it. */
static int check_down(const struct mrd_sim_topology *topo, uint32_t i, uint32_t count,
                      const char *below, struct simx_topo_fault *fault)
{
    uint64_t links = (uint64_t)count * bundle_of(&topo->tier[i]);

    if (topo->tier[i].radix_down == links)
        return 0;
    return fault_at(fault, i, SIMX_TOPO_RADIX_DOWN, topo->tier[i].radix_down,
                    "Radix_Down %" PRIu64 " in tier %u, one for each of %u %s times Bundle %u",
                    links, i, count, below, bundle_of(&topo->tier[i]));
}

static int check_leaf_spine(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault)
{
    uint32_t leaf_hosts = topo->tier[0].radix_down;

    if (topo->pod_hosts != 0 && topo->pod_hosts != topo->hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "Podsize %u, all Nodes, with 2 tiers", topo->hosts);
    if (topo->hosts % leaf_hosts)
        return fault_at(fault, 0, SIMX_TOPO_NODES, topo->hosts,
                        "Nodes in multiples of Radix_Down %u of tier 0", leaf_hosts);
    return check_down(topo, 1, topo->hosts / leaf_hosts, "leaves", fault);
}

/*
 * Each agg of a pod has a bundle to each leaf of it. Agg i of every pod has a bundle to each of the
 * same cores, those of group i, and each core one to agg i of every pod. There are then Radix_Up[1]
 * / Bundle[2] cores in a group, and their number needs no check of its own.
 */
static int check_fat_tree(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault)
{
    uint32_t leaf_hosts = topo->tier[0].radix_down;

    if (topo->pod_hosts == 0 || topo->hosts % topo->pod_hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "a Podsize that divides Nodes %u", topo->hosts);
    if (topo->pod_hosts % leaf_hosts)
        return fault_at(fault, 0, SIMX_TOPO_PODSIZE, topo->pod_hosts,
                        "Podsize in multiples of Radix_Down %u of tier 0", leaf_hosts);
    int rc = check_down(topo, 1, topo->pod_hosts / leaf_hosts, "leaves of a pod", fault);
    return rc ? rc : check_down(topo, 2, topo->hosts / topo->pod_hosts, "pods", fault);
}

int simx_topo_find_fault(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault)
{
    int rc = check_ranges(topo, fault);

    if (rc == 0)
        rc = check_bundles(topo, fault);
    if (rc)
        return rc;
    return topo->tiers == 2 ? check_leaf_spine(topo, fault) : check_fat_tree(topo, fault);
}

int simx_topo_check(const struct mrd_sim_topology *topo)
{
    struct simx_topo_fault fault;
    int rc = simx_topo_find_fault(topo, &fault);

    return rc ? simx_fail(rc, "expected %s, found '%s'", fault.expected, fault.found) : 0;
}
