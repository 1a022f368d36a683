/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application reads and writes remote memory by: reads and writes of mrd's. */
#include "transport/adapters/ofi/rma.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/remote.h"

struct rma {
    const struct iovec *iov;
    size_t num_iov;
    const struct fi_rma_iov *rma;
    size_t num_rma;
    fi_addr_t to;
    uint64_t data;
    bool read;
    void *context;
    uint64_t flags;
};

/* -------------------------------------------------------------------------------------- posting */

static int fill(struct mrd_ofi_op *op, const struct rma *r)
{
    uint64_t remote = 0;

    mrd_ofi_remote_init(op, r->read ? MRD_WR_RDMA_READ : MRD_WR_RDMA_WRITE);
    op->entry.context = r->context;
    op->entry.flags = FI_RMA | (r->read ? FI_READ : FI_WRITE);
    op->entry.wanted = r->flags & FI_COMPLETION;
    op->len = mrd_ofi_iov_bytes(r->iov, r->num_iov);
    op->local.num_iov = (uint32_t)r->num_iov;
    op->rma.num = (uint32_t)r->num_rma;
    if (r->num_iov)
        memcpy(op->local.iov, r->iov, r->num_iov * sizeof(op->local.iov[0]));
    memcpy(op->rma.iov, r->rma, r->num_rma * sizeof(op->rma.iov[0]));
    for (size_t i = 0; i < r->num_rma; i++)
        remote += r->rma[i].len;
    if (remote != op->len)
        return -FI_EINVAL;
    if (r->flags & FI_REMOTE_CQ_DATA) {
        op->rma.notes = MRD_OFI_DATA;
        op->entry.data = r->data;
    }
    if (!(r->flags & FI_INJECT) || !op->len)
        return 0;
    op->local.copy = malloc(op->len);
    if (!op->local.copy)
        return -FI_ENOMEM;
    mrd_ofi_iov_read(op->local.iov, op->local.num_iov, 0, op->local.copy, op->len);
    op->local.iov[0] = (struct iovec){op->local.copy, op->len};
    op->local.num_iov = 1;
    return 0;
}

void mrd_ofi_rma_post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (mrd_ofi_remote_try(ep, op))
        return;
    /* Earlier failures of the peer do not apply to this operation. */
    (void)mrd_ofi_take_events(ep);
    mrd_ofi_remote_start(ep, op);
}

static int post(struct mrd_ofi_ep *ep, const struct rma *r)
{
    struct mrd_ofi_peer *peer;
    struct mrd_ofi_op *op;
    int error;

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (r->num_iov > MRD_OFI_IOV_MAX || !r->num_rma || r->num_rma > MRD_OFI_RMA_IOV_MAX)
        return -FI_EINVAL;
    if (r->flags & FI_INJECT &&
        mrd_ofi_iov_bytes(r->iov, r->num_iov) > ep->info->tx_attr->inject_size)
        return -FI_EMSGSIZE;
    error = mrd_ofi_peer_get(ep, r->to, &peer);
    if (error)
        return error;
    if (!mrd_ofi_progress_make_room(ep))
        return -FI_EAGAIN;
    op = mrd_ofi_op_alloc(ep);
    if (!op)
        return -FI_ENOMEM;
    op->peer = peer;
    error = fill(op, r);
    if (error) {
        mrd_ofi_op_release(ep, op);
        return error;
    }
    op->injected = r->flags & FI_INJECT;
    ep->tx.num_internal += op->injected;
    ep->tx.used++;
    mrd_ofi_rma_post(ep, op);
    return 0;
}

static ssize_t transfer(struct fid_ep *fid, const struct rma *r)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    int error;

    mrd_ofi_lock(ep->domain);
    error = post(ep, r);
    mrd_ofi_progress_end_turn(ep);
    mrd_ofi_unlock(ep->domain);
    return error;
}

/* `r` names no memory: it is all at one address. */
static ssize_t transfer_at(struct fid_ep *fid, struct rma r, uint64_t addr, uint64_t key)
{
    struct fi_rma_iov rma = {addr, mrd_ofi_iov_bytes(r.iov, r.num_iov), key};

    r.rma = &rma;
    r.num_rma = 1;
    return transfer(fid, &r);
}

static ssize_t message(struct fid_ep *fid, const struct fi_msg_rma *msg, bool read, uint64_t flags)
{
    return transfer(fid, &(struct rma){.iov = msg->msg_iov,
                                       .num_iov = msg->iov_count,
                                       .rma = msg->rma_iov,
                                       .num_rma = msg->rma_iov_count,
                                       .to = msg->addr,
                                       .data = msg->data,
                                       .read = read,
                                       .context = msg->context,
                                       .flags = mrd_ofi_tx_flags_named(fid, flags)});
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                         fi_addr_t from, uint64_t addr, uint64_t key, void *context)
{
    (void)desc;
    return transfer_at(fid,
                       (struct rma){.iov = iov,
                                    .num_iov = count,
                                    .to = from,
                                    .read = true,
                                    .context = context,
                                    .flags = mrd_ofi_tx_flags(fid) & ~FI_INJECT},
                       addr, key);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from,
                        uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {buf, len};

    return rma_readv(fid, &iov, &desc, 1, from, addr, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
    return message(fid, msg, true, flags & ~(FI_INJECT | FI_REMOTE_CQ_DATA));
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                          fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
    (void)desc;
    return transfer_at(fid,
                       (struct rma){.iov = iov,
                                    .num_iov = count,
                                    .to = to,
                                    .context = context,
                                    .flags = mrd_ofi_tx_flags(fid)},
                       addr, key);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to,
                         uint64_t addr, uint64_t key, void *context)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};

    return rma_writev(fid, &iov, &desc, 1, to, addr, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
    return message(fid, msg, false, flags);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to,
                      uint64_t addr, uint64_t key, uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};

    return transfer_at(
        fid,
        (struct rma){.iov = &iov, .num_iov = 1, .to = to, .data = data, .flags = FI_INJECT | flags},
        addr, key);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to,
                          uint64_t addr, uint64_t key)
{
    return inject(fid, buf, len, 0, to, addr, key, 0);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                             uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key,
                             void *context)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};

    (void)desc;
    return transfer_at(fid,
                       (struct rma){.iov = &iov,
                                    .num_iov = 1,
                                    .to = to,
                                    .data = data,
                                    .context = context,
                                    .flags = mrd_ofi_tx_flags(fid) | FI_REMOTE_CQ_DATA},
                       addr, key);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
                              fi_addr_t to, uint64_t addr, uint64_t key)
{
    return inject(fid, buf, len, data, to, addr, key, FI_REMOTE_CQ_DATA);
}

struct fi_ops_rma mrd_ofi_rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};
