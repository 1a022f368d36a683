/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that come in pieces: FRAGMENTs of a packet that was made when its path took more. Some at a
 * time for all peers: what has no room is thrown out, and its sender sends it again.
 *
 * Those that are being put together keep their room as long as pieces of them come. If each new one
 * took the place of the oldest, the pieces of many senders that arrive by turns would throw each
 * other out for ever. But late copies of single pieces, by the sender's stamps, keep no room from what
 * it sends now.
 */
#ifndef MRD_CORE_FRAG_H
#define MRD_CORE_FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/packet.h"
#include "core/wire.h"

enum {
    MRD_FRAGS = 16,     /* packets put together at a time */
    MRD_FRAG_UNIT = 64, /* fragments begin at multiples of it */
    MRD_FRAG_WHOLE_BYTES = MRD_PAYLOAD_BYTES_MAX + MRD_WIRE_HEAD_BYTES_MAX,
};

struct mrd_frag {
    uint32_t sender, epoch, psn; /* one packet; its transmissions are alike */
    uint32_t total, got;         /* bytes; got 0: free */
    uint32_t stamp;              /* of the last piece */
    uint32_t newest;             /* latest stamp of its pieces */
    uint32_t head_stamp;         /* of the piece that the packet's header came in */
    bool was_whole;              /* free: more pieces of that transmission may follow */
    uint64_t fed_ns;             /* when a piece came last */
    uint64_t came[MRD_FRAG_WHOLE_BYTES / MRD_FRAG_UNIT / 64 + 1]; /* a bit for each unit */
    uint8_t bytes[MRD_FRAG_WHOLE_BYTES];
};

struct mrd_frags {
    struct mrd_frag *frag[MRD_FRAGS]; /* made when they are needed */
};

void mrd_frags_fini(struct mrd_frags *frags, const struct mrd_allocator *allocator);
/*
 * A fragment came, and its payload check holds. Returns the whole packet, `bytes` of `total` bytes,
 * when that was the last missing one, valid until the next call; else NULL. *fits: it may belong to a
 * packet.
 * What follows of the same transmission then is dropped.
 * `sender`: a number of its own, which may have more than one packet put together while it has no more
 * than it leaves room for.
 */
const struct mrd_frag *mrd_frags_add(struct mrd_frags *frags, const struct mrd_allocator *allocator,
                                     uint32_t sender, const struct mrd_wire_head *head,
                                     const uint8_t *data, uint32_t bytes, uint64_t now_ns,
                                     bool *fits);

#endif
