/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/remote.h"

#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/cq.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/key.h"
#include "transport/adapters/ofi/keys.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/report.h"
#include "transport/adapters/ofi/transfer.h"

/* ------------------------------------------------------------------------------------ resolving */

static bool add_range(struct mrd_ofi_op *op, const struct mrd_ofi_wire_range *of, uint64_t offset,
                      uint64_t bytes)
{
    if (op->transfer.num_ranges == MRD_OFI_RMA_IOV_MAX)
        return false;
    op->transfer.range[op->transfer.num_ranges++] =
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
    if (op->rma.asked_again)
        return false;
    op->rma.asked_again = true;
    for (uint32_t i = 0; i < op->rma.num; i++)
        mrd_ofi_keys_forget(&op->peer->keys, op->rma.iov[i].key);
    return true;
}

/* Adds where range `i` of the operation lies. 0, or a FI_ error number. */
static int add_remote(struct mrd_ofi_op *op, const struct mrd_ofi_key *key, uint32_t i)
{
    if (op->results.num && key->flags & MRD_OFI_NO_READ)
        return FI_EACCES;
    return resolve(op, key, op->rma.iov[i].addr, op->rma.iov[i].len) ? 0 : FI_EINVAL;
}

/* What the target counts of it: atomics that fetch are read, and change the region all the same. */
static uint16_t notes_of(const struct mrd_ofi_op *op)
{
    if (op->transfer.opcode == MRD_WR_RDMA_READ)
        return MRD_OFI_READ;
    return op->results.num ? MRD_OFI_READ | MRD_OFI_CHANGED : MRD_OFI_WRITE | MRD_OFI_CHANGED;
}

/* Finds where all of it lies. False: a key is not known, *unknown. */
static bool resolve_all(struct mrd_ofi_op *op, uint64_t *unknown)
{
    op->transfer.num_ranges = 0;
    op->transfer.offset = 0;
    for (uint32_t i = 0; i < op->rma.num && !op->error;) {
        const struct mrd_ofi_key *key = mrd_ofi_keys_find(&op->peer->keys, op->rma.iov[i].key);
        int error;

        if (!key || !key->known) {
            *unknown = op->rma.iov[i].key;
            return false;
        }
        if (key->flags & MRD_OFI_EVENTS)
            op->rma.notes |= notes_of(op);
        error = add_remote(op, key, i);
        if (!error)
            i++;
        else if (!forget_keys(op))
            mrd_ofi_op_fail(op, error, 0);
        else
            op->transfer.num_ranges = i = 0;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------- begins */

static void begin(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (op->error)
        mrd_ofi_op_settle(ep, op);
    else
        mrd_ofi_transfer(ep, op);
}

bool mrd_ofi_remote_try(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    uint64_t unknown;
    bool known = resolve_all(op, &unknown);

    if (known)
        begin(ep, op);
    return known;
}

void mrd_ofi_remote_start(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    uint64_t unknown;

    if (resolve_all(op, &unknown))
        begin(ep, op);
    else
        mrd_ofi_key_await(ep, op, unknown);
}

/* ----------------------------------------------------------------------------------------- ends */

static void note(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op)
{
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_NOTE,
                                     .flags = op->rma.notes,
                                     .tag = op->rma.num ? op->rma.iov[0].key : 0,
                                     .data = op->entry.data,
                                     .bytes = op->len};

    mrd_ofi_message_internal(ep, op->peer, &head, NULL, 0);
}

/* The target refused mrd's key. Returns whether it is tried again, with what the target says now.
 */
static bool tries_again(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (op->status != MRD_WC_REM_ACCESS_ERR || !forget_keys(op))
        return false;
    op->error = op->status = 0;
    mrd_ofi_remote_start(ep, op);
    return true;
}

void mrd_ofi_remote_done(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (op->error && tries_again(ep, op))
        return;
    if (!op->error && op->rma.notes)
        note(ep, op);
    if (!op->error && op->results.num)
        mrd_ofi_iov_write(op->results.iov, op->results.num, 0, &op->rma.word, sizeof(op->rma.word));
    op->entry.data = 0;
    mrd_ofi_report_op(ep, op);
    ep->tx.used--;
    mrd_ofi_op_release(ep, op);
}

void mrd_ofi_remote_init(struct mrd_ofi_op *op, enum mrd_wr_opcode opcode)
{
    op->done = mrd_ofi_remote_done;
    op->resume = mrd_ofi_remote_start;
    op->transfer.opcode = opcode;
    op->rma.num = 0;
    op->rma.notes = 0;
    op->rma.asked_again = false;
}

void mrd_ofi_remote_on_note(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                            const struct mrd_ofi_wire_head *head)
{
    struct mrd_ofi_mr *mr = mrd_ofi_mr_find(ep->domain, head->tag);
    struct mrd_ofi_comp comp = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                                .len = head->bytes,
                                .data = head->data,
                                .src = mrd_ofi_peer_fi_addr(ep, peer)};

    if (head->flags & MRD_OFI_READ)
        mrd_ofi_cntr_add(ep->bound.cntr[MRD_OFI_COUNT_REMOTE_READ], 1);
    if (head->flags & MRD_OFI_WRITE)
        mrd_ofi_cntr_add(ep->bound.cntr[MRD_OFI_COUNT_REMOTE_WRITE], 1);
    if (head->flags & MRD_OFI_CHANGED && mr)
        mrd_ofi_cntr_add(mr->cntr, 1);
    if (head->flags & MRD_OFI_DATA && ep->rx.cq)
        mrd_ofi_cq_add(ep->rx.cq, &comp);
}
