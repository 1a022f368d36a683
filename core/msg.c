/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/msg.h"

#include <string.h>

#include "core/sge.h"

enum mrd_wc_opcode mrd_msg_wc_opcode(uint8_t op)
{
    switch (op) {
    case MRD_OP_WRITE:
        return MRD_WC_RDMA_WRITE;
    case MRD_OP_READ:
        return MRD_WC_RDMA_READ;
    case MRD_OP_CMP_SWAP:
        return MRD_WC_COMP_SWAP;
    case MRD_OP_FETCH_ADD:
        return MRD_WC_FETCH_ADD;
    default:
        return MRD_WC_SEND;
    }
}

void mrd_msg_copy(const struct mrd_msg *msg, uint32_t offset, uint32_t len, uint8_t *to)
{
    struct iovec iov[MRD_SGE_MAX];
    unsigned n;

    if (msg->wr.is_inline) {
        memcpy(to, msg->wr.inline_data + offset, len);
        return;
    }
    if (msg->wr.num_sge == 1 && len) {
        memcpy(to, (const char *)(uintptr_t)msg->wr.sge->addr + offset, len);
        return;
    }
    n = mrd_sge_pieces(msg->wr.sge, msg->wr.num_sge, offset, len, iov);
    for (unsigned i = 0; i < n; i++) {
        memcpy(to, iov[i].iov_base, iov[i].iov_len);
        to += iov[i].iov_len;
    }
}

void mrd_msg_part(const struct mrd_msg *msg, uint32_t offset, uint32_t len,
                  struct mrd_wire_part *part)
{
    part->op = msg->wr.op;
    part->flags = msg->wr.part_flags;
    part->attempt = msg->attempt;
    part->len = (uint16_t)len;
    part->dst_qpn = msg->wr.dst_qpn;
    part->id = msg->id;
    part->total = msg->wr.length;
    part->offset = offset;
    part->qkey = msg->wr.qkey;
    part->token = msg->request.token;
    part->rkey = msg->wr.rkey;
    part->addr = msg->wr.remote_addr;
    part->compare_add = msg->wr.compare_add;
    part->swap = msg->wr.swap;
    part->imm = msg->wr.imm;
}

struct mrd_msg *mrd_msg_in_chain(struct mrd_msg *head, unsigned index)
{
    while (head && head->packet.index != index)
        head = head->packet.next;
    return head;
}

void mrd_msg_unchain(struct mrd_msg **head, struct mrd_msg *msg)
{
    while (*head != msg)
        head = &(*head)->packet.next;
    *head = msg->packet.next;
    msg->packet.next = NULL;
    msg->packet.chained = false;
}
