/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of what waits to be sent: one for each (queue pair, peer, remote queue pair).
 *
 * A message that was refused for want of a receive waits on its queue. It holds no id, no record
 * and no place that another message needs. What is posted behind it and needs a receive, too, waits
 * with it. The target says when it has receives (READY). In case that gets lost, one message of
 * each queue is tried after a delay that doubles, and each that finds a receive lets FOLLOWERS
 * others go.
 */
#include "core/engine/txq.h"

#include <assert.h>

#include "core/seq.h"

enum {
    /* What a message adds to queued_bytes beyond its payload: the least header of a part. */
    QUEUED_OVERHEAD_BYTES = MRD_WIRE_PART_BYTES_MIN,
    FOLLOWERS = 2,    /* messages tried after one has found a receive */
    COMMON_TRIES = 4, /* messages of the common queue tried at a time */
};

/* Attempts are due at multiples of delay / RNR_GRID, so that one timer serves many queues. */
#define RNR_GRID 8

/* --------------------------------------------------------------------------------------- queues */

static uint64_t txq_hash(const struct mrd_peer *peer, uint32_t qpn, uint32_t remote_qpn,
                         bool responses)
{
    return mrd_flow_hash(peer->id, responses ? ~qpn : qpn, remote_qpn);
}

static bool is_for(const struct mrd_txq *q, const struct mrd_peer *peer, uint32_t qpn,
                   uint32_t remote_qpn, bool responses)
{
    return q->peer == peer && q->qpn == qpn && q->remote_qpn == remote_qpn &&
           q->responses == responses;
}

static struct mrd_txq *txq_find(const struct mrd_engine *e, const struct mrd_peer *peer,
                                uint32_t qpn, uint32_t remote_qpn, bool responses)
{
    const struct mrd_node *newest = peer->tx->txqs.prev;
    uint64_t hash;

    if (newest != &peer->tx->txqs) { /* mostly the one that was last used */
        struct mrd_txq *q = mrd_container_of(newest, struct mrd_txq, peer_node);

        if (is_for(q, peer, qpn, remote_qpn, responses))
            return q;
    }
    hash = txq_hash(peer, qpn, remote_qpn, responses);
    for (struct mrd_hash_node *n = mrd_hash_first(&e->txqs.by_key, hash); n; n = n->next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, by_key);

        if (is_for(q, peer, qpn, remote_qpn, responses))
            return q;
    }
    return NULL;
}

/* The queue of a message; NULL: there is none. */
static struct mrd_txq *find_queue(const struct mrd_engine *e, const struct mrd_msg *msg)
{
    return txq_find(e, msg->peer, msg->qp->pub.qp_num, msg->wr.dst_qpn, mrd_msg_is_response(msg));
}

struct mrd_txq *mrd_txq_of(struct mrd_engine *e, const struct mrd_msg *msg)
{
    struct mrd_txq *q =
        mrd_txq_open(e, msg->peer, msg->qp->pub.qp_num, msg->wr.dst_qpn, mrd_msg_is_response(msg));

    return q ? q : mrd_peer_common(&e->peers, msg->peer, mrd_msg_is_response(msg));
}

struct mrd_txq *mrd_txq_open(struct mrd_engine *e, struct mrd_peer *peer, uint32_t qpn,
                             uint32_t remote_qpn, bool responses)
{
    struct mrd_txq *q = txq_find(e, peer, qpn, remote_qpn, responses);

    if (q)
        return q;
    q = mrd_table_alloc(&e->txqs);
    if (!q)
        return NULL;
    mrd_txq_init(q, peer, qpn, remote_qpn);
    q->responses = responses;
    /* Also while it is empty: the next turn drops it then. */
    mrd_list_append(&peer->tx->txqs, &q->peer_node);
    mrd_hash_add(&e->txqs.by_key, &q->by_key, txq_hash(peer, qpn, remote_qpn, responses));
    return q;
}

struct mrd_msg *mrd_txq_first(struct mrd_txq *q)
{
    struct mrd_node *n = mrd_list_first(&q->msgs);
    struct mrd_msg *msg = n ? mrd_container_of(n, struct mrd_msg, node) : NULL;

    /* A message that was sent in part goes on: it may own the receive that the others wait for. */
    if (msg && msg->next_offset)
        return msg;
    n = mrd_list_first(&q->retries);
    return n ? mrd_container_of(n, struct mrd_msg, node) : msg;
}

void mrd_txq_free(struct mrd_engine *e, struct mrd_txq *q)
{
    assert(!mrd_txq_first(q) && mrd_list_empty(&q->waiting));
    mrd_list_remove(&q->peer_node);
    mrd_list_remove(&q->rnr_node);
    if (q->common)
        return;
    mrd_table_release(&e->txqs, &q->by_key, q);
}

void mrd_txq_rest(struct mrd_engine *e, struct mrd_txq *q)
{
    assert(!mrd_txq_first(q));
    mrd_list_remove(&q->peer_node);
    if (mrd_list_empty(&q->waiting))
        mrd_txq_free(e, q);
}

/* Does the message belong right behind `at`, which is on the list, or its head? */
static bool goes_behind(const struct mrd_node *at, const struct mrd_node *list,
                        const struct mrd_msg *msg)
{
    const struct mrd_msg *other = mrd_container_of(at, const struct mrd_msg, node);

    return at == list || other->next_offset || mrd_seq_before(other->post_seq, msg->post_seq);
}

/*
 * Insert in the order of posting, behind a message that was sent in part. Mostly that is the end, or
 * near the front for what was refused: the search goes from both, and does not pass all that waits.
 */
static void insert(struct mrd_node *list, struct mrd_msg *msg)
{
    struct mrd_node *at = list->prev, *front = list;

    while (!goes_behind(at, list, msg)) {
        if (!goes_behind(front->next, list, msg)) {
            at = front;
            break;
        }
        at = at->prev;
        front = front->next;
    }
    mrd_list_remove(&msg->node);
    mrd_list_insert_before(at->next, &msg->node);
}

/* The message is to be sent; `list`: msgs or retries. */
static void queue(struct mrd_engine *e, struct mrd_txq *q, struct mrd_node *list,
                  struct mrd_msg *msg)
{
    msg->state = MRD_MSG_QUEUED;
    msg->txq = q;
    insert(list, msg);
    if (mrd_list_empty(&q->peer_node))
        mrd_list_append(&q->peer->tx->txqs, &q->peer_node);
    q->peer->tx->queued_bytes += mrd_msg_payload(msg) + QUEUED_OVERHEAD_BYTES;
    mrd_tx_ready(e, q->peer);
}

void mrd_txq_dequeue(struct mrd_engine *e, struct mrd_msg *msg)
{
    assert(msg->state == MRD_MSG_QUEUED);
    mrd_list_remove(&msg->node);
    msg->txq = NULL;
    mrd_tx_ready(e, msg->peer); /* its queue may be empty now: the next turn drops it */
    msg->peer->tx->queued_bytes -= mrd_msg_payload(msg) + QUEUED_OVERHEAD_BYTES;
    msg->state = MRD_MSG_SENDING;
}

/* ------------------------------------------------------------------------ for want of a receive */

/* The message waits for a receive. */
static void wait_on(struct mrd_txq *q, struct mrd_msg *msg)
{
    msg->next_offset = msg->acked_bytes = 0;
    if (q->common) {
        mrd_list_remove(&msg->node);
        mrd_list_append(&q->waiting, &msg->node);
    } else {
        insert(&q->waiting, msg);
    }
    msg->state = MRD_MSG_RNR_WAIT;
    msg->txq = q;
}

/* The next attempt is due after the delay, rounded up. */
static void arm(struct mrd_engine *e, struct mrd_txq *q)
{
    struct mrd_send_state *tx = q->peer->tx;
    uint64_t delay_ns = (q->rnr_usec * MRD_USEC << q->rnr_doublings) + 1;
    uint64_t grid_ns = delay_ns / RNR_GRID + 1;

    q->rnr_at_ns = (e->clock.now_ns + delay_ns + grid_ns - 1) / grid_ns * grid_ns;
    if (mrd_list_empty(&q->rnr_node))
        mrd_list_append(&tx->rnr.txqs, &q->rnr_node);
    if (q->rnr_at_ns < tx->rnr.next_ns)
        tx->rnr.next_ns = q->rnr_at_ns;
    mrd_heap_arm(&e->timers.heap, &q->peer->timer, q->rnr_at_ns);
}

void mrd_txq_enqueue(struct mrd_engine *e, struct mrd_txq *q, struct mrd_msg *msg)
{
    if (mrd_list_empty(&q->waiting) || (!mrd_msg_consumes(msg) && !q->shut)) {
        queue(e, q, &q->msgs, msg);
        return;
    }
    wait_on(q, msg);
    mrd_tx_ready(e, q->peer);
}

/* A message that waits is to be sent: see release(). */
static void release_one(struct mrd_engine *e, struct mrd_txq *q, struct mrd_msg *msg,
                        uint8_t doublings, bool hinted)
{
    mrd_list_remove(&msg->node);
    if (msg->started)
        msg->attempt++;
    msg->rnr.doublings = doublings;
    msg->rnr.hinted = hinted;
    /* What was never sent keeps its place: it may be too far ahead in the order to go now. */
    queue(e, q, msg->started ? &q->retries : &q->msgs, msg);
}

/*
 * Did a READY come after the message was refused? Or at most an RTT before: then it may have
 * overtaken the refusal. A READY is used once.
 */
static bool take_ready(const struct mrd_msg *msg)
{
    struct mrd_send_state *tx = msg->peer->tx;

    if (!tx->rnr.ready_ns || tx->rnr.ready_qpn != msg->wr.dst_qpn ||
        tx->rnr.ready_ns + tx->loss.srtt_ns < msg->rnr.refused_ns)
        return false;
    tx->rnr.ready_ns = 0;
    return true;
}

/*
 * Send the `num` oldest messages that wait; only those to `remote_qpn`, if it is not 0. If they are
 * refused again, their delay is doubled `doublings` times. `hinted`: the target announced receives;
 * if others took them meanwhile, the attempt does not count as a retry.
 */
static void release(struct mrd_engine *e, struct mrd_txq *q, uint32_t remote_qpn, uint32_t num,
                    uint8_t doublings, bool hinted)
{
    struct mrd_node *n, *next;

    for (n = q->waiting.next; num && n != &q->waiting; n = next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        next = n->next;
        if (remote_qpn && msg->wr.dst_qpn != remote_qpn)
            continue;
        release_one(e, q, msg, doublings, hinted);
        num--;
    }
}

/* Send the messages that wait for room at the target: they need no receive, and pass the others. */
static void release_writes(struct mrd_engine *e, struct mrd_txq *q, uint8_t doublings)
{
    struct mrd_node *n, *next;

    for (n = q->waiting.next; n != &q->waiting; n = next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        next = n->next;
        if (!mrd_msg_consumes(msg) && msg->vendor_err != MRD_REFUSE_RNR)
            release_one(e, q, msg, doublings, false);
    }
}

/* The remote queue pair takes messages: send all that need no receive. */
static void reopen(struct mrd_engine *e, struct mrd_txq *q, uint32_t remote_qpn)
{
    struct mrd_node *n, *next;

    q->shut = false;
    for (n = q->waiting.next; n != &q->waiting; n = next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, node);

        next = n->next;
        if (!mrd_msg_consumes(msg) && msg->wr.dst_qpn == remote_qpn)
            release_one(e, q, msg, 0, true);
    }
}

/* End the waiting of a queue on which no message waits any more. Returns true if some still do. */
static bool check_waiting(struct mrd_engine *e, struct mrd_txq *q)
{
    if (!mrd_list_empty(&q->waiting))
        return true;
    mrd_list_remove(&q->rnr_node);
    q->rnr_at_ns = MRD_NEVER;
    q->shut = false;
    if (mrd_list_empty(&q->peer_node))
        mrd_txq_free(e, q);
    return false;
}

void mrd_txq_wait(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_txq *q = mrd_txq_of(e, msg);

    if (mrd_list_empty(&q->rnr_node)) {
        q->rnr_doublings = msg->rnr.doublings;
        q->rnr_usec = msg->rnr.usec;
        arm(e, q);
    }
    wait_on(q, msg);
    q->shut |= !q->common && !mrd_msg_consumes(msg) && msg->vendor_err == MRD_REFUSE_RNR;
    if (take_ready(msg)) {
        release_one(e, q, msg, 0, true);
        check_waiting(e, q);
    }
}

void mrd_txq_retry(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_node *n, *next;

    tx->rnr.next_ns = MRD_NEVER;
    for (n = tx->rnr.txqs.next; n != &tx->rnr.txqs; n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, rnr_node);

        next = n->next;
        if (q->rnr_at_ns > e->clock.now_ns) {
            if (q->rnr_at_ns < tx->rnr.next_ns)
                tx->rnr.next_ns = q->rnr_at_ns;
            continue;
        }
        if (q->rnr_doublings < MRD_RNR_DOUBLINGS)
            q->rnr_doublings++;
        release_writes(e, q, q->rnr_doublings);
        release(e, q, 0, q->common ? COMMON_TRIES : 1, q->rnr_doublings, false);
        if (check_waiting(e, q))
            arm(e, q);
    }
}

void mrd_txq_apply_ready(struct mrd_engine *e, struct mrd_peer *peer, uint32_t remote_qpn,
                         uint32_t receives)
{
    struct mrd_node *n, *next;

    peer->tx->rnr.ready_qpn = remote_qpn;
    peer->tx->rnr.ready_ns = e->clock.now_ns;
    for (n = peer->tx->rnr.txqs.next; n != &peer->tx->rnr.txqs; n = next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, rnr_node);

        next = n->next;
        if (q->remote_qpn != remote_qpn && !q->common)
            continue;
        reopen(e, q, remote_qpn);
        release(e, q, remote_qpn, receives, 0, true);
        if (!check_waiting(e, q))
            continue;
        q->rnr_doublings = 0;
        arm(e, q);
    }
}

void mrd_txq_end_wait(struct mrd_engine *e, const struct mrd_msg *msg)
{
    struct mrd_txq *q = find_queue(e, msg);

    if (!q || mrd_list_empty(&q->rnr_node))
        return;
    for (struct mrd_node *n = q->waiting.next; n != &q->waiting; n = n->next) {
        struct mrd_msg *other = mrd_container_of(n, struct mrd_msg, node);

        if (other->rnr.left != MRD_RNR_RETRY_FOREVER)
            other->rnr.left = 0;
    }
    release(e, q, 0, UINT32_MAX, 0, false);
    check_waiting(e, q);
}

void mrd_txq_found_receive(struct mrd_engine *e, const struct mrd_msg *msg)
{
    struct mrd_txq *q;

    if (mrd_list_empty(&msg->peer->tx->rnr.txqs))
        return;
    q = find_queue(e, msg);
    if (!q || mrd_list_empty(&q->rnr_node) || (!mrd_msg_consumes(msg) && !q->shut))
        return;
    if (q->shut)
        reopen(e, q, msg->wr.dst_qpn);
    if (mrd_msg_consumes(msg))
        release(e, q, 0, FOLLOWERS, 0, true);
    if (!check_waiting(e, q))
        return;
    q->rnr_doublings = 0;
    arm(e, q);
}
