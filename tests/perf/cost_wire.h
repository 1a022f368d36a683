/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire between the ends: datagrams in memory, in bursts as the UDP mover makes them out of
 * packets, one after the other at a fixed rate, and after a fixed delay. Nothing is lost here.
 *
 * cost_wire_send() what an engine made; cost_wire_take() what has arrived at an end, and
 * cost_wire_give() it back.
 */
#ifndef MRD_PERF_COST_WIRE_H
#define MRD_PERF_COST_WIRE_H

#include <stdint.h>

#include "core/packet.h"
#include "transport/movers/udp/udp_state.h"

/* A burst of equal datagrams, of which the last may be shorter. */
struct cost_burst {
    struct cost_burst *next;
    uint64_t arrival_ns;
    struct mrd_addr from;
    uint32_t segments;
    uint32_t segment_len, total_len;
    uint8_t bytes[MRD_UDP_SUPERPACKET_BYTES];
};

/* What is on its way to one end, in the order in which it arrives. */
struct cost_link {
    struct cost_burst *first, *last;
    uint64_t busy_until_ns;
};

/*
 * Takes n packets of `from`. `links` are those of all ends: the port of a packet's target names its
 * place there, by cost_wire_addr().
 */
void cost_wire_send(struct cost_link *links, const struct mrd_addr *from,
                    const struct mrd_tx_packet *packets, unsigned n, uint64_t now_ns);

/* Returns when the next burst arrives; UINT64_MAX: none is on its way. */
uint64_t cost_wire_arrival_ns(const struct cost_link *link);

/* Returns the first burst on its way, removed from the link: it has arrived. */
struct cost_burst *cost_wire_take(struct cost_link *link);
void cost_wire_give(struct cost_burst *burst);

/* The address of an end. */
struct mrd_addr cost_wire_addr(unsigned end);

#endif
