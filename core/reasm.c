/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/reasm.h"

#include <string.h>

#include "core/seq.h"
#include "core/sge.h"

enum mrd_reasm_verdict mrd_reasm_judge(const struct mrd_slot *slot,
                                       const struct mrd_wire_part *part)
{
    if (slot->state == MRD_SLOT_EMPTY || mrd_seq_before(slot->id, part->id))
        return MRD_REASM_BEGIN;
    if (slot->id != part->id || slot->state == MRD_SLOT_DONE || slot->state == MRD_SLOT_ABORTED)
        return MRD_REASM_DROP;
    if (part->attempt == slot->attempt)
        return slot->state == MRD_SLOT_OPEN ? MRD_REASM_GO_ON : MRD_REASM_DROP;
    if (mrd_seq8_before(part->attempt, slot->attempt))
        return MRD_REASM_DROP;
    return slot->state == MRD_SLOT_OPEN ? MRD_REASM_RESTART : MRD_REASM_BEGIN;
}

bool mrd_reasm_agrees(const struct mrd_slot *slot, const struct mrd_wire_part *part)
{
    return part->op == slot->op && part->flags == slot->flags && part->total == slot->total &&
           part->dst_qpn == slot->dst_qpn && part->src_qpn == slot->src_qpn &&
           (part->op != MRD_OP_WRITE || (part->rkey == slot->rkey && part->addr == slot->addr)) &&
           part->offset <= slot->total && part->len <= slot->total - part->offset;
}

void mrd_reasm_came(struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn)
{
    bool last = part->offset + part->len == part->total;

    if (!slot->unit && !last) {
        slot->unit = part->len;
        slot->psn_first = psn - part->offset / slot->unit;
    }
    if (!slot->unit || (!last && part->len != slot->unit) || part->offset % slot->unit ||
        psn - part->offset / slot->unit != slot->psn_first)
        slot->uneven = true;
}

bool mrd_reasm_is_even(const struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn,
                       uint32_t unit)
{
    return !slot->uneven && slot->unit == unit && part->offset % unit == 0 &&
           psn - part->offset / unit == slot->psn_first;
}

void mrd_reasm_scatter(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                       const uint8_t *data, uint32_t len)
{
    struct iovec iov[MRD_SGE_MAX];
    unsigned n = mrd_sge_pieces(sge, num_sge, offset, len, iov);

    for (unsigned i = 0; i < n; i++) {
        memcpy(iov[i].iov_base, data, iov[i].iov_len);
        data += iov[i].iov_len;
    }
}
