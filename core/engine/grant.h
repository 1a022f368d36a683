/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a peer may send beyond what we acked.
 *
 * That is its share of the receive buffer. A peer whose packets are long on their way needs more,
 * and they are not in our buffer all at once: while that is nearly empty, who asks for more
 * (MRD_WIRE_WANTS_MORE) has twice as much as before, once a round trip.
 */
#ifndef MRD_CORE_ENGINE_GRANT_H
#define MRD_CORE_ENGINE_GRANT_H

#include "core/engine/state.h"

/* A new packet of this PSN says that its sender wants more. */
void mrd_grant_wanted(struct mrd_recv_state *rx, uint32_t psn);
/* Returns the psn_limit to tell the peer, which has a receive state: it may send PSNs below it. */
uint32_t mrd_grant_limit(struct mrd_engine *e, struct mrd_peer *peer);

#endif
