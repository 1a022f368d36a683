/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes next to a peer: new data, control, what was lost, probes, acks; and whose turn it is. */
#include <assert.h>
#include <string.h>

#include "core/engine_impl.h"
#include "core/seq.h"
#include "core/sge.h"

enum {
    DATA_EIGHTHS = 3, /* of the tracker: data; the rest is for refusals and aborts */
    ABORT_EIGHTHS = 4,
};

static uint32_t pick(struct mrd_engine *e, struct mrd_tx_half *tx, int avoid)
{
    struct mrd_spray_args args = {.now_ns = e->now,
                                  .base_rtt_ns =
                                      mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)),
                                  .avoid = avoid,
                                  .rng = &e->rng,
                                  .tune = e->config.mover.tune};

    return tx->spray.ops->pick(&tx->spray, &tx->paths, &args);
}

static bool ack_owed(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_rcv *r;

    if (!peer->rx)
        return false;
    r = &peer->rx->rcv;
    return r->now || e->now >= r->due_ns ||
           (r->wait_for_reply && peer->rx->call_seq != e->call_seq);
}

/* ---------------------------------------------------------------------------------------- windows */

static bool window_open(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    const struct mrd_sents *s = &tx->sent;

    if (tx->cc.cwnd_bytes < tx->cc.config.packet_bytes)
        return !s->inflight.num && e->now >= mrd_engine_pace_ns(tx);
    return (double)s->inflight_bytes < tx->cc.cwnd_bytes;
}

/*
 * Data keeps to half of the peer's grant. Control packets are small, and refusals must never lack room: a PSN of the
 * peer's may be waiting for each. They are bounded by the tracker alone.
 */
static bool psn_room(const struct mrd_engine *e, const struct mrd_tx_half *tx, uint32_t eighths)
{
    const struct mrd_sents *s = &tx->sent;
    uint32_t used = s->next - s->una;

    if (used >= e->config.mover.tracker / 8 * eighths)
        return false;
    return eighths != DATA_EIGHTHS || (int32_t)used < (int32_t)(tx->psn_limit - s->una) / 2;
}

/* ---------------------------------------------------------------------------------------- new data */

static bool id_free(const struct mrd_tx_half *tx, uint32_t id)
{
    const struct mrd_tx_id *entry = &tx->ids[id % MRD_MSG_SLOTS];

    return !entry->live && !entry->msg;
}

static bool flow_open(const struct mrd_msg *msg)
{
    const struct mrd_node *oldest;

    if (!msg->flow)
        return true;
    oldest = msg->flow->msgs.next;
    return msg->msn - mrd_container_of(oldest, struct mrd_msg, flow_node)->msn < MRD_MSN_WINDOW;
}

static bool may_start(const struct mrd_tx_half *tx, const struct mrd_msg *msg)
{
    if (!flow_open(msg))
        return false;
    return !msg->multi || msg->has_id || id_free(tx, msg->peer->msg_id_next);
}

/* What one packet of whole messages may hold, parts and payloads. */
static uint32_t small_room(const struct mrd_tx_half *tx)
{
    return tx->payload_bytes + MRD_HEAD_PEEK_BYTES - MRD_WIRE_BASE_BYTES - MRD_WIRE_ACKBLOCK_BYTES;
}

static struct mrd_msg *txq_head(struct mrd_engine *e, struct mrd_txq *q)
{
    const struct mrd_tx_half *tx = q->peer->tx;
    struct mrd_node *n;

    while ((n = mrd_list_first(&q->msgs))) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        if (!mrd_engine_sendable(e, msg))
            continue;
        if (!msg->multi && mrd_engine_part_bytes(msg) + msg->length > small_room(tx)) {
            msg->multi = true; /* the path's MTU shrank since it was posted */
            msg->part_flags |= MRD_PART_MULTI;
        }
        return msg;
    }
    return NULL;
}

static void new_segment(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_msg *msg,
                        struct mrd_sent *rec)
{
    struct mrd_tx_half *tx = peer->tx;
    uint32_t left;

    if (!msg->has_id) {
        msg->id = peer->msg_id_next++;
        msg->has_id = true;
        tx->ids[msg->id % MRD_MSG_SLOTS] = (struct mrd_tx_id){.id = msg->id, .msg = msg};
    }
    left = msg->length - msg->next_offset;
    rec->kind = MRD_SENT_SEGMENT;
    rec->id = msg->id;
    rec->offset = msg->next_offset;
    rec->len = (uint16_t)(left < tx->payload_bytes ? left : tx->payload_bytes);
    rec->attempt = msg->attempt;
    tx->ids[msg->id % MRD_MSG_SLOTS].live++;
    msg->next_offset += rec->len;
    msg->started = true;
    if (msg->next_offset == msg->length)
        mrd_engine_dequeue(e, msg);
}

/* Whole messages of this and the following queues, as many as fit. */
static void new_small(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec)
{
    struct mrd_tx_half *tx = peer->tx;
    uint32_t room = small_room(tx);
    struct mrd_msg **tail = &rec->u.small;
    struct mrd_node *n, *next;
    uint8_t num = 0;

    rec->kind = MRD_SENT_SMALL;
    for (n = tx->txqs.next; n != &tx->txqs; n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg;

        next = n->next;
        while (num < MRD_PARTS_MAX && (msg = txq_head(e, q))) {
            uint32_t bytes = mrd_engine_part_bytes(msg) + msg->length;

            if (msg->multi || bytes > room || !flow_open(msg))
                break;
            mrd_engine_dequeue(e, msg);
            room -= bytes;
            msg->started = true;
            msg->in_chain = true;
            msg->part_index = num++;
            msg->psn = rec->psn;
            *tail = msg;
            tail = &msg->chain;
            *tail = NULL;
        }
        if (mrd_list_empty(&q->msgs))
            mrd_engine_txq_drop(e, q);
    }
}

/* The queue whose turn it is and that can send; queues found empty are dropped. */
static struct mrd_msg *next_message(struct mrd_engine *e, struct mrd_tx_half *tx)
{
    struct mrd_node *n, *next;

    for (n = tx->txqs.next; n != &tx->txqs; n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg = txq_head(e, q);

        next = n->next;
        if (!msg)
            mrd_engine_txq_drop(e, q);
        else if (may_start(tx, msg))
            return msg;
    }
    return NULL;
}

/* Queue pairs take turns, a quantum each: a run of one message's packets is what batching and straight receive need. */
static void rotate(struct mrd_tx_half *tx)
{
    struct mrd_node *n = mrd_list_first(&tx->txqs);

    if (!n || n->next == &tx->txqs)
        return;
    mrd_list_remove(n);
    mrd_list_append(&tx->txqs, n);
}

/*
 * Packets in a row on one path: what the mover likes to batch, but of a long message no more than a share of the base RTT
 * carries at the measured rate, so that a slow fabric is sprayed finely; and only one as a probe of a path that is not
 * good. Short messages are few or share packets: their runs end by time.
 */
static uint32_t quantum(const struct mrd_engine *e, const struct mrd_tx_half *tx, uint32_t index,
                        const struct mrd_msg *msg)
{
    uint32_t max = e->config.mover.quantum;
    double packets;

    if (max == 1 || tx->path[index].state != MRD_PATH_GOOD || e->now < tx->single_until_ns)
        return 1;
    if (!msg->multi)
        return max;
    packets = mrd_cc_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) *
              e->config.mover.tune->engine.quantum_rtts / tx->cc.config.packet_bytes;
    if (packets < 1)
        return 1;
    return packets < max ? (uint32_t)packets : max;
}

/*
 * Short messages go on with the run where it left off, unless the path fell out of favour or the choice is a base RTT
 * old. A burst of segments begins anew: split over two paths it would be two.
 */
static void choose_path(struct mrd_engine *e, struct mrd_tx_half *tx, const struct mrd_msg *msg)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss));

    if (tx->quantum_left && tx->path[tx->path_now].state == MRD_PATH_GOOD &&
        (tx->picked_ns == e->now || (!msg->multi && e->now - tx->picked_ns < base_ns)))
        return;
    tx->path_now = pick(e, tx, -1);
    tx->quantum_left = quantum(e, tx, tx->path_now, msg);
    tx->picked_ns = e->now;
}

/*
 * A long message goes in bursts that a mover can hand down at once: with less room than that, and acks on their way,
 * it waits for more. (The same trade as TCP's deferral of segmentation offload.)
 */
static bool wait_for_burst(const struct mrd_engine *e, const struct mrd_tx_half *tx,
                           const struct mrd_msg *msg)
{
    double packet = tx->cc.config.packet_bytes;
    double burst = tx->cc.cwnd_bytes / e->config.mover.tune->engine.bursts_per_window;
    double most = e->config.mover.quantum * packet;
    double rest = msg->length - msg->next_offset;

    if (e->config.mover.quantum == 1 || (tx->quantum_left && tx->picked_ns == e->now) ||
        !msg->multi || !tx->sent.inflight.num)
        return false;
    burst = burst < most ? burst : most;
    burst = burst < rest ? burst : rest;
    return tx->cc.cwnd_bytes - (double)tx->sent.inflight_bytes < burst;
}

static bool control_record(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent **rec,
                           uint32_t eighths)
{
    if (!psn_room(e, peer->tx, eighths))
        return false;
    *rec = mrd_sent_add(&peer->tx->sent);
    return *rec != NULL;
}

/*
 * A path that is out and whose time has come: while there is data to send it is worth knowing whether it works again.
 * The probe is an empty packet, because what is lost on a dead path is missed for two round trips, or more at the end.
 */
static bool probe_path(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    for (uint32_t i = 0; tx->paths.num_out && i < tx->paths.num; i++) {
        if (mrd_path_is_good(&tx->path[i]) || !mrd_path_usable(&tx->path[i], e->now))
            continue;
        if (!control_record(e, peer, &rec, 8))
            return false;
        rec->kind = MRD_SENT_EMPTY;
        e->stats.probes_path++;
        mrd_engine_emit(e, peer, rec, i, false, o);
        return true;
    }
    return false;
}

static bool new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_msg *msg = next_message(e, tx);
    struct mrd_sent *rec;

    if (!msg)
        return false;
    tx->limited = true;
    if (!window_open(e, tx) || !psn_room(e, tx, DATA_EIGHTHS) || wait_for_burst(e, tx, msg))
        return false;
    if (probe_path(e, peer, o))
        return true;
    rec = mrd_sent_add(&tx->sent);
    if (!rec)
        return false;
    tx->limited = false;
    rec->in_run = tx->quantum_left && tx->picked_ns == e->now;
    choose_path(e, tx, msg);
    if (msg->multi)
        new_segment(e, peer, msg, rec);
    else
        new_small(e, peer, rec);
    mrd_engine_emit(e, peer, rec, tx->path_now, false, o);
    tx->sent_ns = e->now;
    if (--tx->quantum_left == 0)
        rotate(tx);
    return true;
}

/* ---------------------------------------------------------------------------------------- control */

static bool send_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (mrd_list_empty(&tx->refusals) || !control_record(e, peer, &rec, 8))
        return false;
    rec->kind = MRD_SENT_REFUSAL;
    rec->u.refusal = mrd_container_of(mrd_list_pop(&tx->refusals), struct mrd_refusal, node);
    mrd_engine_emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

static bool send_aborts(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;
    struct mrd_msg **tail;
    struct mrd_node *n;

    if (mrd_list_empty(&tx->aborts) || !control_record(e, peer, &rec, ABORT_EIGHTHS))
        return false;
    rec->kind = MRD_SENT_ABORT;
    tail = &rec->u.small;
    for (unsigned i = 0; i < MRD_PARTS_MAX / 4 && (n = mrd_list_pop(&tx->aborts)); i++) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        msg->abort_pending = false;
        msg->aborted = true;
        if (msg->has_id)
            tx->ids[msg->id % MRD_MSG_SLOTS].live++;
        e->stats.tx_aborts++;
        *tail = msg;
        tail = &msg->abort_chain;
        *tail = NULL;
    }
    mrd_engine_emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

/* ---------------------------------------------------------------------------------------- retransmission */

/* Nothing new is to be sent, and the window would allow it: repetitions may be generous. */
static bool at_tail(const struct mrd_tx_half *tx)
{
    return mrd_list_empty(&tx->txqs) && mrd_engine_full_window(tx);
}

/* Once more, on another path; with a second copy on a third one, which follows when there is room for it. */
static void again(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, bool twice,
                  struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    uint16_t old = rec->path;

    rec->deliberate |= twice;
    mrd_loss_log(&tx->loss, rec, old);
    e->stats.retx_packets++;
    peer->packets_retransmitted++;
    mrd_engine_emit(e, peer, rec, pick(e, tx, old), false, o);
    tx->copy_due = twice;
    tx->copy_psn = rec->psn;
}

static bool send_copy(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->copy_due)
        return false;
    tx->copy_due = false;
    rec = mrd_sent_get(&tx->sent, tx->copy_psn);
    if (!rec || rec->state != MRD_SENT_INFLIGHT)
        return false;
    e->stats.retx_packets++;
    e->stats.retx_copy++;
    peer->packets_retransmitted++;
    mrd_engine_emit(e, peer, rec, pick(e, tx, rec->path), true, o);
    return true;
}

static bool retransmit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->sent.lost.num)
        return false;
    tx->limited = true;
    if (!window_open(e, tx))
        return false;
    tx->limited = false;
    rec = mrd_sent_get(&tx->sent, tx->sent.lost.head);
    again(e, peer, rec, at_tail(tx), o);
    tx->sent_ns = e->now;
    return true;
}

/*
 * After tail probes and a timeout without an answer the path of the last try is suspected: else those that were the
 * fastest while they worked would be tried in turn for ever.
 */
static void path_timed_out(struct mrd_engine *e, struct mrd_tx_half *tx, struct mrd_sent *rec)
{
    mrd_path_lost(&tx->paths, rec->path,
                  mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)), e->now);
    e->fresh_path_wanted |= tx->path[rec->path].wants_ev != 0;
    mrd_sent_lose(&tx->sent, rec, tx->path);
}

static void count_probe(struct mrd_engine *e, struct mrd_peer *peer)
{
    bool timed_out = mrd_loss_timed_out(&peer->tx->loss);

    e->stats.retx_timeout += timed_out;
    peer->timeouts += timed_out;
    e->stats.retx_tail += !timed_out;
    peer->probes_tail += !timed_out;
}

/*
 * The packet that was not sent for longest once more, to hear of the tail; probes are beyond the window. Not the lowest
 * PSN: that may be one whose ack waits for a refusal of ours further on, and the other way round at the peer.
 */
static bool send_probe(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    uint64_t patience_ns = tx->patience_ns;
    struct mrd_sent *rec = NULL;

    if (!tx->probes_due)
        return false;
    if (tx->sent.inflight.num)
        rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);
    else if (tx->sent.lost.num)
        rec = mrd_sent_get(&tx->sent, tx->sent.lost.head);
    if (rec) {
        if (rec->state == MRD_SENT_INFLIGHT && mrd_loss_timed_out(&tx->loss))
            path_timed_out(e, tx, rec);
        count_probe(e, peer);
        rec->deliberate = true;
        again(e, peer, rec, tx->probes_due > 1, o);
        tx->patience_ns = patience_ns; /* asking again does not begin the silence anew */
    }
    tx->probes_due = 0;
    return rec != NULL;
}

/* The peer owes us something and is silent: an empty packet that it must ack. */
static bool send_silence_probe(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->silence_probe || !control_record(e, peer, &rec, 8))
        return false;
    tx->silence_probe = false;
    rec->kind = MRD_SENT_EMPTY;
    e->stats.probes++;
    mrd_engine_emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

/* ---------------------------------------------------------------------------------------- a peer, all peers */

/* Within a post, a packet that is not full waits for company while others are in flight (RFC 896). */
static bool hold_back(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    return e->post_seq == e->call_seq && tx->sent.inflight.num &&
           tx->queued_bytes < tx->payload_bytes;
}

static bool one_packet(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o, bool *held)
{
    struct mrd_tx_half *tx = peer->tx;

    if (send_copy(e, peer, o) || send_refusal(e, peer, o) || send_aborts(e, peer, o) ||
        send_probe(e, peer, o) || retransmit(e, peer, o) || send_silence_probe(e, peer, o))
        return true;
    if (mrd_list_empty(&tx->txqs))
        return false;
    *held = hold_back(e, tx);
    return !*held && new_data(e, peer, o);
}

/* Nothing follows now: an ack is wanted, unless the window is what stops us and one is on its way already. */
static bool must_ask(const struct mrd_tx_half *tx)
{
    return !tx->limited || mrd_seq_before(tx->request_psn, tx->sent.una) ||
           tx->sent.inflight.num == 1;
}

/*
 * Before data, or a caller that has little room would never get to it while there is data, and the peer would take its
 * packets for lost. But not if it may ride on what follows.
 */
static bool ack_goes_first(struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_msg *msg;

    if (!peer->rx || !ack_owed(e, peer))
        return false;
    if (!peer->tx || !mrd_rcv_rides(&peer->rx->rcv))
        return true;
    msg = next_message(e, peer->tx);
    return !msg || msg->multi;
}

/* true: there is more, or something waits for the next call. */
static bool peer_tx(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    bool held = false, more = false;

    if (o->num < o->max && ack_goes_first(e, peer))
        mrd_engine_put_ack(e, peer, o);
    if (peer->tx) {
        peer->tx->limited = false;
        while (o->num < o->max && !more)
            more = !one_packet(e, peer, o, &held);
        if (more && o->open_head && must_ask(peer->tx))
            mrd_out_request_ack(peer->tx, o);
        mrd_out_seal(o);
        more = !more;
    }
    if (peer->rx && ack_owed(e, peer)) {
        if (o->num < o->max)
            mrd_engine_put_ack(e, peer, o);
        else
            more = true;
        more |= peer->rx->rcv.now;
    }
    mrd_engine_rearm(e, peer);
    return more || held || (peer->rx && peer->rx->rcv.wait_for_reply);
}

unsigned mrd_engine_tx(struct mrd_engine *e, struct mrd_tx_packet *packets, unsigned n,
                       uint64_t now_ns)
{
    struct mrd_out o = {.packets = packets, .max = n};
    struct mrd_node turn;

    mrd_engine_time(e, now_ns);
    mrd_engine_put_stateless(e, &o);
    mrd_list_init(&turn);
    mrd_list_splice(&turn, &e->ready);
    while (o.num < o.max && !mrd_list_empty(&turn)) {
        struct mrd_peer *peer = mrd_container_of(mrd_list_pop(&turn), struct mrd_peer, ready);

        if (peer_tx(e, peer, &o))
            mrd_engine_ready(e, peer);
    }
    mrd_list_splice(&turn, &e->ready); /* those whose turn did not come go first next time */
    mrd_list_splice(&e->ready, &turn);
    return o.num;
}

void mrd_engine_tx_too_big(struct mrd_engine *e, const struct mrd_addr *to, uint32_t payload_bytes)
{
    struct mrd_peer *peer = mrd_peer_find(&e->peers, to);

    payload_bytes &= ~63u;
    if (!peer || payload_bytes < 64)
        return;
    if (!peer->payload_bytes || payload_bytes < peer->payload_bytes)
        peer->payload_bytes = payload_bytes;
    if (peer->tx && payload_bytes < peer->tx->payload_bytes)
        peer->tx->payload_bytes = payload_bytes;
}
