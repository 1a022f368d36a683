/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link in one direction: a tail-drop queue, a transmitter, the wire behind it, and its faults.
 *
 * The queue is a virtual clock that says when the transmitter falls idle. From it follows, when a
 * packet is offered, when that packet leaves: a hop costs one event, and a queue no memory. The
 * backlog is what the transmitter still has to send, the packet in service included. When the rate
 * changes, queued packets keep their departures, and the backlog keeps its bytes.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_WIRE_H
#define MRD_TRANSPORT_SIM_SIM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"
#include "mrd/sim.h"

enum { MRD_SIM_PPM = 1000000, MRD_SIM_COPIES_MAX = 2, MRD_SIM_LINE_BYTES = 64 };

/* Aligned: a fabric has more wires than a cache holds, and each packet touches several. */
struct mrd_sim_wire {
    /* The first cache line: what each packet needs. When the transmitter has sent its queue: */
    _Alignas(MRD_SIM_LINE_BYTES) uint64_t idle_at_ns;
    uint64_t idle_fraction; /* beyond it, in 2^-32 ns */
    uint64_t byte_time;     /* to serialise a byte, in 2^-32 ns; 0: the rate is infinite */
    uint64_t queue_bytes;   /* copies from attr, which lies in another cache line */
    uint64_t ecn_min_bytes;
    double bytes_per_ns;
    uint64_t delay_ns;
    uint32_t to;     /* node at its end */
    bool is_faulty;  /* attr asks for more than queueing and delay */
    bool in_burst;   /* Gilbert-Elliott: in the bad state */
    bool was_queued; /* old_* below are valid */
    uint8_t part;    /* that `to` is in */

    struct mrd_sim_stats stats;
    struct mrd_sim_link attr; /* changed by mrd_sim_wire_set() */
    struct mrd_rng rng;       /* its own, so that faults of one link do not depend on others */
    uint64_t flap_from_ns;    /* flapping counts its periods from here */
    /* When the transmitter has sent its urgent packets: never after idle_at_ns. */
    uint64_t urgent_at_ns;
    uint64_t urgent_fraction;
    /* Packets queued at the last change of the link leave until then, at the rate before it. */
    uint64_t old_idle_at_ns;
    double old_bytes_per_ns;
};

/* What became of a packet offered to a wire. */
struct mrd_sim_passage {
    unsigned copies; /* that reach the end: 0 to MRD_SIM_COPIES_MAX */
    uint64_t arrive_ns[MRD_SIM_COPIES_MAX];
    bool corrupt[MRD_SIM_COPIES_MAX]; /* flip a bit of this copy: mrd_sim_wire_corrupt() */
    bool ce;                          /* marked */
};

/* 0, or -EINVAL: a share above 1, ECN thresholds or a flap's times in the wrong order. */
int mrd_sim_link_validate(const struct mrd_sim_link *attr);
void mrd_sim_wire_init(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t seed);
void mrd_sim_wire_set(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t now_ns);
/*
 * Queue a packet that takes `wire_bytes` on the wire, headers of lower layers included.
 *
 * With urgent_bytes_max other than 0 the packet is urgent: it goes before all packets that are not.
 * It waits for urgent packets before it, and for the packet in service, whose size is not known: at
 * most urgent_bytes_max. Queued packets keep the departures that they were given, which overlap
 * with the urgent packet; the next packet to be queued leaves later by as much. The limits of the
 * queue hold for urgent packets by themselves.
 */
struct mrd_sim_passage mrd_sim_wire_offer(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect,
                                          uint32_t urgent_bytes_max, uint64_t now_ns);
static inline struct mrd_sim_passage
mrd_sim_wire_pass(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect, uint64_t now_ns)
{
    return mrd_sim_wire_offer(wire, wire_bytes, ect, 0, now_ns);
}
/* Flip one bit of data. */
void mrd_sim_wire_corrupt(struct mrd_sim_wire *wire, uint8_t *data, uint32_t len);
/* Bytes that the transmitter still has to send. */
uint64_t mrd_sim_wire_backlog(const struct mrd_sim_wire *wire, uint64_t now_ns);
/* Without carrier, which its switch sees and routes around. */
bool mrd_sim_wire_is_down(const struct mrd_sim_wire *wire, uint64_t now_ns);

#endif
