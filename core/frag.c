/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/frag.h"

#include <string.h>

#include "core/limits.h"
#include "core/seq.h"

void mrd_frags_fini(struct mrd_frags *frags, const struct mrd_allocator *allocator)
{
    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        if (frags->frag[i])
            mrd_free(allocator, frags->frag[i], sizeof(*frags->frag[i]));
        frags->frag[i] = NULL;
    }
}

static bool is_of(const struct mrd_frag *f, uint32_t sender, const struct mrd_wire_head *head)
{
    return f->sender == sender && f->epoch == head->epoch && f->psn == head->psn &&
           f->total == head->whole_len;
}

/* Whose room another packet is given: the last of these that there is. */
enum rank {
    BUSY,  /* pieces came lately, and others are missing: it is kept */
    IDLE,  /* no piece came for long, or only late ones */
    WHOLE, /* it was handed out lately: a late piece of it would begin it anew */
    FREE,
};

/* Did all pieces of it leave its sender long before this one did? Then they are of late copies. */
static bool is_late(const struct mrd_frag *f, uint32_t sender, const struct mrd_wire_head *head)
{
    uint32_t age = head->stamp - f->newest;

    return f->sender == sender && mrd_seq_before(f->newest, head->stamp) &&
           (uint64_t)age * MRD_WIRE_STAMP_NS >= MRD_FRAG_LIFE_NS;
}

static enum rank rank(const struct mrd_frag *f, uint32_t sender, const struct mrd_wire_head *head,
                      uint64_t now_ns)
{
    bool idle = now_ns - f->fed_ns >= MRD_FRAG_LIFE_NS || is_late(f, sender, head);

    if (!f->got)
        return f->was_whole && !idle ? WHOLE : FREE;
    return idle ? IDLE : BUSY;
}

/* Room for another packet; NULL: there is none. */
static struct mrd_frag *find_room(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                                  uint32_t sender, const struct mrd_wire_head *head,
                                  uint64_t now_ns)
{
    struct mrd_frag *best = NULL;
    enum rank best_rank = BUSY;

    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        struct mrd_frag *f = frags->frag[i];
        enum rank r;

        if (!f && best_rank < FREE)
            f = frags->frag[i] = mrd_alloc(allocator, sizeof(*f));
        if (!f)
            continue;
        r = rank(f, sender, head, now_ns);
        if (r > best_rank || (r != BUSY && r == best_rank && f->fed_ns < best->fed_ns)) {
            best = f;
            best_rank = r;
        }
    }
    return best;
}

/* May the sender have one more packet put together? It has no more than it leaves room for. */
static bool has_share(const struct mrd_frags *frags, uint32_t sender,
                      const struct mrd_wire_head *head, uint64_t now_ns)
{
    uint32_t mine = 0, others = 0;

    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        const struct mrd_frag *f = frags->frag[i];
        bool busy = f && rank(f, sender, head, now_ns) == BUSY;

        mine += busy && f->sender == sender;
        others += busy && f->sender != sender;
    }
    return mine < MRD_FRAGS - mine - others;
}

/* The packet that the fragment belongs to, or room for it. NULL: it is to be dropped. */
static struct mrd_frag *find(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                             uint32_t sender, const struct mrd_wire_head *head, uint64_t now_ns)
{
    struct mrd_frag *f;

    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        f = frags->frag[i];
        if (!f || !(f->got || f->was_whole) || !is_of(f, sender, head))
            continue;
        if (f->got)
            return f;
        if (f->stamp == head->stamp)
            return NULL;
    }
    f = has_share(frags, sender, head, now_ns) ? find_room(frags, allocator, sender, head, now_ns)
                                               : NULL;
    if (!f)
        return NULL;
    f->sender = sender;
    f->epoch = head->epoch;
    f->psn = head->psn;
    f->total = head->whole_len;
    f->got = 0;
    f->was_whole = false;
    memset(f->came, 0, sizeof(f->came));
    return f;
}

const struct mrd_frag *mrd_frags_add(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                                     uint32_t sender, const struct mrd_wire_head *head,
                                     const uint8_t *data, uint32_t bytes, uint64_t now_ns,
                                     bool *fits)
{
    uint32_t offset = head->whole_offset, total = head->whole_len;
    struct mrd_frag *f;

    *fits = bytes && total <= MRD_FRAG_WHOLE_BYTES && offset < total && bytes <= total - offset &&
            offset % MRD_FRAG_UNIT == 0 && (bytes % MRD_FRAG_UNIT == 0 || offset + bytes == total);
    if (!*fits)
        return NULL;
    f = find(frags, allocator, sender, head, now_ns);
    if (!f)
        return NULL;
    f->fed_ns = now_ns;
    f->stamp = head->stamp;
    if (!f->got || mrd_seq_before(f->newest, head->stamp))
        f->newest = head->stamp;
    for (uint32_t at = offset; at < offset + bytes; at += MRD_FRAG_UNIT) {
        uint32_t unit = at / MRD_FRAG_UNIT;
        uint32_t n = total - at < MRD_FRAG_UNIT ? total - at : MRD_FRAG_UNIT;

        if (f->came[unit / 64] & 1ull << unit % 64)
            continue;
        f->came[unit / 64] |= 1ull << unit % 64;
        if (unit == 0)
            f->head_stamp = head->stamp;
        memcpy(f->bytes + at, data + (at - offset), n);
        f->got += n;
    }
    if (f->got < total)
        return NULL;
    f->got = 0;
    f->was_whole = true;
    return f;
}
