/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of several packets at their target: one word for each of MRD_MSG_SLOTS slots (slot = id
 * mod MRD_MSG_SLOTS), and a record from a shared pool for each open message.
 *
 * mrd_slots_judge() tells whether a packet begins a message, continues it, or is a duplicate of a
 * finished one. mrd_slots_open() begins a message, mrd_slots_end() ends it; mrd_slots_shut() closes
 * an id that has no record. The sender takes a slot's next id only when all packets of the previous
 * one are acked, and each attempt has its own id. So packets of a closed id are late: ack and drop
 * them. Each PSN is taken once, so received bytes are counted, not mapped.
 *
 * Legal states of a slot: EMPTY -> OPEN | CLOSED; OPEN -> CLOSED | EMPTY; CLOSED -> OPEN or CLOSED
 * by a higher id.
 */
#ifndef MRD_CORE_SLOT_H
#define MRD_CORE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/list.h"
#include "core/pool.h"
#include "core/wire.h"
#include "mrd/mrd.h"

struct mrd_qp_impl;
struct mrd_recv;
struct mrd_reorder_entry;
struct mrd_flow_rx;
struct mrd_msg;

enum mrd_slot_state {
    MRD_SLOT_EMPTY = 0,
    MRD_SLOT_OPEN,
    MRD_SLOT_CLOSED, /* delivered, refused or aborted */
};

/* What a message is bound to at its target. */
struct mrd_bound {
    struct mrd_qp_impl *qp;          /* the target queue pair */
    struct mrd_recv *recv;           /* NULL: it consumes none */
    struct mrd_flow_rx *flow;        /* ordered */
    struct mrd_reorder_entry *entry; /* ordered: on no list before mrd_flow_rx_insert() */
    struct mrd_msg *request;         /* RESPONSE: the request that it answers */
};

/* An open message: some of its packets arrived. */
struct mrd_slot {
    struct mrd_node node; /* on mrd_slots.open */
    uint32_t id;
    uint8_t op, flags; /* the same in all its parts */
    uint32_t total, got;
    /*
     * Every part so far from offset `low` on had psn = anchor_psn + (offset - anchor) / unit, and
     * none reached beyond `top`; unit 0: there is no such rule.
     */
    uint32_t low, top, anchor, anchor_psn, unit;
    uint32_t src_qpn, dst_qpn, rkey, token, imm;
    uint64_t addr;
    uint64_t memory_seen; /* mrd_mrs.removals when its memory was last found valid */
    struct mrd_bound bound;
};

enum { MRD_SLOTS_FEW = 8 }; /* a power of two */

struct mrd_slots {
    struct mrd_pool *pool; /* of struct mrd_slot, shared by all peers */
    struct mrd_node open;
    /*
     * Low two bits: enum mrd_slot_state. The others: of OPEN the record's index in the pool, of
     * CLOSED the id's upper bits. `room` words, those behind are EMPTY: `few`, or once higher slots
     * are used an item of `words` with all. It has one for each receive state.
     */
    uint32_t *word, few[MRD_SLOTS_FEW], room;
    uint32_t num_open;
    struct mrd_pool *words; /* borrowed, of MRD_MSG_SLOTS words each */
};

enum mrd_slot_verdict {
    MRD_SLOT_DROP,  /* duplicate of a finished message: ack and drop it */
    MRD_SLOT_BEGIN, /* first packet of a new message */
    MRD_SLOT_GO_ON, /* packet of the open message */
};

void mrd_slots_init(struct mrd_slots *slots, struct mrd_pool *pool, struct mrd_pool *words);
void mrd_slots_fini(struct mrd_slots *slots);
/*
 * Judges a packet by its message id. *slot: the open message in that slot, of this id (GO_ON) or of
 * a lower one (BEGIN); else NULL.
 */
enum mrd_slot_verdict mrd_slots_judge(const struct mrd_slots *slots, uint32_t id,
                                      struct mrd_slot **slot);
/* Begins a message in a slot that is not OPEN: a zeroed record; NULL: the pool is exhausted. */
struct mrd_slot *mrd_slots_open(struct mrd_slots *slots, uint32_t id);
/*
 * Ends an open message and releases its record. `state`: CLOSED, or EMPTY if later packets of it
 * may begin it anew.
 */
void mrd_slots_end(struct mrd_slots *slots, struct mrd_slot *slot, enum mrd_slot_state state);
/* Closes an id whose slot is not OPEN. */
void mrd_slots_shut(struct mrd_slots *slots, uint32_t id);
/*
 * Does the part lie inside the message, and agree with its first packet? Is it no longer than what
 * is left of the message? So `got` never exceeds `total`.
 */
bool mrd_slot_agrees(const struct mrd_slot *slot, const struct mrd_wire_part *part);

/*
 * Notes the PSN of a part that arrived, for mrd_slot_is_even(). Where the PSNs skip some, or the
 * parts change their size, the first part beyond all others begins a new rule.
 */
void mrd_slot_came(struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn);
/* The same for a run of `n` parts like the first one, each behind the other. */
void mrd_slot_run_came(struct mrd_slot *slot, const struct mrd_wire_part *first, uint32_t psn,
                       uint32_t n);
/*
 * Is it known that nothing was received yet at the offsets of this part and of those behind it, of
 * `unit` bytes each, whose PSNs are new? Yes beyond all that came, and where the rule tells the
 * offset of each PSN.
 */
bool mrd_slot_is_even(const struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn,
                      uint32_t unit);

/* Copies `len` bytes into a scatter list, from byte `offset` of it on. */
void mrd_slot_scatter(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                      const uint8_t *data, uint32_t len);

#endif
