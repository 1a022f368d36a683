/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/qp.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/limits.h"

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

static size_t round16(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

struct mrd_qp_impl *mrd_qp_find(const struct mrd_hash *qps, uint32_t qpn)
{
    for (struct mrd_hash_node *n = mrd_hash_first(qps, mrd_hash_mix(qpn)); n; n = n->next) {
        struct mrd_qp_impl *qp = mrd_container_of(n, struct mrd_qp_impl, by_num);

        if (qp->pub.qp_num == qpn)
            return qp;
    }
    return NULL;
}

size_t mrd_qp_bytes(const struct mrd_qp_cap *cap)
{
    if (cap->max_send_wr > MRD_WR_MAX || cap->max_recv_wr > MRD_WR_MAX ||
        cap->max_send_sge > MRD_SGE_MAX || cap->max_recv_sge > MRD_SGE_MAX ||
        cap->max_inline_data > MRD_INLINE_BYTES_MAX)
        return 0;
    return round16(sizeof(struct mrd_qp_impl)) +
           round16(cap->max_send_wr * sizeof(struct mrd_msg)) +
           round16((size_t)cap->max_send_wr * at_least_1(cap->max_send_sge) *
                   sizeof(struct mrd_sge)) +
           mrd_recvq_bytes(cap->max_recv_wr, cap->max_recv_sge) +
           (size_t)cap->max_send_wr * cap->max_inline_data;
}

void mrd_qp_init(struct mrd_qp_impl *qp, struct mrd_pd *pd, const struct mrd_qp_init_attr *attr,
                 size_t bytes)
{
    char *at = (char *)qp + round16(sizeof(*qp));

    qp->bytes = bytes;
    qp->cap = attr->cap;
    qp->cap.max_send_sge = at_least_1(attr->cap.max_send_sge);
    qp->cap.max_recv_sge = at_least_1(attr->cap.max_recv_sge);
    qp->msgs = (struct mrd_msg *)(void *)at;
    at += round16(qp->cap.max_send_wr * sizeof(struct mrd_msg));
    qp->sges = (struct mrd_sge *)(void *)at;
    at += round16((size_t)qp->cap.max_send_wr * qp->cap.max_send_sge * sizeof(struct mrd_sge));
    mrd_recvq_init(&qp->own, at, qp->cap.max_recv_wr, qp->cap.max_recv_sge, pd);
    at += mrd_recvq_bytes(qp->cap.max_recv_wr, qp->cap.max_recv_sge);
    qp->inline_data = (uint8_t *)at;

    qp->srq = attr->srq ? mrd_srq_impl(attr->srq) : NULL;
    qp->recvq = qp->srq ? &qp->srq->recvq : &qp->own;
    qp->sig_all = attr->sq_sig_all;
    qp->qkey = attr->qkey;
    mrd_list_init(&qp->free_msgs);
    mrd_list_init(&qp->flows);
    mrd_list_init(&qp->ended);
    mrd_list_init(&qp->rnr_waiters);
    qp->event = (struct mrd_event_source){.type = MRD_EVENT_QP_FATAL, .object = qp};
    mrd_list_init(&qp->event.node);
    qp->refused = (struct mrd_event_source){.type = MRD_EVENT_QP_REFUSED, .object = qp};
    mrd_list_init(&qp->refused.node);
    qp->tells_refused = attr->events & MRD_QP_TELL_REFUSED;
    mrd_list_init(&qp->requests.held);
    mrd_list_init(&qp->responses);
    mrd_list_init(&qp->node);
    for (uint32_t i = 0; i < qp->cap.max_send_wr; i++) {
        struct mrd_msg *msg = &qp->msgs[i];

        msg->qp = qp;
        msg->wr.sge = &qp->sges[i * qp->cap.max_send_sge];
        msg->wr.inline_data = &qp->inline_data[i * qp->cap.max_inline_data];
        mrd_list_init(&msg->order.node);
        mrd_list_init(&msg->peer_node);
        mrd_list_append(&qp->free_msgs, &msg->node);
    }
}

uint32_t mrd_qp_receives(const struct mrd_qp_impl *qp)
{
    uint32_t room;

    if (!qp->srq)
        return qp->recvq->num_posted;
    room = mrd_cq_room(mrd_cq_impl(qp->pub.recv_cq));
    return qp->recvq->num_posted < room ? qp->recvq->num_posted : room;
}

int mrd_qp_check_send(const struct mrd_qp_impl *qp, const struct mrd_send_wr *wr, uint32_t *length,
                      const char **why)
{
    const unsigned known =
        MRD_SEND_FENCE | MRD_SEND_SIGNALED | MRD_SEND_SOLICITED | MRD_SEND_INLINE;
    bool request = (unsigned)wr->opcode <= MRD_WR_ATOMIC_FETCH_AND_ADD &&
                   mrd_wire_is_request(mrd_qp_op(wr->opcode));
    bool atomic = request && wr->opcode != MRD_WR_RDMA_READ;
    uint64_t bytes = 0;

    *why = NULL;
    if ((unsigned)wr->opcode > MRD_WR_ATOMIC_FETCH_AND_ADD)
        *why = "unknown opcode";
    else if (qp->pub.state == MRD_QPS_INIT)
        *why = "the queue pair is in MRD_QPS_INIT: it sends after mrd_modify_qp() to MRD_QPS_RTS";
    else if (wr->send_flags & ~known)
        *why = "unknown send flag";
    else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        *why = "more gather entries than the queue pair's max_send_sge";
    else if (!wr->ud.ah)
        *why = "no address handle";
    else if (request && wr->send_flags & MRD_SEND_INLINE)
        *why = "MRD_SEND_INLINE is for sends and writes";
    else if (atomic && (wr->num_sge != 1 || wr->sg_list->length != MRD_WIRE_ATOMIC_BYTES))
        *why = "an atomic needs one gather entry of 8 bytes";
    else if (atomic && wr->wr.atomic.remote_addr % MRD_WIRE_ATOMIC_BYTES)
        *why = "the address of an atomic is no multiple of 8";
    if (*why)
        return -EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    if (bytes > MRD_MESSAGE_BYTES_MAX) {
        *why = "message longer than 1 GiB";
        return -EMSGSIZE;
    }
    if (wr->send_flags & MRD_SEND_INLINE && bytes > qp->cap.max_inline_data) {
        *why = "inline data longer than the queue pair's max_inline_data";
        return -EINVAL;
    }
    *length = (uint32_t)bytes;
    return 0;
}

uint8_t mrd_qp_op(enum mrd_wr_opcode opcode)
{
    switch (opcode) {
    case MRD_WR_RDMA_WRITE:
    case MRD_WR_RDMA_WRITE_WITH_IMM:
        return MRD_OP_WRITE;
    case MRD_WR_RDMA_READ:
        return MRD_OP_READ;
    case MRD_WR_ATOMIC_CMP_AND_SWP:
        return MRD_OP_CMP_SWAP;
    case MRD_WR_ATOMIC_FETCH_AND_ADD:
        return MRD_OP_FETCH_ADD;
    case MRD_WR_SEND:
    case MRD_WR_SEND_WITH_IMM:
        break;
    }
    return MRD_OP_SEND;
}

/* The remote memory that a request names. */
static void set_remote(struct mrd_msg_wr *to, const struct mrd_send_wr *wr)
{
    to->remote_addr = to->compare_add = to->swap = to->rkey = 0;
    if (to->op == MRD_OP_WRITE || to->op == MRD_OP_READ) {
        to->remote_addr = wr->wr.rdma.remote_addr;
        to->rkey = wr->wr.rdma.rkey;
    } else if (mrd_wire_is_request(to->op)) {
        to->remote_addr = wr->wr.atomic.remote_addr;
        to->compare_add = wr->wr.atomic.compare_add;
        to->swap = wr->wr.atomic.swap;
        to->rkey = wr->wr.atomic.rkey;
    }
}

struct mrd_msg *mrd_qp_msg_alloc(struct mrd_qp_impl *qp, const struct mrd_send_wr *wr,
                                 uint32_t length)
{
    bool imm = wr->opcode == MRD_WR_SEND_WITH_IMM || wr->opcode == MRD_WR_RDMA_WRITE_WITH_IMM;
    struct mrd_node *n = mrd_list_pop(&qp->free_msgs);
    struct mrd_msg *msg;

    if (!n)
        return NULL;
    msg = mrd_container_of(n, struct mrd_msg, node);
    qp->live_msgs++;
    msg->wr.id = wr->wr_id;
    msg->wr.length = length;
    msg->wr.op = mrd_qp_op(wr->opcode);
    msg->wr.fenced = wr->send_flags & MRD_SEND_FENCE;
    msg->wr.part_flags = (uint8_t)((imm ? MRD_PART_IMM : 0) |
                                   (wr->send_flags & MRD_SEND_SOLICITED ? MRD_PART_SOLICITED : 0) |
                                   (qp->pub.order != MRD_ORDER_NONE ? MRD_PART_ORDERED : 0));
    msg->wr.signaled = qp->sig_all || wr->send_flags & MRD_SEND_SIGNALED;
    msg->wr.is_inline = wr->send_flags & MRD_SEND_INLINE;
    msg->wr.dst_qpn = wr->ud.remote_qpn;
    msg->wr.qkey = wr->ud.remote_qkey;
    set_remote(&msg->wr, wr);
    msg->wr.imm = wr->imm_data;
    /* A request waits only for room at the target: that does not depend on its application. */
    msg->rnr.left =
        mrd_msg_is_request(msg) ? (uint8_t)MRD_RNR_RETRY_FOREVER : (uint8_t)qp->rnr_retry;
    msg->request = (struct mrd_msg_request){.live = false};
    msg->state = MRD_MSG_QUEUED;
    msg->status = MRD_WC_SUCCESS;
    msg->order.flow = NULL;
    msg->txq = NULL;
    msg->packet.next = msg->abort.next = NULL;
    msg->reading = 0;
    msg->next_offset = msg->acked_bytes = 0;
    msg->attempt = msg->vendor_err = 0;
    msg->has_id = msg->packet.chained = msg->abort.pending = msg->abort.sent = msg->started = false;
    msg->order.settled = msg->rnr.hinted = false;
    msg->rnr.doublings = 0;
    msg->wr.num_sge = 0;
    if (msg->wr.is_inline) {
        uint8_t *at = msg->wr.inline_data;

        for (int i = 0; i < wr->num_sge; at += wr->sg_list[i++].length)
            memcpy(at, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
    } else if (wr->num_sge) {
        msg->wr.num_sge = (uint8_t)wr->num_sge;
        memcpy(msg->wr.sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*msg->wr.sge));
    }
    return msg;
}

void mrd_qp_msg_free(struct mrd_qp_impl *qp, struct mrd_msg *msg)
{
    assert(msg->state != MRD_MSG_FREE && qp->live_msgs > 0);
    msg->state = MRD_MSG_FREE;
    qp->live_msgs--;
    mrd_list_prepend(&qp->free_msgs, &msg->node); /* the next one finds it in the cache */
}
