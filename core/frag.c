/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/frag.h"

#include <string.h>

void mrd_frags_fini(struct mrd_frags *frags, const struct mrd_allocator *allocator)
{
    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        if (frags->frag[i])
            mrd_free(allocator, frags->frag[i], sizeof(*frags->frag[i]));
        frags->frag[i] = NULL;
    }
}

static bool is_of(const struct mrd_frag *f, const struct mrd_addr *from,
                  const struct mrd_wire_head *head)
{
    return f->got && !memcmp(&f->from, from, sizeof(*from)) && f->inc == head->src_inc &&
           f->epoch == head->epoch && f->psn == head->psn && f->total == head->whole_len;
}

/*
 * The packet that the fragment belongs to; else one that is free, or new, or was used the longest
 * ago. NULL: no memory for any.
 */
static struct mrd_frag *find(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                             const struct mrd_addr *from, const struct mrd_wire_head *head)
{
    struct mrd_frag *oldest = NULL;

    for (uint32_t i = 0; i < MRD_FRAGS; i++) {
        struct mrd_frag *f = frags->frag[i];

        if (f && is_of(f, from, head))
            return f;
        if (!f && (!oldest || oldest->got))
            f = frags->frag[i] = mrd_alloc(allocator, sizeof(*f));
        if (f && (!oldest ||
                  (oldest->got && (!f->got || frags->turn - f->turn > frags->turn - oldest->turn))))
            oldest = f;
        if (oldest && !oldest->got && !frags->frag[i])
            break;
    }
    if (!oldest)
        return NULL;
    oldest->from = *from;
    oldest->inc = head->src_inc;
    oldest->epoch = head->epoch;
    oldest->psn = head->psn;
    oldest->total = head->whole_len;
    oldest->got = 0;
    memset(oldest->came, 0, sizeof(oldest->came));
    return oldest;
}

const uint8_t *mrd_frags_add(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                             const struct mrd_addr *from, const struct mrd_wire_head *head,
                             const uint8_t *data, uint32_t bytes, uint32_t *len, bool *fits)
{
    uint32_t offset = head->whole_offset, total = head->whole_len;
    struct mrd_frag *f;

    *fits = bytes && total <= MRD_FRAG_WHOLE_BYTES && offset < total && bytes <= total - offset &&
            offset % MRD_FRAG_UNIT == 0 && (bytes % MRD_FRAG_UNIT == 0 || offset + bytes == total);
    if (!*fits)
        return NULL;
    f = find(frags, allocator, from, head);
    if (!f)
        return NULL;
    f->turn = ++frags->turn;
    for (uint32_t at = offset; at < offset + bytes; at += MRD_FRAG_UNIT) {
        uint32_t unit = at / MRD_FRAG_UNIT;
        uint32_t n = total - at < MRD_FRAG_UNIT ? total - at : MRD_FRAG_UNIT;

        if (f->came[unit / 64] & 1ull << unit % 64)
            continue;
        f->came[unit / 64] |= 1ull << unit % 64;
        memcpy(f->bytes + at, data + (at - offset), n);
        f->got += n;
    }
    if (f->got < total)
        return NULL;
    f->got = 0;
    *len = total;
    return f->bytes;
}
