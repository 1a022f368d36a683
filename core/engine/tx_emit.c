/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds packets: of records, of acks, and of answers that need no record. */
#include "core/engine/tx_emit.h"

#include <assert.h>
#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/grant.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/sge.h"

enum {
    ACK_PATH_TRIES = 8, /* draws for a path that is GOOD and not the last ack's */
    FRAGMENTS_ON = 3,   /* pieces by which each transmission begins later than the one before */
};

void mrd_tx_seal(struct mrd_tx_out *o)
{
    if (o->open_head)
        mrd_wire_seal(o->open_head, o->open_end);
    o->open_head = NULL;
}

void mrd_tx_request_ack(struct mrd_send_state *tx, struct mrd_tx_out *o)
{
    mrd_wire_add_flags(o->open_head, MRD_WIRE_ACK_REQUEST);
    tx->request.packets = 0;
    tx->request.psn = o->open_psn;
}

static struct mrd_tx_packet *next_packet(const struct mrd_engine *e, struct mrd_tx_out *o,
                                         const struct mrd_peer *peer)
{
    struct mrd_tx_packet *p = &o->packets[o->num++];

    p->to = peer->addr;
    p->from = peer->local;
    p->life = mrd_peer_life(e, peer);
    p->dscp = peer->dscp;
    p->cookie = MRD_TX_COOKIE_NONE;
    p->flags = e->config.no_ect || peer->ect.off || peer->ect.acks_off ? MRD_TX_NOT_ECT : 0;
    p->num_iov = 0;
    return p;
}

/* ---------------------------------------------------------------------------------------- acks */

/*
 * A random GOOD path: on a fixed one that turns into a blackhole all acks would be lost. Not the
 * last ack's, so that two copies of an ack take two paths.
 */
static uint16_t pick_ack_path(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;
    uint32_t ev = 0;

    for (unsigned tries = 0; tries < ACK_PATH_TRIES; tries++) {
        uint32_t i = mrd_rng_below(&e->rng, e->config.paths);
        const struct mrd_path *path = tx && i < tx->paths.num ? &tx->paths.path[i] : NULL;

        ev = path ? path->ev : i;
        if (ev != peer->rx->ack_path && (!path || mrd_path_is_good(path)))
            break;
    }
    peer->rx->ack_path = (uint16_t)ev;
    return (uint16_t)ev;
}

/*
 * Bytes that any path to the peer takes, as far as is known: nobody tells that an ack was too big, and the next
 * one would be, too.
 */
static uint32_t ack_room(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    return mrd_send_state_pmtu_range(e, peer).base + MRD_HEAD_PEEK_BYTES;
}

void mrd_tx_put_ack(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_rcv *r = &peer->rx->rcv;
    unsigned wanted = e->lives.closing ? MRD_FAREWELL_ACKS : r->twice ? 2 : 1;
    unsigned copies = o->max - o->num < wanted ? o->max - o->num : wanted;
    struct mrd_wire_head head = {.type = MRD_WIRE_ACK,
                                 .src_inc = peer->pair.own_inc,
                                 .dst_inc = peer->space.inc,
                                 .epoch = peer->space.epoch,
                                 .stamp = mrd_wire_stamp(e->clock.now_ns),
                                 .reply = e->config.self.port};
    struct mrd_wire_ack ack;

    mrd_rcv_build(r, &ack, mrd_grant_limit(e, peer), ack_room(e, peer), e->clock.now_ns);
    if (e->config.no_check)
        ack.flags |= MRD_ACK_UNCHECKED;
    r->twice = false;
    r->now = copies < wanted; /* the caller has no room for all: the rest follows */
    if (e->lives.closing)
        ack.live_epoch = MRD_WIRE_EPOCH_NONE;
    else
        ack.live_epoch =
            peer->tx ? peer->tx->contact.epoch : peer->pair.epoch_base + e->lives.epoch_next;
    ack.ack_delay_usec = (uint16_t)(e->config.mover.ack_delay_ns / MRD_USEC);
    head.psn = ack.cum;
    for (unsigned i = 0; i < copies; i++) {
        struct mrd_tx_packet *p = next_packet(e, o, peer);
        uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(p->head, &head), &ack);

        mrd_wire_seal(p->head, end);
        p->path = pick_ack_path(e, peer);
        p->flags |= MRD_TX_ACK;
        p->head_len = (uint16_t)(end - p->head);
        p->len = p->head_len;
        e->stats.tx_acks++;
        e->stats.tx_wire_bytes += p->len;
    }
}

/* ----------------------------------------------------------------------------- record -> packet */

/* Do both ends want payloads without a check, or have a better one? */
static bool is_unchecked(const struct mrd_engine *e, const struct mrd_send_state *tx)
{
    return e->config.sealed || (e->config.no_check && tx->told.unchecked);
}

static uint32_t payload_check(uint8_t flags, const void *data, uint32_t len)
{
    return flags & MRD_WIRE_UNCHECKED ? 0 : mrd_wire_payload_check(data, len);
}

static void begin_head(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_sent *rec,
                       const struct mrd_path *path, uint32_t pseq, struct mrd_wire_head *head)
{
    struct mrd_send_state *tx = peer->tx;

    *head = (struct mrd_wire_head){.type = MRD_WIRE_DATA,
                                   .src_inc = peer->pair.own_inc,
                                   .dst_inc = tx->contact.inc,
                                   .epoch = tx->contact.epoch,
                                   .psn = rec->psn,
                                   .stamp = mrd_wire_stamp(e->clock.now_ns),
                                   .path_id = path->id,
                                   .pseq = (uint16_t)pseq,
                                   .reply = e->config.self.port};
    if (tx->contact.epoch_ns == MRD_NEVER)
        tx->contact.epoch_ns = e->clock.now_ns;
    if (!tx->contact.acked_once &&
        e->clock.now_ns - tx->contact.epoch_ns <= MRD_FIRST_CONTACT_LIFE_NS) {
        head->flags |= MRD_WIRE_FIRST_CONTACT;
        head->peer_timeout_ns = e->config.peer_timeout_ns;
        if (peer->space.state != MRD_SPACE_KNOWN)
            head->flags |= MRD_WIRE_FORGOTTEN;
    }
    if (tx->contact.has_cookie && (head->flags & MRD_WIRE_FIRST_CONTACT ||
                                   (tx->contact.proves && rec->kind == MRD_SENT_EMPTY))) {
        head->flags |= MRD_WIRE_COOKIE;
        head->cookie = tx->contact.cookie;
    }
}

/*
 * MSN and RSN of an ordered message, and how far behind them the oldest one is that is still owed:
 * the target waits for none that is older.
 */
static void put_numbers(const struct mrd_msg *msg, struct mrd_wire_part *part)
{
    const struct mrd_msg *oldest;

    part->src_qpn = msg->qp->pub.qp_num;
    if (!msg->order.flow)
        return;
    oldest = mrd_container_of(msg->order.flow->msgs.next, struct mrd_msg, order.node);
    part->msn = (uint16_t)msg->order.msn;
    part->rsn = (uint16_t)msg->order.rsn;
    part->msn_behind = (uint16_t)(msg->order.msn - oldest->order.msn);
    part->rsn_behind = (uint16_t)(msg->order.rsn - oldest->order.rsn);
}

static uint8_t *put_small(struct mrd_engine *e, struct mrd_sent *rec, uint8_t flags, uint8_t *at,
                          uint32_t *payload_len, uint32_t *check)
{
    struct mrd_msg *msg, *next;
    uint32_t bytes = 0, index = 0;
    uint8_t *payload;

    /*
     * How long the header will be is known first: then parts and payloads are written side by side.
     */
    for (msg = rec->tx_count ? rec->u.small : NULL; msg; msg = next) { /* new ones were checked */
        next = msg->packet.next;
        (void)mrd_msg_check_memory(e, msg);
    }
    for (msg = rec->u.small; msg; msg = msg->packet.next) {
        bytes += (msg->packet.index - index) * MRD_WIRE_PART_BYTES_MIN;
        index = msg->packet.index + 1u;
        bytes += msg->state == MRD_MSG_SENDING ? mrd_msg_part_bytes(msg) : MRD_WIRE_PART_BYTES_MIN;
    }
    payload = at + bytes;
    index = 0;
    for (msg = rec->u.small; msg; msg = msg->packet.next) {
        struct mrd_wire_part part = {.op = MRD_OP_VOID};

        for (; index < msg->packet.index; index++)
            at = mrd_wire_put_part(at, &part);
        index++;
        if (msg->state == MRD_MSG_SENDING) {
            uint32_t len = mrd_msg_payload(msg);

            mrd_msg_part(msg, 0, len, &part);
            put_numbers(msg, &part);
            mrd_msg_copy(msg, 0, len, payload);
            payload += len;
        }
        at = mrd_wire_put_part(at, &part);
    }
    *payload_len = (uint32_t)(payload - at);
    *check = payload_check(flags, at, *payload_len);
    return at;
}

static uint8_t *put_segment(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                            uint8_t flags, uint8_t *at, struct mrd_tx_packet *p,
                            uint32_t *payload_len, uint32_t *check)
{
    const struct mrd_tx_id *id = mrd_ids_find(&peer->tx->ids, rec->id);
    struct mrd_msg *msg = id->msg;
    struct mrd_wire_part part;

    /* Its message has ended or was refused: the packet is empty, and only carries the PSN. */
    if (!msg || !mrd_msg_check_memory(e, msg))
        return at;
    mrd_msg_part(msg, rec->offset, rec->len, &part);
    put_numbers(msg, &part);
    at = mrd_wire_put_part(at, &part);
    if (!msg->wr.is_inline)
        p->num_iov =
            (uint8_t)mrd_sge_pieces(msg->wr.sge, msg->wr.num_sge, rec->offset, rec->len, p->iov);
    if (p->num_iov != 1) { /* rare; staged, so that the payload check runs over one piece */
        mrd_msg_copy(msg, rec->offset, rec->len, at);
        p->num_iov = 0;
        *check = payload_check(flags, at, rec->len);
        *payload_len = rec->len;
        return at;
    }
    *check = payload_check(flags, p->iov[0].iov_base, rec->len);
    if (!e->config.mover.copies) {
        p->cookie = (uint64_t)(uintptr_t)msg;
        p->key = mrd_mr_mover_key(&e->objects.mrs, mrd_sge_at(msg->wr.sge, rec->offset)->lkey);
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
    for (const struct mrd_msg *msg = rec->u.small; msg; msg = msg->abort.next) {
        struct mrd_wire_part part = {.op = MRD_OP_ABORT,
                                     .flags =
                                         (uint8_t)((msg->has_id ? MRD_PART_MULTI : 0) |
                                                   (mrd_msg_is_response(msg) ? MRD_PART_IMM : 0) |
                                                   (msg->order.flow ? MRD_PART_ORDERED : 0)),
                                     .attempt = mrd_msg_consumes(msg),
                                     .dst_qpn = msg->wr.dst_qpn,
                                     .id = msg->id,
                                     .total = msg->wr.length,
                                     .imm = msg->request.token};

        put_numbers(msg, &part);
        at = mrd_wire_put_part(at, &part);
    }
    return at;
}

static uint8_t *put_ready(const struct mrd_engine *e, const struct mrd_sent *rec, uint8_t *at)
{
    const struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, rec->id);
    uint32_t receives = qp ? mrd_qp_receives(qp) : 0;
    struct mrd_wire_part part = {.op = MRD_OP_READY,
                                 .src_qpn = rec->id,
                                 .receives = receives < rec->offset ? receives : rec->offset};

    return mrd_wire_put_part(at, &part);
}

static uint8_t *put_close(const struct mrd_sent *rec, uint8_t *at)
{
    struct mrd_wire_part part = {.op = MRD_OP_CLOSE,
                                 .flags = MRD_PART_ORDERED,
                                 .dst_qpn = rec->u.flow->remote_qpn,
                                 .src_qpn = rec->u.flow->qpn,
                                 .msn = (uint16_t)rec->u.flow->close_msn};

    return mrd_wire_put_part(at, &part);
}

/*
 * Padding, which the peer acks and forgets. The datagram is as long as the longest one with that
 * payload.
 */
static uint8_t *put_padding(const struct mrd_sent *rec, uint8_t flags, uint8_t *at,
                            struct mrd_tx_packet *p, uint32_t *check)
{
    static uint8_t zeros[MRD_PAYLOAD_BYTES_MAX + MRD_HEAD_PEEK_BYTES];
    uint32_t head_len = (uint32_t)(at - p->head) + MRD_WIRE_PART_BYTES_MIN;
    uint32_t len = (rec->len ? rec->len : rec->offset) + MRD_HEAD_PEEK_BYTES - head_len;
    struct mrd_wire_part part = {.op = MRD_OP_VOID, .len = (uint16_t)len};

    p->iov[0] = (struct iovec){zeros, len};
    p->num_iov = 1;
    *check = payload_check(flags, zeros, len);
    return mrd_wire_put_part(at, &part);
}

/* The last packet, of that record, ends its header at `end`, and is not sealed yet. */
static void open_packet(const struct mrd_engine *e, struct mrd_send_state *tx,
                        const struct mrd_sent *rec, uint8_t *end, struct mrd_tx_out *o)
{
    o->open_head = o->packets[o->num - 1].head;
    o->open_end = end;
    o->open_psn = rec->psn;
    if (++tx->request.packets * e->config.mover.tune->engine.requests_per_window * rec->bytes >=
        tx->cc.cwnd_bytes)
        mrd_tx_request_ack(tx, o);
}

/* `n` packets of so many bytes each left, without the header so many. */
static void count_packets(struct mrd_engine *e, struct mrd_peer *peer, uint32_t n, uint32_t len,
                          uint32_t head_len)
{
    uint64_t bytes = (uint64_t)n * (len - head_len);

    e->stats.tx_packets += n;
    e->stats.tx_bytes += bytes;
    e->stats.tx_wire_bytes += (uint64_t)n * len;
    peer->count.packets_sent += n;
    peer->count.bytes_sent += bytes;
}

/* Pieces in which a packet leaves that was made when its path took more; 1: it is not cut. */
static uint32_t pieces(const struct mrd_send_state *tx, const struct mrd_sent *rec)
{
    if (rec->bytes <= tx->pmtu.payload + MRD_HEAD_PEEK_BYTES || rec->kind == MRD_SENT_EMPTY)
        return 1;
    return (rec->bytes + tx->pmtu.payload - 1) / tx->pmtu.payload;
}

bool mrd_tx_lacks_room(struct mrd_engine *e, const struct mrd_send_state *tx,
                       const struct mrd_sent *rec, struct mrd_tx_out *o)
{
    if (!o->num || o->max - o->num >= pieces(tx, rec))
        return false;
    e->turns.cut_short = true;
    o->max = o->num;
    return true;
}

/*
 * The packet does not fit its path any more, and a retransmission keeps its size: cut it. It is
 * whole at whole->head, with its payload, if that is not staged, at its iov. Each time another piece
 * goes first: where a small buffer drops the last ones, these are not always the same.
 */
static void put_fragments(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_packet *whole,
                          uint32_t times, const struct mrd_wire_head *of, uint8_t *end,
                          struct mrd_tx_out *o)
{
    struct mrd_wire_head head = *of;
    uint32_t size = peer->tx->pmtu.payload, n = (whole->len + size - 1) / size;

    mrd_wire_add_flags(whole->head, MRD_WIRE_ACK_REQUEST);
    mrd_wire_seal(whole->head, end);
    if (whole->num_iov)
        memcpy(end, whole->iov[0].iov_base, whole->iov[0].iov_len);
    if (whole->cookie != MRD_TX_COOKIE_NONE)
        mrd_msg_end_read(e, (struct mrd_msg *)(uintptr_t)whole->cookie);
    head.type = MRD_WIRE_FRAGMENT;
    head.flags = 0;
    head.whole_len = whole->len;
    for (uint32_t i = 0; i < n && o->num < o->max; i++) {
        struct mrd_tx_packet *p = next_packet(e, o, peer);
        uint32_t offset = (i + times * FRAGMENTS_ON) % n * size;
        uint32_t bytes = whole->len - offset < size ? whole->len - offset : size;
        uint8_t *at;

        head.whole_offset = offset;
        head.payload_check = mrd_wire_payload_check(whole->head + offset, bytes);
        at = mrd_wire_put_head(p->head, &head);
        mrd_wire_seal(p->head, at);
        memcpy(at, whole->head + offset, bytes);
        p->head_len = (uint16_t)(MRD_WIRE_FRAGMENT_BYTES + bytes);
        p->len = p->head_len;
        p->path = whole->path;
        p->flags = whole->flags;
        e->stats.tx_fragments++;
    }
    peer->tx->request.packets = 0;
    peer->tx->request.psn = head.psn;
}

/* May the packet of that record be marked? */
static uint8_t ect_flag(const struct mrd_engine *e, struct mrd_peer *peer,
                        const struct mrd_sent *rec)
{
    bool answers = peer->tx->contact.acked_once && !peer->tx->probes.unanswered;

    if (e->config.no_ect ||
        !mrd_ect_may_mark(&peer->ect, rec->psn, !rec->tx_count, answers, e->clock.now_ns))
        return MRD_TX_NOT_ECT;
    return MRD_TX_ECT;
}

/* A packet that is to be cut is made in a scratch buffer, not among the caller's packets. */
static struct mrd_tx_packet *begin_whole(struct mrd_engine *e, struct mrd_tx_packet *whole)
{
    whole->head = e->plan.scratch;
    whole->cookie = MRD_TX_COOKIE_NONE;
    whole->num_iov = 0;
    return whole;
}

void mrd_tx_emit(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec, uint32_t index,
                 bool copy, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_tx_packet *p, whole;
    bool cut = pieces(tx, rec) > 1;
    struct mrd_wire_head head, fresh;
    uint32_t pseq, payload_len = 0, check = 0;
    uint8_t *at;

    mrd_tx_seal(o);
    p = cut ? begin_whole(e, &whole) : next_packet(e, o, peer);
    pseq = mrd_path_sent(&tx->paths, index);
    begin_head(e, peer, rec, &tx->paths.path[index], pseq, &head);
    if (rec->kind == MRD_SENT_SMALL && !cut && peer->rx && peer->rx->rcv.due_ns != MRD_NEVER &&
        !(head.flags & MRD_WIRE_COOKIE) && mrd_rcv_rides(&peer->rx->rcv)) {
        mrd_rcv_ride(&peer->rx->rcv, &head, mrd_grant_limit(e, peer), e->clock.now_ns);
        head.ack_epoch = peer->space.epoch;
        e->stats.tx_acks_ridden++;
    }
    if (cut) { /* all its transmissions are alike, so that their pieces go together */
        fresh = head;
        head.stamp = head.path_id = head.pseq = 0;
    } else {
        head.flags |= is_unchecked(e, tx) ? MRD_WIRE_UNCHECKED : 0;
        if (tx->run.wants_more && rec->state == MRD_SENT_NEW) {
            head.flags |= MRD_WIRE_WANTS_MORE;
            tx->run.wants_more = false;
        }
    }
    at = mrd_wire_put_head(p->head, &head);
    if (rec->kind == MRD_SENT_SEGMENT)
        at = put_segment(e, peer, rec, head.flags, at, p, &payload_len, &check);
    else if (rec->kind == MRD_SENT_SMALL)
        at = put_small(e, rec, head.flags, at, &payload_len, &check);
    else if (rec->kind == MRD_SENT_REFUSAL)
        at = put_refusal(rec, at);
    else if (rec->kind == MRD_SENT_ABORT)
        at = put_aborts(rec, at);
    else if (rec->kind == MRD_SENT_READY)
        at = put_ready(e, rec, at);
    else if (rec->kind == MRD_SENT_CLOSE)
        at = put_close(rec, at);
    else if (rec->len || rec->offset)
        at = put_padding(rec, head.flags, at, p, &check);
    mrd_wire_set_payload_check(p->head, check);
    p->head_len = (uint16_t)((uint32_t)(at - p->head) + payload_len);
    p->len = p->head_len + (p->num_iov ? (uint32_t)p->iov[0].iov_len : 0u);
    if (!head.dst_inc)
        p->life = 0;
    p->path = tx->paths.path[index].ev;
    p->flags = (uint8_t)(ect_flag(e, peer, rec) |
                         (e->clock.now_ns < tx->run.single_until_ns ? MRD_TX_ALONE : 0) |
                         (mrd_peer_was_heard(peer) ? 0 : MRD_TX_UNHEARD));
    if (!rec->bytes)
        rec->bytes = (uint16_t)p->len;
    rec->piece = cut ? tx->pmtu.payload : 0;
    rec->bare = p->len <= MRD_HEAD_PEEK_BYTES;
    if (cut)
        put_fragments(e, peer, p, rec->tx_count, &fresh, at, o);
    else
        open_packet(e, tx, rec, at, o);
    count_packets(e, peer, 1, p->len,
                  rec->kind == MRD_SENT_EMPTY ? p->len : (uint32_t)(at - p->head));
    tx->loss.last_send_ns = e->clock.now_ns;
    tx->active_ns = e->clock.now_ns;
    if (!tx->sent.inflight.num)
        tx->probes.silent_since_ns = mrd_clock_present_ns(&e->clock);
    if (copy) {
        mrd_path_forgot(&tx->paths, index);
        return;
    }
    if (rec->state == MRD_SENT_INFLIGHT) /* a probe: from now on only this copy is followed */
        mrd_path_forgot(&tx->paths, rec->path);
    mrd_sent_transmit(&tx->sent, rec, &tx->paths, (uint16_t)index, pseq, e->clock.now_ns);
}

uint32_t mrd_tx_follow(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                       uint32_t n, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_tx_id *id = mrd_ids_find(&tx->ids, rec->id);
    struct mrd_tx_packet *p = &o->packets[o->num - 1];
    uint8_t flags = is_unchecked(e, tx) ? MRD_WIRE_UNCHECKED : 0;
    uint32_t len = rec->len, sent;

    for (sent = 0; sent < n; sent++) {
        const struct mrd_tx_packet *last = p;
        uint8_t *payload = (uint8_t *)last->iov[0].iov_base + len;
        struct mrd_sent *next = mrd_sent_add(&tx->sent, MRD_SENT_SEGMENT);

        if (!next)
            break;
        mrd_sent_follow(&tx->sent, next, rec, &tx->paths, mrd_path_sent(&tx->paths, rec->path));
        rec = next;
        mrd_tx_seal(o);
        p = next_packet(e, o, peer);
        p->cookie = last->cookie;
        p->path = last->path;
        p->flags = last->flags;
        if (peer->ect.off) /* the last one may have been the test */
            p->flags = (uint8_t)((p->flags & ~MRD_TX_ECT) | MRD_TX_NOT_ECT);
        p->num_iov = 1;
        p->head_len = last->head_len;
        p->len = last->len;
        p->key = last->key;
        p->iov[0] = (struct iovec){payload, len};
        mrd_wire_follow(p->head, last->head, p->head_len, rec->psn, rec->pseq, rec->offset,
                        payload_check(flags, payload, len));
        open_packet(e, tx, rec, p->head + p->head_len, o);
    }
    id->live += (uint16_t)sent;
    if (!e->config.mover.copies)
        id->msg->reading += sent;
    count_packets(e, peer, sent, p->len, p->head_len);
    return sent;
}

/* ------------------------------------------------------------------------------------ answers */

void mrd_tx_put_answers(struct mrd_engine *e, struct mrd_tx_out *o)
{
    uint16_t path;

    if (e->answers.head == e->answers.tail || mrd_answer_due_ns(e) > e->clock.now_ns)
        return;
    path = (uint16_t)mrd_rng_below(&e->rng, e->config.paths); /* one: they leave by one call */
    while (o->num < o->max && e->answers.head != e->answers.tail) {
        const struct mrd_answer *s = &e->answers.ring[e->answers.head++ % MRD_STATELESS_MAX];
        struct mrd_tx_packet *p = &o->packets[o->num++];
        uint8_t *end = mrd_wire_put_head(p->head, &s->head);

        mrd_wire_seal(p->head, end);
        p->to = s->to;
        p->from = s->from;
        p->from.port = 0;
        p->life = s->life;
        p->dscp = e->config.dscp;
        p->cookie = MRD_TX_COOKIE_NONE;
        p->path = path;
        p->flags = MRD_TX_NOT_ECT; /* whether its way takes ECT is not known */
        p->num_iov = 0;
        p->head_len = (uint16_t)(end - p->head);
        p->len = p->head_len;
        if (s->head.type == MRD_WIRE_RESET)
            e->stats.tx_resets++;
        else if (s->head.type == MRD_WIRE_CHALLENGE)
            e->stats.tx_challenges++;
        else
            e->stats.tx_busies++;
        e->stats.tx_wire_bytes += p->len;
    }
}
