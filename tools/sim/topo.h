/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies: leaf-spine fabrics and fat trees. The file format of uet-htsim, words in any case:
 *
 *   Nodes N
 *   Tiers 2|3
 *   Podsize N                     with 2 tiers: N of Nodes, or absent
 *   Tier 0 .. Tiers-1, and below each:
 *     Downlink_speed_Gbps X       of a link towards the hosts; a fraction is allowed
 *     Radix_Down N                links of a switch towards the hosts
 *     Radix_Up N                  and away from them; not in the top tier
 *     Oversubscribed X            capacity of links down to that of links up; for Radix_Up
 *     Downlink_Latency_ns N
 *     Switch_Latency_ns N         default 0
 *     Bundle N                    parallel links to each switch below; default 1
 *
 * simx_topo_read() or a generator fills the caller's struct; nothing is to be released.
 */
#ifndef MRD_SIM_TOPO_H
#define MRD_SIM_TOPO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "mrd/sim.h"

enum {
    SIMX_TOPO_HOSTS_MAX = 1 << 16,
    SIMX_TOPO_RADIX_MAX = 1 << 16,
    SIMX_TOPO_GBPS_MAX = 100 * 1000, /* times the radix, it fits 64 bits in b/s */
};

/*
 * What fails sets a sentence: expected WHAT, found 'TEXT'. `topo` is set on success only.
 */

/* 0; -EINVAL, FILE:LINE before the sentence; -errno: the file cannot be read. */
int simx_topo_read(struct mrd_sim_topology *topo, const char *path);

/* 0, or -EINVAL: the tiers do not fit together, or no tree of this shape has so many hosts. */
int simx_topo_check(const struct mrd_sim_topology *topo);

/*
 * Of numbers within the bounds of their options. Leaves of `leaf_radix_down` hosts each; above them
 * all links have the same rate and delay. `oversubscription` is that of the leaves, 1 for none; the
 * tiers above add none. Three tiers: a pod has as many leaves as divide their number, at most
 * leaf_radix_down and, if there is more than one leaf, not all. -EINVAL: no such tree.
 */
int simx_topo_make(struct mrd_sim_topology *topo, uint32_t hosts, uint32_t tiers,
                   uint32_t leaf_radix_down, double oversubscription, double gbps,
                   uint64_t delay_ns);

#endif
