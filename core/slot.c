/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/slot.h"

#include <assert.h>
#include <string.h>

#include "core/seq.h"
#include "core/sge.h"

enum { STATE_BITS = 2, STATE_MASK = (1 << STATE_BITS) - 1 };

_Static_assert((int)MRD_MSG_SLOTS > (int)STATE_MASK,
               "the bits of an id that its slot tells hold the state");

static uint32_t closed_word(uint32_t id)
{
    return (id & ~(uint32_t)(MRD_MSG_SLOTS - 1)) | MRD_SLOT_CLOSED;
}

void mrd_slots_init(struct mrd_slots *slots, struct mrd_pool *pool, struct mrd_pool *words)
{
    memset(slots, 0, sizeof(*slots));
    slots->pool = pool;
    slots->words = words;
    slots->word = slots->few;
    slots->room = MRD_SLOTS_FEW;
    mrd_list_init(&slots->open);
}

void mrd_slots_fini(struct mrd_slots *slots)
{
    if (slots->word != slots->few)
        mrd_pool_release(slots->words, slots->word);
}

static uint32_t get_word(const struct mrd_slots *slots, uint32_t id)
{
    uint32_t index = id % MRD_MSG_SLOTS;

    return index < slots->room ? slots->word[index] : (uint32_t)MRD_SLOT_EMPTY;
}

static void set_word(struct mrd_slots *slots, uint32_t id, uint32_t word)
{
    if (id % MRD_MSG_SLOTS >= slots->room) {
        slots->word = mrd_pool_alloc(slots->words);
        assert(slots->word);
        memset(slots->word, 0, MRD_MSG_SLOTS * sizeof(slots->word[0]));
        memcpy(slots->word, slots->few, sizeof(slots->few));
        slots->room = MRD_MSG_SLOTS;
    }
    slots->word[id % MRD_MSG_SLOTS] = word;
}

enum mrd_slot_verdict mrd_slots_judge(const struct mrd_slots *slots, uint32_t id,
                                      struct mrd_slot **slot)
{
    uint32_t word = get_word(slots, id), known;

    *slot = NULL;
    switch ((enum mrd_slot_state)(word & STATE_MASK)) {
    case MRD_SLOT_EMPTY:
        return MRD_SLOT_BEGIN;
    case MRD_SLOT_OPEN:
        *slot = mrd_pool_at(slots->pool, word >> STATE_BITS);
        if ((*slot)->id == id)
            return MRD_SLOT_GO_ON;
        if (mrd_seq_before((*slot)->id, id))
            return MRD_SLOT_BEGIN;
        *slot = NULL;
        return MRD_SLOT_DROP;
    case MRD_SLOT_CLOSED:
        break;
    }
    known = (word & ~(uint32_t)(MRD_MSG_SLOTS - 1)) | id % MRD_MSG_SLOTS;
    return mrd_seq_before(known, id) ? MRD_SLOT_BEGIN : MRD_SLOT_DROP;
}

struct mrd_slot *mrd_slots_open(struct mrd_slots *slots, uint32_t id)
{
    struct mrd_slot *slot = mrd_pool_alloc(slots->pool);

    assert((get_word(slots, id) & STATE_MASK) != MRD_SLOT_OPEN);
    if (!slot)
        return NULL;
    memset(slot, 0, sizeof(*slot));
    slot->id = id;
    mrd_list_append(&slots->open, &slot->node);
    slots->num_open++;
    set_word(slots, id, mrd_pool_index(slots->pool, slot) << STATE_BITS | MRD_SLOT_OPEN);
    return slot;
}

void mrd_slots_end(struct mrd_slots *slots, struct mrd_slot *slot, enum mrd_slot_state state)
{
    assert(state != MRD_SLOT_OPEN);
    set_word(slots, slot->id,
             state == MRD_SLOT_CLOSED ? closed_word(slot->id) : (uint32_t)MRD_SLOT_EMPTY);
    mrd_list_remove(&slot->node);
    slots->num_open--;
    mrd_pool_release(slots->pool, slot);
}

void mrd_slots_shut(struct mrd_slots *slots, uint32_t id)
{
    assert((get_word(slots, id) & STATE_MASK) != MRD_SLOT_OPEN);
    set_word(slots, id, closed_word(id));
}

bool mrd_slot_agrees(const struct mrd_slot *slot, const struct mrd_wire_part *part)
{
    return part->op == slot->op && part->flags == slot->flags && part->total == slot->total &&
           part->dst_qpn == slot->dst_qpn && part->src_qpn == slot->src_qpn &&
           (part->op != MRD_OP_WRITE || (part->rkey == slot->rkey && part->addr == slot->addr)) &&
           (part->op != MRD_OP_RESPONSE || part->token == slot->token) &&
           part->offset <= slot->total && part->len <= slot->total - part->offset &&
           part->len <= slot->total - slot->got;
}

/* Does the rule say that this PSN is at that offset? */
static bool obeys(const struct mrd_slot *slot, uint32_t offset, uint32_t psn)
{
    int64_t ahead = (int64_t)offset - slot->anchor;

    return ahead % slot->unit == 0 && ahead / slot->unit == (int32_t)(psn - slot->anchor_psn);
}

void mrd_slot_run_came(struct mrd_slot *slot, const struct mrd_wire_part *first, uint32_t psn,
                       uint32_t n)
{
    uint32_t offset = first->offset, end = offset + n * first->len;
    bool last = end == first->total;
    bool as_told = slot->unit && obeys(slot, offset, psn) &&
                   (first->len == slot->unit || (last && n == 1 && first->len < slot->unit));

    if (offset >= slot->low && !as_told) {
        /* The last part alone does not tell how long the others are. */
        bool begins = offset >= slot->top && !last;

        slot->unit = begins ? first->len : 0;
        slot->anchor = offset;
        slot->anchor_psn = psn;
        if (slot->top) /* else nothing came below it, and the rule holds there, too */
            slot->low = offset;
    }
    if (end > slot->top)
        slot->top = end;
}

void mrd_slot_came(struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn)
{
    mrd_slot_run_came(slot, part, psn, 1);
}

bool mrd_slot_is_even(const struct mrd_slot *slot, const struct mrd_wire_part *part, uint32_t psn,
                      uint32_t unit)
{
    return part->offset >= slot->top ||
           (slot->unit == unit && part->offset >= slot->low && obeys(slot, part->offset, psn));
}

void mrd_slot_scatter(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                      const uint8_t *data, uint32_t len)
{
    struct iovec iov[MRD_SGE_MAX];
    unsigned n;

    if (num_sge == 1 && len) {
        memcpy((char *)(uintptr_t)sge->addr + offset, data, len);
        return;
    }
    n = mrd_sge_pieces(sge, num_sge, offset, len, iov);
    for (unsigned i = 0; i < n; i++) {
        memcpy(iov[i].iov_base, data, iov[i].iov_len);
        data += iov[i].iov_len;
    }
}
