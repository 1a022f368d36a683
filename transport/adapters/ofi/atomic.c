/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics. One addition or compare-and-swap of 64 bits is an atomic of mrd's: it needs nothing of
 * the target's program. All others are messages, which the target applies when it makes progress.
 */
#include "transport/adapters/ofi/atomic.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/apply.h"
#include "transport/adapters/ofi/atomic_target.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/remote.h"
#include "transport/adapters/ofi/report.h"
#include "transport/adapters/ofi/rma.h"
#include "transport/adapters/ofi/wire.h"

/* Memory as fi_ioc lists give it, in bytes. */
struct list {
    struct iovec iov[MRD_OFI_IOV_MAX];
    size_t num;
};

struct atomic {
    enum mrd_ofi_atomic_kind kind;
    enum fi_datatype type;
    enum fi_op op;
    struct list operand, compare, result;
    struct fi_rma_iov rma[MRD_OFI_RMA_IOV_MAX];
    size_t num_rma;
    fi_addr_t to;
    void *context;
    uint64_t flags;
};

static uint64_t bytes_of(const struct list *l)
{
    return mrd_ofi_iov_bytes(l->iov, l->num);
}

static uint64_t remote_bytes(const struct atomic *a)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < a->num_rma; i++)
        bytes += a->rma[i].len;
    return bytes;
}

/* ------------------------------------------------------------------------------------ initiator */

/* Is it one of mrd's own? */
static bool is_native(const struct atomic *a)
{
    if ((a->type != FI_INT64 && a->type != FI_UINT64) || a->num_rma != 1 ||
        a->rma[0].len != sizeof(uint64_t) || a->rma[0].addr % sizeof(uint64_t))
        return false;
    return (a->op == FI_SUM && a->kind != MRD_OFI_ATOMIC_COMPARE) ||
           (a->op == FI_CSWAP && a->kind == MRD_OFI_ATOMIC_COMPARE);
}

static void post_native(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct atomic *a)
{
    uint64_t operand = 0;

    mrd_ofi_iov_read(a->operand.iov, (uint32_t)a->operand.num, 0, &operand, sizeof(operand));
    if (a->op == FI_SUM) {
        mrd_ofi_remote_init(op, MRD_WR_ATOMIC_FETCH_AND_ADD);
        op->transfer.swap = 0;
        op->transfer.compare_add = operand;
    } else {
        mrd_ofi_remote_init(op, MRD_WR_ATOMIC_CMP_AND_SWP);
        op->transfer.swap = operand;
        mrd_ofi_iov_read(a->compare.iov, (uint32_t)a->compare.num, 0, &op->transfer.compare_add,
                         sizeof(op->transfer.compare_add));
    }
    op->local.iov[0] = (struct iovec){&op->rma.word, sizeof(op->rma.word)};
    op->local.num_iov = 1;
    op->len = sizeof(op->rma.word);
    op->rma.iov[0] = a->rma[0];
    op->rma.num = 1;
    mrd_ofi_rma_post(ep, op);
}

static int post_message(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct atomic *a)
{
    uint64_t operands = bytes_of(&a->operand), compares = bytes_of(&a->compare);
    size_t targets = a->num_rma * sizeof(struct mrd_ofi_wire_target);
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_ATOMIC,
                                     .id = op->id,
                                     .tag = ep->cookie,
                                     .bytes = operands,
                                     .answer = (uint32_t)a->num_rma,
                                     .num = (uint32_t)a->op | (uint32_t)a->type << 8 |
                                            (uint32_t)a->kind << 16};
    uint8_t *at = op->local.copy = malloc(targets + operands + compares);

    if (!at)
        return -FI_ENOMEM;
    op->done = mrd_ofi_report_sent;
    for (size_t i = 0; i < a->num_rma; i++, at += sizeof(struct mrd_ofi_wire_target)) {
        struct mrd_ofi_wire_target t = {a->rma[i].addr, a->rma[i].len, a->rma[i].key};

        mrd_ofi_wire_swap_target(&t);
        memcpy(at, &t, sizeof(t));
    }
    at += mrd_ofi_iov_read(a->operand.iov, (uint32_t)a->operand.num, 0, at, operands);
    mrd_ofi_iov_read(a->compare.iov, (uint32_t)a->compare.num, 0, at, compares);
    op->send.payload_bytes = (uint32_t)(targets + operands + compares);
    op->local.iov[0] = (struct iovec){op->local.copy, op->send.payload_bytes};
    op->local.num_iov = 1;
    op->expects_done = true;
    /* Earlier failures of the peer do not apply to this atomic. */
    (void)mrd_ofi_take_events(ep);
    mrd_ofi_peer_watch(ep, op->peer);
    mrd_ofi_op_await(op);
    mrd_ofi_message_send(ep, op, &head, NULL, 0);
    return 0;
}

/* 0, or what is wrong with it. */
static int check(const struct mrd_ofi_ep *ep, const struct atomic *a)
{
    uint64_t bytes = remote_bytes(a);

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (!mrd_ofi_atomic_is_valid(a->kind, a->type, a->op))
        return -FI_EOPNOTSUPP;
    if (a->op != FI_ATOMIC_READ && bytes_of(&a->operand) != bytes)
        return -FI_EINVAL;
    if (a->kind == MRD_OFI_ATOMIC_COMPARE && bytes_of(&a->compare) != bytes)
        return -FI_EINVAL;
    if (a->kind != MRD_OFI_ATOMIC_WRITE && bytes_of(&a->result) < bytes)
        return -FI_EINVAL;
    return bytes > mrd_ofi_atomic_bytes_max() ? -FI_EMSGSIZE : 0;
}

static int post(struct mrd_ofi_ep *ep, const struct atomic *a)
{
    int error = check(ep, a);
    struct mrd_ofi_op *op;

    if (error)
        return error;
    if (!mrd_ofi_progress_make_room(ep))
        return -FI_EAGAIN;
    op = mrd_ofi_op_alloc(ep);
    if (!op)
        return -FI_ENOMEM;
    error = mrd_ofi_peer_get(ep, a->to, &op->peer);
    op->entry.context = a->context;
    op->entry.flags = FI_ATOMIC | (a->kind == MRD_OFI_ATOMIC_WRITE ? FI_WRITE : FI_READ);
    op->entry.wanted = a->flags & FI_COMPLETION;
    op->len = remote_bytes(a);
    op->results.num = (uint32_t)a->result.num;
    memcpy(op->results.iov, a->result.iov, sizeof(op->results.iov));
    if (error) {
        mrd_ofi_op_release(ep, op);
        return error;
    }
    op->injected = a->flags & FI_INJECT;
    ep->tx.num_internal += op->injected;
    ep->tx.used++;
    if (is_native(a)) {
        post_native(ep, op, a);
        return 0;
    }
    error = post_message(ep, op, a);
    if (error) {
        ep->tx.num_internal -= op->injected;
        ep->tx.used--;
        mrd_ofi_op_release(ep, op);
    }
    return error;
}

/* ---------------------------------------------------------------------------------------- calls */

static bool add(struct list *l, enum fi_datatype type, const struct fi_ioc *ioc, size_t count)
{
    if (count > MRD_OFI_IOV_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        l->iov[i] = (struct iovec){ioc[i].addr, ioc[i].count * mrd_ofi_type_bytes(type)};
    l->num = count;
    return true;
}

/* An atomic with one target, of as many elements as there are operands, or results. */
static struct atomic to_one(enum mrd_ofi_atomic_kind kind, enum fi_datatype type, enum fi_op op,
                            fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
    return (struct atomic){.kind = kind,
                           .type = type,
                           .op = op,
                           .rma = {{addr, 0, key}},
                           .num_rma = 1,
                           .to = to,
                           .context = context};
}

static ssize_t run(struct fid_ep *fid, struct atomic *a)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    int error;

    mrd_ofi_lock(ep->domain);
    error = post(ep, a);
    mrd_ofi_progress_end_turn(ep);
    mrd_ofi_unlock(ep->domain);
    return error;
}

static ssize_t run_one(struct fid_ep *fid, struct atomic *a)
{
    a->flags = mrd_ofi_tx_flags(fid);
    a->rma[0].len = bytes_of(a->op == FI_ATOMIC_READ ? &a->result : &a->operand);
    return run(fid, a);
}

static ssize_t run_msg(struct fid_ep *fid, enum mrd_ofi_atomic_kind kind,
                       const struct fi_msg_atomic *msg, const struct fi_ioc *compare,
                       size_t num_compares, const struct fi_ioc *result, size_t num_results,
                       uint64_t flags)
{
    struct atomic a = {.kind = kind,
                       .type = msg->datatype,
                       .op = msg->op,
                       .to = msg->addr,
                       .num_rma = msg->rma_iov_count,
                       .context = msg->context,
                       .flags = mrd_ofi_tx_flags_named(fid, flags)};

    if (msg->rma_iov_count > MRD_OFI_RMA_IOV_MAX ||
        (msg->op != FI_ATOMIC_READ && !add(&a.operand, a.type, msg->msg_iov, msg->iov_count)) ||
        !add(&a.compare, a.type, compare, num_compares) ||
        !add(&a.result, a.type, result, num_results))
        return -FI_EINVAL;
    for (size_t i = 0; i < msg->rma_iov_count; i++)
        a.rma[i] = (struct fi_rma_iov){msg->rma_iov[i].addr,
                                       msg->rma_iov[i].count * mrd_ofi_type_bytes(a.type),
                                       msg->rma_iov[i].key};
    return run(fid, &a);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                             size_t count, fi_addr_t to, uint64_t addr, uint64_t key,
                             enum fi_datatype type, enum fi_op op, void *context)
{
    struct atomic a = to_one(MRD_OFI_ATOMIC_WRITE, type, op, to, addr, key, context);

    (void)desc;
    return add(&a.operand, type, iov, count) ? run_one(fid, &a) : -FI_EINVAL;
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                            fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type,
                            enum fi_op op, void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};

    return atomic_writev(fid, &ioc, &desc, 1, to, addr, key, type, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
    return run_msg(fid, MRD_OFI_ATOMIC_WRITE, msg, NULL, 0, NULL, 0, flags);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to,
                             uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
    struct atomic a = to_one(MRD_OFI_ATOMIC_WRITE, type, op, to, addr, key, NULL);

    a.operand.iov[0] = (struct iovec){(void *)(uintptr_t)buf, count * mrd_ofi_type_bytes(type)};
    a.operand.num = 1;
    a.rma[0].len = a.operand.iov[0].iov_len;
    a.flags = FI_INJECT;
    return run(fid, &a); /* operands are copied always */
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                                 size_t count, struct fi_ioc *result, void **result_desc,
                                 size_t num_results, fi_addr_t to, uint64_t addr, uint64_t key,
                                 enum fi_datatype type, enum fi_op op, void *context)
{
    struct atomic a = to_one(MRD_OFI_ATOMIC_FETCH, type, op, to, addr, key, context);

    (void)desc;
    (void)result_desc;
    if ((op != FI_ATOMIC_READ && !add(&a.operand, type, iov, count)) ||
        !add(&a.result, type, result, num_results))
        return -FI_EINVAL;
    return run_one(fid, &a);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                                void *result, void *result_desc, fi_addr_t to, uint64_t addr,
                                uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count}, old = {result, count};

    return atomic_readwritev(fid, &ioc, &desc, 1, &old, &result_desc, 1, to, addr, key, type, op,
                             context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
                                   struct fi_ioc *result, void **desc, size_t num_results,
                                   uint64_t flags)
{
    (void)desc;
    return run_msg(fid, MRD_OFI_ATOMIC_FETCH, msg, NULL, 0, result, num_results, flags);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
                                 size_t count, const struct fi_ioc *compare, void **compare_desc,
                                 size_t num_compares, struct fi_ioc *result, void **result_desc,
                                 size_t num_results, fi_addr_t to, uint64_t addr, uint64_t key,
                                 enum fi_datatype type, enum fi_op op, void *context)
{
    struct atomic a = to_one(MRD_OFI_ATOMIC_COMPARE, type, op, to, addr, key, context);

    (void)desc;
    (void)compare_desc;
    (void)result_desc;
    if (!add(&a.operand, type, iov, count) || !add(&a.compare, type, compare, num_compares) ||
        !add(&a.result, type, result, num_results))
        return -FI_EINVAL;
    return run_one(fid, &a);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
                                const void *compare, void *compare_desc, void *result,
                                void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
                                enum fi_datatype type, enum fi_op op, void *context)
{
    struct fi_ioc ioc = {(void *)(uintptr_t)buf, count}, old = {result, count};
    struct fi_ioc with = {(void *)(uintptr_t)compare, count};

    return atomic_compwritev(fid, &ioc, &desc, 1, &with, &compare_desc, 1, &old, &result_desc, 1,
                             to, addr, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
                                   const struct fi_ioc *compare, void **compare_desc,
                                   size_t num_compares, struct fi_ioc *result, void **result_desc,
                                   size_t num_results, uint64_t flags)
{
    (void)compare_desc;
    (void)result_desc;
    return run_msg(fid, MRD_OFI_ATOMIC_COMPARE, msg, compare, num_compares, result, num_results,
                   flags);
}

/* ------------------------------------------------------------------------------------ questions */

static int valid(enum mrd_ofi_atomic_kind kind, enum fi_datatype type, enum fi_op op, size_t *count)
{
    if (!mrd_ofi_atomic_is_valid(kind, type, op))
        return -FI_EOPNOTSUPP;
    if (!count)
        return -FI_EINVAL;
    *count = mrd_ofi_atomic_bytes_max() / mrd_ofi_type_bytes(type);
    return 0;
}

static int write_valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)fid;
    return valid(MRD_OFI_ATOMIC_WRITE, type, op, count);
}

static int readwrite_valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)fid;
    return valid(MRD_OFI_ATOMIC_FETCH, type, op, count);
}

static int compwrite_valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)fid;
    return valid(MRD_OFI_ATOMIC_COMPARE, type, op, count);
}

int mrd_ofi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
                         struct fi_atomic_attr *attr, uint64_t flags)
{
    enum mrd_ofi_atomic_kind kind = MRD_OFI_ATOMIC_WRITE;

    (void)domain;
    if (flags & FI_TAGGED)
        return -FI_ENOSYS;
    if ((flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC) ||
        flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
        return -FI_EBADFLAGS;
    if (flags & FI_FETCH_ATOMIC)
        kind = MRD_OFI_ATOMIC_FETCH;
    if (flags & FI_COMPARE_ATOMIC)
        kind = MRD_OFI_ATOMIC_COMPARE;
    attr->size = mrd_ofi_type_bytes(datatype);
    return valid(kind, datatype, op, &attr->count);
}

struct fi_ops_atomic mrd_ofi_atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = write_valid,
    .readwritevalid = readwrite_valid,
    .compwritevalid = compwrite_valid,
};
