/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric: which links a packet crosses, and the faults that belong to no single link.
 *
 * mrd_sim_fabric_send() puts a packet on its first link. It pushes an MRD_SIM_EVENT_ARRIVE event
 * for each copy that the link lets through; the event's tag names the node at the link's end. If
 * that is a switch, mrd_sim_fabric_forward() puts the packet on the next link.
 *
 * Without a topology, `links` parallel links join each ordered pair of hosts, a host and itself
 * included; path p of a sender takes link p mod links.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_FABRIC_H
#define MRD_TRANSPORT_SIM_SIM_FABRIC_H

#include "transport/movers/sim/sim_part.h"
#include "transport/movers/sim/sim_tree.h"
#include "transport/movers/sim/sim_wire.h"

struct mrd_sim_fabric {
    uint32_t hosts;
    uint32_t links; /* between a pair of hosts, in one direction */
    uint32_t num_wires;
    struct mrd_sim_wire *wires; /* tree: by its numbers; else [from][to][link]; owned */
    struct mrd_sim_link *start; /* as links began; tree: [tier][down, up]; else one; owned */
    struct mrd_sim_tree *tree;  /* owned; NULL: links between pairs */
    uint64_t *loss_masks; /* [from][to]: bit 0 is the next packet's; NULL: none was set; owned */
    uint32_t loss_ppb;    /* share of packets lost end to end */
    uint32_t num_down;    /* wires that are or flap down at times; 0: switches need not look */
    bool has_priority;    /* urgent packets go first */
    bool has_changed;     /* the delay of a wire has, since somebody last looked */
    struct mrd_rng rng;   /* of seeds */
    mrd_sim_tap *tap;     /* or NULL */
    void *tap_arg;
    const struct mrd_sim_packet *tapped; /* during a call of the tap */
};

/*
 * Each wire and switch gets a seed of its own, drawn from `seed`. 0, -EINVAL after mrd_error_set(),
 * or -ENOMEM.
 */
int mrd_sim_fabric_init(struct mrd_sim_fabric *fabric, const struct mrd_sim_attr *attr,
                        uint64_t seed);
void mrd_sim_fabric_fini(struct mrd_sim_fabric *fabric);
/*
 * Send a packet now and take it over: from, to, path, ecn, wire_bytes and data are set. `part` is
 * that of its sender.
 */
void mrd_sim_fabric_send(struct mrd_sim_fabric *fabric, struct mrd_sim_part *part,
                         struct mrd_sim_packet *packet);
/* Forward a packet that arrived at `node`, a switch of that part, and take it over. */
void mrd_sim_fabric_forward(struct mrd_sim_fabric *fabric, struct mrd_sim_part *part,
                            struct mrd_sim_packet *packet, uint32_t node);
/* Draw whether a packet that reached its host is lost, as loss_ppb says, and count it. */
bool mrd_sim_fabric_draw_loss(const struct mrd_sim_fabric *fabric, struct mrd_sim_part *part);
/* A wire between two hosts; only without a tree. */
struct mrd_sim_wire *mrd_sim_fabric_wire(const struct mrd_sim_fabric *fabric, uint32_t from,
                                         uint32_t to, uint32_t link);
/* The wire that a packet enters first. */
struct mrd_sim_wire *mrd_sim_fabric_first(const struct mrd_sim_fabric *fabric, uint32_t from,
                                          uint32_t to, uint16_t path);
/* The wire that takes a host's packets into the tree; NULL: there is no tree. */
struct mrd_sim_wire *mrd_sim_fabric_uplink(const struct mrd_sim_fabric *fabric, uint32_t host);
/* Change a wire from now on. */
void mrd_sim_fabric_set(struct mrd_sim_fabric *fabric, uint32_t wire,
                        const struct mrd_sim_link *attr, uint64_t now_ns);
/* The attributes that a wire was created with. */
const struct mrd_sim_link *mrd_sim_fabric_start(const struct mrd_sim_fabric *fabric, uint32_t wire);
/* Write a wire's name: "host3>leaf0", "leaf0>spine1.2". 0 or -ENOSPC. */
int mrd_sim_fabric_name(const struct mrd_sim_fabric *fabric, uint32_t wire, char *name, size_t len);

#endif
