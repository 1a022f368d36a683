/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chained hash tables through nodes inside the items; the number of buckets is fixed at init.
 *
 * The caller hashes its keys and compares them: for (n = mrd_hash_first(h, key_hash); n;
 * n = n->next).
 */
#ifndef MRD_CORE_HASH_H
#define MRD_CORE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/alloc.h"

struct mrd_hash_node {
    struct mrd_hash_node *next;
    uint64_t hash;
};

struct mrd_hash {
    struct mrd_hash_node **bucket;
    uint32_t mask;
};

/* Least power of two >= n. */
static inline uint32_t mrd_hash_buckets(uint32_t n)
{
    uint32_t b = 16;

    while (b < n && b < 1u << 20)
        b <<= 1;
    return b;
}

/* Allocates buckets for about `items` items. false: no memory. */
static inline bool mrd_hash_init(struct mrd_hash *h, const struct mrd_allocator *allocator,
                                 uint32_t items)
{
    h->mask = mrd_hash_buckets(items) - 1;
    h->bucket = mrd_alloc(allocator, (h->mask + 1) * sizeof(*h->bucket));
    return h->bucket != NULL;
}

/* Frees the buckets; the table may also be zeroed, or mrd_hash_init() may have failed. */
static inline void mrd_hash_fini(struct mrd_hash *h, const struct mrd_allocator *allocator)
{
    if (h->bucket)
        mrd_free(allocator, h->bucket, (h->mask + 1) * sizeof(*h->bucket));
    h->bucket = NULL;
}

static inline struct mrd_hash_node *mrd_hash_first(const struct mrd_hash *h, uint64_t hash)
{
    return h->bucket[hash & h->mask];
}

static inline void mrd_hash_add(struct mrd_hash *h, struct mrd_hash_node *n, uint64_t hash)
{
    n->hash = hash;
    n->next = h->bucket[hash & h->mask];
    h->bucket[hash & h->mask] = n;
}

static inline void mrd_hash_del(struct mrd_hash *h, struct mrd_hash_node *n)
{
    struct mrd_hash_node **at = &h->bucket[n->hash & h->mask];

    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
}

/* Finalizer of MurmurHash3 (Appleby): spreads integers over all bits. */
static inline uint64_t mrd_hash_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

#endif
