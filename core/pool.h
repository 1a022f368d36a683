/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal items: memory is allocated once, at init.
 *
 * Items are handed out in order the first time round, so pages of a large pool stay untouched until
 * they are needed.
 */
#ifndef MRD_CORE_POOL_H
#define MRD_CORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrd_allocator;

struct mrd_pool {
    const struct mrd_allocator *allocator;
    char *items;
    size_t bytes;    /* of `items`; who needs a smaller pool lowers `num` */
    void *free_list; /* released items, linked through their first word */
    size_t item_bytes;
    uint32_t num, fresh, used; /* items; those allocated at least once; those allocated now */
};

/* false: no memory. */
bool mrd_pool_init(struct mrd_pool *pool, const struct mrd_allocator *allocator, size_t item_bytes,
                   uint32_t num);
void mrd_pool_fini(struct mrd_pool *pool);
/* Returns an item, not zeroed; NULL: the pool is exhausted. */
void *mrd_pool_alloc(struct mrd_pool *pool);
void mrd_pool_release(struct mrd_pool *pool, void *item);

/* Index of an item: a reference in 32 bits. */
static inline uint32_t mrd_pool_index(const struct mrd_pool *pool, const void *item)
{
    return (uint32_t)((size_t)((const char *)item - pool->items) / pool->item_bytes);
}

static inline void *mrd_pool_at(const struct mrd_pool *pool, uint32_t index)
{
    return pool->items + pool->item_bytes * index;
}

static inline uint32_t mrd_pool_free(const struct mrd_pool *pool)
{
    return pool->num - pool->used;
}

/*
 * May a user of the pool that holds `mine` items take one more? Yes while more are free than it
 * holds. The first user takes at most half of all items, the next half of the rest. So newcomers
 * find items until about log2(num) users took their share. (The dynamic threshold of shared packet
 * buffers: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha 1.)
 */
static inline bool mrd_pool_share(const struct mrd_pool *pool, uint32_t mine)
{
    return mine < mrd_pool_free(pool);
}

#endif
