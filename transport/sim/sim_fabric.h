/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric: which links a packet crosses, and the faults that belong to no single link.
 *
 * mrd_sim_fabric_send() when a host sends; it ends in MRD_SIM_EVENT_ARRIVE events, one for each
 * copy that comes through. This fabric joins each ordered pair of hosts (a host and itself
 * included) by `links` parallel links; path p of a sender takes link p mod links.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_FABRIC_H
#define MRD_TRANSPORT_SIM_SIM_FABRIC_H

#include "transport/sim/sim_event.h"
#include "transport/sim/sim_packet.h"
#include "transport/sim/sim_wire.h"

enum {
    /*
     * What a datagram costs on an Ethernet wire beyond its bytes: preamble and start delimiter 8,
     * MAC header 14, IPv4 20, UDP 8, check sequence 4, gap 12. Ours are longer than Ethernet's
     * least frame, so nothing is padded.
     */
    MRD_SIM_WIRE_OVERHEAD_BYTES = 8 + 14 + 20 + 8 + 4 + 12,
};

struct mrd_sim_fabric {
    uint32_t hosts;
    uint32_t links;             /* a pair */
    struct mrd_sim_wire *wires; /* [from][to][link], owned */
    uint64_t *loss_masks;       /* [from][to]: bit 0 is the next packet's; owned */
    mrd_sim_tap *tap;           /* or NULL */
    void *tap_arg;
    struct mrd_sim_events *events;   /* borrowed */
    struct mrd_sim_packets *packets; /* borrowed */
};

/* 0 or -ENOMEM. Each wire gets a seed of its own from `seed`. */
int mrd_sim_fabric_init(struct mrd_sim_fabric *fabric, uint32_t hosts, uint32_t links,
                        const struct mrd_sim_link *attr, uint64_t seed,
                        struct mrd_sim_events *events, struct mrd_sim_packets *packets);
void mrd_sim_fabric_fini(struct mrd_sim_fabric *fabric);
/* Takes the packet; from, to, path, ecn and data are set. */
void mrd_sim_fabric_send(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet,
                         uint64_t now_ns);
struct mrd_sim_wire *mrd_sim_fabric_wire(const struct mrd_sim_fabric *fabric, uint32_t from,
                                         uint32_t to, uint32_t link);

#endif
