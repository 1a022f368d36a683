/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of remote memory: mrd's own, once the key is known (key.c). A write with data
 * for the target's completion queue, or one that the target wants to hear of, is followed by a NOTE
 * when it is complete.
 */
#include "transport/adapters/ofi/ep.h"

#include <stdlib.h>
#include <string.h>

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

/* ------------------------------------------------------------------------------------ resolving */

static bool add_range(struct mrd_ofi_op *op, const struct mrd_ofi_wire_range *of, uint64_t offset,
                      uint64_t bytes)
{
    if (op->num_ranges == MRD_OFI_RMA_IOV_MAX)
        return false;
    op->range[op->num_ranges++] =
        (struct mrd_ofi_wire_range){of->addr + offset, bytes, of->rkey, 0};
    return true;
}

/* Adds where [addr, addr + len) of the key lies. False: it is outside of the region. */
static bool resolve(struct mrd_ofi_op *op, const struct mrd_ofi_key *key, uint64_t addr,
                    uint64_t len)
{
    bool is_virtual = key->flags & MRD_OFI_VIRTUAL, begun = false;

    for (uint32_t i = 0; i < key->num; i++) {
        const struct mrd_ofi_wire_range *r = &key->range[i];
        uint64_t base = is_virtual && !begun ? r->addr : 0, n;
        bool at_end = addr >= base && addr - base == r->bytes && !len;

        if (!at_end && (addr < base || addr - base >= r->bytes)) {
            addr -= is_virtual ? 0 : r->bytes;
            continue;
        }
        n = r->bytes - (addr - base) < len ? r->bytes - (addr - base) : len;
        if (!add_range(op, r, addr - base, n))
            return false;
        len -= n;
        if (!len)
            return true;
        begun = true; /* the rest begins where the next range does */
        addr = 0;
    }
    return false;
}

/*
 * What is known of its keys is wrong: the regions may be other ones by now. Forgets them, once;
 * false the second time.
 */
static bool forget_keys(struct mrd_ofi_op *op)
{
    if (op->asked_again)
        return false;
    op->asked_again = true;
    for (uint32_t i = 0; i < op->num_rma; i++)
        mrd_ofi_key_drop(op->peer, op->rma[i].key);
    return true;
}

/* Adds where range `i` of the operation lies. 0, or a FI_ error number. */
static int add_remote(struct mrd_ofi_op *op, const struct mrd_ofi_key *key, uint32_t i)
{
    if (op->num_results && key->flags & MRD_OFI_NO_READ)
        return FI_EACCES;
    return resolve(op, key, op->rma[i].addr, op->rma[i].len) ? 0 : FI_EINVAL;
}

/* What the target counts of it: atomics that fetch are read, and change the region all the same. */
static uint16_t notes_of(const struct mrd_ofi_op *op)
{
    if (op->opcode == MRD_WR_RDMA_READ)
        return MRD_OFI_READ;
    return op->num_results ? MRD_OFI_READ | MRD_OFI_CHANGED : MRD_OFI_WRITE | MRD_OFI_CHANGED;
}

void mrd_ofi_rma_go(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    int error;

    op->num_ranges = 0;
    op->offset = 0;
    for (uint32_t i = 0; i < op->num_rma && !op->error;) {
        const struct mrd_ofi_key *key = mrd_ofi_key_get(ep, op, op->rma[i].key);

        if (!key)
            return;
        if (key->flags & MRD_OFI_EVENTS)
            op->notes |= notes_of(op);
        error = add_remote(op, key, i);
        if (!error)
            i++;
        else if (!forget_keys(op))
            mrd_ofi_op_fail(op, error, 0);
        else
            op->num_ranges = i = 0;
    }
    if (op->error)
        op->done(ep, op, NULL);
    else
        mrd_ofi_transfer(ep, op);
}

/* ----------------------------------------------------------------------------------------- ends */

static void note(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op)
{
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_NOTE,
                                     .flags = op->notes,
                                     .tag = op->num_rma ? op->rma[0].key : 0,
                                     .data = op->data,
                                     .bytes = op->len};

    mrd_ofi_say(ep, op->peer, &head, NULL, 0);
}

/* The target refused mrd's key. Returns whether it is tried again, with what the target says now.
 */
static bool tries_again(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (op->status != MRD_WC_REM_ACCESS_ERR || !forget_keys(op))
        return false;
    op->error = op->status = 0;
    mrd_ofi_op_unregister(ep, op, 0);
    mrd_ofi_rma_go(ep, op);
    return true;
}

void mrd_ofi_rma_transferred(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc)
{
    (void)wc;
    if (op->pending || (!op->error && op->offset < op->len))
        return;
    mrd_list_remove(&op->node); /* the rest is not posted any more */
    if (!op->answered)
        mrd_ofi_op_answered(op);
    if (op->error && tries_again(ep, op))
        return;
    if (!op->error && op->notes)
        note(ep, op);
    if (!op->error && op->num_results)
        mrd_ofi_iov_write(op->result, op->num_results, 0, &op->word, sizeof(op->word));
    op->data = 0;
    mrd_ofi_op_tell(ep, op);
    ep->tx_used--;
    mrd_ofi_op_release(ep, op);
}

void mrd_ofi_rma_noted(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                       const struct mrd_ofi_wire_head *head)
{
    struct mrd_ofi_mr *mr = mrd_ofi_mr_find(ep->domain, head->tag);
    struct mrd_ofi_comp comp = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                                .len = head->bytes,
                                .data = head->data,
                                .src = mrd_ofi_peer_fi_addr(ep, peer)};

    if (head->flags & MRD_OFI_READ)
        mrd_ofi_cntr_add(ep->cntr[MRD_OFI_COUNT_REMOTE_READ], 1);
    if (head->flags & MRD_OFI_WRITE)
        mrd_ofi_cntr_add(ep->cntr[MRD_OFI_COUNT_REMOTE_WRITE], 1);
    if (head->flags & MRD_OFI_CHANGED && mr)
        mrd_ofi_cntr_add(mr->cntr, 1);
    if (head->flags & MRD_OFI_DATA && ep->rx_cq)
        mrd_ofi_cq_add(ep->rx_cq, &comp);
}

/* -------------------------------------------------------------------------------------- posting */

static int fill(struct mrd_ofi_op *op, const struct rma *r)
{
    uint64_t remote = 0;

    op->done = mrd_ofi_rma_transferred;
    op->context = r->context;
    op->flags = FI_RMA | (r->read ? FI_READ : FI_WRITE);
    op->tells = r->flags & FI_COMPLETION;
    op->opcode = r->read ? MRD_WR_RDMA_READ : MRD_WR_RDMA_WRITE;
    op->len = mrd_ofi_iov_bytes(r->iov, r->num_iov);
    op->num_iov = (uint32_t)r->num_iov;
    op->num_rma = (uint32_t)r->num_rma;
    if (r->num_iov)
        memcpy(op->iov, r->iov, r->num_iov * sizeof(op->iov[0]));
    memcpy(op->rma, r->rma, r->num_rma * sizeof(op->rma[0]));
    for (size_t i = 0; i < r->num_rma; i++)
        remote += r->rma[i].len;
    if (remote != op->len)
        return -FI_EINVAL;
    if (r->flags & FI_REMOTE_CQ_DATA) {
        op->notes = MRD_OFI_DATA;
        op->data = r->data;
    }
    if (!(r->flags & FI_INJECT) || !op->len)
        return 0;
    op->copy = malloc(op->len);
    if (!op->copy)
        return -FI_ENOMEM;
    mrd_ofi_iov_read(op->iov, op->num_iov, 0, op->copy, op->len);
    op->iov[0] = (struct iovec){op->copy, op->len};
    op->num_iov = 1;
    return 0;
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
    peer = mrd_ofi_peer_get(ep, r->to);
    if (!peer)
        return -FI_EINVAL;
    if (!mrd_ofi_has_room(ep))
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
    ep->silent += op->injected;
    ep->tx_used++;
    mrd_ofi_rma_go(ep, op);
    return 0;
}

static ssize_t transfer(struct fid_ep *fid, const struct rma *r)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    int error;

    mrd_ofi_lock(ep->domain);
    error = post(ep, r);
    mrd_ofi_unlock(ep->domain);
    return error;
}

static ssize_t simple(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t to,
                      uint64_t addr, uint64_t key, bool read, uint64_t data, void *context,
                      uint64_t flags)
{
    struct fi_rma_iov rma = {addr, mrd_ofi_iov_bytes(iov, count), key};

    return transfer(fid, &(struct rma){.iov = iov,
                                       .num_iov = count,
                                       .rma = &rma,
                                       .num_rma = 1,
                                       .to = to,
                                       .data = data,
                                       .read = read,
                                       .context = context,
                                       .flags = flags});
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
    return simple(fid, iov, count, from, addr, key, true, 0, context,
                  mrd_ofi_tx_flags(fid) & ~FI_INJECT);
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
    return simple(fid, iov, count, to, addr, key, false, 0, context, mrd_ofi_tx_flags(fid));
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

    return simple(fid, &iov, 1, to, addr, key, false, data, NULL, FI_INJECT | flags);
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
    return simple(fid, &iov, 1, to, addr, key, false, data, context,
                  mrd_ofi_tx_flags(fid) | FI_REMOTE_CQ_DATA);
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
