/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric: which links a packet crosses, and the faults that belong to no single link.
 *
 * mrd_sim_fabric_send() when a host sends; it ends in one MRD_SIM_EVENT_ARRIVE event for each copy that comes through.
 * Its tag says at which node: mrd_sim_fabric_forward() if that is a switch. Without a topology each ordered pair of
 * hosts (a host and itself included) is joined by `links` parallel links; path p of a sender takes link p mod links.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_FABRIC_H
#define MRD_TRANSPORT_SIM_SIM_FABRIC_H

#include "transport/sim/sim_event.h"
#include "transport/sim/sim_packet.h"
#include "transport/sim/sim_tree.h"
#include "transport/sim/sim_wire.h"

struct mrd_sim_fabric {
    uint32_t hosts;
    uint32_t links; /* a pair */
    uint32_t num_wires;
    struct mrd_sim_wire *wires; /* tree: by its numbers; else [from][to][link]; owned */
    struct mrd_sim_link *start; /* tree: what links of [tier][down, up] began as; else all; owned */
    struct mrd_sim_tree *tree;  /* owned; NULL: links between pairs */
    uint64_t *loss_masks; /* [from][to]: bit 0 is the next packet's; NULL: none was set; owned */
    uint32_t loss_ppb;    /* end to end */
    uint64_t lost;        /* by that */
    uint32_t num_down;    /* wires that may be down: switches look */
    bool has_priority;    /* urgent packets go first */
    uint32_t bytes_max;   /* on the wire, of the largest packet so far; with priority only */
    struct mrd_rng rng;
    mrd_sim_tap *tap; /* or NULL */
    void *tap_arg;
    struct mrd_sim_events *events;   /* borrowed */
    struct mrd_sim_packets *packets; /* borrowed */
};

/* 0, -EINVAL (mrd_error_set()) or -ENOMEM. Each wire and switch gets a seed of its own from `seed`. */
int mrd_sim_fabric_init(struct mrd_sim_fabric *fabric, const struct mrd_sim_attr *attr,
                        uint64_t seed, struct mrd_sim_events *events,
                        struct mrd_sim_packets *packets);
void mrd_sim_fabric_fini(struct mrd_sim_fabric *fabric);
/* Takes the packet; from, to, path, ecn, wire_bytes and data are set. */
void mrd_sim_fabric_send(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet,
                         uint64_t now_ns);
/* A packet came to a node that is a switch. Takes it. */
void mrd_sim_fabric_forward(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet,
                            uint32_t node, uint64_t now_ns);
/* Loss end to end: it came all the way, and is lost. */
bool mrd_sim_fabric_loses(struct mrd_sim_fabric *fabric);
/* Links between pairs. */
struct mrd_sim_wire *mrd_sim_fabric_wire(const struct mrd_sim_fabric *fabric, uint32_t from,
                                         uint32_t to, uint32_t link);
/* The wire that a host's packet enters first. */
struct mrd_sim_wire *mrd_sim_fabric_first(const struct mrd_sim_fabric *fabric, uint32_t from,
                                          uint32_t to, uint16_t path);
/* The wire that takes a host's packets into the tree; NULL without one. */
struct mrd_sim_wire *mrd_sim_fabric_uplink(const struct mrd_sim_fabric *fabric, uint32_t host);
/* Change a wire, and what is known of all. */
void mrd_sim_fabric_set(struct mrd_sim_fabric *fabric, uint32_t wire,
                        const struct mrd_sim_link *attr, uint64_t now_ns);
/* What a wire started as. */
const struct mrd_sim_link *mrd_sim_fabric_start(const struct mrd_sim_fabric *fabric, uint32_t wire);
/* "host3>leaf0", "leaf0>spine1.2"; 0 or -ENOSPC. */
int mrd_sim_fabric_name(const struct mrd_sim_fabric *fabric, uint32_t wire, char *name, size_t len);

#endif
