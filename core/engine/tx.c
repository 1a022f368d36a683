/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is, and what goes to that peer next. */
#include "core/engine/peer_state.h"
#include "core/engine/respond.h"
#include "core/engine/rnr.h"
#include "core/engine/rx_ack.h"
#include "core/engine/timer.h"
#include "core/engine/tx_emit.h"
#include "core/engine/tx_gate.h"
#include "core/engine/tx_new.h"
#include "core/engine/txq.h"
#include "core/seq.h"

enum { PROBES_OF_PIECES = 8 }; /* tail probes of one packet in pieces, at most, after the first */

static bool ack_owed(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_rcv *r;

    if (!peer->rx)
        return false;
    r = &peer->rx->rcv;
    return r->now || e->clock.now_ns >= r->due_ns ||
           (r->wait_for_reply && peer->rx->call_seq != e->calls.seq);
}

/* -------------------------------------------------------------------------------------- control */

static bool send_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;

    if (mrd_list_empty(&tx->refusals) ||
        !mrd_tx_add_control(peer, MRD_SENT_REFUSAL, MRD_PSN_REFUSALS, &rec))
        return false;
    rec->u.refusal = mrd_container_of(mrd_list_pop(&tx->refusals), struct mrd_refusal, node);
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, -1), false, o);
    return true;
}

static bool send_aborts(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;
    struct mrd_msg **tail;
    struct mrd_node *n;

    if (mrd_list_empty(&tx->aborts) ||
        !mrd_tx_add_control(peer, MRD_SENT_ABORT, MRD_PSN_DATA, &rec))
        return false;
    tail = &rec->u.small;
    for (unsigned i = 0; i < MRD_PARTS_MAX / 4 && (n = mrd_list_pop(&tx->aborts)); i++) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        msg->abort.pending = false;
        msg->abort.sent = true;
        if (msg->has_id)
            mrd_ids_find(&tx->ids, msg->id)->live++;
        e->stats.tx_aborts++;
        *tail = msg;
        tail = &msg->abort.next;
        *tail = NULL;
    }
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, -1), false, o);
    return true;
}

/*
 * Tell the peer of a queue pair that refused it for want of a receive, and has some now; or that
 * took no messages, and does now.
 */
static bool send_ready(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_sent *rec;
    struct mrd_node *n;

    while ((n = mrd_list_first(&peer->readies))) {
        struct mrd_rnr_waiter *waiter = mrd_container_of(n, struct mrd_rnr_waiter, peer_node);

        if (!mrd_qp_receives(waiter->qp) && !waiter->admitted) { /* used up already */
            mrd_rnr_postpone(waiter);
            continue;
        }
        if (!mrd_tx_add_control(peer, MRD_SENT_READY, MRD_PSN_CONTROL, &rec))
            return false;
        rec->id = waiter->qp->pub.qp_num;
        rec->offset = waiter->receives;
        mrd_rnr_free(e, waiter);
        e->stats.tx_readies++;
        mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, peer->tx, -1), false, o);
        return true;
    }
    return false;
}

/* Close a flow that was idle for long, or whose queue pair is gone: the target may forget it. */
static bool send_close(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;

    if (mrd_list_empty(&tx->closes) ||
        !mrd_tx_add_control(peer, MRD_SENT_CLOSE, MRD_PSN_CONTROL, &rec))
        return false;
    rec->u.flow = mrd_container_of(mrd_list_pop(&tx->closes), struct mrd_flow_tx, idle_node);
    rec->u.flow->closing = true;
    rec->u.flow->close_msn = rec->u.flow->msn_next;
    e->stats.tx_closes++;
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, -1), false, o);
    return true;
}

/*
 * Find out whether the path takes larger packets, by an empty one that is padded: only where there
 * is more to send than fits into one, and once the peer answers.
 */
static bool send_mtu_probe(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_pmtu_range r;
    struct mrd_sent *rec;
    uint32_t bytes;

    if (tx->queued_bytes <= tx->pmtu.payload || tx->pmtu.probed || !e->config.mover.payload_base)
        return false;
    r = mrd_send_state_pmtu_range(e, peer);
    if (tx->pmtu.payload >= r.limit || !tx->contact.acked_once || !mrd_tx_window_open(e, tx) ||
        !mrd_tx_is_granted(tx))
        return false;
    bytes = mrd_pmtu_next(&tx->pmtu, &r, e->clock.now_ns);
    if (!bytes || !mrd_tx_add_control(peer, MRD_SENT_EMPTY, MRD_PSN_DATA, &rec))
        return false;
    rec->len = (uint16_t)bytes;
    mrd_pmtu_sent(&tx->pmtu, bytes);
    e->stats.probes_mtu++;
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, -1), false, o);
    mrd_tx_request_ack(tx, o);
    return true;
}

/* ------------------------------------------------------------------------------- retransmission */

/* No new data waits, and the window is wide: a second copy of a retransmission costs nothing. */
static bool at_tail(const struct mrd_send_state *tx)
{
    return mrd_list_empty(&tx->txqs) && mrd_tx_full_window(tx);
}

/* Do packets leave on more than one path? */
static bool has_paths(const struct mrd_send_state *tx)
{
    return tx->paths.num > 1 && !tx->spray.ops->one_path;
}

static bool was_lost(const struct mrd_sent *rec)
{
    return rec && (rec->state == MRD_SENT_LOST || (rec->tx_count > 1 && !rec->deliberate));
}

/* Was one of those lost that left right before or behind it? In a burst of losses its size is no cause. */
static bool lost_among_others(const struct mrd_send_state *tx, const struct mrd_sent *rec)
{
    for (uint32_t i = 1; i <= MRD_PMTU_NEIGHBORS; i++) {
        if (was_lost(mrd_sent_get(&tx->sent, rec->psn - i)) ||
            was_lost(mrd_sent_get(&tx->sent, rec->psn + i)))
            return true;
    }
    return false;
}

/* From now on an ack does not tell whether the size came. */
static void end_mtu_probe(struct mrd_engine *e, struct mrd_send_state *tx, struct mrd_sent *rec)
{
    if (lost_among_others(tx, rec))
        mrd_pmtu_inconclusive(&tx->pmtu, rec->len);
    else
        mrd_pmtu_lost(&tx->pmtu, rec->len, e->clock.now_ns);
    rec->len = 0;
    rec->deliberate = true; /* no loss was told to anybody that could be taken back */
}

/*
 * Retransmit a packet on another path. `twice`: a second copy follows on a third path, when the
 * caller has room for it. On one path it would meet what dropped the packet: a policer, or a short
 * queue. After a timeout it follows all the same.
 */
static void resend(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, bool twice,
                   struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    uint16_t old = rec->path;

    if (mrd_sent_is_mtu_probe(rec))
        end_mtu_probe(e, tx, rec);
    if (rec->kind == MRD_SENT_EMPTY)
        rec->offset = 0;
    rec->deliberate |= twice;
    mrd_loss_log(&tx->loss, &e->allocator, rec, old);
    e->stats.retx_packets++;
    peer->count.packets_retransmitted++;
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, old), false, o);
    tx->probes.copy_due = twice && (has_paths(tx) || mrd_loss_timed_out(&tx->loss));
    tx->probes.copy_psn = rec->psn;
}

static bool send_copy(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->probes.copy_due)
        return false;
    tx->probes.copy_due = false;
    rec = mrd_sent_get(&tx->sent, tx->probes.copy_psn);
    if (!rec || rec->state != MRD_SENT_INFLIGHT || mrd_tx_lacks_room(e, tx, rec, o))
        return false;
    e->stats.retx_packets++;
    e->stats.retx_copy++;
    peer->count.packets_retransmitted++;
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, rec->path), true, o);
    return true;
}

/*
 * Control packets do not wait for the window: the packet that keeps it shut may be waiting
 * for them.
 */
static bool retransmit_control(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_sents *s = &peer->tx->sent;

    struct mrd_sent *rec;

    if (!s->lost_control.num)
        return false;
    rec = mrd_sent_get(s, s->lost_control.head);
    if (!mrd_tx_lacks_room(e, peer->tx, rec, o))
        resend(e, peer, rec, false, o);
    return true;
}

static bool retransmit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->sent.lost.num)
        return false;
    tx->run.limited = true;
    if (!mrd_tx_window_open(e, tx))
        return false;
    tx->run.limited = false;
    rec = mrd_sent_get(&tx->sent, tx->sent.lost.head);
    if (mrd_tx_lacks_room(e, tx, rec, o))
        return true;
    resend(e, peer, rec, at_tail(tx), o);
    mrd_tx_left(e, tx, rec->bytes);
    return true;
}

/*
 * A tail probe is about to send a packet in flight again: has its path failed? Yes if tail probes
 * and an RTO went unanswered, or if that is what becomes of all its packets of late. Else the spray
 * policy would return to it for ever: it may have been among the fastest while it worked, and where
 * little is in flight the tail probe comes before the loss by time. Returns whether that was
 * declared a loss which is undone if the packet arrives after all.
 */
static bool blame_path(struct mrd_engine *e, struct mrd_send_state *tx, struct mrd_sent *rec)
{
    bool suspect = mrd_path_suspect(&tx->paths, rec->path);

    if (!suspect && !mrd_loss_timed_out(&tx->loss))
        return false;
    mrd_send_state_path_lost(e, tx, rec->path);
    mrd_sent_lose(&tx->sent, rec, &tx->paths);
    return suspect;
}

static void count_probe(struct mrd_engine *e, struct mrd_peer *peer)
{
    bool timed_out = mrd_loss_timed_out(&peer->tx->loss);

    e->stats.retx_timeout += timed_out;
    peer->count.timeouts += timed_out;
    e->stats.retx_tail += !timed_out;
    peer->count.probes_tail += !timed_out;
}

/*
 * What was lost, as this packet is about to be sent again by a probe: it. But if it was last sent
 * larger than packets are now, that says nothing of their size: then the pieces of the probe before.
 */
static struct mrd_sent *lost_by_now(const struct mrd_send_state *tx, struct mrd_sent *rec)
{
    struct mrd_sent *last = mrd_sent_get(&tx->sent, tx->probes.copy_psn);

    if (rec->piece || rec->bytes <= tx->pmtu.payload + MRD_HEAD_PEEK_BYTES || tx->loss.probes < 2 ||
        !last || !last->piece || last->state != MRD_SENT_INFLIGHT)
        return rec;
    return last;
}

/*
 * Which packet a tail probe retransmits: the one that was last sent the longest ago, in flight or
 * lost. Not the lowest PSN: its ack may wait for a later refusal of ours, whose ack waits for a
 * refusal of the peer's.
 *
 * One that the probe before sent in pieces is sent again for some times: the peer may hold all but a
 * few of them. It holds those of few packets at a time; of all that are in flight, it would have
 * dropped them before their turn came again.
 */
static struct mrd_sent *to_probe(const struct mrd_send_state *tx)
{
    struct mrd_sent *last = mrd_sent_get(&tx->sent, tx->probes.copy_psn);

    if (tx->loss.probes > 1 && last && last->piece && last->state == MRD_SENT_INFLIGHT &&
        tx->probes.of_pieces < PROBES_OF_PIECES)
        return last;
    return mrd_sent_oldest(&tx->sent);
}

/* A tail probe, beyond the window. */
static bool send_probe(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    uint64_t silent_since_ns = tx->probes.silent_since_ns;
    struct mrd_sent *rec;
    bool lost;

    if (!tx->probes.due)
        return false;
    rec = to_probe(tx);
    if (rec && mrd_tx_lacks_room(e, tx, rec, o))
        return true;
    if (rec && mrd_sent_is_mtu_probe(rec)) { /* it says nothing of its path */
        count_probe(e, peer);
        resend(e, peer, rec, false, o);
    } else if (rec) {
        tx->probes.of_pieces = rec->psn == tx->probes.copy_psn ? tx->probes.of_pieces + 1 : 0;
        mrd_rx_count_large_loss(e, peer, lost_by_now(tx, rec));
        rec->probed = rec->state == MRD_SENT_INFLIGHT && !mrd_loss_timed_out(&tx->loss);
        lost = rec->state == MRD_SENT_INFLIGHT && blame_path(e, tx, rec) && rec->probed;
        count_probe(e, peer);
        rec->deliberate = !lost;
        rec->path_penalized = lost;
        /* Of two copies both may arrive: that would not tell whether the first one did. */
        resend(e, peer, rec, tx->probes.due > 1 && !lost, o);
        tx->probes.silent_since_ns =
            silent_since_ns; /* the peer's silence began before this probe */
    }
    tx->probes.due = 0;
    return rec != NULL;
}

/* The peer is silent: send an empty packet, which it must ack. */
static bool send_silence_probe(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->probes.silence_due || !mrd_tx_add_control(peer, MRD_SENT_EMPTY, MRD_PSN_CONTROL, &rec))
        return false;
    tx->probes.silence_due = false;
    e->stats.probes++;
    mrd_tx_emit(e, peer, rec, mrd_tx_pick_path(e, tx, -1), false, o);
    return true;
}

/* ---------------------------------------------------------------------------- a peer, all peers */

static bool send_control(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    return send_refusal(e, peer, o) || send_aborts(e, peer, o) || send_ready(e, peer, o) ||
           send_close(e, peer, o) || retransmit_control(e, peer, o);
}

/*
 * Nothing follows now: must the last packet ask for an ack? Not if the window is what stops us and
 * a packet in flight asked already.
 */
static bool must_ask(const struct mrd_send_state *tx)
{
    return !tx->run.limited || mrd_seq_before(tx->request.psn, tx->sent.una) ||
           tx->sent.inflight.num == 1;
}

/*
 * Is there nothing to be sent but, perhaps, an ack or a READY? Of the latter nobody knows: its
 * receives may be used up before it leaves.
 */
static bool nothing_left(const struct mrd_send_state *tx)
{
    return !tx->queued_bytes && !tx->sent.lost.num && !tx->sent.lost_control.num &&
           !tx->probes.copy_due && !tx->probes.due && !tx->probes.silence_due &&
           mrd_list_empty(&tx->refusals) && mrd_list_empty(&tx->aborts) &&
           mrd_list_empty(&tx->closes);
}

/*
 * Must an owed ack leave before data? Yes, or a caller with little room would never get to it while
 * there is data, and the peer would retransmit. But not if it may ride on a packet that follows.
 */
static bool ack_goes_first(struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_msg *msg;
    struct mrd_node *txq;

    if (!peer->rx || !ack_owed(e, peer))
        return false;
    if (!peer->tx || !mrd_rcv_rides(&peer->rx->rcv) || !(txq = mrd_list_first(&peer->tx->txqs)))
        return true;
    msg = mrd_txq_first(mrd_container_of(txq, struct mrd_txq, peer_node));
    return !msg || msg->multi;
}

/*
 * Send what the peer is owed, then new data. Until its life is known (`hello`), only packets that
 * carry nothing. Returns true if it needs another turn.
 */
static bool send_to(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    bool more = false, waits = false;

    /* Of a send state that idled for long the peer may know nothing: READY goes in a new one. */
    if (!mrd_list_empty(&peer->readies))
        mrd_send_state_open(e, peer);
    if (o->num < o->max && ack_goes_first(e, peer))
        mrd_tx_put_ack(e, peer, o);
    if (peer->tx) {
        const bool hello = peer->tx->contact.hello;

        peer->tx->run.limited = false;
        more = true;
        while (o->num < o->max && more) {
            if (send_copy(e, peer, o) || (!hello && send_control(e, peer, o)) ||
                send_probe(e, peer, o) || retransmit(e, peer, o) || send_silence_probe(e, peer, o))
                continue;
            if (!hello && send_mtu_probe(e, peer, o))
                continue;
            waits = !hello && mrd_tx_coalesces(e, peer->tx);
            more = !hello && !waits && mrd_tx_new_data(e, peer, o);
        }
        if ((!more || nothing_left(peer->tx)) && o->open_head && must_ask(peer->tx))
            mrd_tx_request_ack(peer->tx, o);
        mrd_tx_seal(o);
    }
    if (peer->rx && ack_owed(e, peer)) {
        if (o->num < o->max)
            mrd_tx_put_ack(e, peer, o);
        else
            more = true;
        more |= peer->rx->rcv.now;
    }
    mrd_timer_touch(e, peer);
    return more || waits || (peer->rx && peer->rx->rcv.wait_for_reply);
}

bool mrd_engine_quiet(const struct mrd_engine *e)
{
    const struct mrd_node *first = e->turns.ready.next;
    const struct mrd_peer *peer;
    const struct mrd_send_state *tx;

    if (e->answers.head != e->answers.tail || e->turns.wants_path || e->turns.wants_route)
        return false;
    if (first == &e->turns.ready)
        return true;
    if (first->next != &e->turns.ready) /* rare, and not worth a walk */
        return false;
    peer = mrd_container_of(first, const struct mrd_peer, ready);
    tx = peer->tx;
    return (!tx ||
            (mrd_list_empty(&peer->readies) && nothing_left(tx) && !tx->sent.inflight.num)) &&
           !ack_owed(e, peer);
}

bool mrd_engine_tx_cut_short(const struct mrd_engine *e)
{
    return e->turns.cut_short;
}

unsigned mrd_engine_tx(struct mrd_engine *e, struct mrd_tx_packet *packets, unsigned n,
                       uint64_t now_ns)
{
    struct mrd_tx_out o = {.packets = packets, .max = n};
    struct mrd_node turn;

    mrd_clock_set(&e->clock, now_ns);
    e->turns.says_ready = e->turns.cut_short = false;
    if (!mrd_list_empty(&e->turns.responses)) /* flows ended, and no packet was placed since */
        mrd_respond_run(e);
    mrd_tx_put_answers(e, &o);
    mrd_list_init(&turn);
    mrd_list_splice(&turn, &e->turns.ready);
    while (o.num < o.max && !mrd_list_empty(&turn)) {
        struct mrd_peer *peer = mrd_container_of(mrd_list_pop(&turn), struct mrd_peer, ready);

        if (send_to(e, peer, &o))
            mrd_tx_ready(e, peer);
    }
    mrd_list_splice(&turn, &e->turns.ready); /* those whose turn did not come go first next time */
    mrd_list_splice(&e->turns.ready, &turn);
    return o.num;
}
