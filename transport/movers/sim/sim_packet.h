/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams inside the fabric, from pools by size. Pools grow by slabs and keep them until the
 * simulation ends.
 *
 * mrd_sim_packet_alloc() when a host sends; mrd_sim_packet_release() when the receiver is done or
 * the packet is lost.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_PACKET_H
#define MRD_TRANSPORT_SIM_SIM_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/movers/sim/sim_event.h"

enum {
    MRD_SIM_DATAGRAM_BYTES_MAX = 65535,
    MRD_SIM_PACKET_CLASSES = 6,
    MRD_SIM_POOLS_MAX = 16,
    /*
     * What an Ethernet wire carries beyond the bytes of a datagram: preamble and start delimiter 8,
     * MAC header 14, IPv4 20, UDP 8, check sequence 4, gap 12. Every datagram of mrd is
     * longer than Ethernet's least frame, so none is padded.
     */
    MRD_SIM_WIRE_OVERHEAD_BYTES = 8 + 14 + 20 + 8 + 4 + 12,
    /* The simulator uet-htsim counts these instead: beyond the payload of data, and for an ack. */
    MRD_SIM_HTSIM_DATA_BYTES = 64,
    MRD_SIM_HTSIM_ACK_BYTES = 88,
};

struct mrd_sim_packet {
    struct mrd_sim_event event; /* first. Off the wire, event.next links lists of packets */
    /* What each hop needs is in one cache line with the event. */
    uint32_t from, to;   /* hosts */
    uint32_t wire_bytes; /* size on the wire, all headers included */
    uint16_t path;       /* the sender's path number */
    uint8_t ecn;         /* enum mrd_ecn */
    bool urgent;         /* overtakes others, if mrd_sim_attr.ack_priority is set */
    bool broken;         /* a link corrupted it: for receivers whose data[] has no checksum */
    bool alone;          /* not to be joined with others to a superpacket */
    uint8_t size_class;
    uint8_t home;           /* number of the pool that it is from */
    uint8_t from_id, to_id; /* of the hosts' addresses: sim_address.h */
    uint32_t len;           /* of the datagram */
    uint32_t head_len;      /* bytes at data[]; the others are at rest */
    const uint8_t *rest;    /* borrowed; NULL: all bytes are at data[] */
    uint8_t data[];
};

struct mrd_sim_packet_slab;

struct mrd_sim_packets {
    struct mrd_sim_packet *free[MRD_SIM_PACKET_CLASSES];
    struct mrd_sim_packet_slab *slabs; /* owned */
    size_t out;                        /* packets allocated and not released */
    uint8_t number;
    /* Lists by number: packets of other pools that were released here, to be taken back there. */
    struct mrd_sim_packet *strays[MRD_SIM_POOLS_MAX];
};

void mrd_sim_packets_init(struct mrd_sim_packets *packets, uint8_t number);
void mrd_sim_packets_fini(struct mrd_sim_packets *packets);
/* A packet of `len` bytes, at most MRD_SIM_DATAGRAM_BYTES_MAX. NULL: no memory. */
struct mrd_sim_packet *mrd_sim_packet_alloc(struct mrd_sim_packets *packets, uint32_t len);
/*
 * Have all bytes at data[]: returns the packet if it has, else a copy. What is not returned is
 * released. NULL: no memory.
 */
struct mrd_sim_packet *mrd_sim_packet_join(struct mrd_sim_packets *packets,
                                           struct mrd_sim_packet *packet);
/* A copy with all bytes at data[]. NULL: no memory. */
struct mrd_sim_packet *mrd_sim_packet_clone(struct mrd_sim_packets *packets,
                                            const struct mrd_sim_packet *packet);
void mrd_sim_packet_release(struct mrd_sim_packets *packets, struct mrd_sim_packet *packet);

#endif
