/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of several packets at their target: one word for each of MRD_MSG_SLOTS slots, slot = id
 * mod MRD_MSG_SLOTS, and a record from a shared pool for each message that is open.
 *
 * mrd_slots_judge() says what a packet means to its slot. mrd_slots_open() begins a message,
 * mrd_slots_end() ends it; mrd_slots_shut() closes an id that has no record. The sender takes a
 * slot's next id only when all packets of the one before are acked, and a further attempt has an id
 * of its own. So a closed slot means: what still comes of this id is to be acked and dropped. Every
 * PSN is seen once, so the bytes that came are counted, not mapped.
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
struct mrd_pend;
struct mrd_flow_rx;

enum mrd_slot_state {
    MRD_SLOT_EMPTY = 0,
    MRD_SLOT_OPEN,
    MRD_SLOT_CLOSED, /* done, refused or aborted */
};

/* What a message is bound to at its target. */
struct mrd_bound {
    struct mrd_qp_impl *qp;   /* the target queue pair */
    struct mrd_recv *recv;    /* NULL: it takes none */
    struct mrd_flow_rx *flow; /* ordered */
    struct mrd_pend *pend;    /* ordered: on no list until it is entered into the flow */
};

/* A message that is open: some of it is here. */
struct mrd_slot {
    struct mrd_node node; /* on mrd_slots.open */
    uint32_t id;
    uint8_t op, flags; /* of its parts; they must agree */
    uint32_t total, got;
    /* All that came has psn = psn_first + offset / unit; unit 0: nothing came. */
    uint32_t psn_first, unit;
    bool uneven; /* not so: other packets lie between */
    uint32_t src_qpn, dst_qpn, rkey, imm;
    uint64_t addr;
    struct mrd_bound bound;
};

struct mrd_slots {
    struct mrd_pool *pool; /* of struct mrd_slot, shared by all peers */
    struct mrd_node open;
    uint32_t num_open;
    /*
     * Low two bits: enum mrd_slot_state. OPEN: then the record's index in the pool; CLOSED: the
     * id's upper bits.
     */
    uint32_t word[MRD_MSG_SLOTS];
};

enum mrd_slot_verdict {
    MRD_SLOT_DROP,  /* of a message that is over here: ack it and place nothing */
    MRD_SLOT_BEGIN, /* the first packet of a message */
    MRD_SLOT_GO_ON, /* of the open one */
};

void mrd_slots_init(struct mrd_slots *slots, struct mrd_pool *pool);
/* *slot: the open message in the id's place, of this id (GO_ON) or of a lower one; else NULL. */
enum mrd_slot_verdict mrd_slots_judge(const struct mrd_slots *slots, uint32_t id,
                                      struct mrd_slot **slot);
/* Begin a message: a zeroed record; the place must not be OPEN. NULL: the pool is exhausted. */
struct mrd_slot *mrd_slots_open(struct mrd_slots *slots, uint32_t id);
/*
 * An open message ends; its record goes back. CLOSED, or EMPTY: what still comes of it may begin
 * it anew.
 */
void mrd_slots_end(struct mrd_slots *slots, struct mrd_slot *slot, enum mrd_slot_state state);
/* Close an id whose place is not OPEN. */
void mrd_slots_shut(struct mrd_slots *slots, uint32_t id);
/* Does the part agree with what the message's first packet said, and lie inside it? */
bool mrd_slot_agrees(const struct mrd_slot *slot, const struct mrd_wire_part *part);

/* A part of the message came under this PSN. */
void mrd_slot_came(struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn);
/*
 * May the place of each PSN from this part's on be told from the PSN alone? Only then does "the PSN
 * is new" mean that nothing was received at its place.
 */
bool mrd_slot_is_even(const struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn,
                      uint32_t unit);

/* Copy into a scatter list. */
void mrd_slot_scatter(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                      const uint8_t *data, uint32_t len);

#endif
