/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a topology, which name the faulty word of its file.
 *
 * simx_topo_find_fault(); then simx_topo_check() makes a sentence of it, and simx_topo_read() one
 * with the line.
 */
#ifndef MRD_SIM_TOPO_CHECK_H
#define MRD_SIM_TOPO_CHECK_H

#include <stdint.h>

#include "mrd/sim.h"

/* Words of the file. The first ones are of the whole, the others of a tier. */
enum simx_topo_field {
    SIMX_TOPO_NODES,
    SIMX_TOPO_TIERS,
    SIMX_TOPO_PODSIZE,
    SIMX_TOPO_HEADERS,
    SIMX_TOPO_SPEED = SIMX_TOPO_HEADERS,
    SIMX_TOPO_RADIX_DOWN,
    SIMX_TOPO_RADIX_UP,
    SIMX_TOPO_OVERSUBSCRIBED,
    SIMX_TOPO_LINK_NS,
    SIMX_TOPO_SWITCH_NS,
    SIMX_TOPO_BUNDLE,
    SIMX_TOPO_FIELDS,
};

struct simx_topo_fault {
    uint32_t tier; /* of a field that is of a tier */
    enum simx_topo_field field;
    char expected[192];
    char found[24];
};

/* 0, or -EINVAL with the first fault. */
int simx_topo_find_fault(const struct mrd_sim_topology *topo, struct simx_topo_fault *fault);

#endif
