/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/transfer.h"

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/wire.h"

/* The remote memory at `offset` of the transfer, as far as its range goes. */
static struct mrd_ofi_wire_range remote_at(const struct mrd_ofi_op *op, uint64_t offset)
{
    uint32_t i = 0;
    struct mrd_ofi_wire_range r;

    while (i + 1 < op->transfer.num_ranges && offset >= op->transfer.range[i].bytes)
        offset -= op->transfer.range[i++].bytes;
    r = op->transfer.range[i];
    r.addr += offset;
    r.bytes -= offset;
    return r;
}

/* Fills the list with the local memory from `offset` on, at most `most` bytes. Returns how many. */
static uint64_t fill_local(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint64_t most,
                           struct mrd_send_wr *wr, int *error)
{
    int access = op->transfer.opcode == MRD_WR_RDMA_WRITE ? 0 : MRD_ACCESS_LOCAL_WRITE;
    uint64_t offset = op->transfer.offset, filled = 0;

    for (uint32_t i = 0; i < op->local.num_iov && filled < most && !*error; i++) {
        struct iovec part = op->local.iov[i];
        uint32_t lkey = 0;

        if (offset >= part.iov_len) {
            offset -= part.iov_len;
            continue;
        }
        part.iov_base = (uint8_t *)part.iov_base + offset;
        part.iov_len -= offset;
        offset = 0;
        if (part.iov_len > most - filled)
            part.iov_len = most - filled;
        *error = mrd_ofi_op_key(ep, op, &part, access, &lkey);
        wr->sg_list[wr->num_sge++] =
            (struct mrd_sge){(uintptr_t)part.iov_base, (uint32_t)part.iov_len, lkey};
        filled += part.iov_len;
    }
    return filled;
}

/* Posts the next work request. 0, -FI_EAGAIN: no room now, or another -FI_ error number. */
static int post_next(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_ofi_wire_range remote = remote_at(op, op->transfer.offset);
    uint64_t most =
        op->len - op->transfer.offset < remote.bytes ? op->len - op->transfer.offset : remote.bytes;
    struct mrd_sge sge[MRD_OFI_IOV_MAX];
    struct mrd_send_wr wr = {.wr_id = (uintptr_t)op,
                             .sg_list = sge,
                             .opcode = op->transfer.opcode,
                             .send_flags = MRD_SEND_SIGNALED,
                             .ud = {.ah = op->peer->ah, .remote_qpn = MRD_FIRST_QP_NUM + 1},
                             .wr.rdma = {remote.addr, remote.rkey}};
    uint32_t registered = op->local.num_mrs;
    uint64_t bytes;
    int error = 0;

    if (most > MRD_MESSAGE_BYTES_MAX)
        most = MRD_MESSAGE_BYTES_MAX;
    if (op->transfer.opcode >= MRD_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.compare_add = op->transfer.compare_add;
        wr.wr.atomic.swap = op->transfer.swap;
        wr.wr.atomic.rkey = remote.rkey;
    }
    bytes = fill_local(ep, op, most, &wr, &error);
    if (!error)
        error = mrd_ofi_op_post(ep->dev.memory, &wr);
    if (!error) {
        op->transfer.offset += bytes;
        op->pending++;
        return 0;
    }
    mrd_ofi_op_unregister(ep, op, registered);
    return mrd_ofi_op_waits(ep, op, error) ? -FI_EAGAIN : error;
}

/* Posts as much as there is room for. Returns false if some of it must wait. */
static bool post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    int error = 0;

    /* An empty one is a work request, too. */
    while (!error && !op->error && (op->transfer.offset < op->len || (!op->len && !op->pending)))
        error = post_next(ep, op);
    if (error == -FI_EAGAIN)
        return false;
    op->unposted = false;
    if (error) {
        mrd_ofi_op_fail(op, -error, 0);
        MRD_OFI_WARN(EP_DATA, "memory of %s cannot be used: %s\n", op->peer->text,
                     mrd_last_error());
    }
    if (op->error)
        mrd_ofi_op_settle(ep, op);
    return true;
}

void mrd_ofi_transfer(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    op->post = post;
    op->unposted = true;
    if (!mrd_list_empty(&ep->tx.unsent) || !post(ep, op))
        mrd_list_append(&ep->tx.unsent, &op->node);
}
