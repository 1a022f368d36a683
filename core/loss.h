/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection over the records of sent.h, in three layers, and the RTT that it needs.
 *
 * Call mrd_loss_acked() for each newly acked record. Call mrd_loss_next() until it returns NULL,
 * after each ack and at mrd_loss.rack_ns. mrd_loss_tail_ns() tells when to probe. The caller
 * changes the records and the paths.
 *
 *  - Same path: packets of one path keep their order, so a packet is lost when two later ones of
 *    its path are acked.
 *  - Across paths: a packet is lost when one sent later is acked and an RTT and a reordering window
 *    have passed (RACK, RFC 8985). The window grows with the skew of the paths, and with each
 *    spurious retransmission.
 *  - At the tail, where nothing later can be acked: tail loss probes (TLP, RFC 8985), then the RTO
 *    (RFC 6298).
 */
#ifndef MRD_CORE_LOSS_H
#define MRD_CORE_LOSS_H

#include "core/sent.h"
#include "core/tune.h"

struct mrd_allocator;

enum mrd_loss_cause { MRD_LOSS_BY_ORDER, MRD_LOSS_BY_RACK };

struct mrd_retx {   /* a retransmission that may turn out spurious */
    uint64_t tx_ns; /* when the copy declared lost was sent */
    uint32_t psn;
    uint16_t old_path; /* index of the path that it took */
    bool live : 1, deliberate : 1, by_order : 1, path_penalized : 1;
};

struct mrd_loss {
    const struct mrd_tune_loss *tune;       /* borrowed */
    uint64_t srtt_ns, rttvar_ns, latest_ns; /* 0: no sample yet */
    uint64_t min_cur_ns, min_prev_ns;       /* least RTT in this and the previous half window */
    uint64_t min_at_ns;                     /* when the current half window began */
    /* Transmission time of the latest sent packet that is acked (RACK.xmit_ts). */
    uint64_t rack_tx_ns;
    uint64_t rack_ns; /* when to look again for losses by time; MRD_NEVER: no need */
    /* Greatest reordering seen: how much earlier a packet left than one acked before it. */
    uint64_t skew_ns;
    uint64_t skew_at_ns;
    uint32_t steps; /* steps of the reordering window's growth */
    uint32_t peer_ack_delay_ns;
    uint64_t steps_at_ns;
    /* Bit i set: a packet of a path with index i mod 64 was acked; check these paths. */
    uint64_t overtaken;
    /* Tail loss probes and RTOs since the last ack of anything new. */
    uint32_t probes;
    uint32_t log_next;
    uint64_t last_send_ns, progress_ns;
    uint64_t late_tx_ns, late_rtt_ns; /* an RTT sample taken for a stall; 0: none */
    struct mrd_retx *log;             /* MRD_RETX_LOG of them, a ring; NULL: nothing was logged */
};

/* `tune` is borrowed; NULL: mrd_tune_default. */
void mrd_loss_init(struct mrd_loss *l, const struct mrd_tune *tune, uint64_t now_ns);
void mrd_loss_fini(struct mrd_loss *l, const struct mrd_allocator *allocator);
void mrd_loss_rtt(struct mrd_loss *l, uint64_t rtt_ns, uint64_t now_ns);
/*
 * Judges an RTT sample that began before an RTO and is much longer than SRTT. Returns true if it
 * may be a stall of the peer's host: ignore it. A stall ends for all packets at once, so packets
 * sent later have shorter RTTs. If they do not, the path became longer: returns false, and SRTT
 * starts anew from this sample.
 */
bool mrd_loss_stalled(struct mrd_loss *l, uint64_t tx_ns, uint64_t rtt_ns);
/* Returns the least RTT of the last one to two times min_window_ns; 0: no sample yet. */
uint64_t mrd_loss_rtt_min_ns(const struct mrd_loss *l);
/*
 * A record is newly acked; call it before mrd_sent_ack(). `echoed`: the ack's echo is of its last
 * transmission. Returns false if the ack is ambiguous (Karn): the packet was retransmitted, and
 * which copy arrived is unknown.
 */
bool mrd_loss_acked(struct mrd_loss *l, const struct mrd_sent *rec, bool echoed, uint64_t now_ns);
/* Returns the next record to declare lost, and why; NULL: none before rack_ns or the next ack. */
struct mrd_sent *mrd_loss_next(struct mrd_loss *l, const struct mrd_sents *s,
                               const struct mrd_paths *paths, uint64_t now_ns,
                               enum mrd_loss_cause *cause);
uint64_t mrd_loss_window_ns(const struct mrd_loss *l);
/*
 * Logs a record that is about to be retransmitted; `old_path` took the copy declared lost. The
 * first one allocates the log; without memory nothing is logged.
 */
void mrd_loss_log(struct mrd_loss *l, const struct mrd_allocator *allocator,
                  const struct mrd_sent *rec, uint16_t old_path);
/*
 * An earlier copy of `psn` came. Returns the log entry of its last retransmission, which was
 * spurious; NULL: none is logged, or it was deliberate.
 */
struct mrd_retx *mrd_loss_spurious(struct mrd_loss *l, uint32_t psn, uint64_t now_ns);
/* Returns whether an RTO fired since the last ack of anything new: the tail loss probes failed. */
bool mrd_loss_timed_out(const struct mrd_loss *l);
/*
 * Returns the time of the next tail loss probe or RTO. `full`: the window is at least half a BDP,
 * so a probe costs little. cwnd_packets below 1 delay it: a probe must not fire in a pacing gap.
 */
uint64_t mrd_loss_tail_ns(const struct mrd_loss *l, bool full, double cwnd_packets,
                          uint64_t rto_floor_ns);
uint64_t mrd_loss_rto_ns(const struct mrd_loss *l, uint64_t rto_floor_ns);

#endif
