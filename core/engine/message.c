/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a sent message: completion, refusal, cancel, ABORT. */
#include "core/engine/message.h"

#include <assert.h>

#include "core/engine/request.h"
#include "core/engine/rnr.h"
#include "core/engine/tx_flow.h"
#include "core/engine/txq.h"
#include "core/seq.h"

/* The record of a response goes. */
static void release_response(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_response *r = mrd_container_of(msg, struct mrd_response, msg);

    if (msg->peer)
        msg->peer->uses.responses--;
    mrd_list_remove(&r->node);
    msg->state = MRD_MSG_FREE;
    msg->qp->live_msgs--;
    mrd_pool_release(&e->responses, r);
}

/* ----------------------------------------------------------------------------------- completion */

void mrd_msg_reap_qp(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n;

    /* mrd_engine_destroy_qp() clears send_cq last: until then it still walks the slots. */
    if (!qp->destroyed || qp->pub.send_cq || qp->live_msgs)
        return;
    while ((n = mrd_list_pop(&qp->flows))) {
        struct mrd_flow_tx *flow = mrd_container_of(n, struct mrd_flow_tx, qp_node);

        flow->qp_gone = true;
        mrd_tx_flow_rest(e, flow);
    }
    mrd_list_remove(&qp->node);
    mrd_free(&e->allocator, qp, qp->bytes);
}

/* The work request completes, and its slot is free. */
static void complete(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_qp_impl *qp = msg->qp;
    struct mrd_cq_impl *cq = qp->pub.send_cq ? mrd_cq_impl(qp->pub.send_cq) : NULL;

    mrd_list_remove(&msg->peer_node);
    mrd_list_remove(&msg->order.node);
    mrd_list_remove(&msg->node);
    if (mrd_msg_is_response(msg)) {
        release_response(e, msg);
        return;
    }
    if (msg->status == MRD_WC_SUCCESS)
        e->stats.tx_messages++;
    else
        e->stats.tx_messages_failed++;
    if (cq && !qp->destroyed && (msg->wr.signaled || msg->status != MRD_WC_SUCCESS))
        mrd_cq_push(cq, &(struct mrd_wc){
                            .wr_id = msg->wr.id,
                            .status = (enum mrd_wc_status)msg->status,
                            .opcode = mrd_msg_wc_opcode(msg->wr.op),
                            .vendor_err = msg->vendor_err,
                            .byte_len = msg->wr.length,
                            .qp_num = qp->pub.qp_num,
                            .src_qp = msg->wr.dst_qpn,
                            .peer_id = msg->peer_id,
                        });
    else if (cq)
        mrd_rnr_unreserve(e, cq);
    mrd_qp_msg_free(qp, msg);
}

static bool is_in_gap(const struct mrd_flow_gap *gap, uint32_t msn)
{
    return gap->is_known && !mrd_seq_before(msn, gap->first) && mrd_seq_before(msn, gap->end);
}

/*
 * Ordered: the target may keep an acked message back until an earlier one has come. If the earlier
 * one found no queue pair there, this one was never delivered. If the earlier one was given up, and
 * its ABORT found no queue pair, this one may have been delivered before that went.
 */
static void judge_delivery(struct mrd_msg *msg)
{
    struct mrd_flow_tx *flow = msg->order.flow;
    uint32_t msn = msg->order.msn;

    if (msg->status == MRD_WC_SUCCESS && !mrd_seq_before(msn, flow->proven_msn)) {
        if (is_in_gap(&flow->broken, msn))
            msg->status = MRD_WC_REM_INV_REQ_ERR;
        else if (is_in_gap(&flow->doubted, msn))
            msg->status = MRD_WC_REM_OP_ERR;
        if (msg->status != MRD_WC_SUCCESS)
            msg->vendor_err = MRD_REFUSE_QPN;
    }
    if (mrd_seq_before(flow->proven_msn, msn))
        flow->proven_msn = msn;
}

/* Ordered: settle this message and those behind it, up to the first whose outcome is not known. */
static void settle(struct mrd_flow_tx *flow, struct mrd_msg *msg)
{
    struct mrd_node *n = &msg->order.node;

    if (n->prev != &flow->msgs &&
        !mrd_container_of(n->prev, struct mrd_msg, order.node)->order.settled)
        return;
    for (; n != &flow->msgs; n = n->next) {
        msg = mrd_container_of(n, struct mrd_msg, order.node);
        if (msg->state != MRD_MSG_DONE)
            return;
        judge_delivery(msg);
        msg->order.settled = true;
    }
}

/*
 * Complete what is settled and no longer read by the mover, in the order posted. Returns false if
 * something is left.
 */
static bool complete_settled(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&flow->msgs))) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, order.node);

        if (!msg->order.settled || msg->reading)
            return false;
        complete(e, msg);
    }
    if (!flow->peer)
        mrd_list_remove(&flow->qp_node);
    mrd_tx_flow_rest(e, flow);
    return true;
}

/*
 * What the mover still reads of a space that ended was posted before all that goes on, and completes
 * first. All flows to a queue pair of that number wait, whatever peer they are of: the handle may
 * have another entry by now, at another address.
 */
static void complete_in_turn(struct mrd_engine *e, struct mrd_qp_impl *qp, uint32_t remote_qpn)
{
    struct mrd_flow_tx *flow;

    while ((flow = mrd_tx_flow_first(&qp->ended, &qp->ended, remote_qpn)))
        if (!complete_settled(e, flow))
            return;
    for (const struct mrd_node *n = &qp->flows;
         (flow = mrd_tx_flow_first(n, &qp->flows, remote_qpn)); n = &flow->qp_node)
        if (!mrd_list_empty(&flow->msgs))
            complete_settled(e, flow);
}

static void complete_flow(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    struct mrd_node *n = mrd_list_first(&flow->msgs);
    struct mrd_qp_impl *qp = n ? mrd_container_of(n, struct mrd_msg, order.node)->qp : NULL;

    if (qp && mrd_tx_flow_first(&qp->ended, &qp->ended, flow->remote_qpn))
        complete_in_turn(e, qp, flow->remote_qpn);
    else
        complete_settled(e, flow);
}

/*
 * The outcome of a message is known. It completes when the mover has stopped reading it, and in
 * ordered mode after all that were posted before it.
 */
static void end_message(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    struct mrd_flow_tx *flow = msg->order.flow;
    struct mrd_qp_impl *qp = msg->qp;

    msg->state = MRD_MSG_DONE;
    msg->status = (uint8_t)status;
    if (!flow && !msg->reading)
        complete(e, msg);
    if (flow && !msg->order.settled)
        settle(flow, msg);
    if (flow)
        complete_flow(e, flow);
    mrd_msg_reap_qp(e, qp);
}

void mrd_msg_end_request(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_flow_tx *flow = msg->order.flow;

    msg->request.answered = true;
    /* It was executed in its turn. */
    if (flow && mrd_seq_before(flow->proven_msn, msg->order.msn + 1))
        flow->proven_msn = msg->order.msn + 1;
    mrd_msg_forget_request(e, msg);
    if (msg->state == MRD_MSG_ANSWERING)
        end_message(e, msg, MRD_WC_SUCCESS);
}

void mrd_msg_abandon(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    const struct mrd_flow_tx *flow = msg->order.flow;
    struct mrd_qp_impl *qp = msg->qp;
    bool undelivered = msg->state == MRD_MSG_DONE && flow && !msg->order.settled &&
                       msg->status == MRD_WC_SUCCESS &&
                       !mrd_seq_before(msg->order.msn, flow->proven_msn);

    mrd_msg_forget_request(e, msg);
    if (msg->state == MRD_MSG_QUEUED)
        mrd_txq_dequeue(e, msg);
    if (msg->state == MRD_MSG_HELD)
        mrd_msg_end_held(e, msg);
    /* Acked, but behind a message that was not: whether it was delivered nobody will tell now. */
    if (undelivered || (msg->state != MRD_MSG_DONE && msg->state != MRD_MSG_CANCELLED))
        msg->status = (uint8_t)status;
    msg->state = MRD_MSG_DONE;
    msg->order.settled = true;
    mrd_list_remove(&msg->node);
    mrd_list_remove(&msg->peer_node);
    msg->peer->uses.responses -= mrd_msg_is_response(msg);
    msg->peer = NULL;
    if (!msg->order.flow && !msg->reading)
        complete(e, msg);
    mrd_msg_reap_qp(e, qp);
}

void mrd_msg_end_flow(struct mrd_engine *e, struct mrd_flow_tx *flow)
{
    struct mrd_node *n = mrd_list_first(&flow->msgs);
    struct mrd_qp_impl *qp = n ? mrd_container_of(n, struct mrd_msg, order.node)->qp : NULL;

    mrd_hash_del(&e->flows_tx.by_key, &flow->by_key);
    mrd_list_remove(&flow->peer_node);
    mrd_list_remove(&flow->idle_node);
    mrd_list_remove(&flow->qp_node);
    flow->peer = NULL;
    flow->closing = false;
    /* Nothing has to wait for what completes at once. */
    if (!qp || mrd_tx_flow_first(&qp->ended, &qp->ended, flow->remote_qpn) ||
        !complete_settled(e, flow)) {
        if (qp)
            mrd_list_append(&qp->ended, &flow->qp_node);
        complete_flow(e, flow);
    }
    if (qp)
        mrd_msg_reap_qp(e, qp);
}

void mrd_msg_end_read(struct mrd_engine *e, struct mrd_msg *msg)
{
    assert(msg->reading > 0);
    if (--msg->reading == 0 && msg->state == MRD_MSG_DONE)
        end_message(e, msg, (enum mrd_wc_status)msg->status);
}

/* --------------------------------------------------------------------------------------- cancel */

/* All packets that carry the id are acked: it may be used again. */
static void release_id(struct mrd_msg *msg, struct mrd_tx_id *id)
{
    id->msg = NULL;
    mrd_ids_release(&msg->peer->tx->ids, id);
    msg->has_id = false;
}

/*
 * End a cancelled message if its packets and its ABORT are acked: no byte can be placed any more.
 */
static void end_cancelled(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->state != MRD_MSG_CANCELLED || msg->abort.pending || msg->abort.sent ||
        msg->packet.chained)
        return;
    if (msg->has_id) {
        struct mrd_tx_id *id = mrd_ids_find(&msg->peer->tx->ids, msg->id);

        if (id->live)
            return;
        release_id(msg, id);
    }
    end_message(e, msg, (enum mrd_wc_status)msg->status);
}

/* tell: the target gets an ABORT. */
static void cancel_with(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status,
                        bool tell)
{
    mrd_msg_forget_request(e, msg);
    msg->state = MRD_MSG_CANCELLED;
    msg->status = (uint8_t)status;
    if (tell) {
        msg->abort.pending = true;
        mrd_list_append(&msg->peer->tx->aborts, &msg->node);
        mrd_tx_ready(e, msg->peer);
    }
    end_cancelled(e, msg);
}

void mrd_msg_cancel(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status)
{
    bool held = msg->state == MRD_MSG_HELD;

    if (msg->state == MRD_MSG_DONE || msg->state == MRD_MSG_CANCELLED)
        return;
    if (msg->state == MRD_MSG_QUEUED)
        mrd_txq_dequeue(e, msg);
    if (held)
        mrd_msg_end_held(e, msg);
    mrd_list_remove(&msg->node);
    /*
     * The target may have received a part of it, may wait for its place in the order, or for the
     * response.
     */
    cancel_with(e, msg, status,
                msg->has_id || (msg->order.flow && !held) || mrd_msg_is_response(msg));
}

/* ---------------------------------------------------------------------------- acked and refused */

static void small_acked(struct mrd_engine *e, struct mrd_sent *rec)
{
    struct mrd_msg *msg;

    while ((msg = rec->u.small)) {
        rec->u.small = msg->packet.next;
        msg->packet.next = NULL;
        msg->packet.chained = false;
        if (msg->state != MRD_MSG_SENDING) {
            end_cancelled(e, msg);
            continue;
        }
        mrd_txq_found_receive(e, msg);
        if (msg->request.live) {
            msg->state = MRD_MSG_ANSWERING;
            msg->peer->tx->probes.answer_ns = MRD_SILENCE_MIN_NS;
        } else {
            end_message(e, msg, MRD_WC_SUCCESS);
        }
    }
}

void mrd_msg_segments_acked(struct mrd_engine *e, struct mrd_peer *peer, uint32_t msg_id,
                            uint32_t n, uint32_t bytes)
{
    struct mrd_tx_id *id = mrd_ids_find(&peer->tx->ids, msg_id);
    struct mrd_msg *msg = id->msg;

    assert(msg && id->live >= n);
    id->live -= (uint16_t)n;
    if (msg->state == MRD_MSG_SENDING || msg->state == MRD_MSG_QUEUED) {
        msg->acked_bytes += bytes;
        if (msg->acked_bytes < msg->wr.length)
            return;
        release_id(msg, id);
        mrd_txq_found_receive(e, msg);
        end_message(e, msg, MRD_WC_SUCCESS);
        return;
    }
    if (msg->state == MRD_MSG_RNR_WAIT && !id->live) {
        release_id(msg, id);
        mrd_txq_wait(e, msg);
        return;
    }
    end_cancelled(e, msg);
}

static void abort_acked(struct mrd_engine *e, struct mrd_sent *rec)
{
    struct mrd_msg *msg;

    while ((msg = rec->u.small)) {
        rec->u.small = msg->abort.next;
        msg->abort.next = NULL;
        msg->abort.sent = false;
        if (msg->has_id)
            mrd_ids_find(&msg->peer->tx->ids, msg->id)->live--;
        end_cancelled(e, msg);
    }
}

void mrd_msg_rest_taken(struct mrd_engine *e, struct mrd_sent *rec)
{
    if (rec->kind == MRD_SENT_SMALL)
        small_acked(e, rec);
}

void mrd_msg_record_acked(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec)
{
    switch ((enum mrd_sent_kind)rec->kind) {
    case MRD_SENT_EMPTY:
        break;
    case MRD_SENT_READY:
        mrd_rnr_notified(e, rec->id);
        break;
    case MRD_SENT_SMALL:
        small_acked(e, rec);
        break;
    case MRD_SENT_SEGMENT:
        mrd_msg_segments_acked(e, peer, rec->id, 1, rec->len);
        break;
    case MRD_SENT_REFUSAL:
        if (peer->rx && rec->u.refusal->rx_life == peer->space.life &&
            mrd_rcv_refusal_acked(&peer->rx->rcv, rec->u.refusal->psn))
            mrd_tx_ready(e, peer);
        mrd_refusal_release(e, peer, rec->u.refusal);
        break;
    case MRD_SENT_ABORT:
        abort_acked(e, rec);
        break;
    case MRD_SENT_CLOSE:
        mrd_tx_flow_close_acked(e, rec->u.flow);
        break;
    }
    mrd_sent_release(&peer->tx->sent, rec);
}

static enum mrd_wc_status wc_status(uint8_t code)
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
    if (msg->rnr.left != MRD_RNR_RETRY_FOREVER && !msg->rnr.hinted)
        msg->rnr.left--;
    msg->state = MRD_MSG_RNR_WAIT;
    msg->rnr.usec = rnr_usec;
    msg->rnr.refused_ns = e->clock.now_ns;
    /* Packets of this attempt must not meet the next one: those in flight are acked first. */
    if (!msg->has_id)
        mrd_txq_wait(e, msg);
}

/* Of no message from that one on is known that it was delivered, up to the last that was posted. */
static void note_gap(const struct mrd_flow_tx *flow, struct mrd_flow_gap *gap, uint32_t msn)
{
    const struct mrd_node *n = flow->msgs.next;
    uint32_t oldest = n == &flow->msgs
                          ? flow->msn_next
                          : mrd_container_of(n, const struct mrd_msg, order.node)->order.msn;

    if (!gap->is_known || !mrd_seq_before(oldest, gap->end) || mrd_seq_before(msn, gap->first))
        gap->first = msn;
    gap->is_known = true;
    gap->end = flow->msn_next;
}

/* The ABORT of a message found no queue pair. The message itself may have found it. */
static void apply_abort_refusal(const struct mrd_msg *msg, unsigned index)
{
    struct mrd_flow_tx *flow;

    while (msg && index--)
        msg = msg->abort.next;
    flow = msg ? msg->order.flow : NULL;
    if (flow)
        note_gap(flow, &flow->doubted, msg->order.msn);
}

bool mrd_msg_apply_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                           const struct mrd_wire_refusal_entry *entry, uint32_t rnr_usec)
{
    bool retry = entry->code == MRD_REFUSE_RNR || entry->code == MRD_REFUSE_RESOURCES;
    struct mrd_msg *msg = NULL;

    e->stats.rx_refusals++;
    if (rec->kind == MRD_SENT_SMALL) {
        msg = mrd_msg_in_chain(rec->u.small, entry->index);
    } else if (rec->kind == MRD_SENT_SEGMENT) {
        const struct mrd_tx_id *id = mrd_ids_find(&peer->tx->ids, rec->id);

        msg = id ? id->msg : NULL;
    } else if (rec->kind == MRD_SENT_ABORT) {
        apply_abort_refusal(rec->u.small, entry->index);
    }
    /* It was cancelled meanwhile, or this is a second refusal. */
    if (!msg || (msg->state != MRD_MSG_SENDING && msg->state != MRD_MSG_QUEUED))
        return msg;
    if (msg->state == MRD_MSG_QUEUED)
        mrd_txq_dequeue(e, msg);
    if (rec->kind == MRD_SENT_SMALL)
        mrd_msg_unchain(&rec->u.small, msg);
    msg->vendor_err = entry->code;
    if (entry->code == MRD_REFUSE_QPN && msg->order.flow)
        note_gap(msg->order.flow, &msg->order.flow->broken, msg->order.msn);
    /* Flows that we do not use may hold the very records that the target lacks. */
    if (entry->code == MRD_REFUSE_RESOURCES)
        mrd_tx_flow_close_idle(e, peer, 0);
    if (retry && (msg->rnr.left || msg->rnr.hinted)) {
        wait_for_receiver(e, msg, rnr_usec);
        return true;
    }
    /* Other reasons, a key for one, say nothing of the receives that others wait for. */
    if (retry || entry->code == MRD_REFUSE_QPN)
        mrd_txq_end_wait(e, msg);
    /*
     * By refusing for good the target gave up the message's place in the order. Otherwise tell it.
     */
    cancel_with(e, msg, wc_status(entry->code), retry && msg->order.flow);
    return true;
}

static bool memory_valid(const struct mrd_engine *e, struct mrd_msg *msg)
{
    int access = mrd_msg_is_request(msg) ? MRD_ACCESS_LOCAL_WRITE : 0;

    return msg->wr.is_inline || mrd_mr_list_stays(&e->objects.mrs, msg->qp->pub.pd, msg->wr.sge,
                                                  msg->wr.num_sge, access, &msg->memory_seen);
}

bool mrd_msg_find_memory(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (memory_valid(e, msg))
        return true;
    mrd_msg_cancel(e, msg, MRD_WC_LOC_PROT_ERR);
    return false;
}
