/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who: the peer and the space that a packet belongs to. */
#ifndef MRD_CORE_ENGINE_CONTACT_H
#define MRD_CORE_ENGINE_CONTACT_H

#include "core/engine/state.h"

/*
 * The space that a DATA packet belongs to. Returns the peer, with a receive state that holds the
 * space; NULL: the packet was dealt with, by a reset, a challenge or a counter.
 */
struct mrd_peer *mrd_contact_identify(struct mrd_engine *e, const struct mrd_wire_head *head,
                                      const struct mrd_rx_packet *packet);
/* A RESET came. */
void mrd_contact_reset(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_addr *from);
/* A BUSY came. */
void mrd_contact_busy(struct mrd_engine *e, const struct mrd_wire_head *head,
                      const struct mrd_addr *from);
/* A CHALLENGE came. */
void mrd_contact_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_rx_packet *packet);

#endif
