/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/message.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"

static void fill_wr(struct mrd_send_wr *wr, struct mrd_sge *sge, const struct mrd_ofi_peer *peer)
{
    *wr = (struct mrd_send_wr){.sg_list = sge,
                               .opcode = MRD_WR_SEND,
                               .send_flags = MRD_SEND_SIGNALED,
                               .ud = {.ah = peer->ah, .remote_qpn = MRD_FIRST_QP_NUM}};
}

int mrd_ofi_message_inject(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           struct mrd_ofi_wire_head *head, const struct iovec *more, uint32_t num,
                           uint64_t what)
{
    struct mrd_sge sge[MRD_OFI_SGE_MAX];
    struct mrd_send_wr wr;
    int error;

    if (!mrd_list_empty(&ep->tx.unsent))
        return -FI_EAGAIN;
    head->version = MRD_OFI_WIRE_VERSION;
    mrd_ofi_wire_swap_head(head);
    fill_wr(&wr, sge, peer);
    wr.wr_id = what;
    wr.send_flags |= MRD_SEND_INLINE;
    sge[0] = (struct mrd_sge){(uintptr_t)head, sizeof(*head), 0};
    wr.num_sge = 1;
    for (uint32_t i = 0; i < num; i++) {
        if (more[i].iov_len)
            sge[wr.num_sge++] =
                (struct mrd_sge){(uintptr_t)more[i].iov_base, (uint32_t)more[i].iov_len, 0};
    }
    error = mrd_ofi_op_post(ep->dev.messages, &wr);
    mrd_ofi_wire_swap_head(head);
    if (!error)
        ep->tx.num_internal++;
    return error;
}

/* Fills the list of a message. 0, or -FI_ error number. */
static int fill_list(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, struct mrd_send_wr *wr)
{
    struct mrd_sge *sge = wr->sg_list;
    bool is_inline = op->send.head_bytes + op->send.payload_bytes <= MRD_INLINE_BYTES_MAX;
    uint32_t left = op->send.payload_bytes;
    int error = 0;

    if (is_inline)
        wr->send_flags |= MRD_SEND_INLINE;
    sge[0] = (struct mrd_sge){(uintptr_t)op->send.head, op->send.head_bytes, 0};
    wr->num_sge = 1;
    if (!is_inline) {
        struct iovec own = {op->send.head, op->send.head_bytes};

        error = mrd_ofi_op_key(ep, op, &own, 0, &sge[0].lkey);
    }
    for (uint32_t i = 0; i < op->local.num_iov && left && !error; i++) {
        struct iovec part = op->local.iov[i];
        uint32_t lkey = 0;

        if (part.iov_len > left)
            part.iov_len = left;
        left -= (uint32_t)part.iov_len;
        if (!part.iov_len)
            continue;
        if (!is_inline)
            error = mrd_ofi_op_key(ep, op, &part, 0, &lkey);
        sge[wr->num_sge++] =
            (struct mrd_sge){(uintptr_t)part.iov_base, (uint32_t)part.iov_len, lkey};
    }
    return error;
}

/* Returns false if it must wait for room. */
static bool post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_sge sge[MRD_OFI_SGE_MAX];
    struct mrd_send_wr wr;
    uint32_t registered = op->local.num_mrs;
    int error;

    if (op->error) { /* while it waited: what is told as failed is not sent */
        op->pending--;
        mrd_ofi_op_settle(ep, op);
        return true;
    }
    fill_wr(&wr, sge, op->peer);
    wr.wr_id = (uintptr_t)op;
    error = fill_list(ep, op, &wr);
    if (!error)
        error = mrd_ofi_op_post(ep->dev.messages, &wr);
    if (!error)
        return true;
    mrd_ofi_op_unregister(ep, op, registered);
    if (mrd_ofi_op_waits(ep, op, error))
        return false;
    MRD_OFI_WARN(EP_DATA, "a message to %s cannot be sent: %s\n", op->peer->text, mrd_last_error());
    mrd_ofi_op_fail(op, -error, 0);
    op->pending--;
    mrd_ofi_op_settle(ep, op);
    return true;
}

void mrd_ofi_message_send(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op,
                          struct mrd_ofi_wire_head *head, const void *more, uint32_t more_bytes)
{
    head->version = MRD_OFI_WIRE_VERSION;
    mrd_ofi_wire_swap_head(head);
    memcpy(op->send.head, head, sizeof(*head));
    mrd_ofi_wire_swap_head(head);
    if (more_bytes)
        memcpy(op->send.head + sizeof(*head), more, more_bytes);
    op->send.head_bytes = (uint32_t)sizeof(*head) + more_bytes;
    op->pending++;
    op->post = post;
    if (!mrd_list_empty(&ep->tx.unsent) || !post(ep, op))
        mrd_list_append(&ep->tx.unsent, &op->node);
}

/* An answer cannot be sent with what belongs to it: sends that, or its peer would wait for ever. */
static void send_no_memory(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           struct mrd_ofi_wire_head *head)
{
    if (head->what == MRD_OFI_TELL)
        head->data = FI_ENOMEM;
    head->num = head->what == MRD_OFI_DONE ? FI_ENOMEM : 0;
    mrd_ofi_message_internal(ep, peer, head, NULL, 0);
}

/* A message of the provider's own that had to wait is complete, or could not be posted. */
static void internal_sent(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_ofi_peer *peer = op->peer;
    bool short_of_memory = op->error == FI_ENOMEM && op->send.payload_bytes;
    struct mrd_ofi_wire_head head;

    memcpy(&head, op->send.head, sizeof(head));
    mrd_ofi_wire_swap_head(&head);
    ep->tx.num_internal--;
    mrd_ofi_op_release(ep, op);
    if (short_of_memory)
        send_no_memory(ep, peer, &head);
}

void mrd_ofi_message_internal(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                              struct mrd_ofi_wire_head *head, const void *more, uint32_t more_bytes)
{
    struct iovec iov = {(void *)(uintptr_t)more, more_bytes};
    struct mrd_ofi_op *op;

    if (sizeof(*head) + more_bytes <= MRD_INLINE_BYTES_MAX &&
        mrd_ofi_message_inject(ep, peer, head, &iov, 1, MRD_OFI_INTERNAL) == 0)
        return;
    op = mrd_ofi_op_alloc(ep);
    if (op && more_bytes)
        op->local.copy = malloc(more_bytes);
    if (!op || (more_bytes && !op->local.copy)) {
        MRD_OFI_WARN(EP_DATA, "no memory for an answer to %s\n", peer->text);
        if (op)
            mrd_ofi_op_release(ep, op);
        if (more_bytes)
            send_no_memory(ep, peer, head);
        return;
    }
    if (more_bytes)
        memcpy(op->local.copy, more, more_bytes);
    op->peer = peer;
    op->done = internal_sent;
    op->local.iov[0] = (struct iovec){op->local.copy, more_bytes};
    op->local.num_iov = more_bytes > 0;
    op->send.payload_bytes = more_bytes;
    ep->tx.num_internal++;
    mrd_ofi_message_send(ep, op, head, NULL, 0);
}
