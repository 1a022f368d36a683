/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was received from a peer, and the acks that report it.
 *
 * mrd_rcv_check() judges a PSN; mrd_rcv_add() takes it, or mrd_rcv_dup() notes a duplicate;
 * mrd_rcv_refusal_acked() makes a refused PSN reportable; mrd_rcv_build() fills a full ack,
 * mrd_rcv_ride() an ack block on a data packet. Both start the next ack interval.
 *
 * Each PSN has two bits. `received`: it is never executed again. `refused`: it was received, but
 * its refusal is not acked yet. An ack must not report it: if the refusal were lost, the sender
 * would take the ack for success.
 */
#ifndef MRD_CORE_RCV_H
#define MRD_CORE_RCV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/pool.h"
#include "core/wire.h"

enum { MRD_RCV_FEW = 128 }; /* PSNs ahead of cum that need no map of their own */

/* Memory of the receive states of a context for PSNs ahead of cum. */
struct mrd_rcv_maps {
    struct mrd_pool pool; /* one item for each receive state */
    size_t wide_bytes;    /* allocated beyond it, for trackers that grew; MRD_WIDE_BYTES at most */
};

struct mrd_rcv_path {
    uint16_t id;
    bool seen; /* a packet came on it since the last full ack */
    bool used;
    uint16_t delay;       /* rx stamp - tx stamp of its last echoed packet, low 16 bits; 0: none */
    uint16_t delay_after; /* serial of the last ack before that packet, low 16 bits */
    uint32_t received, ce;
};

struct mrd_rcv {
    uint32_t tracker;     /* PSNs from cum on that are taken */
    uint32_t cum;         /* all PSNs below it are received and reportable */
    uint32_t highest;     /* one past the highest received */
    uint32_t limit;       /* greatest psn_limit granted: data packets from there on are dropped */
    uint32_t num_refused; /* bits set in `refused` */
    uint32_t serial;      /* of the last ack */
    /*
     * Rings of `ring` bits, a power of two: `few`, or once PSNs are further ahead of cum one item of
     * maps->pool for both, or once the tracker grew memory of their own.
     */
    uint64_t *received, *refused;
    uint64_t few[2 * MRD_RCV_FEW / 64];
    uint32_t ring;
    uint32_t since_ack;        /* packets received since the last ack */
    struct mrd_rcv_maps *maps; /* borrowed */

    uint64_t due_ns; /* when the next ack must leave; MRD_NEVER: none is owed */
    bool now;        /* the next ack must leave at once */
    /* The ack waits until the application's call returns: it may ride on a reply posted there. */
    bool wait_for_reply;
    bool full;      /* the next ack must be a full one: an ack block cannot report duplicates */
    bool twice;     /* the next ack is sent twice, on two paths: no later ack may repeat it */
    bool ce_unsaid; /* CE counts changed since the last full ack reported them */
    /*
     * The tracker grew. Behind `refused` is a bit for each slice then: PSNs in it came, or became
     * reportable, since an ack told it.
     */
    bool wide;

    bool echo_valid, echo_ce;
    uint32_t
        next_base; /* where slices take turns: base PSN of the next slice without news to be told */
    uint32_t echo_psn, echo_stamp, echo_rx_stamp;
    uint16_t echo_path;
    uint16_t num_seen;
    uint16_t room; /* paths at `path`, by id modulo MRD_PATHS_MAX: `one`, or allocated */
    uint8_t num_dups;
    uint64_t echo_ns;
    uint32_t dup[MRD_ACK_DUPS_MAX];
    struct mrd_rcv_path *path, one;
};

enum mrd_rcv_verdict { MRD_RCV_NEW, MRD_RCV_DUPLICATE, MRD_RCV_BEYOND };

/* For `num` receive states with this tracker at first. Returns false if there is no memory. */
bool mrd_rcv_maps_init(struct mrd_rcv_maps *maps, const struct mrd_allocator *allocator,
                       uint32_t tracker, uint32_t num);
static inline void mrd_rcv_maps_fini(struct mrd_rcv_maps *maps)
{
    mrd_pool_fini(&maps->pool);
}

/* `maps` is borrowed, and its allocator is used for paths and for a tracker that grows. */
void mrd_rcv_init(struct mrd_rcv *r, struct mrd_rcv_maps *maps, uint32_t tracker, uint32_t limit);
void mrd_rcv_fini(struct mrd_rcv *r);
/* Doubles the tracker. Returns false, and changes nothing, if there is no memory. */
bool mrd_rcv_widen(struct mrd_rcv *r);
/* Returns the bytes of rings that grew to so many bits, with a bit for each slice. */
static inline size_t mrd_rcv_wide_bytes(uint32_t ring)
{
    return ring / 4 + MRD_TRACKER_WIDEST / MRD_WIRE_SLICE_BITS / 8;
}
/* Returns the bytes that the rings take beyond the struct. */
static inline size_t mrd_rcv_bytes(const struct mrd_rcv *r)
{
    if (r->wide)
        return mrd_rcv_wide_bytes(r->ring);
    return r->received == r->few ? 0 : r->maps->pool.item_bytes;
}
enum mrd_rcv_verdict mrd_rcv_check(const struct mrd_rcv *r, uint32_t psn);
/*
 * How many PSNs from `psn` on, at most `most`, are new one after the other and were granted to data.
 */
uint32_t mrd_rcv_room(const struct mrd_rcv *r, uint32_t psn, uint32_t most);
/* Takes `n` new PSNs, from `psn` on. None is refused. */
void mrd_rcv_add_run(struct mrd_rcv *r, uint32_t psn, uint32_t n);
/* Takes a new PSN. `refused`: acks do not report it before mrd_rcv_refusal_acked(). */
void mrd_rcv_add(struct mrd_rcv *r, uint32_t psn, bool refused);
void mrd_rcv_dup(struct mrd_rcv *r, uint32_t psn);
/* The refusal of `psn` was acked. Returns false if `psn` is not a refused one. */
bool mrd_rcv_refusal_acked(struct mrd_rcv *r, uint32_t psn);
/*
 * Counts a packet on its path, and its CE mark; duplicates count too. Without memory for one more
 * path its packets are not counted.
 */
void mrd_rcv_count(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce);
/* The same for `n` packets of one path. */
void mrd_rcv_count_run(struct mrd_rcv *r, const struct mrd_wire_head *head, uint32_t n, bool ce);
/*
 * The next ack echoes this packet's stamp. Call it for new packets only: a delayed or replayed copy
 * would give a false RTT sample.
 */
void mrd_rcv_echo(struct mrd_rcv *r, const struct mrd_wire_head *head, bool ce, uint32_t rx_stamp,
                  uint64_t now_ns);
/* Can an ack block on a data packet report all that is owed? If not, a full ack must. */
bool mrd_rcv_rides(const struct mrd_rcv *r);
/* Fills the header's ack block; nothing is owed afterwards. */
void mrd_rcv_ride(struct mrd_rcv *r, struct mrd_wire_head *head, uint32_t psn_limit,
                  uint64_t now_ns);
/* Fills a full ack of at most `room` bytes, header included; paths left out are in the next. */
void mrd_rcv_build(struct mrd_rcv *r, struct mrd_wire_ack *ack, uint32_t psn_limit, uint32_t room,
                   uint64_t now_ns);

#endif
