/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to send: what goes next to a peer, and how a record becomes a packet, the first time and again. */
#include <assert.h>
#include <string.h>

#include "core/engine_impl.h"
#include "core/seq.h"
#include "core/sge.h"

enum {
    DATA_EIGHTHS = 3,       /* of the tracker: data; the rest is for refusals and aborts */
    ABORT_EIGHTHS = 4,
    REQUESTS_PER_WINDOW = 8, /* at least: else a small window would be sent and acked as a whole, and both ends wait in turn */
    QUANTUM_RTT_DIVISOR = 3, /* a quantum lasts at most this share of the base RTT at the measured rate */
};

/* One call's output. The last data packet stays unsealed until it is known whether another follows. */
struct out {
    struct mrd_tx_packet *packets;
    unsigned num, max;
    uint8_t *open_head; /* header not sealed yet, and its end */
    uint8_t *open_end;
    uint32_t open_psn;
};

static uint32_t stamp_of(uint64_t ns)
{
    return (uint32_t)(ns / MRD_WIRE_STAMP_NS);
}

static void seal(struct out *o)
{
    if (o->open_head)
        mrd_wire_seal(o->open_head, o->open_end);
    o->open_head = NULL;
}

static void request_ack(struct mrd_tx_half *tx, struct out *o)
{
    mrd_wire_add_flags(o->open_head, MRD_WIRE_ACK_REQUEST);
    tx->since_request = 0;
    tx->request_psn = o->open_psn;
}

static struct mrd_tx_packet *next_packet(struct out *o, const struct mrd_peer *peer)
{
    struct mrd_tx_packet *p = &o->packets[o->num++];

    p->to = peer->addr;
    p->from = peer->local;
    p->cookie = MRD_TX_COOKIE_NONE;
    p->flags = 0;
    p->num_iov = 0;
    return p;
}

/* ---------------------------------------------------------------------------------------- acks */

static bool ack_owed(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_rcv *r;

    if (!peer->rx)
        return false;
    r = &peer->rx->rcv;
    return r->now || e->now >= r->due_ns || (r->wait_for_reply && peer->rx->call_seq != e->call_seq);
}

/* A random usable path: a fixed one that turns into a blackhole would kill everything. */
static uint16_t ack_path(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_tx_half *tx = peer->tx;
    uint32_t i;

    if (!tx)
        return (uint16_t)mrd_rng_below(&e->rng, e->config.paths);
    for (unsigned tries = 0; tries < 4; tries++) {
        i = mrd_rng_below(&e->rng, tx->paths.num);
        if (tx->path[i].state == MRD_PATH_GOOD)
            break;
    }
    return tx->path[i].ev;
}

static void put_ack(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_rcv *r = &peer->rx->rcv;
    unsigned copies = r->twice && o->max - o->num > 1 ? 2 : 1;
    struct mrd_wire_head head = {.type = MRD_WIRE_ACK,
                                 .src_inc = e->config.incarnation,
                                 .dst_inc = peer->rx_inc,
                                 .epoch = peer->rx_epoch,
                                 .stamp = stamp_of(e->now),
                                 .reply = e->config.self.port};
    struct mrd_wire_ack ack;

    mrd_rcv_build(r, &ack, mrd_engine_grant(e, peer), e->now);
    r->twice = false;
    ack.ack_delay_usec = (uint16_t)(e->config.mover.ack_delay_ns / MRD_USEC);
    head.psn = ack.cum;
    for (unsigned i = 0; i < copies; i++) {
        struct mrd_tx_packet *p = next_packet(o, peer);
        uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(p->head, &head), &ack);

        mrd_wire_seal(p->head, end);
        p->path = ack_path(e, peer);
        p->head_len = (uint16_t)(end - p->head);
        p->len = p->head_len;
        e->stats.tx_acks++;
        e->stats.tx_wire_bytes += p->len;
    }
}

/* ---------------------------------------------------------------------------------------- record -> packet */

static void begin_head(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_sent *rec,
                       const struct mrd_path *path, uint32_t pseq, struct mrd_wire_head *head)
{
    struct mrd_tx_half *tx = peer->tx;

    *head = (struct mrd_wire_head){.type = MRD_WIRE_DATA,
                                   .src_inc = e->config.incarnation,
                                   .dst_inc = tx->bound_inc,
                                   .epoch = tx->epoch,
                                   .psn = rec->psn,
                                   .stamp = stamp_of(e->now),
                                   .path_id = path->id,
                                   .pseq = (uint16_t)pseq,
                                   .reply = e->config.self.port};
    if (tx->epoch_ns == MRD_NEVER)
        tx->epoch_ns = e->now;
    if (!tx->acked_once && e->now - tx->epoch_ns <= MRD_FIRST_CONTACT_LIFE_NS) {
        head->flags |= MRD_WIRE_FIRST_CONTACT;
        if (tx->has_cookie) {
            head->flags |= MRD_WIRE_COOKIE;
            head->cookie = tx->cookie;
        }
    }
}

/* Numbers of ordered mode, and the oldest message still owed: all older ones are over, also those that never came. */
static void number(const struct mrd_msg *msg, struct mrd_wire_part *part)
{
    const struct mrd_msg *oldest;

    part->src_qpn = msg->qp->pub.qp_num;
    if (!msg->flow)
        return;
    oldest = mrd_container_of(msg->flow->msgs.next, struct mrd_msg, flow_node);
    part->msn = (uint16_t)msg->msn;
    part->rsn = (uint16_t)msg->rsn;
    part->msn_behind = (uint16_t)(msg->msn - oldest->msn);
    part->rsn_behind = (uint16_t)(msg->rsn - oldest->rsn);
}

static uint32_t part_bytes(const struct mrd_msg *msg)
{
    return mrd_wire_part_bytes(msg->op, msg->part_flags);
}

static bool memory_valid(const struct mrd_engine *e, const struct mrd_msg *msg)
{
    return msg->is_inline ||
           mrd_mr_list(&e->mrs, msg->qp->pub.pd, msg->sge, msg->num_sge, 0) == MRD_MR_OK;
}

/* Messages whose memory was deregistered are given up before their bytes are touched. */
static bool sendable(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->state != MRD_MSG_SENDING && msg->state != MRD_MSG_QUEUED)
        return false;
    if (memory_valid(e, msg))
        return true;
    mrd_engine_cancel(e, msg, MRD_WC_LOC_PROT_ERR);
    return false;
}

static uint8_t *put_small(struct mrd_engine *e, struct mrd_sent *rec, uint8_t *at, uint32_t *payload_len)
{
    struct mrd_msg *msg, *next;
    uint32_t bytes = 0, index = 0;
    uint8_t *payload;

    /* First what the header will take, then parts and payloads side by side. */
    for (msg = rec->u.small; msg; msg = next) {
        next = msg->chain;
        (void)sendable(e, msg);
    }
    for (msg = rec->u.small; msg; msg = msg->chain) {
        bytes += (msg->part_index - index) * MRD_WIRE_PART_BYTES_MIN;
        index = msg->part_index + 1u;
        bytes += msg->state == MRD_MSG_SENDING ? part_bytes(msg) : MRD_WIRE_PART_BYTES_MIN;
    }
    payload = at + bytes;
    index = 0;
    for (msg = rec->u.small; msg; msg = msg->chain) {
        struct mrd_wire_part part = {.op = MRD_OP_VOID};

        for (; index < msg->part_index; index++)
            at = mrd_wire_put_part(at, &part);
        index++;
        if (msg->state == MRD_MSG_SENDING) {
            mrd_msg_part(msg, 0, msg->length, &part);
            number(msg, &part);
            mrd_msg_copy(msg, 0, msg->length, payload);
            payload += msg->length;
        }
        at = mrd_wire_put_part(at, &part);
    }
    *payload_len = (uint32_t)(payload - at);
    return at;
}

static uint8_t *put_segment(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, uint8_t *at,
                            struct mrd_tx_packet *p, uint32_t *payload_len, uint32_t *check)
{
    struct mrd_tx_id *id = &peer->tx->ids[rec->id % MRD_MSG_SLOTS];
    struct mrd_msg *msg = id->msg;
    struct mrd_wire_part part;

    /* Completed, cancelled or of an older attempt: an empty packet, which only carries the PSN. */
    if (!msg || msg->attempt != rec->attempt || !sendable(e, msg))
        return at;
    mrd_msg_part(msg, rec->offset, rec->len, &part);
    number(msg, &part);
    at = mrd_wire_put_part(at, &part);
    if (!msg->is_inline)
        p->num_iov = (uint8_t)mrd_sge_pieces(msg->sge, msg->num_sge, rec->offset, rec->len, p->iov);
    if (p->num_iov != 1) { /* one hash over several pieces: staging is simpler and they are rare */
        mrd_msg_copy(msg, rec->offset, rec->len, at);
        p->num_iov = 0;
        *check = mrd_wire_payload_check(at, rec->len);
        *payload_len = rec->len;
        return at;
    }
    *check = mrd_wire_payload_check(p->iov[0].iov_base, rec->len);
    if (!e->config.mover.copies) {
        p->cookie = (uint64_t)(uintptr_t)msg;
        msg->reading++;
    }
    return at;
}

static uint8_t *put_refusal(const struct mrd_sent *rec, uint8_t *at)
{
    const struct mrd_refusal *r = rec->u.refusal;

    at = mrd_wire_put_refusal(at, r->epoch, r->psn, r->rnr_usec, r->num);
    for (unsigned i = 0; i < r->num; i++)
        at = mrd_wire_put_refusal_entry(at, &r->entry[i]);
    return at;
}

static uint8_t *put_aborts(const struct mrd_sent *rec, uint8_t *at)
{
    for (const struct mrd_msg *msg = rec->u.small; msg; msg = msg->abort_chain) {
        struct mrd_wire_part part = {.op = MRD_OP_ABORT,
                                     .flags = (uint8_t)((msg->has_id ? MRD_PART_MULTI : 0) |
                                                        (msg->flow ? MRD_PART_ORDERED : 0)),
                                     .attempt = msg->op == MRD_OP_SEND || msg->part_flags & MRD_PART_IMM,
                                     .dst_qpn = msg->dst_qpn,
                                     .id = msg->id,
                                     .total = msg->length};

        number(msg, &part);
        at = mrd_wire_put_part(at, &part);
    }
    return at;
}

/*
 * Build and emit a record's packet on a path. `copy`: a second copy, of which the record takes no note. An ack rides
 * on packets of whole messages.
 */
static void emit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, uint32_t index, bool copy,
                 struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_tx_packet *p;
    struct mrd_wire_head head;
    uint32_t pseq, payload_len = 0, check = 0;
    uint8_t *at;

    seal(o);
    p = next_packet(o, peer);
    pseq = mrd_path_sent(&tx->paths, index);
    begin_head(e, peer, rec, &tx->path[index], pseq, &head);
    if (rec->kind == MRD_SENT_SMALL && peer->rx && peer->rx->rcv.due_ns != MRD_NEVER &&
        !(head.flags & MRD_WIRE_COOKIE) && mrd_rcv_rides(&peer->rx->rcv)) {
        mrd_rcv_ride(&peer->rx->rcv, &head, mrd_engine_grant(e, peer), e->now);
        head.ack_epoch = peer->rx_epoch;
        e->stats.tx_acks_ridden++;
    }
    at = mrd_wire_put_head(p->head, &head);
    if (rec->kind == MRD_SENT_SEGMENT)
        at = put_segment(e, peer, rec, at, p, &payload_len, &check);
    else if (rec->kind == MRD_SENT_SMALL)
        at = put_small(e, rec, at, &payload_len);
    else if (rec->kind == MRD_SENT_REFUSAL)
        at = put_refusal(rec, at);
    else if (rec->kind == MRD_SENT_ABORT)
        at = put_aborts(rec, at);
    if (rec->kind == MRD_SENT_SMALL)
        check = mrd_wire_payload_check(at, payload_len);
    mrd_wire_set_payload_check(p->head, check);
    o->open_head = p->head;
    o->open_end = at;
    o->open_psn = rec->psn;
    p->head_len = (uint16_t)((uint32_t)(at - p->head) + payload_len);
    p->len = p->head_len + (p->num_iov ? rec->len : 0u);
    p->path = tx->path[index].ev;
    p->flags = MRD_TX_ECT;
    if (p->len > tx->payload_bytes + MRD_HEAD_PEEK_BYTES)
        p->flags |= MRD_TX_FRAGMENT; /* cut before the path's MTU shrank: a PSN keeps its size */
    if (!rec->bytes)
        rec->bytes = (uint16_t)p->len;
    if (++tx->since_request * REQUESTS_PER_WINDOW * (double)rec->bytes >= tx->cc.cwnd_bytes)
        request_ack(tx, o);

    e->stats.tx_packets++;
    e->stats.tx_bytes += p->len - (uint32_t)(at - p->head);
    e->stats.tx_wire_bytes += p->len;
    peer->packets_sent++;
    peer->bytes_sent += p->len - (uint32_t)(at - p->head);
    tx->loss.last_send_ns = e->now;
    tx->active_ns = e->now;
    if (!tx->sent.inflight.num)
        tx->patience_ns = mrd_engine_present(e);
    if (copy) {
        mrd_path_forgot(&tx->paths, index);
        return;
    }
    if (rec->state == MRD_SENT_INFLIGHT) /* a probe: the earlier copy is no longer followed */
        mrd_path_forgot(&tx->paths, rec->path);
    mrd_sent_transmit(&tx->sent, rec, tx->path, (uint16_t)index, pseq, e->now);
}

static uint32_t pick(struct mrd_engine *e, struct mrd_tx_half *tx, int avoid)
{
    struct mrd_spray_args args = {.now_ns = e->now,
                                  .base_rtt_ns =
                                      mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)),
                                  .avoid = avoid,
                                  .rng = &e->rng};

    return tx->spray.ops->pick(&tx->spray, &tx->paths, &args);
}

/* ---------------------------------------------------------------------------------------- windows */

static bool window_open(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    const struct mrd_sents *s = &tx->sent;

    if (tx->cc.cwnd_bytes < tx->cc.config.packet_bytes)
        return !s->inflight.num && e->now >= tx->pace_ns;
    return (double)s->inflight_bytes < tx->cc.cwnd_bytes;
}

/* A window below one packet: the next one may leave after SRTT / cwnd. */
static void pace(const struct mrd_engine *e, struct mrd_tx_half *tx)
{
    if (tx->cc.cwnd_bytes < tx->cc.config.packet_bytes)
        tx->pace_ns = e->now + (uint64_t)((double)tx->loss.srtt_ns * tx->cc.config.packet_bytes /
                                          tx->cc.cwnd_bytes);
}

static bool psn_room(const struct mrd_engine *e, const struct mrd_tx_half *tx, uint32_t eighths)
{
    const struct mrd_sents *s = &tx->sent;
    uint32_t used = s->next - s->una;
    int32_t grant = (int32_t)(tx->psn_limit - s->una);

    if (used >= e->config.mover.tracker / 8 * eighths)
        return false;
    return (int32_t)used < (eighths == DATA_EIGHTHS ? grant / 2 : grant);
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

        if (!sendable(e, msg))
            continue;
        if (!msg->multi && part_bytes(msg) + msg->length > small_room(tx)) {
            msg->multi = true; /* the path's MTU shrank since it was posted */
            msg->part_flags |= MRD_PART_MULTI;
        }
        return msg;
    }
    return NULL;
}

static void new_segment(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_msg *msg, struct mrd_sent *rec)
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
            uint32_t bytes = part_bytes(msg) + msg->length;

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
 * Packets in a row on one path: what the mover likes to batch, but no more than a share of the base RTT carries at
 * the measured rate, so that a slow fabric is sprayed finely; and only one as a probe of a path that is not good.
 */
static uint32_t quantum(const struct mrd_engine *e, const struct mrd_tx_half *tx, uint32_t index)
{
    uint32_t max = e->config.mover.quantum;
    double bdp = mrd_cc_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss));
    double packets = bdp / QUANTUM_RTT_DIVISOR / tx->cc.config.packet_bytes;

    if (tx->path[index].state != MRD_PATH_GOOD || packets < 1 || e->now < tx->single_until_ns)
        return 1;
    return packets < max ? (uint32_t)packets : max;
}

static bool new_data(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_msg *msg = next_message(e, tx);
    struct mrd_sent *rec;

    if (!msg)
        return false;
    tx->limited = true;
    if (!window_open(e, tx) || !psn_room(e, tx, DATA_EIGHTHS))
        return false;
    rec = mrd_sent_add(&tx->sent);
    if (!rec)
        return false;
    tx->limited = false;
    if (!tx->quantum_left) {
        tx->path_now = pick(e, tx, -1);
        tx->quantum_left = quantum(e, tx, tx->path_now);
    }
    if (msg->multi)
        new_segment(e, peer, msg, rec);
    else
        new_small(e, peer, rec);
    emit(e, peer, rec, tx->path_now, false, o);
    pace(e, tx);
    if (--tx->quantum_left == 0)
        rotate(tx);
    return true;
}

/* ---------------------------------------------------------------------------------------- control */

static bool control_record(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent **rec, uint32_t eighths)
{
    if (!psn_room(e, peer->tx, eighths))
        return false;
    *rec = mrd_sent_add(&peer->tx->sent);
    return *rec != NULL;
}

static bool send_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (mrd_list_empty(&tx->refusals) || !control_record(e, peer, &rec, 8))
        return false;
    rec->kind = MRD_SENT_REFUSAL;
    rec->u.refusal = mrd_container_of(mrd_list_pop(&tx->refusals), struct mrd_refusal, node);
    emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

static bool send_aborts(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
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
    emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

/* ---------------------------------------------------------------------------------------- retransmission */

static bool tail_rules(const struct mrd_tx_half *tx)
{
    return tx->cc.cwnd_bytes >= mrd_cc_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) / 2;
}

static void again(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, unsigned copies,
                  struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    uint16_t old = rec->path;
    uint32_t index = pick(e, tx, old);

    rec->deliberate |= copies > 1;
    mrd_loss_log(&tx->loss, rec, old);
    e->stats.retx_packets += copies;
    peer->packets_retransmitted += copies;
    if (copies > 1) {
        e->stats.retx_copy++;
        emit(e, peer, rec, pick(e, tx, (int)index), true, o);
    }
    emit(e, peer, rec, index, false, o);
}

static bool retransmit(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;
    bool tail;

    if (!tx->sent.lost.num)
        return false;
    tx->limited = true;
    if (!window_open(e, tx))
        return false;
    tx->limited = false;
    rec = mrd_sent_get(&tx->sent, tx->sent.lost.head);
    tail = mrd_list_empty(&tx->txqs) && tail_rules(tx) && o->max - o->num > 1;
    again(e, peer, rec, tail ? 2 : 1, o);
    pace(e, tx);
    return true;
}

/*
 * The packet that was not sent for longest once more, to hear of the tail; probes are beyond the window. Not the lowest
 * PSN: that may be one whose ack waits for a refusal of ours further on, and the other way round at the peer.
 */
static bool send_probe(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec = NULL;

    if (!tx->probes_due)
        return false;
    if (tx->sent.inflight.num)
        rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);
    else if (tx->sent.lost.num)
        rec = mrd_sent_get(&tx->sent, tx->sent.lost.head);
    if (rec) {
        rec->deliberate = true;
        again(e, peer, rec, tx->probes_due > 1 && o->max - o->num > 1 ? 2 : 1, o);
    }
    tx->probes_due = 0;
    return rec != NULL;
}

/* The peer owes us something and is silent: an empty packet that it must ack. */
static bool send_silence_probe(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_sent *rec;

    if (!tx->silence_probe || !control_record(e, peer, &rec, 8))
        return false;
    tx->silence_probe = false;
    rec->kind = MRD_SENT_EMPTY;
    e->stats.probes++;
    emit(e, peer, rec, pick(e, tx, -1), false, o);
    return true;
}

/* ---------------------------------------------------------------------------------------- a peer, all peers */

/* Within a post, a packet that is not full waits for company while others are in flight (RFC 896). */
static bool hold_back(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    return e->post_seq == e->call_seq && tx->sent.inflight.num && tx->queued_bytes < tx->payload_bytes;
}

static bool one_packet(struct mrd_engine *e, struct mrd_peer *peer, struct out *o, bool *held)
{
    struct mrd_tx_half *tx = peer->tx;

    if (send_refusal(e, peer, o) || send_aborts(e, peer, o) || send_probe(e, peer, o) ||
        retransmit(e, peer, o) || send_silence_probe(e, peer, o))
        return true;
    if (mrd_list_empty(&tx->txqs))
        return false;
    *held = hold_back(e, tx);
    return !*held && new_data(e, peer, o);
}

/* Nothing follows now: an ack is wanted, unless the window is what stops us and one is on its way already. */
static bool must_ask(const struct mrd_tx_half *tx)
{
    return !tx->limited || mrd_seq_before(tx->request_psn, tx->sent.una) || tx->sent.inflight.num == 1;
}

/* true: there is more, or something waits for the next call. */
static bool peer_tx(struct mrd_engine *e, struct mrd_peer *peer, struct out *o)
{
    bool held = false, more = false;

    if (peer->tx) {
        peer->tx->quantum_left = 0;
        peer->tx->limited = false;
        while (o->num < o->max && !more)
            more = !one_packet(e, peer, o, &held);
        if (more && o->open_head && must_ask(peer->tx))
            request_ack(peer->tx, o);
        seal(o);
        more = !more;
    }
    if (peer->rx && ack_owed(e, peer)) {
        if (o->num < o->max)
            put_ack(e, peer, o);
        else
            more = true;
    }
    mrd_engine_rearm(e, peer);
    return more || held || (peer->rx && peer->rx->rcv.wait_for_reply);
}

static void put_stateless(struct mrd_engine *e, struct out *o)
{
    while (o->num < o->max && e->stateless_head != e->stateless_tail) {
        const struct mrd_stateless *s = &e->stateless[e->stateless_head++ % MRD_STATELESS_MAX];
        struct mrd_tx_packet *p = &o->packets[o->num++];
        uint8_t *end = mrd_wire_put_head(p->head, &s->head);

        mrd_wire_seal(p->head, end);
        p->to = s->to;
        p->from = s->from;
        p->from.port = 0;
        p->cookie = MRD_TX_COOKIE_NONE;
        p->path = (uint16_t)mrd_rng_below(&e->rng, e->config.paths);
        p->flags = 0;
        p->num_iov = 0;
        p->head_len = (uint16_t)(end - p->head);
        p->len = p->head_len;
        if (s->head.type == MRD_WIRE_RESET)
            e->stats.tx_resets++;
        else
            e->stats.tx_challenges++;
        e->stats.tx_wire_bytes += p->len;
    }
}

unsigned mrd_engine_tx(struct mrd_engine *e, struct mrd_tx_packet *packets, unsigned n, uint64_t now_ns)
{
    struct out o = {.packets = packets, .max = n};
    struct mrd_node turn;

    mrd_engine_time(e, now_ns);
    put_stateless(e, &o);
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
