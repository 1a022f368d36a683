/* SPDX-License-Identifier: BSD-2-Clause */
/* New data: which message goes next, how much of it, and by which path. */
#include "core/engine/tx_new.h"

#include "core/engine/message.h"
#include "core/engine/tx_emit.h"
#include "core/engine/tx_gate.h"
#include "core/engine/txq.h"
#include "core/sge.h"

enum {
    MISSES_MAX = 64, /* queues without a message that fits, after which a packet is closed */
    /* For the parts of a packet. */
    HEAD_ROOM = MRD_WIRE_HEAD_BYTES_MAX - MRD_WIRE_BASE_BYTES - MRD_WIRE_COOKIE_BYTES -
                MRD_WIRE_ACKBLOCK_BYTES,
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * Can no copy of what failed before come any more? What the peer took by the same name was of an earlier epoch,
 * and is dropped. By another name it holds the space of that one, too.
 */
static bool is_over(const struct mrd_engine *e, const struct mrd_flow_tx *flow)
{
    const struct mrd_peer *peer = flow->peer;
    uint32_t inc = peer->tx->contact.inc;

    if (e->clock.now_ns < flow->start_ns)
        return false;
    return !peer->failed_ns || e->clock.now_ns >= peer->failed_ns + MRD_PACKET_LIFE_NS || !inc ||
           !peer->failed_inc || peer->failed_inc == inc;
}

/*
 * Ordered: is the message within MRD_MSN_WINDOW of the oldest one that is not complete, and all over that
 * failed before it?
 */
static bool flow_open(const struct mrd_engine *e, const struct mrd_msg *msg)
{
    const struct mrd_node *oldest;

    if (!msg->order.flow)
        return true;
    if (!msg->started && !is_over(e, msg->order.flow))
        return false;
    oldest = msg->order.flow->msgs.next;
    return msg->order.msn - mrd_container_of(oldest, struct mrd_msg, order.node)->order.msn <
           MRD_MSN_WINDOW;
}

static bool may_start(const struct mrd_engine *e, struct mrd_send_state *tx,
                      const struct mrd_msg *msg)
{
    if (!flow_open(e, msg))
        return false;
    return !msg->multi || msg->has_id || mrd_ids_available(&tx->ids);
}

/* Bytes of parts and payloads that a packet of whole messages may hold. */
static uint32_t small_room(const struct mrd_send_state *tx)
{
    return tx->pmtu.payload + MRD_HEAD_PEEK_BYTES - MRD_WIRE_BASE_BYTES - MRD_WIRE_ACKBLOCK_BYTES;
}

/* The queue's next message, without those whose memory is gone. NULL: there is none. */
static struct mrd_msg *next_of_queue(struct mrd_engine *e, struct mrd_txq *q)
{
    const struct mrd_send_state *tx = q->peer->tx;
    struct mrd_msg *msg;

    while ((msg = mrd_txq_first(q))) {
        if (!mrd_msg_check_memory(e, msg))
            continue;
        if (!msg->multi && mrd_msg_part_bytes(msg) + mrd_msg_payload(msg) > small_room(tx)) {
            msg->multi = true; /* the path's MTU shrank since it was posted */
            msg->wr.part_flags |= MRD_PART_MULTI;
        }
        return msg;
    }
    return NULL;
}

/* The record carries the next segment of a long message. */
static void new_segment(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_msg *msg,
                        struct mrd_sent *rec)
{
    struct mrd_send_state *tx = peer->tx;
    uint32_t left;

    if (!msg->has_id) {
        msg->id = mrd_ids_take(&tx->ids, msg)->id;
        msg->has_id = true;
    }
    left = msg->wr.length - msg->next_offset;
    rec->id = msg->id;
    rec->offset = msg->next_offset;
    rec->len = (uint16_t)(left < tx->pmtu.payload ? left : tx->pmtu.payload);
    mrd_ids_find(&tx->ids, msg->id)->live++;
    msg->next_offset += rec->len;
    msg->started = true;
    if (msg->next_offset == msg->wr.length)
        mrd_txq_dequeue(e, msg);
}

/* The record carries whole messages of the first queue and of those behind it, as many as fit. */
static void new_small(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec)
{
    struct mrd_send_state *tx = peer->tx;
    uint32_t room = small_room(tx), head_room = HEAD_ROOM;
    struct mrd_msg **tail = &rec->u.small;
    struct mrd_node *n, *next;
    uint8_t num = 0;
    unsigned misses = 0;

    for (n = tx->txqs.next; n != &tx->txqs && num < MRD_PARTS_MAX && misses < MISSES_MAX;
         n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg;

        next = n->next;
        while (num < MRD_PARTS_MAX && (msg = next_of_queue(e, q))) {
            uint32_t head_bytes = mrd_msg_part_bytes(msg);
            uint32_t bytes = head_bytes + mrd_msg_payload(msg);

            if (msg->multi || bytes > room || head_bytes > head_room || !flow_open(e, msg)) {
                misses++;
                break;
            }
            mrd_txq_dequeue(e, msg);
            room -= bytes;
            head_room -= head_bytes;
            msg->started = true;
            msg->packet.chained = true;
            msg->packet.index = num++;
            msg->packet.psn = rec->psn;
            *tail = msg;
            tail = &msg->packet.next;
            *tail = NULL;
        }
        if (!mrd_txq_first(q))
            mrd_txq_rest(e, q);
    }
}

/*
 * The message whose turn it is; NULL: none can be sent. Empty queues are dropped. Those that cannot
 * send now go to the end, and a second look at the first of these ends the search.
 */
static struct mrd_msg *next_message(struct mrd_engine *e, struct mrd_send_state *tx)
{
    const struct mrd_node *blocked = NULL;
    struct mrd_node *n;

    while ((n = mrd_list_first(&tx->txqs)) && n != blocked) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg = next_of_queue(e, q);

        if (!msg) {
            mrd_txq_rest(e, q);
            continue;
        }
        if (may_start(e, tx, msg))
            return msg;
        blocked = blocked ? blocked : n;
        mrd_list_remove(n);
        mrd_list_append(&tx->txqs, n);
    }
    return NULL;
}

/*
 * Queues take turns, a quantum each: batching and straight receive need several packets of one
 * message in a row.
 */
static void rotate(struct mrd_send_state *tx)
{
    struct mrd_node *n = mrd_list_first(&tx->txqs);

    if (!n || n->next == &tx->txqs)
        return;
    mrd_list_remove(n);
    mrd_list_append(&tx->txqs, n);
}

/*
 * Packets to be sent in a row on a path: as many as the mover can batch. Of a long message no more
 * than quantum_rtts base RTTs carry at the measured rate, so that a slow fabric is sprayed finely,
 * unless there is nothing to spray over; and only one on a path that is not GOOD. Runs of short
 * messages end by time: choose_path().
 */
static uint32_t quantum(const struct mrd_engine *e, const struct mrd_send_state *tx, uint32_t index,
                        const struct mrd_msg *msg)
{
    uint32_t max = tx->run.quantum;
    double packets;

    if (max == 1 || tx->paths.path[index].state != MRD_PATH_GOOD ||
        e->clock.now_ns < tx->run.single_until_ns)
        return 1;
    if (mrd_tx_is_paced(tx))
        return least(max, mrd_tx_paced_run(tx));
    if (!msg->multi || msg->peer->one_way)
        return max;
    packets = mrd_cc_base_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) *
              e->config.mover.tune->engine.quantum_rtts / tx->cc.packet_bytes;
    if (packets < 1)
        return 1;
    return packets < max ? (uint32_t)packets : max;
}

/*
 * Short messages continue the run on its path, unless the path is no longer GOOD or was chosen a
 * base RTT ago. The segments of each call begin a run: one that went on with the last call's would
 * split their burst over two paths.
 */
static void choose_path(struct mrd_engine *e, struct mrd_send_state *tx, const struct mrd_msg *msg)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss));

    if (tx->run.left && tx->paths.path[tx->run.path].state == MRD_PATH_GOOD &&
        (tx->run.picked_ns == e->clock.now_ns ||
         (!msg->multi && e->clock.now_ns - tx->run.picked_ns < base_ns)))
        return;
    tx->run.path = mrd_tx_pick_path(e, tx, -1);
    tx->run.left = quantum(e, tx, tx->run.path, msg);
    tx->run.picked_ns = e->clock.now_ns;
}

/*
 * The rest of a run of segments, `rec` being the first: what holds for one holds for all, so it is
 * asked once. The first one's memory was checked, and nothing is received meanwhile.
 */
static void send_run(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_msg *msg,
                     struct mrd_sent *rec, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    uint32_t n = least(tx->run.left, o->max - o->num), in_entry, due;

    if (!n || o->packets[o->num - 1].num_iov != 1 || rec->len != tx->pmtu.payload ||
        !tx->contact.acked_once || mrd_tx_path_to_probe(e, tx, &due))
        return;
    /* Of the first one's entry: where that ends with it, the next bytes lie elsewhere. */
    in_entry = mrd_sge_rest(msg->wr.sge, msg->wr.num_sge, rec->offset) - rec->len;
    n = least(n, least(in_entry, msg->wr.length - msg->next_offset) / rec->len);
    n = mrd_tx_follow(e, peer, rec, least(n, mrd_tx_room(tx, rec->bytes)), o);
    msg->next_offset += n * rec->len;
    tx->run.left -= n;
    if (n && msg->next_offset == msg->wr.length)
        mrd_txq_dequeue(e, msg);
}

bool mrd_tx_new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_msg *msg = next_message(e, tx);
    struct mrd_sent *rec;
    uint32_t left;
    bool in_run;

    if (!msg)
        return false;
    tx->run.limited = true;
    if (!mrd_tx_window_open(e, tx))
        return false;
    if (!mrd_tx_psn_room(tx, MRD_PSN_DATA) || !mrd_tx_is_granted(tx)) {
        tx->run.wants_more = true;
        return false;
    }
    if (mrd_tx_waits_for_burst(e, tx, msg))
        return false;
    if (!tx->run.path_probed && mrd_tx_probe_path(e, peer, o)) {
        tx->run.path_probed = true; /* data is next: a window below a packet lets out only one */
        return true;
    }
    in_run = tx->run.left && tx->run.picked_ns == e->clock.now_ns;
    choose_path(e, tx, msg);
    if (msg->multi && !in_run && o->num && tx->run.left > o->max - o->num) {
        /* What is left of the caller's packets would split the burst. */
        e->turns.cut_short = true;
        o->max = o->num;
        return true;
    }
    rec = mrd_sent_add(&tx->sent, msg->multi ? MRD_SENT_SEGMENT : MRD_SENT_SMALL);
    if (!rec)
        return false;
    tx->run.limited = tx->run.path_probed = false;
    rec->in_run = in_run;
    if (msg->multi)
        new_segment(e, peer, msg, rec);
    else
        new_small(e, peer, rec);
    mrd_tx_emit(e, peer, rec, tx->run.path, false, o);
    left = tx->run.left--;
    if (rec->kind == MRD_SENT_SEGMENT)
        send_run(e, peer, msg, rec, o);
    mrd_tx_left(e, tx, rec->bytes * (left - tx->run.left));
    if (!tx->run.left)
        rotate(tx);
    return true;
}
