/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/pool.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

bool mrd_pool_init(struct mrd_pool *pool, const struct mrd_allocator *allocator, size_t item_bytes,
                   uint32_t num)
{
    memset(pool, 0, sizeof(*pool));
    pool->allocator = allocator;
    pool->item_bytes = (item_bytes + 15) & ~(size_t)15;
    pool->bytes = pool->item_bytes * num;
    pool->items = mrd_alloc(allocator, pool->bytes);
    if (!pool->items)
        return false;
    pool->num = num;
    return true;
}

void mrd_pool_fini(struct mrd_pool *pool)
{
    if (pool->items)
        mrd_free(pool->allocator, pool->items, pool->bytes);
    pool->items = NULL;
}

void *mrd_pool_alloc(struct mrd_pool *pool)
{
    void *item = pool->free_list;

    if (item)
        memcpy(&pool->free_list, item, sizeof(void *));
    else if (pool->fresh < pool->num)
        item = pool->items + pool->item_bytes * pool->fresh++;
    else
        return NULL;
    pool->used++;
    return item;
}

void mrd_pool_release(struct mrd_pool *pool, void *item)
{
    assert(pool->used > 0);
    memcpy(item, &pool->free_list, sizeof(void *));
    pool->free_list = item;
    pool->used--;
}
