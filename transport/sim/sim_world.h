/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation as a whole: virtual time, event queue, fabric and hosts. See mrd/sim.h. */
#ifndef MRD_TRANSPORT_SIM_SIM_WORLD_H
#define MRD_TRANSPORT_SIM_SIM_WORLD_H

#include "transport/sim/sim_event.h"
#include "transport/sim/sim_fabric.h"
#include "transport/sim/sim_memory.h"
#include "transport/sim/sim_packet.h"

struct mrd_sim_host;

/* What only experiments and tests set, by calls of sim_host.h that say what each means. */
struct mrd_sim_options {
    const struct mrd_tune *tune;
    void (*turn_hook)(void *arg, uint32_t host);
    void *turn_hook_arg;
    uint64_t rx_delay_ns;
    uint32_t rx_packets_max;     /* 0: no limit */
    uint32_t datagram_bytes_max; /* 0: no limit */
    uint32_t quantum;
    bool gro;
    bool read_check;
    bool large_pages;
};

/* A scheduled change of the links that a pattern named. */
struct mrd_sim_fault {
    uint32_t *wires; /* owned */
    uint32_t num_wires;
    uint32_t action; /* enum action of sim_fault.c */
    double value[3];
    struct mrd_sim_event event;
};

/* Apply scheduled change number `index`. */
void mrd_sim_fault_apply(struct mrd_sim *sim, uint32_t index);
void mrd_sim_faults_fini(struct mrd_sim *sim);

struct mrd_sim {
    uint64_t now_ns;
    struct mrd_sim_attr attr; /* with defaults filled in */
    struct mrd_sim_options options;
    struct mrd_sim_events events;
    struct mrd_sim_packets packets;
    struct mrd_sim_memory memory; /* of contexts; only with options.large_pages */
    struct mrd_sim_fabric fabric;
    struct mrd_sim_host *hosts;    /* attr.hosts of them, owned */
    struct mrd_sim_fault **faults; /* num_faults of them, owned */
    uint32_t num_faults;
    struct mrd_sim_host *touched; /* list: hosts whose timer is to be set anew */
};

#endif
