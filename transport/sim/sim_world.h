/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation as a whole: its parts, fabric and hosts. See mrd/sim.h. */
#ifndef MRD_TRANSPORT_SIM_SIM_WORLD_H
#define MRD_TRANSPORT_SIM_SIM_WORLD_H

#include "transport/sim/sim_address.h"
#include "transport/sim/sim_fabric.h"
#include "transport/sim/sim_part.h"

struct mrd_sim_crew;
struct mrd_sim_fault;
struct mrd_sim_host;

/* What only experiments and tests set, by calls of sim_host.h that say what each means. */
struct mrd_sim_options {
    const struct mrd_tune *tune;
    void (*turn_hook)(void *arg, uint32_t host);
    void *turn_hook_arg;
    void (*stray_hook)(void *arg, const struct mrd_sim_stray *stray);
    void *stray_hook_arg;
    uint64_t rx_delay_ns;
    uint32_t rx_packets_max;     /* 0: no limit */
    uint32_t datagram_bytes_max; /* 0: no limit */
    uint32_t quantum;
    bool gro;
    bool read_check;
    bool large_pages;
};

struct mrd_sim {
    struct mrd_sim_attr attr; /* with defaults filled in */
    struct mrd_sim_options options;
    struct mrd_sim_part *parts; /* num_parts of them, owned */
    uint32_t num_parts;
    uint64_t lookahead_ns;     /* of a window; only with several parts */
    struct mrd_sim_crew *crew; /* owned; NULL: one part */
    struct mrd_sim_fabric fabric;
    struct mrd_sim_host *hosts;      /* attr.hosts of them, owned */
    struct mrd_sim_fault **faults;   /* num_faults of them by time and insertion, owned */
    uint32_t num_faults, next_fault; /* those before it have been applied */
    bool has_addresses;              /* some host has several, or they change */
};

/* mrd_sim_now(), for what stands below it: between runs all parts have the same time. */
static inline uint64_t mrd_sim_time(const struct mrd_sim *sim)
{
    return sim->parts[0].now_ns;
}

#endif
