/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link in one direction: a tail-drop queue, a transmitter of some rate and the wire behind it, with its faults.
 *
 * The queue is a virtual clock: when a packet is offered its departure follows from when the
 * transmitter falls idle, so a hop costs one event and a queue no memory. The backlog is what the
 * transmitter still has to send, the packet in service included. When the rate changes, what is
 * queued keeps the departures that it was given, and counts as the bytes that it is.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_WIRE_H
#define MRD_TRANSPORT_SIM_SIM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"
#include "mrd/sim.h"

enum { MRD_SIM_PPM = 1000000, MRD_SIM_COPIES_MAX = 2, MRD_SIM_LINE_BYTES = 64 };

/*
 * Aligned, because many wires are far more than a cache holds, and each packet touches several.
 */
struct mrd_sim_wire {
    /* What each packet needs: one cache line. */
    _Alignas(MRD_SIM_LINE_BYTES) uint64_t
        idle_at_ns;         /* when the transmitter has sent all that was queued */
    uint64_t idle_fraction; /* beyond it, in 2^-32 ns */
    uint64_t byte_time;     /* of a byte, in 2^-32 ns; 0: the rate is infinite */
    uint64_t queue_bytes;   /* as in attr, which is further off */
    uint64_t ecn_min_bytes;
    double bytes_per_ns;
    uint64_t delay_ns;
    uint32_t to;     /* node at its end */
    bool is_faulty;  /* attr asks for more than queueing and delay */
    bool in_burst;   /* Gilbert-Elliott: in the bad state */
    bool was_queued; /* old_* below count: what is far off is not looked at for nothing */

    struct mrd_sim_stats stats;
    struct mrd_sim_link attr; /* changed by mrd_sim_wire_set() */
    struct mrd_rng rng;       /* its own: faults on one link do not move those of another */
    uint64_t flap_from_ns;    /* flapping counts its periods from here */
    /* When the transmitter has sent what is urgent: a clock of its own, never ahead of that of all packets. */
    uint64_t urgent_at_ns;
    uint64_t urgent_fraction;
    /* What was queued when the link was last changed leaves until then, at that rate. */
    uint64_t old_idle_at_ns;
    double old_bytes_per_ns;
};

/* What became of a packet offered to a wire. */
struct mrd_sim_passage {
    unsigned copies; /* that come out: 0 .. 2 */
    uint64_t arrive_ns[MRD_SIM_COPIES_MAX];
    bool corrupt[MRD_SIM_COPIES_MAX]; /* flip a bit of this copy: mrd_sim_wire_corrupt() */
    bool ce;                          /* marked */
};

/* -EINVAL: a share above a million, ECN thresholds or a flap's times in the wrong order. */
int mrd_sim_link_validate(const struct mrd_sim_link *attr);
void mrd_sim_wire_init(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t seed);
void mrd_sim_wire_set(struct mrd_sim_wire *wire, const struct mrd_sim_link *attr, uint64_t now_ns);
/*
 * Offer a packet that takes `wire_bytes` on the wire, headers of lower layers included.
 *
 * urgent_bytes_max other than 0: before all that are not urgent. It waits for the one in service, of which is known that
 * it has at most so many bytes, and for urgent ones. What is not urgent leaves as much later, but for packets that have
 * been given their departure: those overlap with it, and the next to come makes up for it. The queue's limits hold for
 * urgent packets by themselves.
 */
struct mrd_sim_passage mrd_sim_wire_offer(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect,
                                          uint32_t urgent_bytes_max, uint64_t now_ns);
static inline struct mrd_sim_passage
mrd_sim_wire_pass(struct mrd_sim_wire *wire, uint32_t wire_bytes, bool ect, uint64_t now_ns)
{
    return mrd_sim_wire_offer(wire, wire_bytes, ect, 0, now_ns);
}
void mrd_sim_wire_corrupt(struct mrd_sim_wire *wire, uint8_t *data, uint32_t len);
/* Bytes still to be sent at now_ns. */
uint64_t mrd_sim_wire_backlog(const struct mrd_sim_wire *wire, uint64_t now_ns);
/* No carrier: its switch knows and routes around it. */
bool mrd_sim_wire_is_down(const struct mrd_sim_wire *wire, uint64_t now_ns);

#endif
