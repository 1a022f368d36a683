/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams inside the fabric: pools by size, which grow in slabs and are given back when the
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

#include "transport/sim/sim_event.h"

enum {
    MRD_SIM_DATAGRAM_BYTES_MAX = 65535,
    MRD_SIM_PACKET_CLASSES = 6,
    /*
     * What a datagram costs on an Ethernet wire beyond its bytes: preamble and start delimiter 8,
     * MAC header 14, IPv4 20, UDP 8, check sequence 4, gap 12. Ours are longer than Ethernet's
     * least frame, so nothing is padded.
     */
    MRD_SIM_WIRE_OVERHEAD_BYTES = 8 + 14 + 20 + 8 + 4 + 12,
    /* As uet-htsim counts. */
    MRD_SIM_HTSIM_DATA_BYTES = 64,
    MRD_SIM_HTSIM_ACK_BYTES = 88,
};

struct mrd_sim_packet {
    struct mrd_sim_event
        event; /* first: while it is on its way; then event.next links what holds it */
    /* What each hop needs lies in one cache line with the event. */
    uint32_t from, to;   /* hosts */
    uint32_t wire_bytes; /* on the wire */
    uint16_t path;       /* the sender's path number */
    uint8_t ecn;         /* enum mrd_ecn */
    bool urgent;         /* goes before what is not, where mrd_sim_attr.ack_priority says so */
    bool broken; /* corrupted, for a reader that finds no checksum in data[]: a stack's packet */
    uint8_t size_class;
    uint32_t len;        /* of the datagram */
    uint32_t head_len;   /* at data[]; what is left of len lies at rest */
    const uint8_t *rest; /* NULL: all is at data[]. Borrowed */
    uint8_t data[];
};

struct mrd_sim_packet_slab;

struct mrd_sim_packets {
    struct mrd_sim_packet *free[MRD_SIM_PACKET_CLASSES];
    struct mrd_sim_packet_slab *slabs; /* owned */
    size_t out;                        /* allocated and not released */
};

void mrd_sim_packets_init(struct mrd_sim_packets *packets);
void mrd_sim_packets_fini(struct mrd_sim_packets *packets);
/* Room for `len` bytes, at most MRD_SIM_DATAGRAM_BYTES_MAX; `len` is set. NULL: no memory. */
struct mrd_sim_packet *mrd_sim_packet_alloc(struct mrd_sim_packets *packets, uint32_t len);
/* All bytes in one piece of its own: the packet itself, or one in its place, which is released; NULL: no memory. */
struct mrd_sim_packet *mrd_sim_packet_join(struct mrd_sim_packets *packets,
                                           struct mrd_sim_packet *packet);
/* A copy with its own bytes, or NULL. */
struct mrd_sim_packet *mrd_sim_packet_clone(struct mrd_sim_packets *packets,
                                            const struct mrd_sim_packet *packet);
void mrd_sim_packet_release(struct mrd_sim_packets *packets, struct mrd_sim_packet *packet);

#endif
