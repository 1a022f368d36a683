/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of a simulation: hosts and switches whose events happen in one order.
 *
 * There is one, unless mrd_sim_set_parts() cuts the tree into several, so that threads can run
 * them side by side. Whatever a host or switch does touches only its own part. A packet whose wire
 * leads into another part goes there by mail. No wire between parts is shorter than
 * mrd_sim.lookahead_ns, so within a window of that length no part can disturb another: all parts do
 * a window, then all take the mail of that window. Of the events of a nanosecond mail goes first, in
 * the order of the parts that sent it. So it matters neither which thread runs which part and when,
 * nor where windows begin: the same parts give the same bits with any number of threads.
 * (Conservative parallel simulation with synchronous windows: Nicol 1993, "The
 * cost of conservative synchronization in parallel discrete event simulations".)
 */
#ifndef MRD_TRANSPORT_SIM_SIM_PART_H
#define MRD_TRANSPORT_SIM_SIM_PART_H

#include "core/rng.h"
#include "transport/movers/sim/sim_event.h"
#include "transport/movers/sim/sim_memory.h"
#include "transport/movers/sim/sim_packet.h"

enum {
    MRD_SIM_PARTS_MAX = MRD_SIM_POOLS_MAX,
    MRD_SIM_APART_BYTES = 128 /* two lines: they are fetched in pairs */
};

struct mrd_sim_host;

/* What one part sends to another in one window. */
struct mrd_sim_mail {
    struct mrd_sim_packet *first, *last; /* arrivals, in the order in which they were sent */
};

/* What a part tells the others at the end of a window. They read it while it fills the other one. */
struct mrd_sim_outbox {
    _Alignas(MRD_SIM_APART_BYTES) uint64_t next_ns; /* of its next event, mail included; or NEVER */
    struct mrd_sim_mail to[MRD_SIM_PARTS_MAX];      /* emptied by those that it is for */
    struct mrd_sim_packet *strays[MRD_SIM_PARTS_MAX]; /* packets of their pools, released here */
};

struct mrd_sim_part {
    _Alignas(MRD_SIM_APART_BYTES) uint64_t now_ns;
    struct mrd_sim_host *touched; /* list: hosts whose timer is to be set anew */
    uint64_t lost;                /* packets lost end to end */
    uint32_t bytes_max;           /* wire_bytes of the largest packet so far; only with priority */
    struct mrd_rng rng;           /* of losses end to end */
    struct mrd_sim_events events;
    struct mrd_sim_packets packets;
    struct mrd_sim_memory memory; /* of contexts; only with options.large_pages */
    struct mrd_sim_outbox outbox[2];
    struct mrd_sim_outbox *out; /* that of this window */
};

/* 0 or -ENOMEM. */
int mrd_sim_part_init(struct mrd_sim_part *part, uint32_t number);
void mrd_sim_part_fini(struct mrd_sim_part *part);
/* Have a packet arrive at `node`, which is in this part. 0 or -ENOMEM. */
int mrd_sim_part_arrive(struct mrd_sim_part *part, struct mrd_sim_packet *packet, uint32_t node,
                        uint64_t at_ns);
/* The same, at a node of part number `to`. */
void mrd_sim_part_mail(struct mrd_sim_part *part, uint32_t to, struct mrd_sim_packet *packet,
                       uint32_t node, uint64_t at_ns);
/* Window number `round` begins: what is mailed from now on is taken in the next one. */
void mrd_sim_part_begin(struct mrd_sim_part *part, uint32_t round);
/* Take the mail of window `round` from another part. */
void mrd_sim_part_take(struct mrd_sim_part *part, struct mrd_sim_part *from, uint32_t round);
/* The window ends: hand over strays, and say when the next event is due. */
void mrd_sim_part_end(struct mrd_sim_part *part);

#endif
