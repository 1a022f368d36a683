/* SPDX-License-Identifier: BSD-2-Clause */
/* What may be sent now, and by which path. */
#ifndef MRD_CORE_ENGINE_TX_GATE_H
#define MRD_CORE_ENGINE_TX_GATE_H

#include "core/engine/tx_emit.h"

/* Does the congestion control want a window of a packet or more to leave evenly over the SRTT? */
static inline bool mrd_tx_is_paced(const struct mrd_send_state *tx)
{
    return tx->cc.ops->pace && tx->cc.ops->pace(&tx->cc) > 0;
}

/*
 * When the next packet may leave, where packets are paced or the window is below one: SRTT / cwnd after the
 * last, as the window is now, or as much sooner as the congestion control has it. With a window below a packet
 * there is a sample a packet, so an SRTT of two stalls that looked like a longer path would come down by an
 * eighth in seconds: where the latest sample is so much shorter, that counts.
 */
static inline uint64_t mrd_tx_pace_ns(const struct mrd_send_state *tx)
{
    const struct mrd_loss *l = &tx->loss;
    uint64_t rtt_ns = l->latest_ns && l->latest_ns < l->srtt_ns / 4 ? l->latest_ns : l->srtt_ns;
    double bytes = tx->cc.cwnd_bytes;

    if (bytes >= tx->cc.packet_bytes && mrd_tx_is_paced(tx))
        bytes *= tx->cc.ops->pace(&tx->cc);
    return tx->sent_ns + mrd_tune_ns((double)rtt_ns * tx->cc.packet_bytes / bytes);
}

/* The window let out so many bytes in a row. If they are paced, the next ones wait until these had their time. */
void mrd_tx_left(const struct mrd_engine *e, struct mrd_send_state *tx, uint32_t bytes);
/* How many paced packets may leave in a row: few of a window, so that a short queue takes them. */
uint32_t mrd_tx_paced_run(const struct mrd_send_state *tx);
/* The spray policy's choice of a path, not `avoid` if it can; -1: none to avoid. */
uint32_t mrd_tx_pick_path(struct mrd_engine *e, struct mrd_send_state *tx, int avoid);
bool mrd_tx_window_open(const struct mrd_engine *e, const struct mrd_send_state *tx);
/* At least half a BDP: an incast's windows are smaller, and must not be answered with more. */
bool mrd_tx_full_window(const struct mrd_send_state *tx);
/*
 * Is a PSN left in a share of the tracker? Refusals must never lack one: a PSN of the peer's may
 * wait for each.
 */
bool mrd_tx_psn_room(const struct mrd_send_state *tx, uint32_t sixteenths);
/* Data fills half of what the peer granted. Control packets are small, and need no grant. */
bool mrd_tx_is_granted(const struct mrd_send_state *tx);
/*
 * How many packets of data, of so many bytes each, may leave one after the other before one of
 * these three says no.
 */
uint32_t mrd_tx_room(const struct mrd_send_state *tx, uint32_t bytes);
/*
 * A long message goes in bursts that a mover can hand down at once: with less room than that, and
 * acks on their way, it waits for more. (The same trade as TCP's deferral of segmentation offload.)
 */
bool mrd_tx_waits_for_burst(const struct mrd_engine *e, const struct mrd_send_state *tx,
                            const struct mrd_msg *msg);
/*
 * New data in a packet that is not full waits for company, within a post, while others are in
 * flight (RFC 896), and no longer than until as many bytes wait: the receiver has dealt with those
 * in flight by the time the others are posted, and would wait for more.
 */
bool mrd_tx_coalesces(const struct mrd_engine *e, const struct mrd_send_state *tx);
/* A record for a control packet; false: no PSN is left in its share, or no memory. */
bool mrd_tx_add_control(struct mrd_peer *peer, enum mrd_sent_kind kind, uint32_t sixteenths,
                        struct mrd_sent **rec);
/* Is a path out whose time has come? *index: which. */
bool mrd_tx_path_to_probe(const struct mrd_engine *e, const struct mrd_send_state *tx,
                          uint32_t *index);
/*
 * Probe a path that is out and whose time has come: while there is data to send it is worth knowing
 * whether it works again. The probe is an empty packet, because what is lost on a dead path is
 * missed for two round trips, or longer at the end. Returns true if a packet was emitted.
 */
bool mrd_tx_probe_path(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o);

#endif
