/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where peers are, and where we are to them.
 *
 * A peer is whom the names of its pair tell, wherever its packets come from. One that sends from
 * another address, and from its own no more, moves there once it has shown that it receives there.
 * A peer that does not answer may not be reached from our own address: others are tried.
 */
#ifndef MRD_CORE_ENGINE_ADDRESS_H
#define MRD_CORE_ENGINE_ADDRESS_H

#include <string.h>

#include "core/engine/state.h"

static inline bool mrd_address_is_unknown(const uint8_t ip[16])
{
    static const uint8_t zero[16];

    return !memcmp(ip, zero, sizeof(zero));
}

/* The peer's packets come to that address of ours: packets to it leave from there. */
void mrd_address_of_ours(struct mrd_peer *peer, const struct mrd_addr *to);
/*
 * A packet with both names of the pair came: is the peer still where it was, and are we to it? Copies
 * of old packets tell of no change.
 */
void mrd_address_came(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                      const struct mrd_rx_packet *packet);
/* The peer showed that it is at that address now. Others that ask there, unanswered, give way to it. */
void mrd_address_move(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_addr *addr);
/*
 * A challenge came from a peer that knows us: it asks whether we are where our packets come from.
 * The next empty packet shows it.
 */
void mrd_address_prove(struct mrd_engine *e, struct mrd_peer *peer, uint64_t cookie);
/* Packets to the peer are not answered: may another source of ours reach it? */
void mrd_address_doubt(struct mrd_engine *e, struct mrd_peer *peer);

#endif
