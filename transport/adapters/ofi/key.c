/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of remote memory. An application chooses keys of 64 bits, and addresses that are offsets;
 * mrd has keys of its own. So a peer is asked once what a key of its stands for. If mrd's key is
 * refused later, the region was closed, and the peer is asked again: the key may be that of another
 * one.
 */
#include "transport/adapters/ofi/ep.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 256 }; /* of a peer that are remembered */

static struct mrd_ofi_key *find(struct mrd_ofi_peer *peer, uint64_t key)
{
    for (struct mrd_node *n = peer->keys.next; n != &peer->keys; n = n->next) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        if (k->key != key)
            continue;
        mrd_list_remove(n); /* the one used last comes first */
        mrd_list_prepend(&peer->keys, n);
        return k;
    }
    return NULL;
}

static void drop(struct mrd_ofi_peer *peer, struct mrd_ofi_key *k)
{
    mrd_list_remove(&k->node);
    peer->num_keys--;
    free(k);
}

/* An application may have a key for each transfer: the ones not used for longest are forgotten. */
static void make_room(struct mrd_ofi_peer *peer)
{
    for (struct mrd_node *n = peer->keys.prev, *prev;
         n != &peer->keys && peer->num_keys >= KEYS_MAX; n = prev) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        prev = n->prev;
        if (k->known)
            drop(peer, k);
    }
}

/* It is not known what the key is: who waits for that fails. */
static void fail_waiting(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer, struct mrd_ofi_key *k,
                         int error, int status)
{
    struct mrd_node waiting, *n;

    mrd_list_init(&waiting);
    mrd_list_splice(&waiting, &k->waiting);
    drop(peer, k);
    while ((n = mrd_list_pop(&waiting))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        mrd_ofi_op_answered(op);
        mrd_ofi_op_fail(op, error, status);
        mrd_ofi_rma_go(ep, op);
    }
}

/* The question is there, or it cannot be put. */
static void asked(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op, const struct mrd_wc *wc)
{
    struct mrd_ofi_key *k = op->error ? find(op->peer, op->tag) : NULL;

    (void)wc;
    if (k && !k->known && k->question == op->id)
        fail_waiting(ep, op->peer, k, op->error, op->status);
    mrd_ofi_op_release(ep, op);
}

/* NULL: no memory. */
static struct mrd_ofi_key *add(struct mrd_ofi_peer *peer, uint64_t key)
{
    struct mrd_ofi_key *k = calloc(1, sizeof(*k));

    if (!k)
        return NULL;
    make_room(peer);
    k->key = key;
    mrd_list_init(&k->waiting);
    mrd_list_prepend(&peer->keys, &k->node);
    peer->num_keys++;
    return k;
}

const struct mrd_ofi_key *mrd_ofi_key_get(struct mrd_ofi_ep *ep, struct mrd_ofi_op *op,
                                          uint64_t key)
{
    struct mrd_ofi_wire_head head = {.what = MRD_OFI_ASK, .tag = key};
    struct mrd_ofi_key *k = find(op->peer, key);
    struct mrd_ofi_op *question = NULL;

    if (k && k->known)
        return k;
    mrd_ofi_peer_watch(ep, op->peer);
    k = find(op->peer, key); /* forgotten, if the peer was gone; or told meanwhile */
    if (k && k->known)
        return k;
    if (!k) {
        question = mrd_ofi_op_alloc(ep);
        k = question ? add(op->peer, key) : NULL;
    }
    if (!k) {
        if (question)
            mrd_ofi_op_release(ep, question);
        mrd_ofi_op_fail(op, FI_ENOMEM, 0);
        op->done(ep, op, NULL);
        return NULL;
    }
    mrd_list_append(&k->waiting, &op->node);
    mrd_ofi_op_await(op);
    if (question) {
        question->peer = op->peer;
        question->done = asked;
        question->tag = key;
        k->question = question->id;
        mrd_ofi_op_send(ep, question, &head, NULL, 0);
    }
    return NULL;
}

void mrd_ofi_key_drop(struct mrd_ofi_peer *peer, uint64_t key)
{
    struct mrd_ofi_key *k = find(peer, key);

    if (k && k->known)
        drop(peer, k);
}

void mrd_ofi_keys_fini(struct mrd_ofi_peer *peer)
{
    for (struct mrd_node *n = peer->keys.next, *next; n != &peer->keys; n = next) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        next = n->next;
        while (mrd_list_pop(&k->waiting))
            continue;
        free(k);
    }
    mrd_list_init(&peer->keys);
    peer->num_keys = 0;
}

/* -------------------------------------------------------------------------------- at the target */

/* Registers all ranges of the region with the endpoint. 0, or a FI_ error number. */
static uint32_t fill_ranges(struct mrd_ofi_ep *ep, struct mrd_ofi_mr *mr,
                            struct mrd_ofi_wire_range *range)
{
    for (uint32_t i = 0; i < mr->num_iov; i++) {
        struct mrd_mr *reg = mrd_ofi_mr_register(mr, ep, i);

        if (!reg)
            return FI_EACCES;
        range[i] = (struct mrd_ofi_wire_range){(uintptr_t)mr->iov[i].iov_base, mr->iov[i].iov_len,
                                               reg->rkey, 0};
        mrd_ofi_wire_swap_range(&range[i]);
    }
    return 0;
}

void mrd_ofi_key_asked(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
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
            ep->cntr[MRD_OFI_COUNT_REMOTE_READ] || ep->cntr[MRD_OFI_COUNT_REMOTE_WRITE])
            tell.flags |= MRD_OFI_EVENTS;
    }
    mrd_ofi_say(ep, peer, &tell, range, tell.num * (uint32_t)sizeof(range[0]));
}

/* ----------------------------------------------------------------------------- at the initiator */

void mrd_ofi_key_told(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                      const struct mrd_ofi_wire_head *head, const uint8_t *ranges, uint32_t bytes)
{
    struct mrd_ofi_key *k = find(peer, head->tag);
    struct mrd_node waiting, *n;
    int error = head->data <= INT16_MAX ? (int)head->data : FI_EOTHER;

    if (!k || k->known)
        return;
    if (head->num > MRD_OFI_IOV_MAX || bytes != head->num * sizeof(k->range[0]))
        error = FI_EOTHER;
    if (error) {
        fail_waiting(ep, peer, k, error, 0);
        return;
    }
    k->known = true;
    k->flags = head->flags;
    k->num = head->num;
    memcpy(k->range, ranges, bytes);
    for (uint32_t i = 0; i < k->num; i++)
        mrd_ofi_wire_swap_range(&k->range[i]);
    mrd_list_init(&waiting);
    mrd_list_splice(&waiting, &k->waiting);
    while ((n = mrd_list_pop(&waiting))) {
        struct mrd_ofi_op *op = mrd_container_of(n, struct mrd_ofi_op, node);

        mrd_ofi_op_answered(op);
        mrd_ofi_rma_go(ep, op);
    }
}
