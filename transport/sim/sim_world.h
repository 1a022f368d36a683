/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulation as a whole: virtual time, the event queue, the fabric and the hosts. See
 * mrd/sim.h.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_WORLD_H
#define MRD_TRANSPORT_SIM_SIM_WORLD_H

#include "transport/sim/sim_event.h"
#include "transport/sim/sim_fabric.h"
#include "transport/sim/sim_packet.h"

struct mrd_sim_host;

/* What only tests set; see sim_host.h. */
struct mrd_sim_options {
    uint64_t rx_delay_ns;
    uint32_t datagram_bytes_max; /* 0: no limit */
    uint32_t quantum;
    bool gro;
    bool read_check;
};

struct mrd_sim {
    uint64_t now_ns;
    struct mrd_sim_attr attr; /* with defaults filled in */
    struct mrd_sim_options options;
    struct mrd_sim_events events;
    struct mrd_sim_packets packets;
    struct mrd_sim_fabric fabric;
    struct mrd_sim_host *hosts;   /* attr.hosts of them, owned */
    struct mrd_sim_host *touched; /* hosts whose context was called since their timer was set */
};

#endif
