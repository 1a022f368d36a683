/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of peers, and of their send and receive states. A state ends with all that hangs on
 * it.
 */
#ifndef MRD_CORE_ENGINE_PEER_STATE_H
#define MRD_CORE_ENGINE_PEER_STATE_H

#include "core/engine/state.h"

/*
 * The entry of an address, made if there is none; NULL: the table is full, and nobody in it
 * is idle.
 */
struct mrd_peer *mrd_peer_open(struct mrd_engine *e, const struct mrd_addr *addr);
/* One more entry, whoever else is at that address; NULL likewise. */
struct mrd_peer *mrd_peer_add_entry(struct mrd_engine *e, const struct mrd_addr *addr);
/* The send state, begun now if there is none or if the old one idled too long. */
struct mrd_send_state *mrd_send_state_open(struct mrd_engine *e, struct mrd_peer *peer);
/* Sizes between which the path's MTU is searched. */
struct mrd_pmtu_range mrd_send_state_pmtu_range(const struct mrd_engine *e,
                                                const struct mrd_peer *peer);
/* Another tx->pmtu.payload was found: what follows from it. */
void mrd_send_state_use_pmtu(const struct mrd_engine *e, struct mrd_send_state *tx);
/* From now on no packet to the peer carries more. Packets that have a PSN keep their size. */
void mrd_send_state_limit_payload(struct mrd_engine *e, struct mrd_peer *peer,
                                  uint32_t payload_bytes);
/* The mover sent none of a packet, as the route takes only so many now. */
void mrd_send_state_too_big(struct mrd_engine *e, struct mrd_peer *peer, uint32_t payload_bytes);
/* A packet last sent on the path is lost. */
void mrd_send_state_path_lost(struct mrd_engine *e, struct mrd_send_state *tx, uint32_t index);
/*
 * A space without packets, under the next epoch. `inc`: whom it speaks to; 0: whoever
 * answers first.
 */
void mrd_send_state_begin_epoch(struct mrd_engine *e, struct mrd_peer *peer, uint32_t inc);
/* End the send state: its messages fail with `status`. */
void mrd_send_state_end(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_wc_status status);
/* End the receive state: half-received messages fail. `state`: of the space from now on. */
void mrd_recv_state_end(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_space_state state);
/*
 * Forget the peer's space if it was silent for so long that nothing of it can still be on its way.
 */
void mrd_recv_state_expire(struct mrd_engine *e, struct mrd_peer *peer);
/*
 * A pool is empty: end what is over and was not looked at yet. Not more often than
 * every MRD_RECLAIM_NS.
 */
void mrd_peers_reclaim(struct mrd_engine *e);
/*
 * Looks at some of the peers that are active, so that each is looked at once in MRD_SWEEP_NS or so
 * while calls are made: ends states whose time is over, and makes peers idle.
 */
void mrd_peers_sweep(struct mrd_engine *e);
/* Raises an event of the peer, and ends its watch: a watch is one-shot. */
void mrd_peer_report_and_unwatch(struct mrd_engine *e, struct mrd_peer *peer,
                                 enum mrd_event_type type);
/* Sends a probe, unless something is in flight: is the peer there, and does it hold our space? */
void mrd_send_state_keepalive(struct mrd_engine *e, struct mrd_peer *peer);
/* The entry that speaks since that one gave way, wherever it is now; NULL: there is none. */
struct mrd_peer *mrd_peer_heir(const struct mrd_engine *e, const struct mrd_peer *peer);
/* The same, also where handles do not follow it, as somebody answered the one that gave way: a watch went there. */
struct mrd_peer *mrd_peer_successor(const struct mrd_engine *e, const struct mrd_peer *peer);
/* The latest mrd_peer.failed_ns of those that it gave way to, one after the other; 0: none failed. */
uint64_t mrd_peer_heirs_failed_ns(const struct mrd_engine *e, const struct mrd_peer *peer);
/* The peer told something of our packets: they get there, and it answers. */
void mrd_send_state_answered(struct mrd_engine *e, struct mrd_peer *peer);
/* The peer did not answer for too long: both directions end. */
void mrd_peer_unreachable(struct mrd_engine *e, struct mrd_peer *peer);
/*
 * The peer does not know our space any more: our work to it ends. An event tells it if work or
 * receives were lost.
 */
void mrd_peer_restarted(struct mrd_engine *e, struct mrd_peer *peer, bool receives_lost);
/*
 * The peer had no room for us for as long as first contact lasts: our work to it ends, and so does a
 * watch, with an event.
 */
void mrd_peer_turned_away(struct mrd_engine *e, struct mrd_peer *peer);
/*
 * At their address `to` speaks with the peer: it is found there from now on. A watch goes on by it, and so
 * does work that was posted to the entry `peer` while that only asked; what was sent ends.
 */
void mrd_peer_give_way(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_peer *to);
/* The peer closed: what it did not ack by now it never will. */
void mrd_peer_closed(struct mrd_engine *e, struct mrd_peer *peer);
/*
 * Does it hold here what only the peer can release: half-received messages, what is held back or reserved,
 * refused PSNs?
 */
bool mrd_recv_state_is_owed(const struct mrd_peer *peer);

#endif
