/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's state, and what its files call of each other. Parts do not include this.
 *
 * engine.c        create, clock, timer heap, ready list, events, figures
 * engine_api.c    objects and posting
 * engine_id.c     who is who: first contact, challenges, resets, spaces, eviction, unreachable peers
 * engine_queue.c  what waits to be sent: queues, messages that wait for receives, and who is told of receives
 * engine_msg.c    the life of a sent message: completion, refusal, cancel, ABORT
 * engine_rx.c     received packets
 * engine_ack.c    received acks, and losses
 * engine_plan.c   straight receive
 * engine_place.c  received parts: binding, placement, refusal
 * engine_flow.c   ordered mode at the target
 * engine_tx.c     what goes next to a peer
 * engine_emit.c   records into packets
 * engine_timer.c  deadlines: losses, probes, silence
 *
 * Nobody is judged for our own absence (a stopped process, a call that came late): losses and deadlines are looked at
 * only after the receive queue was read until empty; the silence of a peer counts up to when it was last seen empty;
 * and a stall, a longer absence than the deadlines allowed, voids RTT samples and does not count against a peer.
 */
#ifndef MRD_CORE_ENGINE_IMPL_H
#define MRD_CORE_ENGINE_IMPL_H

#include "core/cq.h"
#include "core/engine.h"
#include "core/limits.h"
#include "core/mr.h"
#include "core/peer.h"
#include "core/qp.h"
#include "core/rng.h"
#include "core/stats.h"
#include "core/wire.h"

/* A reset or challenge to be sent: no peer entry is needed for it. */
struct mrd_stateless {
    struct mrd_addr to, from;
    struct mrd_wire_head head;
};

struct mrd_engine {
    const struct mrd_allocator *allocator;
    struct mrd_allocator allocator_copy;
    struct mrd_engine_config config;
    const struct mrd_spray_ops *spray;
    const struct mrd_cc_ops *cc;
    struct mrd_rng rng;
    uint64_t cookie_secret;
    struct mrd_stats stats;

    uint64_t now;             /* of the current call */
    uint64_t opened_ns;       /* now at create */
    uint64_t looked_ns;       /* when the receive queue was last looked at */
    uint64_t empty_ns;        /* when it was last seen empty: silence counts up to here */
    uint64_t absent_ns;       /* end of the last stall: RTT samples across it are void */
    uint64_t absent_long_ns;  /* end of the last long one: unanswered probes are counted anew */
    uint64_t absent_sum_ns;   /* length of all of them */
    struct mrd_node suspects; /* peers whose losses are to be judged once the queue is empty */
    bool fresh_path_wanted;
    uint32_t call_seq; /* counts mrd_engine_begin() */
    uint32_t post_seq; /* call_seq of the last post */
    uint32_t epoch_next, qpn_next;
    uint32_t msg_post_seq; /* of the next message posted */
    bool says_ready;       /* some peer is to be told of receives */
    uint64_t reclaimed_ns; /* when mrd_engine_reclaim() last looked */
    bool closing;          /* nothing follows but the last acks */

    struct mrd_peers peers;
    struct mrd_hash qps, txqs, wants, flows_tx, flows_rx;
    struct mrd_pool txq_pool, want_pool, flow_tx_pool, flow_rx_pool, pend_pool, refusal_pool;
    struct mrd_mrs mrs;
    struct mrd_node qp_list; /* live and dying queue pairs */
    uint32_t num_pds, num_mrs, num_cqs, num_qps, num_ahs;

    struct mrd_node ready;  /* peers that may have something to send */
    struct mrd_peer **heap; /* timers, by peer->timer_ns */
    uint32_t heap_num;
    struct mrd_node touched; /* peers whose timers are still to be set, as of touched_ns */
    uint64_t touched_ns;

    struct mrd_stateless stateless[MRD_STATELESS_MAX];
    uint32_t stateless_head, stateless_tail;
    struct mrd_engine_event event[MRD_EVENTS_MAX];
    uint32_t event_head, event_tail;

    uint64_t share_period; /* counts periods in which active senders are counted */
    uint64_t share_at_ns;
    uint32_t senders, senders_prev;

    char error[160];

    /* The last straight-receive plan: segment i is PSN psn + i, at offset + i * len. */
    struct {
        uint32_t psn, epoch, src_inc, offset, id;
        const uint8_t *base; /* of the first segment's payload; the others follow it */
        uint16_t num, len;
    } plan;
    uint8_t scratch[MRD_PAYLOAD_BYTES_MAX +
                    MRD_WIRE_HEAD_BYTES_MAX]; /* a segment that came where another was predicted */
};

struct mrd_pd_impl {
    struct mrd_pd pub;
    uint32_t users; /* MRs, QPs, AHs */
};

struct mrd_ah_impl {
    struct mrd_ah pub;
    struct mrd_addr addr;
    uint32_t payload_bytes;
    uint32_t peer_id; /* cache */
};

static inline void *mrd_engine_take(struct mrd_engine *e, size_t bytes)
{
    return e->allocator->alloc(e->allocator->arg, bytes);
}

static inline void mrd_engine_give(struct mrd_engine *e, void *ptr, size_t bytes)
{
    e->allocator->free(e->allocator->arg, ptr, bytes);
}

/* engine.c */
void mrd_engine_time(struct mrd_engine *e, uint64_t now_ns);
/* The receive queue was looked at: was that later than anyone could expect? */
void mrd_engine_look(struct mrd_engine *e);
void mrd_engine_ready(struct mrd_engine *e, struct mrd_peer *peer);
/* The peer's timer fires at the latest at `at_ns`; it may fire earlier. */
void mrd_engine_arm(struct mrd_engine *e, struct mrd_peer *peer, uint64_t at_ns);
void mrd_engine_disarm(struct mrd_engine *e, struct mrd_peer *peer);
/* Its deadlines may have come nearer: its timer is set before deadlines are next looked at. */
void mrd_engine_touch(struct mrd_engine *e, struct mrd_peer *peer);
void mrd_engine_event(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_event_type type);
struct mrd_qp_impl *mrd_engine_qp(const struct mrd_engine *e, uint32_t qpn);
/* psn_limit for a peer now: its share of the receive buffer. */
uint32_t mrd_engine_grant(struct mrd_engine *e, struct mrd_peer *peer);

/* A time as packets carry it. */
static inline uint32_t mrd_engine_stamp(uint64_t ns)
{
    return (uint32_t)(ns / MRD_WIRE_STAMP_NS);
}

/* Time in which we were there to hear somebody. */
static inline uint64_t mrd_engine_present(const struct mrd_engine *e)
{
    return e->now - e->absent_sum_ns;
}

/* engine_id.c */
/* The peer told something of packets of ours: they get there, and it answers. */
void mrd_engine_answered(struct mrd_engine *e, struct mrd_peer *peer);
/* The space that a DATA packet belongs to: the peer, with a receive half that holds it; or NULL: dealt with. */
struct mrd_peer *mrd_engine_identify(struct mrd_engine *e, const struct mrd_wire_head *head,
                                     const struct mrd_rx_packet *packet);
void mrd_engine_rx_reset(struct mrd_engine *e, const struct mrd_wire_head *head,
                         const struct mrd_addr *from);
void mrd_engine_rx_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                             const struct mrd_addr *from);
/* Entry for work to an address; NULL: the table is full. */
struct mrd_peer *mrd_engine_peer_for(struct mrd_engine *e, const struct mrd_addr *addr);
/* A send half, begun now if there is none or the old one idled too long. */
struct mrd_tx_half *mrd_engine_tx_half(struct mrd_engine *e, struct mrd_peer *peer);
void mrd_engine_unreachable(struct mrd_engine *e, struct mrd_peer *peer);
/* The peer closed: what it did not ack by now it never will. */
void mrd_engine_life_over(struct mrd_engine *e, struct mrd_peer *peer);
/* A pool is empty: end what is over and was only not looked at. Not more often than every MRD_RECLAIM_NS. */
void mrd_engine_reclaim(struct mrd_engine *e);
void mrd_engine_refusal_free(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_refusal *r);
/* End the send half: its messages fail with `status`. */
void mrd_engine_flush_tx(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_wc_status status);
/* End the receive half: half-received messages fail. */
void mrd_engine_drop_rx(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_rx_state state);

/* engine_queue.c */
/* The queue from a queue pair to one of the peer's, made if there is none; NULL: the context's table is full. */
struct mrd_txq *mrd_engine_txq(struct mrd_engine *e, struct mrd_peer *peer, uint32_t qpn,
                               uint32_t remote_qpn);
/* The next message to be sent; NULL: none. */
struct mrd_msg *mrd_engine_txq_first(struct mrd_txq *q);
/* Nothing to send: off the peer's list; and given back, unless messages wait for receives. */
void mrd_engine_txq_rest(struct mrd_engine *e, struct mrd_txq *q);
/* With what is left on it forgotten. */
void mrd_engine_txq_free(struct mrd_engine *e, struct mrd_txq *q);
/* A new message. Behind those that wait for receives, if it needs one. */
void mrd_engine_enqueue(struct mrd_engine *e, struct mrd_txq *q, struct mrd_msg *msg);
/* Off its queue, state SENDING. */
void mrd_engine_dequeue(struct mrd_engine *e, struct mrd_msg *msg);
/* It was refused for want of a receive, and holds no id: it waits for its next attempt. */
void mrd_engine_wait(struct mrd_engine *e, struct mrd_msg *msg);
/* Those whose delay is over are tried, one of each queue. */
void mrd_engine_fire_rnr(struct mrd_engine *e, struct mrd_peer *peer);
/* The peer says that its queue pair has so many receives. */
void mrd_engine_rx_ready(struct mrd_engine *e, struct mrd_peer *peer, uint32_t remote_qpn,
                         uint32_t receives);
/*
 * A message ended without a receive, for good: all that wait with it go at once. They learn the same within a round trip, or
 * find receives that came meanwhile.
 */
void mrd_engine_wait_over(struct mrd_engine *e, const struct mrd_msg *msg);
/* A message that needed a receive got one: others of its queue may, too. */
void mrd_engine_receive_found(struct mrd_engine *e, const struct mrd_msg *msg);
/* At the target: the peer was refused; it is told when receives are posted. A hint: it may be left out. */
void mrd_engine_want(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp);
void mrd_engine_want_free(struct mrd_engine *e, struct mrd_want *want);
/* Receives were posted: all who were refused are to be told. */
void mrd_engine_wants_met(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* They were used up before the peer was told. */
void mrd_engine_want_again(struct mrd_want *want);

/* engine_msg.c */
/* A record was acked: what it carried got there. Releases the record. */
void mrd_engine_record_done(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec);
/* The target refused part `index` of a record. */
void mrd_engine_refused(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                        const struct mrd_wire_refusal_entry *entry, uint32_t rnr_usec);
/* Give a message up: it completes with `status` when the target was told. */
void mrd_engine_cancel(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
/* It ends now, without telling the target. */
void mrd_engine_abandon(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
void mrd_engine_qp_reap(struct mrd_engine *e, struct mrd_qp_impl *qp);
struct mrd_flow_tx *mrd_engine_flow_tx(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, uint32_t remote_qpn);
/* All its messages are abandoned: they complete in order, as they are no longer read; then the record goes. */
void mrd_engine_flow_tx_end(struct mrd_engine *e, struct mrd_flow_tx *flow);
/* The peer's flows that were idle for so long are to be closed. */
void mrd_engine_flows_close(struct mrd_engine *e, struct mrd_peer *peer, uint64_t idle_ns);

/* engine_place.c */
enum mrd_place_verdict {
    MRD_PLACED,
    MRD_PLACE_REFUSED,   /* some parts: *refusal names them */
    MRD_PLACE_MALFORMED, /* nothing was done */
    MRD_PLACE_NO_ROOM,   /* nothing was done: not even a refusal can be kept */
};
/* What a packet completed. */
enum mrd_place_end {
    MRD_PLACE_END_NONE,
    MRD_PLACE_END_SMALL, /* whole messages: an answer may be close, which the ack can ride on */
    MRD_PLACE_END_LONG,  /* a message of several packets: its sender waits for this ack */
    MRD_PLACE_END_VERY_LONG,
};
/* All parts of a new packet. payload: NULL if it was received in place. */
enum mrd_place_verdict mrd_engine_place(struct mrd_engine *e, struct mrd_peer *peer,
                                        const struct mrd_wire_head *head, const uint8_t *data,
                                        const uint8_t *payload, uint32_t payload_len,
                                        struct mrd_refusal **refusal, enum mrd_place_end *end);
/* Where a segment's bytes belong: pieces, or 0. Used by the plan. */
unsigned mrd_engine_place_iov(struct mrd_engine *e, const struct mrd_slot *slot, uint32_t offset,
                              uint32_t len, struct iovec *iov);
/* End a half-received message: its receive completes with `status`. */
void mrd_engine_slot_fail(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_slot *slot,
                          enum mrd_slot_state state, enum mrd_wc_status status);
void mrd_engine_recv_done(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv,
                          const struct mrd_wc *wc);
/* All that the queue pair half-received or reserved, on every peer, fails. */
void mrd_engine_place_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *qp,
                               enum mrd_wc_status status);

/* engine_flow.c */
/* The flow of an ordered part, caught up with its sender, and the part's numbers in full; NULL: no room for its record. */
struct mrd_flow_rx *mrd_engine_flow_of(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, const struct mrd_wire_part *part,
                                       uint32_t *msn, uint32_t *rsn);
/* Complete what is in order. */
void mrd_engine_flow_deliver(struct mrd_engine *e, struct mrd_flow_rx *flow);
/* Its sender closes the flow: the record goes, unless it was used since. */
void mrd_engine_flow_closed(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                            const struct mrd_wire_part *part);
/* The message will never be delivered: its places in MSN and RSN are free. */
void mrd_engine_flow_gone(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn,
                          bool has_rsn, uint32_t rsn);
/* What it holds completes with `status`; reserved receives go back to their queue. */
void mrd_engine_flow_rx_free(struct mrd_engine *e, struct mrd_flow_rx *flow,
                             enum mrd_wc_status status);
/* Pending records are counted for the peer that they are for. NULL: there is none. */
struct mrd_pend *mrd_engine_pend_take(struct mrd_engine *e, struct mrd_peer *peer);
void mrd_engine_pend_release(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_pend *pend);

/* engine_ack.c */
void mrd_engine_rx_ack(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_rx_packet *packet);
/* An ack that rode on a data packet. */
void mrd_engine_rx_ackblock(struct mrd_engine *e, struct mrd_peer *peer,
                            const struct mrd_wire_head *head);
/* What is lost by now. */
void mrd_engine_losses(struct mrd_engine *e, struct mrd_peer *peer);

/* engine_plan.c */
/*
 * A segment whose payload was received at a predicted place. true: take it, with its payload at *placed if it is the
 * one that was predicted there; else *placed is NULL, and *whole is the packet put together in e->scratch. false: no
 * plan is like that, and it was counted.
 */
bool mrd_engine_planned(struct mrd_engine *e, const struct mrd_rx_packet *packet,
                        const uint8_t **placed, struct mrd_rx_packet *whole);

/* engine_emit.c */
/* One call's output. The last data packet stays unsealed until it is known whether another follows. */
struct mrd_out {
    struct mrd_tx_packet *packets;
    unsigned num, max;
    uint8_t *open_head; /* header not sealed yet, and its end */
    uint8_t *open_end;
    uint32_t open_psn;
};

/* Finish the header of the last data packet. */
void mrd_out_seal(struct mrd_out *o);
/* It asks for an ack. */
void mrd_out_request_ack(struct mrd_tx_half *tx, struct mrd_out *o);
void mrd_engine_put_ack(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o);
/* Resets and challenges. */
void mrd_engine_put_stateless(struct mrd_engine *e, struct mrd_out *o);
uint32_t mrd_engine_part_bytes(const struct mrd_msg *msg);
/* May its bytes be touched? A message whose memory was deregistered is given up. */
bool mrd_engine_sendable(struct mrd_engine *e, struct mrd_msg *msg);
/* Build and emit a record's packet on a path. `copy`: a second copy, of which the record takes no note. */
void mrd_engine_emit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                     uint32_t index, bool copy, struct mrd_out *o);

/* engine_tx.c */
/* A window below one packet: the next one may leave SRTT / cwnd after the last, as the window is now. */
static inline uint64_t mrd_engine_pace_ns(const struct mrd_tx_half *tx)
{
    return tx->sent_ns +
           mrd_tune_ns((double)tx->loss.srtt_ns * tx->cc.config.packet_bytes / tx->cc.cwnd_bytes);
}
/*
 * Shares of the tracker, in sixteenths. With C for what the peer may refuse, E for all that is no refusal, and T for the
 * tracker, E + 2 (C - 1) < T: behind our oldest PSN there may be refusals of as many of the peer's packets from before
 * its oldest one as from after it, and still its next refusal needs a PSN.
 */
enum {
    MRD_PSN_DATA = 5,    /* C: data and ABORTs */
    MRD_PSN_CONTROL = 6, /* E: and empty packets, READY */
    MRD_PSN_REFUSALS = 16,
};
/* The spray policy's choice of a path, not `avoid` if it can; -1: none to avoid. */
uint32_t mrd_engine_pick(struct mrd_engine *e, struct mrd_tx_half *tx, int avoid);
bool mrd_engine_window_open(const struct mrd_engine *e, const struct mrd_tx_half *tx);
/*
 * Is there a PSN left in a share of the tracker? Refusals must never lack one: a PSN of the peer's may be waiting for
 * each.
 */
bool mrd_engine_psn_room(const struct mrd_engine *e, const struct mrd_tx_half *tx,
                         uint32_t sixteenths);
/*
 * A path that is out and whose time has come: while there is data to send it is worth knowing whether it works again.
 * The probe is an empty packet, because what is lost on a dead path is missed for two round trips, or more at the end.
 */
bool mrd_engine_probe_path(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o);

/* engine_new.c */
/* Of the queue whose turn it is and that can send; NULL: none can. */
struct mrd_msg *mrd_engine_next_message(struct mrd_engine *e, struct mrd_tx_half *tx);
/* One packet of new data, or the probe of a path in its place. *held: there is some, which waits for company. */
bool mrd_engine_new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o,
                         bool *held);

/* engine_timer.c */
/* Does it hold here what only the peer can release: half messages, what is held back or reserved, refused PSNs? */
bool mrd_engine_is_owed(const struct mrd_peer *peer);
/* At least half a BDP: an incast's windows are smaller, and must not be answered with more. */
bool mrd_engine_full_window(const struct mrd_tx_half *tx);
/* Compute and arm the peer's next deadline, as of now_ns. */
void mrd_engine_rearm(struct mrd_engine *e, struct mrd_peer *peer, uint64_t now_ns);
void mrd_engine_fire(struct mrd_engine *e, struct mrd_peer *peer);

#endif
