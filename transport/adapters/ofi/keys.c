/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/keys.h"

#include <stdlib.h>

#include "transport/adapters/ofi/ofi.h"

enum { KEYS_MAX = 256 }; /* of a peer that are remembered, beside those that operations wait with */

void mrd_ofi_keys_init(struct mrd_ofi_keys *keys)
{
    mrd_list_init(&keys->list);
    keys->num = keys->num_asked = 0;
}

struct mrd_ofi_key *mrd_ofi_keys_find(struct mrd_ofi_keys *keys, uint64_t key)
{
    for (struct mrd_node *n = keys->list.next; n != &keys->list; n = n->next) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        if (k->key != key)
            continue;
        mrd_list_remove(n); /* the one used last comes first */
        mrd_list_prepend(&keys->list, n);
        return k;
    }
    return NULL;
}

void mrd_ofi_keys_know(struct mrd_ofi_keys *keys, struct mrd_ofi_key *k)
{
    keys->num_asked -= !k->known;
    k->known = true;
}

void mrd_ofi_keys_drop(struct mrd_ofi_keys *keys, struct mrd_ofi_key *k)
{
    mrd_list_remove(&k->node);
    keys->num--;
    keys->num_asked -= !k->known;
    free(k);
}

/*
 * An application may have a key for each transfer: the ones not used for longest are forgotten. Who
 * waits for a key needs others with it: were these forgotten meanwhile, many operations would ask
 * for each other's keys for ever.
 */
static void make_room(struct mrd_ofi_keys *keys)
{
    uint32_t most = KEYS_MAX + keys->num_asked * MRD_OFI_RMA_IOV_MAX;

    for (struct mrd_node *n = keys->list.prev, *prev; n != &keys->list && keys->num >= most;
         n = prev) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        prev = n->prev;
        if (k->known)
            mrd_ofi_keys_drop(keys, k);
    }
}

struct mrd_ofi_key *mrd_ofi_keys_add(struct mrd_ofi_keys *keys, uint64_t key)
{
    struct mrd_ofi_key *k = calloc(1, sizeof(*k));

    if (!k)
        return NULL;
    make_room(keys);
    k->key = key;
    mrd_list_init(&k->waiting);
    mrd_list_prepend(&keys->list, &k->node);
    keys->num++;
    keys->num_asked++;
    return k;
}

void mrd_ofi_keys_forget(struct mrd_ofi_keys *keys, uint64_t key)
{
    struct mrd_ofi_key *k = mrd_ofi_keys_find(keys, key);

    if (k && k->known)
        mrd_ofi_keys_drop(keys, k);
}

void mrd_ofi_keys_fini(struct mrd_ofi_keys *keys)
{
    for (struct mrd_node *n = keys->list.next, *next; n != &keys->list; n = next) {
        struct mrd_ofi_key *k = mrd_container_of(n, struct mrd_ofi_key, node);

        next = n->next;
        while (mrd_list_pop(&k->waiting))
            continue;
        free(k);
    }
    mrd_ofi_keys_init(keys);
}
