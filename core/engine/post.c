/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting of work requests. */
#include <errno.h>
#include <string.h>

#include "core/engine/handle.h"
#include "core/engine/peer_state.h"
#include "core/engine/query.h"
#include "core/engine/request.h"
#include "core/engine/rnr.h"
#include "core/engine/tx_flow.h"
#include "core/engine/txq.h"

/* A queue pair in error takes requests and gives them back at once, as libibverbs does. */
static void post_flushed(struct mrd_qp_impl *qp, const struct mrd_send_wr *wr)
{
    mrd_cq_push(mrd_cq_impl(qp->pub.send_cq),
                &(struct mrd_wc){.wr_id = wr->wr_id,
                                 .status = MRD_WC_WR_FLUSH_ERR,
                                 .opcode = mrd_msg_wc_opcode(mrd_qp_op(wr->opcode)),
                                 .qp_num = qp->pub.qp_num});
}

static int open_flow(struct mrd_engine *e, struct mrd_msg *msg, struct mrd_ah_impl *ah)
{
    struct mrd_flow_tx *flow = mrd_tx_flow_open(e, msg->peer, msg->qp, msg->wr.dst_qpn);

    msg->order.flow = flow;
    if (!flow) {
        mrd_peers_reclaim(e);
        return mrd_error_keep(e, -EAGAIN, "the context's flow table is full (max_flows)");
    }
    mrd_handle_await(e, flow, ah);
    return 0;
}

/* Is the request sound, and is there room for its completion? That is reserved then. */
static int check_send(struct mrd_engine *e, struct mrd_qp_impl *qp, const struct mrd_send_wr *wr,
                      uint32_t *length)
{
    const char *why;
    int error = mrd_qp_check_send(qp, wr, length, &why), access = 0;

    if (error)
        return mrd_error_keep(e, error, why);
    if (mrd_wire_is_request(mrd_qp_op(wr->opcode)))
        access = MRD_ACCESS_LOCAL_WRITE;
    if (wr->ud.ah->context != qp->pub.context)
        return mrd_error_keep(e, -EINVAL, "the address handle belongs to another context");
    if (!(wr->send_flags & MRD_SEND_INLINE) &&
        mrd_mr_list(&e->objects.mrs, qp->pub.pd, wr->sg_list, (uint32_t)wr->num_sge, access) !=
            MRD_MR_OK)
        return mrd_error_keep(e, -EINVAL,
                              access
                                  ? "an lkey does not cover its buffer with MRD_ACCESS_LOCAL_WRITE"
                                  : "an lkey does not cover its buffer");
    if (!mrd_cq_reserve(mrd_cq_impl(qp->pub.send_cq)))
        return mrd_error_keep(e, -ENOMEM, "the send completion queue is full");
    return 0;
}

/* The queue of the request's target; NULL: a table of the context is full. */
static struct mrd_txq *open_queue(struct mrd_engine *e, const struct mrd_qp_impl *qp,
                                  const struct mrd_send_wr *wr)
{
    struct mrd_peer *peer = mrd_handle_open(e, (struct mrd_ah_impl *)(void *)wr->ud.ah);
    struct mrd_txq *q = NULL;

    if (peer) {
        mrd_send_state_open(e, peer); /* before numbering: numbers start with the space */
        q = mrd_txq_open(e, peer, qp->pub.qp_num, wr->ud.remote_qpn, false);
    }
    if (!q)
        mrd_error_keep(e, -EAGAIN,
                       peer ? "the context's table of active flows is full (max_flows)"
                            : "the context's peer table is full (max_peers)");
    return q;
}

/* A message of a checked request, in a slot of its queue pair, on no queue yet. */
static int make_message(struct mrd_engine *e, struct mrd_qp_impl *qp, const struct mrd_send_wr *wr,
                        uint32_t length, struct mrd_peer *peer, struct mrd_msg **msg)
{
    int error = 0;

    *msg = mrd_qp_msg_alloc(qp, wr, length);
    if (!*msg)
        return mrd_error_keep(e, -ENOMEM, "the send queue is full");
    (*msg)->peer = peer;
    (*msg)->peer_id = peer->id;
    (*msg)->memory_seen = e->objects.mrs.removals; /* check_send() looked */
    (*msg)->post_seq = e->calls.msg_seq++;
    if (qp->pub.order != MRD_ORDER_NONE)
        error = open_flow(e, *msg, (struct mrd_ah_impl *)(void *)wr->ud.ah);
    if (error) {
        mrd_qp_msg_free(qp, *msg);
        return error;
    }
    mrd_msg_measure(*msg);
    mrd_list_append(&peer->msgs, &(*msg)->peer_node);
    return 0;
}

int mrd_engine_post_send(struct mrd_engine *e, struct mrd_qp *qp_pub, struct mrd_send_wr *wr,
                         struct mrd_send_wr **bad_wr, uint64_t now_ns)
{
    struct mrd_qp_impl *qp = mrd_qp_impl(qp_pub);

    mrd_clock_set(&e->clock, now_ns);
    e->calls.post_seq = e->calls.seq;
    for (; wr; wr = wr->next) {
        struct mrd_txq *q = NULL;
        struct mrd_msg *msg;
        uint32_t length = 0;
        int error = check_send(e, qp, wr, &length);

        if (!error && qp->pub.state == MRD_QPS_ERR) {
            post_flushed(qp, wr);
            continue;
        }
        if (!error) {
            q = open_queue(e, qp, wr);
            error = q ? make_message(e, qp, wr, length, q->peer, &msg) : -EAGAIN;
            if (error)
                mrd_cq_unreserve(mrd_cq_impl(qp->pub.send_cq));
        }
        if (error) {
            if (q)
                mrd_tx_ready(e, q->peer); /* drops the queue if it is empty */
            *bad_wr = wr;
            return error;
        }
        msg->txq = q;
        if (mrd_msg_begin(e, msg))
            mrd_txq_enqueue(e, q, msg);
    }
    return 0;
}

static int check_recv(struct mrd_engine *e, const struct mrd_recvq *q, const struct mrd_recv_wr *wr)
{
    if (wr->num_sge > 0 && mrd_mr_list(&e->objects.mrs, q->pd, wr->sg_list, (uint32_t)wr->num_sge,
                                       MRD_ACCESS_LOCAL_WRITE) != MRD_MR_OK)
        return mrd_error_keep(e, -EINVAL,
                              "an lkey does not cover its buffer with MRD_ACCESS_LOCAL_WRITE");
    return 0;
}

static int add_recv(struct mrd_engine *e, struct mrd_recvq *q, const struct mrd_recv_wr *wr)
{
    int error = mrd_recvq_post(q, wr);

    if (error)
        return mrd_error_keep(e, error,
                              error == -ENOMEM ? "the receive queue is full"
                                               : "a receive that the receive queue cannot hold");
    mrd_recvq_newest(q)->memory_seen = e->objects.mrs.removals; /* check_recv() looked */
    mrd_rnr_notify(e, &q->rnr_waiters, 1);
    return 0;
}

static int post_one_recv(struct mrd_engine *e, struct mrd_qp_impl *qp, const struct mrd_recv_wr *wr)
{
    struct mrd_cq_impl *cq = mrd_cq_impl(qp->pub.recv_cq);
    int error;

    if (qp->srq)
        return mrd_error_keep(e, -EINVAL,
                              "the queue pair takes receives of its shared receive queue only");
    error = check_recv(e, &qp->own, wr);
    if (error)
        return error;
    if (!mrd_cq_reserve(cq))
        return mrd_error_keep(e, -ENOMEM, "the receive completion queue is full");
    if (qp->pub.state == MRD_QPS_ERR) {
        mrd_cq_push(cq, &(struct mrd_wc){.wr_id = wr->wr_id,
                                         .status = MRD_WC_WR_FLUSH_ERR,
                                         .opcode = MRD_WC_RECV,
                                         .qp_num = qp->pub.qp_num});
        return 0;
    }
    error = add_recv(e, &qp->own, wr);
    if (error)
        mrd_cq_unreserve(cq);
    return error;
}

int mrd_engine_post_recv(struct mrd_engine *e, struct mrd_qp *qp, struct mrd_recv_wr *wr,
                         struct mrd_recv_wr **bad_wr)
{
    for (; wr; wr = wr->next) {
        int error = post_one_recv(e, mrd_qp_impl(qp), wr);

        if (error) {
            *bad_wr = wr;
            return error;
        }
    }
    return 0;
}

int mrd_engine_post_srq_recv(struct mrd_engine *e, struct mrd_srq *srq, struct mrd_recv_wr *wr,
                             struct mrd_recv_wr **bad_wr)
{
    struct mrd_recvq *q = &mrd_srq_impl(srq)->recvq;

    for (; wr; wr = wr->next) {
        int error = check_recv(e, q, wr);

        if (!error)
            error = add_recv(e, q, wr);
        if (error) {
            *bad_wr = wr;
            return error;
        }
    }
    return 0;
}
