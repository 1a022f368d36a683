/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/pool.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LEAD = 64 - FRAME_HEAD_BYTES }; /* before the message */

int pool_init(struct pool *pool, struct mrd_pd *pd, uint32_t num, int access)
{
    size_t bytes = (size_t)num * POOL_STRIDE;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        return -errno;
    pool->bytes = map;
    pool->num = num;
    pool->free = malloc(num * sizeof(pool->free[0]));
    pool->notes = calloc(num, sizeof(pool->notes[0]));
    if (!pool->free || !pool->notes)
        return -ENOMEM;
    while (pool->num_free < num) {
        pool->free[pool->num_free] = num - 1 - pool->num_free;
        pool->num_free++;
    }
    pool->mr = mrd_reg_mr(pd, pool->bytes, bytes, access);
    return pool->mr ? 0 : -errno;
}

void pool_fini(struct pool *pool)
{
    if (pool->mr)
        (void)mrd_dereg_mr(pool->mr);
    if (pool->bytes)
        munmap(pool->bytes, (size_t)pool->num * POOL_STRIDE);
    free(pool->free);
    free(pool->notes);
}

static uint32_t index_of(const struct pool *pool, const uint8_t *byte)
{
    size_t index = (size_t)(byte - pool->bytes) / POOL_STRIDE;

    assert(index < pool->num);
    return (uint32_t)index;
}

static uint8_t *message_at(const struct pool *pool, uint32_t index)
{
    return pool->bytes + (size_t)index * POOL_STRIDE + LEAD;
}

uint8_t *pool_take(struct pool *pool)
{
    return pool->num_free ? message_at(pool, pool->free[--pool->num_free]) : NULL;
}

void pool_return(struct pool *pool, const uint8_t *message)
{
    assert(pool->num_free < pool->num);
    pool->free[pool->num_free++] = index_of(pool, message);
}

struct pool_note *pool_note(struct pool *pool, const uint8_t *message)
{
    return &pool->notes[index_of(pool, message)];
}

uint8_t *pool_of(const struct pool *pool, const uint8_t *byte)
{
    return message_at(pool, index_of(pool, byte));
}
