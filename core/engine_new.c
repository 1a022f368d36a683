/* SPDX-License-Identifier: BSD-2-Clause */
/* New data: which message goes next, how much of it, and by which path. */
#include "core/engine_impl.h"

enum { MISSES_MAX = 64 }; /* queues that are asked in vain for a message that fits into a packet */

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
    return !msg->multi || msg->has_id || mrd_ids_available(&tx->ids);
}

/* What one packet of whole messages may hold, parts and payloads. */
static uint32_t small_room(const struct mrd_tx_half *tx)
{
    return tx->payload_bytes + MRD_HEAD_PEEK_BYTES - MRD_WIRE_BASE_BYTES - MRD_WIRE_ACKBLOCK_BYTES;
}

static struct mrd_msg *txq_head(struct mrd_engine *e, struct mrd_txq *q)
{
    const struct mrd_tx_half *tx = q->peer->tx;
    struct mrd_msg *msg;

    while ((msg = mrd_engine_txq_first(q))) {
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
        msg->id = mrd_ids_take(&tx->ids, msg)->id;
        msg->has_id = true;
    }
    left = msg->length - msg->next_offset;
    rec->id = msg->id;
    rec->offset = msg->next_offset;
    rec->len = (uint16_t)(left < tx->payload_bytes ? left : tx->payload_bytes);
    mrd_ids_find(&tx->ids, msg->id)->live++;
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
    unsigned misses = 0;

    for (n = tx->txqs.next; n != &tx->txqs && num < MRD_PARTS_MAX && misses < MISSES_MAX;
         n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg;

        next = n->next;
        while (num < MRD_PARTS_MAX && (msg = txq_head(e, q))) {
            uint32_t bytes = mrd_engine_part_bytes(msg) + msg->length;

            if (msg->multi || bytes > room || !flow_open(msg)) {
                misses++;
                break;
            }
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
        if (!mrd_engine_txq_first(q))
            mrd_engine_txq_rest(e, q);
    }
}

/* Queues found empty are dropped; those that cannot send now go behind the others, so that they are not looked at again. */
struct mrd_msg *mrd_engine_next_message(struct mrd_engine *e, struct mrd_tx_half *tx)
{
    const struct mrd_node *blocked = NULL;
    struct mrd_node *n;

    while ((n = mrd_list_first(&tx->txqs)) && n != blocked) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, peer_node);
        struct mrd_msg *msg = txq_head(e, q);

        if (!msg) {
            mrd_engine_txq_rest(e, q);
            continue;
        }
        if (may_start(tx, msg))
            return msg;
        blocked = blocked ? blocked : n;
        mrd_list_remove(n);
        mrd_list_append(&tx->txqs, n);
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
 * Packets in a row on one path: what the mover likes to batch, but of a long message no more than a share of the base
 * RTT carries at the measured rate, so that a slow fabric is sprayed finely; and only one on a path that is not good.
 * Short messages are few or share packets: their runs end by time.
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
    packets = mrd_cc_base_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) *
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
    tx->path_now = mrd_engine_pick(e, tx, -1);
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

/* Within a post, a packet that is not full waits for company while others are in flight (RFC 896). */
static bool hold_back(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    return e->post_seq == e->call_seq && tx->sent.inflight.num &&
           tx->queued_bytes < tx->payload_bytes;
}

/* Data fills half of what the peer granted. Control packets are small, and need no grant. */
static bool is_granted(const struct mrd_tx_half *tx)
{
    uint32_t una = tx->sent.una;

    return (int32_t)(tx->sent.next - una) < (int32_t)(tx->psn_limit - una) / 2;
}

static bool new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_msg *msg = mrd_engine_next_message(e, tx);
    struct mrd_sent *rec;

    if (!msg)
        return false;
    tx->limited = true;
    if (!mrd_engine_window_open(e, tx) || !mrd_engine_psn_room(e, tx, MRD_PSN_DATA) ||
        !is_granted(tx) || wait_for_burst(e, tx, msg))
        return false;
    if (!tx->path_probed && mrd_engine_probe_path(e, peer, o)) {
        tx->path_probed = true; /* data next: a window below a packet has room for one of them */
        return true;
    }
    rec = mrd_sent_add(&tx->sent, msg->multi ? MRD_SENT_SEGMENT : MRD_SENT_SMALL);
    if (!rec)
        return false;
    tx->limited = tx->path_probed = false;
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

bool mrd_engine_new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_out *o, bool *held)
{
    if (mrd_list_empty(&peer->tx->txqs))
        return false;
    *held = hold_back(e, peer->tx);
    return !*held && new_data(e, peer, o);
}
