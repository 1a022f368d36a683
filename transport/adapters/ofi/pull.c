/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/pull.h"

#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/rx_end.h"
#include "transport/adapters/ofi/transfer.h"

/* The part of the receive's buffer that the message goes to. */
static void set_target(struct mrd_ofi_op *op, const struct mrd_ofi_rx *rx, uint64_t at)
{
    for (uint32_t i = 0; i < rx->num_iov; i++) {
        struct iovec part = mrd_ofi_rx_iov(rx)[i];

        if (at >= part.iov_len) {
            at -= part.iov_len;
            continue;
        }
        part.iov_base = (uint8_t *)part.iov_base + at;
        part.iov_len -= at;
        at = 0;
        op->local.iov[op->local.num_iov++] = part;
    }
}

/* mrd_ofi_op.done */
static void pulled(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_ofi_rx *rx = op->pull.rx;
    bool truncated = op->pull.head.bytes > op->len;

    rx->pulls--;
    mrd_ofi_rx_confirm(ep, op->peer, &op->pull.head, op->error);
    mrd_ofi_rx_end(ep, rx, op->peer, &op->pull.head, op->pull.at, op->error ? 0 : op->len,
                   op->error   ? op->error
                   : truncated ? FI_ETRUNC
                               : 0,
                   op->status);
    mrd_ofi_op_release(ep, op);
}

void mrd_ofi_pull(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx, struct mrd_ofi_peer *peer,
                  const struct mrd_ofi_wire_head *head, const uint8_t *ranges, uint64_t at,
                  uint64_t room)
{
    struct mrd_ofi_op *op = mrd_ofi_op_alloc(ep);

    if (!op) {
        mrd_ofi_rx_confirm(ep, peer, head, FI_ENOMEM);
        mrd_ofi_rx_end(ep, rx, peer, head, at, 0, FI_ENOMEM, 0);
        return;
    }
    rx->pulls++;
    op->peer = peer;
    op->done = pulled;
    op->pull.rx = rx;
    op->pull.at = at;
    op->pull.head = *head;
    op->len = room;
    op->transfer.opcode = MRD_WR_RDMA_READ;
    op->transfer.offset = 0;
    op->transfer.num_ranges = head->num;
    memcpy(op->transfer.range, ranges, head->num * sizeof(op->transfer.range[0]));
    for (uint32_t i = 0; i < head->num; i++)
        mrd_ofi_wire_swap_range(&op->transfer.range[i]);
    if (!room) {
        mrd_ofi_op_settle(ep, op);
        return;
    }
    set_target(op, rx, at);
    mrd_ofi_transfer(ep, op);
}
