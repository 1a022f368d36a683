/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations: pool, registrations, answers, and their ends. */
#include "transport/adapters/ofi/op.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/iov.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/peer.h"

enum { OPS_CHUNK = 64, INDEX_BITS = 20 };

/* ----------------------------------------------------------------------------------------- pool */

void mrd_ofi_ops_init(struct mrd_ofi_ops *ops)
{
    ops->chunk = NULL;
    ops->num_chunks = 0;
    mrd_list_init(&ops->free);
}

void mrd_ofi_ops_fini(struct mrd_ofi_ops *ops)
{
    for (uint32_t i = 0; i < ops->num_chunks; i++)
        free(ops->chunk[i]);
    free(ops->chunk);
    mrd_ofi_ops_init(ops);
}

static bool add_chunk(struct mrd_ofi_ops *ops)
{
    struct mrd_ofi_op **chunk, *op;

    if (ops->num_chunks >= (1u << INDEX_BITS) / OPS_CHUNK)
        return false;
    chunk = realloc(ops->chunk, (ops->num_chunks + 1) * sizeof(struct mrd_ofi_op *));
    if (!chunk)
        return false;
    ops->chunk = chunk;
    op = calloc(OPS_CHUNK, sizeof(*op));
    if (!op)
        return false;
    for (uint32_t i = 0; i < OPS_CHUNK; i++) {
        op[i].id = ops->num_chunks * OPS_CHUNK + i;
        mrd_list_append(&ops->free, &op[i].node);
    }
    ops->chunk[ops->num_chunks++] = op;
    return true;
}

bool mrd_ofi_op_is_spare(struct mrd_ofi_ep *ep)
{
    return !mrd_list_empty(&ep->ops.free) || add_chunk(&ep->ops);
}

struct mrd_ofi_op *mrd_ofi_op_alloc(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_ops *ops = &ep->ops;
    struct mrd_ofi_op *op;
    uint32_t id;

    if (!mrd_ofi_op_is_spare(ep))
        return NULL;
    op = mrd_container_of(mrd_list_pop(&ops->free), struct mrd_ofi_op, node);
    id = op->id + (1u << INDEX_BITS); /* the next generation */
    if (id < 1u << INDEX_BITS)
        id += 1u << INDEX_BITS; /* none is 0 */
    memset(op, 0, offsetof(struct mrd_ofi_op, local.iov));
    op->results.num = 0;
    op->send.head_bytes = op->send.payload_bytes = 0;
    op->id = id;
    op->answered = true;
    mrd_list_init(&op->node);
    mrd_list_init(&op->answer_node);
    return op;
}

void mrd_ofi_op_unregister(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint32_t from)
{
    while (op->local.num_mrs > from) {
        (void)mrd_dereg_mr(op->local.mr[--op->local.num_mrs]);
        ep->dev.op_mrs -= !op->offers;
    }
}

void mrd_ofi_op_release(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    mrd_ofi_op_unregister(ep, op, 0);
    free(op->local.copy);
    op->local.copy = NULL;
    op->peer = NULL;
    mrd_list_remove(&op->node);
    mrd_list_remove(&op->answer_node);
    mrd_list_prepend(&ep->ops.free, &op->node);
}

/* Free ones have no peer. */
void mrd_ofi_ops_abandon(struct mrd_ofi_ep *ep)
{
    assert(mrd_list_empty(&ep->turn.ended)); /* all that ended is reported */
    for (uint32_t i = 0; i < ep->ops.num_chunks * OPS_CHUNK; i++) {
        struct mrd_ofi_op *op = &ep->ops.chunk[i / OPS_CHUNK][i % OPS_CHUNK];

        if (op->peer)
            mrd_ofi_op_release(ep, op);
    }
}

/* -------------------------------------------------------------------------------------- answers */

/* The operation of that id that waits for a DONE of `peer`; NULL: none. */
static struct mrd_ofi_op *find(struct mrd_ofi_ep *ep, uint32_t id, const struct mrd_ofi_peer *peer)
{
    uint32_t index = id & ((1u << INDEX_BITS) - 1);
    struct mrd_ofi_op *op;

    if (index >= ep->ops.num_chunks * OPS_CHUNK)
        return NULL;
    op = &ep->ops.chunk[index / OPS_CHUNK][index % OPS_CHUNK];
    return op->id == id && op->peer == peer && op->expects_done && !op->answered ? op : NULL;
}

void mrd_ofi_op_await(struct mrd_ofi_op *op)
{
    op->answered = false;
    mrd_list_append(&op->peer->answers, &op->answer_node);
}

void mrd_ofi_op_answered(struct mrd_ofi_op *op)
{
    struct mrd_ofi_peer *peer = op->peer;

    op->answered = true;
    mrd_list_remove(&op->answer_node);
    mrd_ofi_peer_watch_no_more(peer);
}

/* ----------------------------------------------------------------------------------------- ends */

void mrd_ofi_op_fail(struct mrd_ofi_op *op, int error, int status)
{
    if (op->error)
        return;
    op->error = error;
    op->status = status;
}

void mrd_ofi_op_settle(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    if (op->error && !op->answered)
        mrd_ofi_op_answered(op);
    if (op->pending || !op->answered || (op->unposted && !op->error))
        return;
    mrd_list_remove(&op->node); /* the rest of one that failed is not posted any more */
    mrd_list_append(&ep->turn.ended, &op->node);
    mrd_ofi_op_unregister(ep, op, 0); /* now: what comes in the same turn may need the memory */
}

void mrd_ofi_op_on_done(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head, const uint8_t *more, uint32_t bytes)
{
    struct mrd_ofi_op *op = head->tag == ep->cookie ? find(ep, head->answer, peer) : NULL;

    if (!op)
        return; /* given up meanwhile */
    if (head->num)
        mrd_ofi_op_fail(op, head->num <= INT16_MAX ? (int)head->num : FI_EOTHER, 0);
    else if (op->results.num)
        mrd_ofi_iov_write(op->results.iov, op->results.num, 0, more, bytes);
    mrd_ofi_op_answered(op);
    mrd_ofi_op_settle(ep, op);
}

/* -------------------------------------------------------------------------------- registrations */

int mrd_ofi_op_key(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct iovec *iov,
                   int access, uint32_t *lkey)
{
    struct mrd_mr *mr;

    if (ep->dev.all && !(access & ~MRD_ACCESS_LOCAL_WRITE)) {
        *lkey = ep->dev.all->lkey;
        return 0;
    }
    if (op->local.num_mrs == sizeof(op->local.mr) / sizeof(op->local.mr[0]))
        return -FI_EINVAL;
    if (ep->dev.on_demand)
        access |= MRD_ACCESS_ON_DEMAND;
    mr = mrd_reg_mr(ep->dev.pd, iov->iov_base, iov->iov_len, access);
    if (!mr) {
        MRD_OFI_WARN(MR, "%zu bytes at %p cannot be used: %s\n", iov->iov_len, iov->iov_base,
                     mrd_last_error());
        return errno ? -errno : -FI_ENOMEM;
    }
    op->local.mr[op->local.num_mrs++] = mr;
    ep->dev.op_mrs += !op->offers;
    *lkey = mr->lkey;
    return 0;
}

/* -------------------------------------------------------------------------------------- posting */

int mrd_ofi_op_post(struct mrd_qp *qp, struct mrd_send_wr *wr)
{
    struct mrd_send_wr *bad;
    int error = mrd_post_send(qp, wr, &bad);

    return error == -ENOMEM ? -FI_EAGAIN : error; /* the send queue is full */
}

bool mrd_ofi_op_waits(const struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op, int error)
{
    return error == -FI_EAGAIN ||
           (error == -FI_ENOMEM && ep->dev.op_mrs > (op->offers ? 0 : op->local.num_mrs));
}

void mrd_ofi_op_flush(struct mrd_ofi_ep *ep)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&ep->tx.unsent))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        if (op->post(ep, op))
            continue;
        mrd_list_prepend(&ep->tx.unsent, n);
        return;
    }
}
