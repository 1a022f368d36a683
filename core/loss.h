/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection over the records of sent.h, in layers, and the RTT that it needs.
 *
 * mrd_loss_acked() for each newly acked record; mrd_loss_next() until it returns NULL after each
 * ack and when mrd_loss.rack_ns is due; mrd_loss_tail_ns() tells when to probe. The caller moves
 * the records and judges paths.
 *
 *  - Same path: packets of one path keep their order, so a packet is lost when two later ones of
 *    its path are acked.
 *  - Across paths: a packet is lost when one sent later is acked and a window has passed (RACK,
 *    RFC 8985), the window grown by the spread of the paths and by each retransmission that
 *    proves spurious.
 *  - At the tail, where nothing later can be acked: probes (TLP, RFC 8985), then the RTO
 *    (RFC 6298).
 */
#ifndef MRD_CORE_LOSS_H
#define MRD_CORE_LOSS_H

#include "core/sent.h"
#include "core/tune.h"

enum mrd_loss_cause { MRD_LOSS_BY_ORDER, MRD_LOSS_BY_RACK };

struct mrd_retx { /* a retransmission, until it is known whether it was needed */
    uint32_t psn;
    bool live, deliberate, by_order;
    uint16_t old_path; /* that the lost copy had taken */
    uint64_t tx_ns;    /* when that copy left */
};

struct mrd_loss {
    const struct mrd_tune_loss *tune;       /* borrowed */
    uint64_t srtt_ns, rttvar_ns, latest_ns; /* 0: no sample yet */
    uint64_t min_cur_ns, min_prev_ns;       /* least RTT in this and the previous window */
    uint64_t min_at_ns;                     /* when the current one began */
    uint64_t rack_tx_ns; /* transmission time of the most recently sent packet that is acked */
    uint64_t rack_ns;    /* when the next packet turns lost by time; MRD_NEVER: none */
    uint64_t skew_ns;    /* greatest lateness of a packet acked after a later-sent one */
    uint64_t skew_at_ns;
    uint32_t steps; /* the window's growth by spurious retransmissions */
    uint64_t steps_at_ns;
    uint64_t overtaken[MRD_PATHS_MAX / 64]; /* paths that a packet of was acked: to be looked at */
    uint32_t probes;                        /* tail probes and RTOs since the last progress */
    uint64_t last_send_ns, progress_ns;
    uint64_t late_tx_ns, late_rtt_ns; /* a sample that looked like a stall's; 0: none */
    uint32_t peer_ack_delay_ns;
    struct mrd_retx log[MRD_RETX_LOG];
    uint32_t log_next;
};

/* tune NULL: the defaults. */
void mrd_loss_init(struct mrd_loss *l, const struct mrd_tune *tune, uint64_t now_ns);
void mrd_loss_rtt(struct mrd_loss *l, uint64_t rtt_ns, uint64_t now_ns);
/*
 * A sample that began before a timeout and is much longer than others: was it a stall of the
 * peer's? A stall is over at the same time for all packets, so those that left later took less.
 * Where they take as long, the way has become longer: false, and the mean begins anew with it.
 */
bool mrd_loss_stalled(struct mrd_loss *l, uint64_t tx_ns, uint64_t rtt_ns);
/* Windowed minimum; 0 before the first sample. */
uint64_t mrd_loss_rtt_min_ns(const struct mrd_loss *l);
/*
 * A record turned acked (call before mrd_sent_ack()). `echoed`: the ack's echo names its last
 * transmission. false: of which copy the ack tells is not known, so it says nothing about when the
 * last one left.
 */
bool mrd_loss_acked(struct mrd_loss *l, const struct mrd_sent *rec, bool echoed, uint64_t now_ns);
/* The next record to give up, and why; NULL: none now, and rack_ns tells when to look again. */
struct mrd_sent *mrd_loss_next(struct mrd_loss *l, const struct mrd_sents *s,
                               const struct mrd_paths *paths, uint64_t now_ns,
                               enum mrd_loss_cause *cause);
uint64_t mrd_loss_window_ns(const struct mrd_loss *l);
/* Remember that a record is about to be retransmitted. */
void mrd_loss_log(struct mrd_loss *l, const struct mrd_sent *rec, uint16_t old_path);
/*
 * The peer tells of a duplicate: the log's entry if that retransmission was needless and not meant,
 * else NULL.
 */
struct mrd_retx *mrd_loss_spurious(struct mrd_loss *l, uint32_t psn, uint64_t now_ns);
/* The tail probes got no answer either: what is sent now is a timeout's. */
bool mrd_loss_timed_out(const struct mrd_loss *l);
/*
 * When the tail is to be probed, counted from now's state; `full`: the window is at least half a
 * BDP, so a probe costs little. cwnd_packets below 1 stretch it: a probe must not fire in a
 * pacing gap.
 */
uint64_t mrd_loss_tail_ns(const struct mrd_loss *l, bool full, double cwnd_packets,
                          uint64_t rto_floor_ns);
uint64_t mrd_loss_rto_ns(const struct mrd_loss *l, uint64_t rto_floor_ns);

#endif
