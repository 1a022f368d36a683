/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a sent message: queue, completion, refusal, cancel, ABORT. */
#include <assert.h>
#include <string.h>

#include "core/engine_impl.h"

enum {
    QUEUED_OVERHEAD_BYTES = MRD_WIRE_PART_BYTES_MIN
}; /* at least; queued_bytes is an estimate from below */

/* ---------------------------------------------------------------------------------------- queues */

static uint64_t txq_hash(const struct mrd_peer *peer, uint32_t qpn)
{
    return mrd_flow_hash(peer->id, qpn, 0);
}

static struct mrd_txq *txq_find(const struct mrd_engine *e, const struct mrd_peer *peer,
                                uint32_t qpn)
{
    uint64_t hash = txq_hash(peer, qpn);

    for (struct mrd_hash_node *n = mrd_hash_first(&e->txqs, hash); n; n = n->next) {
        struct mrd_txq *q = mrd_container_of(n, struct mrd_txq, by_key);

        if (q->peer == peer && q->qpn == qpn)
            return q;
    }
    return NULL;
}

bool mrd_engine_txq_reserve(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp)
{
    struct mrd_txq *q = txq_find(e, peer, qp->pub.qp_num);

    if (q)
        return true;
    q = mrd_pool_alloc(&e->txq_pool);
    if (!q)
        return false;
    q->peer = peer;
    q->qpn = qp->pub.qp_num;
    mrd_list_init(&q->msgs);
    mrd_list_init(&q->peer_node);
    mrd_list_append(&peer->tx->txqs, &q->peer_node);
    mrd_hash_add(&e->txqs, &q->by_key, txq_hash(peer, q->qpn));
    return true;
}

void mrd_engine_txq_drop(struct mrd_engine *e, struct mrd_txq *txq)
{
    assert(mrd_list_empty(&txq->msgs));
    mrd_hash_del(&e->txqs, &txq->by_key);
    mrd_list_remove(&txq->peer_node);
    mrd_pool_release(&e->txq_pool, txq);
}

void mrd_engine_enqueue(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_txq *q = txq_find(e, msg->peer, msg->qp->pub.qp_num);

    assert(q);
    msg->state = MRD_MSG_QUEUED;
    mrd_list_append(&q->msgs, &msg->node);
    msg->peer->tx->queued_bytes += msg->length + QUEUED_OVERHEAD_BYTES;
    mrd_engine_ready(e, msg->peer);
}

void mrd_engine_dequeue(struct mrd_engine *e, struct mrd_msg *msg)
{
    assert(msg->state == MRD_MSG_QUEUED);
    mrd_list_remove(&msg->node);
    mrd_engine_ready(e, msg->peer); /* its queue may be empty now: the next turn drops it */
    msg->peer->tx->queued_bytes -= msg->length + QUEUED_OVERHEAD_BYTES;
    msg->state = MRD_MSG_SENDING;
}

/* ---------------------------------------------------------------------------------------- flows */

struct mrd_flow_tx *mrd_engine_flow_tx(struct mrd_engine *e, struct mrd_peer *peer, uint32_t qpn,
                                       uint32_t remote_qpn)
{
    uint64_t hash = mrd_flow_hash(peer->id, qpn, remote_qpn);
    struct mrd_flow_tx *flow;

    for (struct mrd_hash_node *n = mrd_hash_first(&e->flows_tx, hash); n; n = n->next) {
        flow = mrd_container_of(n, struct mrd_flow_tx, by_key);
        if (flow->peer == peer && flow->qpn == qpn && flow->remote_qpn == remote_qpn)
            return flow;
    }
    flow = mrd_pool_alloc(&e->flow_tx_pool);
    if (!flow)
        return NULL;
    mrd_flow_tx_init(flow, peer, qpn, remote_qpn);
    mrd_hash_add(&e->flows_tx, &flow->by_key, hash);
    mrd_list_append(&peer->flows_tx, &flow->peer_node);
    return flow;
}

void mrd_engine_flow_tx_free(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    assert(mrd_list_empty(&flow->msgs));
    mrd_hash_del(&e->flows_tx, &flow->by_key);
    mrd_list_remove(&flow->peer_node);
    mrd_pool_release(&e->flow_tx_pool, flow);
}

/* ---------------------------------------------------------------------------------------- completion */

void mrd_engine_qp_reap(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n, *next;

    /* send_cq goes last in mrd_engine_destroy_qp(): until then the caller still walks the slots. */
    if (!qp->destroyed || qp->pub.send_cq || qp->live_msgs)
        return;
    for (n = e->peers.all.next; n != &e->peers.all; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        for (struct mrd_node *f = peer->flows_tx.next; f != &peer->flows_tx; f = next) {
            struct mrd_flow_tx *flow = mrd_container_of(f, struct mrd_flow_tx, peer_node);

            next = f->next;
            if (flow->qpn == qp->pub.qp_num)
                mrd_engine_flow_tx_free(e, flow);
        }
    }
    mrd_list_remove(&qp->node);
    mrd_engine_give(e, qp, qp->bytes);
}

static void finish(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_qp_impl *qp = msg->qp;
    struct mrd_cq_impl *cq = qp->pub.send_cq ? mrd_cq_impl(qp->pub.send_cq) : NULL;

    if (msg->status == MRD_WC_SUCCESS)
        e->stats.tx_messages++;
    else
        e->stats.tx_messages_failed++;
    if (cq && !qp->destroyed && (msg->signaled || msg->status != MRD_WC_SUCCESS))
        mrd_cq_push(cq, &(struct mrd_wc){
                            .wr_id = msg->wr_id,
                            .status = (enum mrd_wc_status)msg->status,
                            .opcode = msg->op == MRD_OP_WRITE ? MRD_WC_RDMA_WRITE : MRD_WC_SEND,
                            .vendor_err = msg->vendor_err,
                            .byte_len = msg->length,
                            .qp_num = qp->pub.qp_num,
                            .src_qp = msg->dst_qpn,
                            .peer_id = msg->peer_id,
                        });
    else if (cq)
        mrd_cq_unreserve(cq);
    mrd_list_remove(&msg->peer_node);
    mrd_list_remove(&msg->flow_node);
    mrd_list_remove(&msg->node);
    mrd_qp_msg_free(qp, msg);
}

/* Its outcome is known. In ordered mode it completes after those posted before it; always after it was read. */
static void conclude(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    struct mrd_flow_tx *flow = msg->flow;
    struct mrd_qp_impl *qp = msg->qp;
    struct mrd_node *n;

    msg->state = MRD_MSG_DONE;
    msg->status = (uint8_t)status;
    if (!flow && !msg->reading)
        finish(e, msg);
    while (flow && (n = mrd_list_first(&flow->msgs))) {
        msg = mrd_container_of(n, struct mrd_msg, flow_node);
        if (msg->state != MRD_MSG_DONE || msg->reading)
            break;
        flow->msn_una = msg->msn + 1;
        finish(e, msg);
    }
    mrd_engine_qp_reap(e, qp); /* frees the flow too */
}

void mrd_engine_abandon(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    struct mrd_qp_impl *qp = msg->qp;

    if (msg->state == MRD_MSG_QUEUED)
        mrd_engine_dequeue(e, msg);
    if (msg->state != MRD_MSG_DONE && msg->state != MRD_MSG_CANCELLED)
        msg->status = (uint8_t)status;
    msg->state = MRD_MSG_DONE;
    mrd_list_remove(&msg->node);
    mrd_list_remove(&msg->peer_node);
    mrd_list_remove(&msg->flow_node);
    msg->peer = NULL;
    msg->flow = NULL;
    if (!msg->reading)
        finish(e, msg);
    mrd_engine_qp_reap(e, qp);
}

void mrd_engine_tx_done(struct mrd_engine *e, uint64_t cookie, uint64_t now_ns)
{
    struct mrd_msg *msg = (struct mrd_msg *)(uintptr_t)cookie;

    mrd_engine_time(e, now_ns);
    assert(msg->reading > 0);
    if (--msg->reading == 0 && msg->state == MRD_MSG_DONE)
        conclude(e, msg, (enum mrd_wc_status)msg->status);
}

/* ---------------------------------------------------------------------------------------- cancel */

static struct mrd_tx_id *id_entry(const struct mrd_msg *msg)
{
    return &msg->peer->tx->ids[msg->id % MRD_MSG_SLOTS];
}

/* A cancelled message ends when nothing of it can still be placed: its packets and its ABORT are acked. */
static void cancelled_progress(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->state != MRD_MSG_CANCELLED || msg->abort_pending || msg->aborted || msg->in_chain)
        return;
    if (msg->has_id) {
        if (id_entry(msg)->live)
            return;
        id_entry(msg)->msg = NULL;
    }
    conclude(e, msg, (enum mrd_wc_status)msg->status);
}

static void cancel_with(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status,
                        bool tell)
{
    msg->state = MRD_MSG_CANCELLED;
    msg->status = (uint8_t)status;
    if (tell) {
        msg->abort_pending = true;
        mrd_list_append(&msg->peer->tx->aborts, &msg->node);
        mrd_engine_ready(e, msg->peer);
    }
    cancelled_progress(e, msg);
}

void mrd_engine_cancel(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    if (msg->state == MRD_MSG_DONE || msg->state == MRD_MSG_CANCELLED)
        return;
    if (msg->state == MRD_MSG_QUEUED)
        mrd_engine_dequeue(e, msg);
    mrd_list_remove(&msg->node);
    /* The target is told where it may hold a half message, or wait for this one's place in the order. */
    cancel_with(e, msg, status, msg->has_id || msg->flow);
}

/* ---------------------------------------------------------------------------------------- acked and refused */

static void arm_retry(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_tx_half *tx = msg->peer->tx;

    if (msg->rnr_until_ns < tx->rnr_next_ns)
        tx->rnr_next_ns = msg->rnr_until_ns;
    mrd_engine_arm(e, msg->peer, msg->rnr_until_ns > e->now ? msg->rnr_until_ns : e->now + 1);
}

static void small_acked(struct mrd_engine *e, struct mrd_sent *rec)
{
    struct mrd_msg *msg;

    while ((msg = rec->u.small)) {
        rec->u.small = msg->chain;
        msg->chain = NULL;
        msg->in_chain = false;
        if (msg->state == MRD_MSG_SENDING)
            conclude(e, msg, MRD_WC_SUCCESS);
        else
            cancelled_progress(e, msg);
    }
}

static void segment_acked(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_sent *rec)
{
    struct mrd_tx_id *id = &peer->tx->ids[rec->id % MRD_MSG_SLOTS];
    struct mrd_msg *msg = id->msg;

    assert(id->id == rec->id && id->live > 0);
    id->live--;
    if (!msg)
        return;
    if ((msg->state == MRD_MSG_SENDING || msg->state == MRD_MSG_QUEUED) &&
        rec->attempt == msg->attempt) {
        msg->acked_bytes += rec->len;
        if (msg->acked_bytes == msg->length) {
            id->msg = NULL;
            conclude(e, msg, MRD_WC_SUCCESS);
        }
        return;
    }
    if (msg->state == MRD_MSG_RNR_WAIT && !id->live)
        arm_retry(e, msg);
    cancelled_progress(e, msg);
}

static void abort_acked(struct mrd_engine *e, struct mrd_sent *rec)
{
    struct mrd_msg *msg;

    while ((msg = rec->u.small)) {
        rec->u.small = msg->abort_chain;
        msg->abort_chain = NULL;
        msg->aborted = false;
        if (msg->has_id)
            id_entry(msg)->live--;
        cancelled_progress(e, msg);
    }
}

void mrd_engine_record_done(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec)
{
    switch ((enum mrd_sent_kind)rec->kind) {
    case MRD_SENT_EMPTY:
        break;
    case MRD_SENT_SMALL:
        small_acked(e, rec);
        break;
    case MRD_SENT_SEGMENT:
        segment_acked(e, peer, rec);
        break;
    case MRD_SENT_REFUSAL:
        if (peer->rx && rec->u.refusal->rx_life == peer->rx_life &&
            mrd_rcv_unhold(&peer->rx->rcv, rec->u.refusal->psn))
            mrd_engine_ready(e, peer);
        mrd_pool_release(&e->refusal_pool, rec->u.refusal);
        break;
    case MRD_SENT_ABORT:
        abort_acked(e, rec);
        break;
    }
    mrd_sent_release(&peer->tx->sent, rec);
}

static enum mrd_wc_status status_of(uint8_t code)
{
    switch ((enum mrd_refusal_code)code) {
    case MRD_REFUSE_RNR:
    case MRD_REFUSE_RESOURCES:
        return MRD_WC_RNR_RETRY_EXC_ERR;
    case MRD_REFUSE_QPN:
    case MRD_REFUSE_QKEY:
    case MRD_REFUSE_TOO_LONG:
    case MRD_REFUSE_INVALID:
        return MRD_WC_REM_INV_REQ_ERR;
    case MRD_REFUSE_ACCESS:
        return MRD_WC_REM_ACCESS_ERR;
    case MRD_REFUSE_OPERATION:
        break;
    }
    return MRD_WC_REM_OP_ERR;
}

static void wait_for_receiver(struct mrd_engine *e, struct mrd_msg *msg, uint32_t rnr_usec)
{
    if (msg->rnr_left != MRD_RNR_RETRY_FOREVER)
        msg->rnr_left--;
    msg->state = MRD_MSG_RNR_WAIT;
    msg->rnr_until_ns = e->now + (uint64_t)rnr_usec * MRD_USEC;
    mrd_list_append(&msg->peer->tx->rnr, &msg->node);
    arm_retry(e, msg);
}

void mrd_engine_refused(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                        const struct mrd_wire_refusal_entry *entry, uint32_t rnr_usec)
{
    bool retry = entry->code == MRD_REFUSE_RNR || entry->code == MRD_REFUSE_RESOURCES;
    struct mrd_msg *msg = NULL;

    e->stats.rx_refusals++;
    if (rec->kind == MRD_SENT_SMALL)
        msg = mrd_msg_in_chain(rec->u.small, entry->index);
    else if (rec->kind == MRD_SENT_SEGMENT && peer->tx->ids[rec->id % MRD_MSG_SLOTS].id == rec->id)
        msg = peer->tx->ids[rec->id % MRD_MSG_SLOTS].msg;
    /* Cancelled meanwhile, or a refusal of an attempt that is over. */
    if (!msg || (msg->state != MRD_MSG_SENDING && msg->state != MRD_MSG_QUEUED) ||
        (rec->kind == MRD_SENT_SEGMENT && rec->attempt != msg->attempt))
        return;
    if (msg->state == MRD_MSG_QUEUED)
        mrd_engine_dequeue(e, msg);
    if (rec->kind == MRD_SENT_SMALL)
        mrd_msg_unchain(&rec->u.small, msg);
    msg->vendor_err = entry->code;
    if (retry && msg->rnr_left) {
        wait_for_receiver(e, msg, rnr_usec);
        return;
    }
    /* A hard refusal has freed the message's place at the target; giving up has not. */
    cancel_with(e, msg, status_of(entry->code), retry && (msg->has_id || msg->flow));
}
