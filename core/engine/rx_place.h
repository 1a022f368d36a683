/* SPDX-License-Identifier: BSD-2-Clause */
/* Received parts into the memory that they are for. */
#ifndef MRD_CORE_ENGINE_RX_PLACE_H
#define MRD_CORE_ENGINE_RX_PLACE_H

#include "core/engine/receive.h"

enum mrd_place_verdict {
    MRD_PLACED,
    MRD_PLACE_REFUSED,   /* some parts: *refusal names them */
    MRD_PLACE_MALFORMED, /* nothing was done */
    MRD_PLACE_GUESS,     /* nothing was done: the peer names too many wrong keys */
    MRD_PLACE_NO_ROOM,   /* nothing was done: not even a refusal can be kept */
};

/* What a packet completed. */
enum mrd_place_end {
    MRD_PLACE_END_NONE,
    MRD_PLACE_END_SMALL, /* whole messages: the ack may ride on an answer */
    MRD_PLACE_END_LONG,  /* a message of several packets: its sender waits for this ack */
    MRD_PLACE_END_VERY_LONG,
};

/* Place all parts of a new packet, decoding those that were not yet. */
enum mrd_place_verdict mrd_rx_place(struct mrd_engine *e, struct mrd_peer *peer,
                                    struct mrd_rx_in *in, struct mrd_refusal **refusal,
                                    enum mrd_place_end *end);
/*
 * Where a message's bytes from `offset` on belong. Returns how many of them lie there in one piece;
 * 0: its memory is not valid any more, or they have no place yet.
 */
uint32_t mrd_rx_place_at(struct mrd_engine *e, struct mrd_slot *slot, uint32_t offset,
                         uint8_t **place);
/*
 * Where the bytes of a write belong whose first packet this is. Returns how many of them lie there
 * in one piece; 0: it will perhaps not be taken, or in its turn only.
 */
uint32_t mrd_rx_place_new(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_part *part, uint8_t **place);
/*
 * All that the queue pair half-received or reserved, on every peer, fails. NULL: that of all queue
 * pairs in error, in one walk.
 */
void mrd_rx_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *only, enum mrd_wc_status status);
/*
 * The first `n` segments of the run are in their places, and more of the message are to come. false:
 * its memory is not valid any more, and nothing changed.
 */
bool mrd_rx_place_run(const struct mrd_engine *e, const struct mrd_run *run, uint32_t n);

#endif
