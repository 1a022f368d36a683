/* SPDX-License-Identifier: BSD-2-Clause */
/* Generated topologies. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "tools/sim/topo.h"

static int rate_of(double gbps, uint64_t *rate_bps, char *error, size_t len)
{
    /* The negation also refuses NaN. */
    if (!(gbps >= 1e-9 && gbps <= SIMX_TOPO_GBPS_MAX)) {
        snprintf(error, len, "expected Gb/s above 0 and at most %d, found '%g'", SIMX_TOPO_GBPS_MAX,
                 gbps);
        return -EINVAL;
    }
    *rate_bps = (uint64_t)llround(gbps * 1e9);
    return 0;
}

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

static int links_up_of(uint32_t radix_down, double oversubscription, uint32_t *links_up,
                       char *error, size_t len)
{
    double links = (double)radix_down / oversubscription;

    if (oversubscription > 0 && links >= 0.5 && links <= SIMX_TOPO_RADIX_MAX &&
        fabs(links - round(links)) <= 1e-6 * links) {
        *links_up = (uint32_t)lround(links);
        return 0;
    }
    snprintf(error, len,
             "expected an oversubscription that leaves whole links up of %u links down, found '%g'",
             radix_down, oversubscription);
    return -EINVAL;
}

int simx_topo_make(struct mrd_sim_topology *topo, uint32_t hosts, uint32_t tiers,
                   uint32_t leaf_radix_down, double oversubscription, double gbps,
                   uint64_t delay_ns, char *error, size_t len)
{
    struct mrd_sim_topology made = {.hosts = hosts, .tiers = tiers, .pod_hosts = hosts};
    struct mrd_sim_tier *tier = made.tier;
    uint64_t rate_bps;
    uint32_t links_up;

    if (tiers < 2 || tiers > MRD_SIM_TIERS_MAX) {
        snprintf(error, len, "expected 2 .. %d tiers, found '%u'", MRD_SIM_TIERS_MAX, tiers);
        return -EINVAL;
    }
    if (hosts == 0 || leaf_radix_down == 0 || hosts % leaf_radix_down) {
        snprintf(error, len, "expected hosts in multiples of %u, those of a leaf, found '%u'",
                 leaf_radix_down, hosts);
        return -EINVAL;
    }
    int rc = rate_of(gbps, &rate_bps, error, len);
    if (rc == 0)
        rc = links_up_of(leaf_radix_down, oversubscription, &links_up, error, len);
    if (rc)
        return rc;

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
    set_links(&made, rate_bps, delay_ns);
    rc = simx_topo_check(&made, error, len);
    if (rc == 0)
        *topo = made;
    return rc;
}
