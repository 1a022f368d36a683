/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal items: memory is taken once, at init; alloc and release never ask for more.
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
    void *free_list; /* released items, linked through their first word */
    size_t item_bytes;
    uint32_t num, fresh, used; /* items; of them handed out ever; handed out now */
};

/* false: no memory. */
bool mrd_pool_init(struct mrd_pool *pool, const struct mrd_allocator *allocator, size_t item_bytes,
                   uint32_t num);
void mrd_pool_fini(struct mrd_pool *pool);
/* Not zeroed. NULL: exhausted. */
void *mrd_pool_alloc(struct mrd_pool *pool);
void mrd_pool_release(struct mrd_pool *pool, void *item);

/* Items by number, for those who keep small references. */
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
 * May one of many users of a pool, who holds `mine` items, take one more? As long as more are free
 * than it holds: the first takes half of all, the next half of what is left, so that newcomers find
 * some until about log2(num) took what they could. (The dynamic threshold of shared packet buffers:
 * Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha 1.)
 */
static inline bool mrd_pool_share(const struct mrd_pool *pool, uint32_t mine)
{
    return mine < mrd_pool_free(pool);
}

#endif
