/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of several packets at their target: 64 slots a peer, slot = id mod 64, and placement of bytes.
 *
 * mrd_reasm_judge() says what a packet means to its slot; the engine then begins, goes on with or ends the message.
 * Every PSN is seen once, so the bytes that came are counted, not mapped.
 *
 * Legal states of a slot: EMPTY -> OPEN | REFUSED -> OPEN ... -> DONE | ABORTED, until a higher id takes it.
 */
#ifndef MRD_CORE_REASM_H
#define MRD_CORE_REASM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limits.h"
#include "core/wire.h"
#include "mrd/mrd.h"

struct mrd_qp_impl;
struct mrd_recv;
struct mrd_pend;
struct mrd_flow_rx;

enum mrd_slot_state {
    MRD_SLOT_EMPTY = 0,
    MRD_SLOT_OPEN,
    MRD_SLOT_REFUSED,
    MRD_SLOT_DONE,
    MRD_SLOT_ABORTED,
};

struct mrd_slot {
    uint32_t id;
    uint8_t state, attempt;
    uint8_t op, flags; /* of its parts; they must agree */
    uint32_t total, got;
    /* All that came has psn = psn_first + offset / unit; unit 0: nothing came. */
    uint32_t psn_first, unit;
    bool uneven; /* not so: other packets lie between */
    uint32_t src_qpn, dst_qpn, rkey, imm;
    uint64_t addr;
    struct mrd_qp_impl *qp;   /* OPEN: the target queue pair */
    struct mrd_recv *recv;    /* OPEN: bound receive, or NULL */
    struct mrd_flow_rx *flow; /* OPEN and ordered */
    struct mrd_pend *pend;
};

enum mrd_reasm_verdict {
    MRD_REASM_DROP,  /* an old story: ack it and place nothing */
    MRD_REASM_BEGIN, /* first packet of a message or of a new attempt after a refusal */
    MRD_REASM_GO_ON,
    MRD_REASM_RESTART, /* a new attempt of a message that is open: keep its receive, count from 0 */
};

enum mrd_reasm_verdict mrd_reasm_judge(const struct mrd_slot *slot,
                                       const struct mrd_wire_part *part);
/* Does the part agree with what the message's first packet said, and lie inside it? */
bool mrd_reasm_agrees(const struct mrd_slot *slot, const struct mrd_wire_part *part);

/* A part of the message came under this PSN. */
void mrd_reasm_came(struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn);
/*
 * May the place of each PSN from this part's on be told from the PSN alone? Only then does "the PSN is new" mean that
 * nothing was received at its place.
 */
bool mrd_reasm_is_even(const struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn,
                       uint32_t unit);

/* Copy into a scatter list. */
void mrd_reasm_scatter(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                       const uint8_t *data, uint32_t len);

#endif
