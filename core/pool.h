/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal items: memory is taken once, at init; alloc and release never ask for more.
 *
 * Items are handed out in order the first time round, so pages of a large pool stay untouched until they are needed.
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

static inline uint32_t mrd_pool_free(const struct mrd_pool *pool)
{
    return pool->num - pool->used;
}

#endif
