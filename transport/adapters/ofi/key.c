/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/key.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/keys.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/op.h"
#include "transport/adapters/ofi/peer.h"

/* -------------------------------------------------------------------------------- at the target */

/* Registers all ranges of the region with the endpoint. 0, or a FI_ error number. */
static uint32_t fill_ranges(struct mrd_ofi_ep *ep, struct mrd_ofi_mr *mr,
                            struct mrd_ofi_wire_range *range)
{
    for (uint32_t i = 0; i < mr->num_iov; i++) {
        struct mrd_mr *reg = mrd_ofi_mr_register(mr, ep, i);

        if (!reg)
            return errno == ENOMEM ? FI_ENOMEM : FI_EACCES;
        range[i] = (struct mrd_ofi_wire_range){(uintptr_t)mr->iov[i].iov_base, mr->iov[i].iov_len,
                                               reg->rkey, 0};
        mrd_ofi_wire_swap_range(&range[i]);
    }
    return 0;
}

void mrd_ofi_key_on_ask(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                        const struct mrd_ofi_wire_head *head)
{
    struct mrd_ofi_wire_range range[MRD_OFI_IOV_MAX];
    struct mrd_ofi_wire_head tell = {.what = MRD_OFI_TELL, .tag = head->tag};
    struct mrd_ofi_mr *mr = mrd_ofi_mr_find(ep->domain, head->tag);

    tell.data = mr && mr->enabled ? fill_ranges(ep, mr, range) : FI_ENOKEY;
    if (!tell.data) {
        tell.num = mr->num_iov;
        if (mrd_ofi_mr_is_virtual(ep->domain))
            tell.flags |= MRD_OFI_VIRTUAL;
        if (!(mr->access & FI_REMOTE_READ))
            tell.flags |= MRD_OFI_NO_READ;
        if (mr->cntr || mr->flags & FI_RMA_EVENT || ep->info->caps & FI_RMA_EVENT ||
            ep->bound.cntr[MRD_OFI_COUNT_REMOTE_READ] || ep->bound.cntr[MRD_OFI_COUNT_REMOTE_WRITE])
            tell.flags |= MRD_OFI_EVENTS;
    }
    mrd_ofi_message_internal(ep, peer, &tell, range, tell.num * (uint32_t)sizeof(range[0]));
}

/* ----------------------------------------------------------------------------- at the initiator */

/* It is not known what the key is: who waits for that fails. */
static void fail_waiting(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, struct mrd_ofi_key *k,
                         int error, int status)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&k->waiting))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        mrd_ofi_op_answered(op);
        mrd_ofi_op_fail(op, error, status);
        mrd_ofi_op_settle(ep, op);
    }
    mrd_ofi_keys_drop(&peer->keys, k);
}

/* The question is there, or it cannot be put. */
static void asked(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op)
{
    struct mrd_ofi_key *k = op->error ? mrd_ofi_keys_find(&op->peer->keys, op->send.key) : NULL;

    if (k && !k->known && k->question == op->id)
        fail_waiting(ep, op->peer, k, op->error, op->status);
    mrd_ofi_op_release(ep, op);
}

/* Puts the question. NULL: no memory. */
static struct mrd_ofi_key *ask(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, uint64_t key)
{
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_ASK, .tag = key};
    struct mrd_ofi_op *question = mrd_ofi_op_alloc(ep);
    struct mrd_ofi_key *k = question ? mrd_ofi_keys_add(&peer->keys, key) : NULL;

    if (!k) {
        if (question)
            mrd_ofi_op_release(ep, question);
        return NULL;
    }
    question->peer = peer;
    question->done = asked;
    question->send.key = key;
    k->question = question->id;
    mrd_ofi_message_send(ep, question, &head, NULL, 0);
    return k;
}

void mrd_ofi_key_await(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, uint64_t key)
{
    struct mrd_ofi_key *k = mrd_ofi_keys_find(&op->peer->keys, key);

    assert(!k || !k->known);
    mrd_ofi_peer_watch(ep, op->peer);
    if (!k)
        k = ask(ep, op->peer, key);
    if (!k) {
        mrd_ofi_op_fail(op, FI_ENOMEM, 0);
        mrd_ofi_op_settle(ep, op);
        return;
    }
    mrd_list_append(&k->waiting, &op->node);
    mrd_ofi_op_await(op);
}

void mrd_ofi_key_on_tell(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                         const struct mrd_ofi_wire_head *head, const uint8_t *ranges,
                         uint32_t bytes)
{
    struct mrd_ofi_key *k = mrd_ofi_keys_find(&peer->keys, head->tag);
    int error = head->data <= INT16_MAX ? (int)head->data : FI_EOTHER;
    struct mrd_node *n;

    if (!k || k->known)
        return;
    if (head->num > MRD_OFI_IOV_MAX || bytes != head->num * sizeof(k->range[0]))
        error = FI_EOTHER;
    if (error) {
        fail_waiting(ep, peer, k, error, 0);
        return;
    }
    mrd_ofi_keys_know(&peer->keys, k);
    k->flags = head->flags;
    k->num = head->num;
    memcpy(k->range, ranges, bytes);
    for (uint32_t i = 0; i < k->num; i++)
        mrd_ofi_wire_swap_range(&k->range[i]);
    while ((n = mrd_list_pop(&k->waiting))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        mrd_ofi_op_answered(op);
        op->goes_on = true;
        mrd_list_append(&ep->turn.ended, n);
    }
}
