/* SPDX-License-Identifier: BSD-2-Clause */
/* Records into packets. */
#ifndef MRD_CORE_ENGINE_TX_EMIT_H
#define MRD_CORE_ENGINE_TX_EMIT_H

#include "core/engine/state.h"

/*
 * One call's output. The last data packet stays unsealed until it is known whether another follows.
 */
struct mrd_tx_out {
    struct mrd_tx_packet *packets;
    unsigned num, max;
    uint8_t *open_head; /* header not sealed yet, and its end */
    uint8_t *open_end;
    uint32_t open_psn;
};

/* Finish the header of the last data packet. */
void mrd_tx_seal(struct mrd_tx_out *o);
/* It asks for an ack. */
void mrd_tx_request_ack(struct mrd_send_state *tx, struct mrd_tx_out *o);
/* The ack that the peer is owed, in as many copies as it takes. */
void mrd_tx_put_ack(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o);
/* Resets and challenges. */
void mrd_tx_put_answers(struct mrd_engine *e, struct mrd_tx_out *o);
/*
 * Build and emit a record's packet on a path. `copy`: a second copy, which the record does not
 * follow. An ack rides on packets of whole messages.
 */
void mrd_tx_emit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, uint32_t index,
                 bool copy, struct mrd_tx_out *o);
/*
 * Emit up to `n` packets with the next bytes of the message of which the last packet carries a
 * segment, `rec`, from the user's memory; on its path, made after its header. Its message has so
 * many more bytes. Returns how many.
 */
uint32_t mrd_tx_follow(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                       uint32_t n, struct mrd_tx_out *o);
/*
 * Does the packet leave in pieces, more than there is room for? Then the caller's packets end here.
 */
bool mrd_tx_lacks_room(struct mrd_engine *e, const struct mrd_send_state *tx,
                       const struct mrd_sent *rec, struct mrd_tx_out *o);

#endif
