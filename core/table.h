/* SPDX-License-Identifier: BSD-2-Clause */
/* Pool records found by a key: a pool, and a hash table of the records allocated from it. */
#ifndef MRD_CORE_TABLE_H
#define MRD_CORE_TABLE_H

#include "core/hash.h"
#include "core/pool.h"

struct mrd_table {
    struct mrd_hash by_key;
    struct mrd_pool pool;
};

/* Allocates `records` records and buckets for about `keys`. false: no memory. */
static inline bool mrd_table_init(struct mrd_table *t, const struct mrd_allocator *allocator,
                                  size_t record_bytes, uint32_t records, uint32_t keys)
{
    return mrd_pool_init(&t->pool, allocator, record_bytes, records) &&
           mrd_hash_init(&t->by_key, allocator, keys);
}

/* Frees the table; it may also be zeroed, or mrd_table_init() may have failed. */
static inline void mrd_table_fini(struct mrd_table *t, const struct mrd_allocator *allocator)
{
    mrd_hash_fini(&t->by_key, allocator);
    mrd_pool_fini(&t->pool);
}

/* Returns a record, not zeroed and in no bucket yet; NULL: the pool is exhausted. */
static inline void *mrd_table_alloc(struct mrd_table *t)
{
    return mrd_pool_alloc(&t->pool);
}

/* Removes a record from its bucket and releases it to the pool. */
static inline void mrd_table_release(struct mrd_table *t, struct mrd_hash_node *node, void *record)
{
    mrd_hash_del(&t->by_key, node);
    mrd_pool_release(&t->pool, record);
}

#endif
