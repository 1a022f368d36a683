/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application sends messages by. A short message goes with its head. Of a long one the
 * receiver is told where it lies, and reads it (pull.c).
 */
#include "transport/adapters/ofi/send.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/recv.h"
#include "transport/adapters/ofi/report.h"
#include "transport/adapters/ofi/wire.h"

struct message {
    const struct iovec *iov;
    size_t num_iov;
    fi_addr_t to;
    uint64_t tag, data;
    bool tagged;
    void *context;
    uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_DELIVERY_COMPLETE... */
};

/* -------------------------------------------------------------------------------------- posting */

/* Does it wait until the receiver has it all, or has read it? */
static bool needs_answer(const struct message *m, uint64_t len)
{
    return len > mrd_ofi_params.eager_bytes ||
           m->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE);
}

static struct mrd_ofi_wire_head head_of(const struct message *m, uint64_t len)
{
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_MSG, .tag = m->tag, .bytes = len};

    if (m->tagged)
        head.flags |= MRD_OFI_TAGGED;
    if (m->flags & FI_REMOTE_CQ_DATA) {
        head.flags |= MRD_OFI_DATA;
        head.data = m->data;
    }
    return head;
}

/* Registers the buffer for the peer to read. 0, or a -FI_ error number. */
static int offer(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, struct mrd_ofi_wire_range *range,
                 uint32_t *num)
{
    *num = 0;
    op->offers = true;
    for (uint32_t i = 0; i < op->local.num_iov; i++) {
        uint32_t lkey;
        int error;

        if (!op->local.iov[i].iov_len)
            continue;
        error = mrd_ofi_op_key(ep, op, &op->local.iov[i], MRD_ACCESS_REMOTE_READ, &lkey);
        if (error)
            return error;
        range[*num] = (struct mrd_ofi_wire_range){(uintptr_t)op->local.iov[i].iov_base,
                                                  op->local.iov[i].iov_len,
                                                  op->local.mr[op->local.num_mrs - 1]->rkey, 0};
        mrd_ofi_wire_swap_range(&range[(*num)++]);
    }
    return 0;
}

/* What is injected is the application's again when the call returns, also if it waits for room. */
static int copy_buffer(struct mrd_ofi_op *op)
{
    op->local.copy = malloc(op->len);
    if (!op->local.copy)
        return -FI_ENOMEM;
    mrd_ofi_iov_read(op->local.iov, op->local.num_iov, 0, op->local.copy, op->len);
    op->local.iov[0] = (struct iovec){op->local.copy, op->len};
    op->local.num_iov = 1;
    return 0;
}

static int post_op(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, const struct message *m,
                   uint64_t len)
{
    struct mrd_ofi_wire_range range[MRD_OFI_IOV_MAX];
    struct mrd_ofi_wire_head head = head_of(m, len);
    struct mrd_ofi_op *op = mrd_ofi_op_alloc(ep);
    int error = 0;

    if (!op)
        return -FI_ENOMEM;
    op->peer = peer;
    op->done = mrd_ofi_report_sent;
    op->entry.context = m->context;
    op->entry.flags = FI_SEND | (m->tagged ? FI_TAGGED : FI_MSG);
    op->entry.wanted = m->flags & FI_COMPLETION;
    op->len = len;
    op->local.num_iov = (uint32_t)m->num_iov;
    if (m->num_iov)
        memcpy(op->local.iov, m->iov, m->num_iov * sizeof(op->local.iov[0]));
    head.id = op->id;
    head.answer = ep->cookie;
    if (m->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))
        head.flags |= MRD_OFI_CONFIRM;
    if (m->flags & FI_INJECT && len)
        error = copy_buffer(op);
    if (len > mrd_ofi_params.eager_bytes) {
        head.flags |= MRD_OFI_PULL;
        if (!error)
            error = offer(ep, op, range, &head.num);
    } else {
        op->send.payload_bytes = (uint32_t)len;
    }
    if (error) {
        error = mrd_ofi_op_waits(ep, op, error) ? -FI_EAGAIN : error;
        mrd_ofi_op_release(ep, op);
        return error;
    }
    op->injected = m->flags & FI_INJECT;
    ep->tx.num_internal += op->injected;
    ep->tx.used++;
    op->expects_done = head.flags & (MRD_OFI_PULL | MRD_OFI_CONFIRM);
    if (op->expects_done) {
        mrd_ofi_peer_watch(ep, peer);
        mrd_ofi_op_await(op);
    }
    mrd_ofi_message_send(ep, op, &head, range, head.num * (uint32_t)sizeof(range[0]));
    return 0;
}

static int post(struct mrd_ofi_ep *ep, const struct message *m)
{
    uint64_t len = mrd_ofi_iov_bytes(m->iov, m->num_iov);
    struct mrd_ofi_wire_head head;
    struct mrd_ofi_peer *peer;
    int error;

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (m->num_iov > MRD_OFI_IOV_MAX)
        return -FI_EINVAL;
    if (len > MRD_MESSAGE_BYTES_MAX ||
        (m->flags & FI_INJECT && len > ep->info->tx_attr->inject_size))
        return -FI_EMSGSIZE;
    error = mrd_ofi_peer_get(ep, m->to, &peer);
    if (error)
        return error;
    if (!mrd_ofi_progress_make_room(ep))
        return -FI_EAGAIN;
    /* Earlier failures of the peer do not apply to this message. */
    if (needs_answer(m, len))
        (void)mrd_ofi_take_events(ep);
    if (!(m->flags & FI_INJECT) || m->flags & (FI_COMPLETION | FI_DELIVERY_COMPLETE) ||
        m->context || len > MRD_OFI_INJECT_BYTES)
        return post_op(ep, peer, m, len);
    head = head_of(m, len);
    error = mrd_ofi_message_inject(ep, peer, &head, m->iov, (uint32_t)m->num_iov,
                                   m->tagged ? MRD_OFI_INJECTED_TAGGED : MRD_OFI_INJECTED_MSG);
    if (error == -FI_EAGAIN)
        mrd_ofi_ep_progress(ep);
    return error;
}

static ssize_t send_message(struct fid_ep *fid, const struct message *m)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    int error;

    mrd_ofi_lock(ep->domain);
    error = post(ep, m);
    mrd_ofi_progress_end_turn(ep);
    mrd_ofi_unlock(ep->domain);
    return error;
}

static uint64_t inject_flags(struct fid_ep *fid)
{
    return (mrd_ofi_tx_flags(fid) & ~(FI_COMPLETION | FI_DELIVERY_COMPLETE)) | FI_INJECT;
}

/* ------------------------------------------------------------------------------------- untagged */

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to,
                        uint64_t data, void *context, uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};

    return send_message(
        fid,
        &(struct message){
            .iov = &iov, .num_iov = 1, .to = to, .data = data, .context = context, .flags = flags});
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to,
                        void *context)
{
    (void)desc;
    return send_one(fid, buf, len, to, 0, context, mrd_ofi_tx_flags(fid));
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                         fi_addr_t to, void *context)
{
    (void)desc;
    return send_message(fid, &(struct message){.iov = iov,
                                               .num_iov = count,
                                               .to = to,
                                               .context = context,
                                               .flags = mrd_ofi_tx_flags(fid)});
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    return send_message(fid, &(struct message){.iov = msg->msg_iov,
                                               .num_iov = msg->iov_count,
                                               .to = msg->addr,
                                               .data = msg->data,
                                               .context = msg->context,
                                               .flags = mrd_ofi_tx_flags_named(fid, flags)});
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
    return send_one(fid, buf, len, to, 0, NULL, inject_flags(fid));
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                            uint64_t data, fi_addr_t to, void *context)
{
    (void)desc;
    return send_one(fid, buf, len, to, data, context, mrd_ofi_tx_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                              fi_addr_t to)
{
    return send_one(fid, buf, len, to, data, NULL, inject_flags(fid) | FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg mrd_ofi_msg_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = mrd_ofi_recv,
    .recvv = mrd_ofi_recvv,
    .recvmsg = mrd_ofi_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};

/* --------------------------------------------------------------------------------------- tagged */

static ssize_t tsend_one(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to,
                         uint64_t tag, uint64_t data, void *context, uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};

    return send_message(fid, &(struct message){.iov = &iov,
                                               .num_iov = 1,
                                               .to = to,
                                               .tag = tag,
                                               .data = data,
                                               .tagged = true,
                                               .context = context,
                                               .flags = flags});
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                           fi_addr_t to, uint64_t tag, void *context)
{
    (void)desc;
    return tsend_one(fid, buf, len, to, tag, 0, context, mrd_ofi_tx_flags(fid));
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                            fi_addr_t to, uint64_t tag, void *context)
{
    (void)desc;
    return send_message(fid, &(struct message){.iov = iov,
                                               .num_iov = count,
                                               .to = to,
                                               .tag = tag,
                                               .tagged = true,
                                               .context = context,
                                               .flags = mrd_ofi_tx_flags(fid)});
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    return send_message(fid, &(struct message){.iov = msg->msg_iov,
                                               .num_iov = msg->iov_count,
                                               .to = msg->addr,
                                               .tag = msg->tag,
                                               .data = msg->data,
                                               .tagged = true,
                                               .context = msg->context,
                                               .flags = mrd_ofi_tx_flags_named(fid, flags)});
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to,
                             uint64_t tag)
{
    return tsend_one(fid, buf, len, to, tag, 0, NULL, inject_flags(fid));
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                               uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
    (void)desc;
    return tsend_one(fid, buf, len, to, tag, data, context,
                     mrd_ofi_tx_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                                 fi_addr_t to, uint64_t tag)
{
    return tsend_one(fid, buf, len, to, tag, data, NULL, inject_flags(fid) | FI_REMOTE_CQ_DATA);
}

struct fi_ops_tagged mrd_ofi_tagged_ops = {
    .size = sizeof(struct fi_ops_tagged),
    .recv = mrd_ofi_trecv,
    .recvv = mrd_ofi_trecvv,
    .recvmsg = mrd_ofi_trecvmsg,
    .send = tagged_send,
    .sendv = tagged_sendv,
    .sendmsg = tagged_sendmsg,
    .inject = tagged_inject,
    .senddata = tagged_senddata,
    .injectdata = tagged_injectdata,
};
