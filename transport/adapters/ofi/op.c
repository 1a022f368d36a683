/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations: pool, posting, and their ends. */
#include "transport/adapters/ofi/ep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct mrd_ofi_op *mrd_ofi_op_alloc(struct mrd_ofi_ep *ep)
{
    struct mrd_ofi_ops *ops = &ep->ops;
    struct mrd_ofi_op *op;
    uint32_t id;

    if (mrd_list_empty(&ops->free) && !add_chunk(ops))
        return NULL;
    op = mrd_container_of(mrd_list_pop(&ops->free), struct mrd_ofi_op, node);
    id = op->id + (1u << INDEX_BITS); /* the next generation */
    if (id < 1u << INDEX_BITS)
        id += 1u << INDEX_BITS; /* none is 0 */
    memset(op, 0, offsetof(struct mrd_ofi_op, head));
    op->id = id;
    op->answered = true;
    mrd_list_init(&op->node);
    mrd_list_init(&op->answer_node);
    return op;
}

void mrd_ofi_op_unregister(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint32_t from)
{
    while (op->num_mrs > from) {
        (void)mrd_dereg_mr(op->mr[--op->num_mrs]);
        ep->op_mrs -= !op->offers;
    }
}

void mrd_ofi_op_release(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    mrd_ofi_op_unregister(ep, op, 0);
    free(op->copy);
    op->copy = NULL;
    op->peer = NULL;
    mrd_list_remove(&op->node);
    mrd_list_remove(&op->answer_node);
    mrd_list_prepend(&ep->ops.free, &op->node);
}

/* Free ones have no peer. */
void mrd_ofi_ops_abandon(struct mrd_ofi_ep *ep)
{
    for (uint32_t i = 0; i < ep->ops.num_chunks * OPS_CHUNK; i++) {
        struct mrd_ofi_op *op = &ep->ops.chunk[i / OPS_CHUNK][i % OPS_CHUNK];

        if (!op->peer)
            continue;
        /* A receive that is being filled is on no list, unless it takes more. */
        if (op->rx && --op->rx->pulls == 0 && mrd_list_empty(&op->rx->node))
            mrd_ofi_rx_release(&ep->rxs, op->rx);
        mrd_ofi_op_release(ep, op);
    }
}

/* -------------------------------------------------------------------------------------- answers */

struct mrd_ofi_op *mrd_ofi_op_find(struct mrd_ofi_ep *ep, uint32_t id,
                                   const struct mrd_ofi_peer *peer)
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

/* --------------------------------------------------------------------------------------- errors */

void mrd_ofi_op_fail(struct mrd_ofi_op *op, int error, int status)
{
    if (op->error)
        return;
    op->error = error;
    op->status = status;
}

int mrd_ofi_error_of(enum mrd_wc_status status)
{
    switch (status) {
    case MRD_WC_SUCCESS:
        return 0;
    case MRD_WC_LOC_LEN_ERR:
        return FI_ETRUNC;
    case MRD_WC_LOC_PROT_ERR:
    case MRD_WC_REM_ACCESS_ERR:
        return FI_EACCES;
    case MRD_WC_WR_FLUSH_ERR:
    case MRD_WC_REM_ABORT_ERR:
        return FI_ECANCELED;
    case MRD_WC_REM_INV_REQ_ERR:
        return FI_ECONNREFUSED;
    case MRD_WC_RETRY_EXC_ERR:
        return FI_EHOSTUNREACH;
    case MRD_WC_RNR_RETRY_EXC_ERR:
        return FI_ENORX;
    default:
        return FI_EIO;
    }
}

/* -------------------------------------------------------------------------------------- buffers */

uint64_t mrd_ofi_iov_bytes(const struct iovec *iov, size_t num)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < num; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

/* Copies at most `len` bytes between memory and the list, from `offset` on. */
static size_t copy(const struct iovec *iov, uint32_t num, uint64_t offset, uint8_t *memory,
                   size_t len, bool to_list)
{
    size_t done = 0;

    for (uint32_t i = 0; i < num && done < len; i++) {
        size_t n = iov[i].iov_len;

        if (offset >= n) {
            offset -= n;
            continue;
        }
        n = n - offset < len - done ? n - offset : len - done;
        if (to_list)
            memcpy((uint8_t *)iov[i].iov_base + offset, memory + done, n);
        else
            memcpy(memory + done, (const uint8_t *)iov[i].iov_base + offset, n);
        done += n;
        offset = 0;
    }
    return done;
}

size_t mrd_ofi_iov_read(const struct iovec *iov, uint32_t num, uint64_t offset, void *to,
                        size_t len)
{
    return copy(iov, num, offset, to, len, false);
}

size_t mrd_ofi_iov_write(const struct iovec *iov, uint32_t num, uint64_t offset, const void *from,
                         size_t len)
{
    return copy(iov, num, offset, (uint8_t *)(uintptr_t)from, len, true);
}

int mrd_ofi_op_key(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct iovec *iov,
                   int access, uint32_t *lkey)
{
    struct mrd_mr *mr;

    if (ep->all && !(access & ~MRD_ACCESS_LOCAL_WRITE)) {
        *lkey = ep->all->lkey;
        return 0;
    }
    if (op->num_mrs == sizeof(op->mr) / sizeof(op->mr[0]))
        return -FI_EINVAL;
    if (ep->on_demand)
        access |= MRD_ACCESS_ON_DEMAND;
    mr = mrd_reg_mr(ep->pd, iov->iov_base, iov->iov_len, access);
    if (!mr) {
        MRD_OFI_WARN(MR, "%zu bytes at %p cannot be used: %s\n", iov->iov_len, iov->iov_base,
                     mrd_last_error());
        return errno ? -errno : -FI_ENOMEM;
    }
    op->mr[op->num_mrs++] = mr;
    ep->op_mrs += !op->offers;
    *lkey = mr->lkey;
    return 0;
}

/* -------------------------------------------------------------------------------------- posting */

static void fill_wr(struct mrd_send_wr *wr, struct mrd_sge *sge, const struct mrd_ofi_peer *peer)
{
    *wr = (struct mrd_send_wr){.sg_list = sge,
                               .opcode = MRD_WR_SEND,
                               .send_flags = MRD_SEND_SIGNALED,
                               .ud = {.ah = peer->ah, .remote_qpn = MRD_FIRST_QP_NUM}};
}

int mrd_ofi_send_now(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                     struct mrd_ofi_wire_head *head, const struct iovec *more, uint32_t num,
                     uint64_t what)
{
    struct mrd_sge sge[MRD_OFI_SGE_MAX];
    struct mrd_send_wr wr;
    int error;

    if (!mrd_list_empty(&ep->unsent))
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
    error = mrd_ofi_op_post(ep->messages, &wr);
    mrd_ofi_wire_swap_head(head);
    if (!error)
        ep->silent++;
    return error;
}

/* Fills the list of a message. 0, or -FI_ error number. */
static int fill_list(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, struct mrd_send_wr *wr)
{
    struct mrd_sge *sge = wr->sg_list;
    bool is_inline = op->head_bytes + op->payload_bytes <= MRD_INLINE_BYTES_MAX;
    uint32_t left = op->payload_bytes;
    int error = 0;

    if (is_inline)
        wr->send_flags |= MRD_SEND_INLINE;
    sge[0] = (struct mrd_sge){(uintptr_t)op->head, op->head_bytes, 0};
    wr->num_sge = 1;
    if (!is_inline) {
        struct iovec own = {op->head, op->head_bytes};

        error = mrd_ofi_op_key(ep, op, &own, 0, &sge[0].lkey);
    }
    for (uint32_t i = 0; i < op->num_iov && left && !error; i++) {
        struct iovec part = op->iov[i];
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

int mrd_ofi_op_post(struct mrd_qp *qp, struct mrd_send_wr *wr)
{
    struct mrd_send_wr *bad;
    int error = mrd_post_send(qp, wr, &bad);

    return error == -ENOMEM ? -FI_EAGAIN : error; /* the send queue is full */
}

bool mrd_ofi_op_waits(const struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op, int error)
{
    return error == -FI_EAGAIN ||
           (error == -FI_ENOMEM && ep->op_mrs > (op->offers ? 0 : op->num_mrs));
}

/* Returns false if it must wait for room. */
static bool post(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_sge sge[MRD_OFI_SGE_MAX];
    struct mrd_send_wr wr;
    uint32_t registered = op->num_mrs;
    int error;

    if (op->error) { /* while it waited: what is told as failed is not sent */
        op->pending--;
        op->done(ep, op, NULL);
        return true;
    }
    fill_wr(&wr, sge, op->peer);
    wr.wr_id = (uintptr_t)op;
    error = fill_list(ep, op, &wr);
    if (!error)
        error = mrd_ofi_op_post(ep->messages, &wr);
    if (!error)
        return true;
    mrd_ofi_op_unregister(ep, op, registered);
    if (mrd_ofi_op_waits(ep, op, error))
        return false;
    MRD_OFI_WARN(EP_DATA, "a message to %s cannot be sent: %s\n", op->peer->text, mrd_last_error());
    mrd_ofi_op_fail(op, -error, 0);
    op->pending--;
    op->done(ep, op, NULL);
    return true;
}

void mrd_ofi_op_send(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, struct mrd_ofi_wire_head *head,
                     const void *more, uint32_t more_bytes)
{
    head->version = MRD_OFI_WIRE_VERSION;
    mrd_ofi_wire_swap_head(head);
    memcpy(op->head, head, sizeof(*head));
    mrd_ofi_wire_swap_head(head);
    if (more_bytes)
        memcpy(op->head + sizeof(*head), more, more_bytes);
    op->head_bytes = (uint32_t)sizeof(*head) + more_bytes;
    op->pending++;
    if (!mrd_list_empty(&ep->unsent) || !post(ep, op))
        mrd_list_append(&ep->unsent, &op->node);
}

void mrd_ofi_op_flush(struct mrd_ofi_ep *ep)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&ep->unsent))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        if (op->head_bytes ? post(ep, op) : mrd_ofi_transfer_post(ep, op))
            continue;
        mrd_list_prepend(&ep->unsent, n);
        return;
    }
}

/* An answer cannot be sent with what belongs to it: says that, or its peer would wait for ever. */
static void say_no_memory(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                          struct mrd_ofi_wire_head *head)
{
    if (head->what == MRD_OFI_TELL)
        head->data = FI_ENOMEM;
    head->num = head->what == MRD_OFI_DONE ? FI_ENOMEM : 0;
    mrd_ofi_say(ep, peer, head, NULL, 0);
}

/* The message of a mrd_ofi_say() that had to wait is complete, or, without a `wc`, not posted. */
static void said(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc)
{
    struct mrd_ofi_peer *peer = op->peer;
    bool short_of_memory = !wc && op->error == FI_ENOMEM && op->payload_bytes;
    struct mrd_ofi_wire_head head;

    memcpy(&head, op->head, sizeof(head));
    mrd_ofi_wire_swap_head(&head);
    ep->silent--;
    mrd_ofi_op_release(ep, op);
    if (short_of_memory)
        say_no_memory(ep, peer, &head);
}

void mrd_ofi_say(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, struct mrd_ofi_wire_head *head,
                 const void *more, uint32_t more_bytes)
{
    struct iovec iov = {(void *)(uintptr_t)more, more_bytes};
    struct mrd_ofi_op *op;

    if (sizeof(*head) + more_bytes <= MRD_INLINE_BYTES_MAX &&
        mrd_ofi_send_now(ep, peer, head, &iov, 1, MRD_OFI_SAID) == 0)
        return;
    op = mrd_ofi_op_alloc(ep);
    if (op && more_bytes)
        op->copy = malloc(more_bytes);
    if (!op || (more_bytes && !op->copy)) {
        MRD_OFI_WARN(EP_DATA, "no memory for an answer to %s\n", peer->text);
        if (op)
            mrd_ofi_op_release(ep, op);
        if (more_bytes)
            say_no_memory(ep, peer, head);
        return;
    }
    if (more_bytes)
        memcpy(op->copy, more, more_bytes);
    op->peer = peer;
    op->done = said;
    op->iov[0] = (struct iovec){op->copy, more_bytes};
    op->num_iov = more_bytes > 0;
    op->payload_bytes = more_bytes;
    ep->silent++;
    mrd_ofi_op_send(ep, op, head, NULL, 0);
}

/* ----------------------------------------------------------------------------------------- ends */

bool mrd_ofi_has_room(struct mrd_ofi_ep *ep)
{
    if (mrd_list_empty(&ep->unsent) && ep->tx_used < ep->tx_most)
        return true;
    mrd_ofi_ep_progress(ep);
    return mrd_list_empty(&ep->unsent) && ep->tx_used < ep->tx_most;
}

/* The counter of an operation of the application. */
static struct mrd_ofi_cntr *counter_of(const struct mrd_ofi_ep *ep, uint64_t flags)
{
    if (flags & FI_SEND)
        return ep->cntr[MRD_OFI_COUNT_SEND];
    return ep->cntr[flags & FI_READ ? MRD_OFI_COUNT_READ : MRD_OFI_COUNT_WRITE];
}

void mrd_ofi_op_tell(struct mrd_ofi_ep *ep, const struct mrd_ofi_op *op)
{
    struct mrd_ofi_comp comp = {.context = op->context,
                                .flags = op->flags,
                                .len = op->len,
                                .tag = op->tag,
                                .data = op->data,
                                .src = FI_ADDR_NOTAVAIL};

    ep->silent -= op->injected;
    if (!op->error) {
        mrd_ofi_cntr_add(counter_of(ep, op->flags), 1);
        if (op->tells && ep->tx_cq)
            mrd_ofi_cq_add(ep->tx_cq, &comp);
        return;
    }
    mrd_ofi_cntr_add_error(counter_of(ep, op->flags), 1);
    if (op->injected && !op->tells && !op->context) {
        mrd_ofi_peer_injected_failed(ep, op->peer, op->error, op->status);
        return;
    }
    comp.err = op->error;
    comp.prov_errno = op->status;
    comp.text = mrd_ofi_error_text(op->peer, op->error, op->status);
    if (op->status == MRD_WC_RETRY_EXC_ERR)
        mrd_ofi_peer_lost(ep, op->peer);
    MRD_OFI_WARN(EP_DATA, "%s\n", comp.text ? comp.text : "an operation failed");
    if (ep->tx_cq)
        mrd_ofi_cq_add(ep->tx_cq, &comp);
    else
        free(comp.text);
}

void mrd_ofi_op_sent(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc)
{
    (void)wc;
    if (op->error && !op->answered)
        mrd_ofi_op_answered(op);
    if (op->pending || !op->answered)
        return;
    mrd_ofi_op_tell(ep, op);
    ep->tx_used--;
    mrd_ofi_op_release(ep, op);
}

char *mrd_ofi_error_text(const struct mrd_ofi_peer *peer, int error, int status)
{
    const char *why = status ? mrd_wc_status_str((enum mrd_wc_status)status) : fi_strerror(error);
    char *text;

    return asprintf(&text, "%s%s%s", peer ? peer->text : "", peer ? ": " : "", why) < 0 ? NULL
                                                                                        : text;
}
