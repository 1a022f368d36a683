/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Items by a key; those of one key in the order in which they were added.
 *
 * mrd_ofi_index_add() an item, which is the caller's and stays where it is; mrd_ofi_index_first() of
 * a key; mrd_ofi_index_remove() any of them. A key's first item alone is on the chain of a bucket:
 * however many there are of a key, who looks for another one passes by one of them.
 */
#ifndef MRD_OFI_INDEX_H
#define MRD_OFI_INDEX_H

#include <stdint.h>

#include "core/list.h"

struct mrd_ofi_item {
    struct mrd_ofi_item *chain; /* the next one on its bucket: of the first of its key only */
    struct mrd_node same;       /* a ring of those of its key, in order */
    uint64_t number;            /* the key: a number, */
    const void *object;         /* and a pointer, which is not followed */
};

struct mrd_ofi_index {
    struct mrd_ofi_item **bucket;
    uint32_t num_buckets; /* a power of two; 0: no item was added yet */
    uint32_t num_keys;
    uint64_t seed; /* keys come from peers: which ones share a bucket is not to be known */
    uint64_t *steps;
};

/* `steps` counts items that are looked at; it is the caller's, as long as the index is used. */
void mrd_ofi_index_init(struct mrd_ofi_index *x, uint64_t seed, uint64_t *steps);
/* Items are forgotten. */
void mrd_ofi_index_fini(struct mrd_ofi_index *x);
/* 0, or -FI_ENOMEM: only if there was none yet. */
int mrd_ofi_index_add(struct mrd_ofi_index *x, struct mrd_ofi_item *item, uint64_t number,
                      const void *object);
void mrd_ofi_index_remove(struct mrd_ofi_index *x, struct mrd_ofi_item *item);
/* NULL: there is none of that key. */
struct mrd_ofi_item *mrd_ofi_index_first(const struct mrd_ofi_index *x, uint64_t number,
                                         const void *object);

#endif
