/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a pool that are found by a key: a pool and a hash table of what was taken from it. */
#ifndef MRD_CORE_TABLE_H
#define MRD_CORE_TABLE_H

#include "core/hash.h"
#include "core/pool.h"

struct mrd_table {
    struct mrd_hash by_key;
    struct mrd_pool pool;
};

/* `records` of them; buckets for about `keys`, fewer where most are idle. false: no memory. */
static inline bool mrd_table_init(struct mrd_table *t, const struct mrd_allocator *allocator,
                                  size_t record_bytes, uint32_t records, uint32_t keys)
{
    return mrd_pool_init(&t->pool, allocator, record_bytes, records) &&
           mrd_hash_init(&t->by_key, allocator, keys);
}

/* Also of one that mrd_table_init() failed for, or zeroed. */
static inline void mrd_table_fini(struct mrd_table *t, const struct mrd_allocator *allocator)
{
    mrd_hash_fini(&t->by_key, allocator);
    mrd_pool_fini(&t->pool);
}

/* A record, not zeroed, on no bucket yet; NULL: there is none. */
static inline void *mrd_table_alloc(struct mrd_table *t)
{
    return mrd_pool_alloc(&t->pool);
}

/* Off its bucket, and back to the pool. */
static inline void mrd_table_release(struct mrd_table *t, struct mrd_hash_node *node, void *record)
{
    mrd_hash_del(&t->by_key, node);
    mrd_pool_release(&t->pool, record);
}

#endif
