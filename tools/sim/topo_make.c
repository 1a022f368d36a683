/* SPDX-License-Identifier: BSD-2-Clause */
/* Generated topologies. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "tools/sim/fail.h"
#include "tools/sim/topo.h"

static void set_links(struct mrd_sim_topology *topo, uint64_t rate_bps, uint64_t delay_ns)
{
    for (uint32_t i = 0; i < topo->tiers; i++) {
        topo->tier[i].bundle = 1;
        topo->tier[i].rate_bps = rate_bps;
        topo->tier[i].delay_ns = delay_ns;
    }
}

/*
 * The largest divisor of `leaves` that is at most `most` and leaves more than one pod, unless there
 * is one leaf.
 */
static uint32_t leaves_of_pod(uint32_t leaves, uint32_t most)
{
    uint32_t count = most < leaves ? most : leaves - 1;

    while (count > 1 && leaves % count)
        count--;
    return count ? count : 1;
}

/* Returns 0 if they are not whole. */
static uint32_t links_up_of(uint32_t radix_down, double oversubscription)
{
    double links = (double)radix_down / oversubscription;
    bool is_whole =
        links >= 0.5 && links <= SIMX_TOPO_RADIX_MAX && fabs(links - round(links)) <= 1e-6 * links;

    return is_whole ? (uint32_t)lround(links) : 0;
}

int simx_topo_make(struct mrd_sim_topology *topo, uint32_t hosts, uint32_t tiers,
                   uint32_t leaf_radix_down, double oversubscription, double gbps,
                   uint64_t delay_ns)
{
    struct mrd_sim_topology made = {.hosts = hosts, .tiers = tiers, .pod_hosts = hosts};
    struct mrd_sim_tier *tier = made.tier;
    uint32_t links_up = links_up_of(leaf_radix_down, oversubscription);

    if (hosts % leaf_radix_down)
        return simx_fail(-EINVAL, "expected hosts in multiples of %u, those of a leaf, found '%u'",
                         leaf_radix_down, hosts);
    if (links_up == 0)
        return simx_fail(-EINVAL,
                         "expected an oversubscription that leaves whole links up of %u links "
                         "down, found '%g'",
                         leaf_radix_down, oversubscription);

    uint32_t leaves = hosts / leaf_radix_down;
    tier[0].radix_down = leaf_radix_down;
    tier[0].radix_up = links_up;
    tier[1].radix_down = leaves;
    if (tiers == 3) {
        uint32_t pod_leaves = leaves_of_pod(leaves, leaf_radix_down);

        made.pod_hosts = pod_leaves * leaf_radix_down;
        tier[1].radix_down = pod_leaves;
        tier[1].radix_up = pod_leaves;
        tier[2].radix_down = leaves / pod_leaves;
    }
    set_links(&made, (uint64_t)llround(gbps * 1e9), delay_ns);
    int rc = simx_topo_check(&made);
    if (rc == 0)
        *topo = made;
    return rc;
}
