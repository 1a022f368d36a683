/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/index.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    BUCKETS_FIRST = 64,
    GROWTH = 4, /* each time that there are as many keys: an item moves half as often as with 2 */
    BUCKETS_KEPT = 1024,
    BUCKETS_MAX = 1 << 24,
};

void mrd_ofi_index_init(struct mrd_ofi_index *x, uint64_t seed, uint64_t *steps)
{
    *x = (struct mrd_ofi_index){.seed = seed, .steps = steps};
}

void mrd_ofi_index_fini(struct mrd_ofi_index *x)
{
    free(x->bucket);
    x->bucket = NULL;
    x->num_buckets = x->num_keys = 0;
}

/* The finalizer of SplitMix64, over both parts of the key. */
static uint64_t hash(const struct mrd_ofi_index *x, uint64_t number, const void *object)
{
    uint64_t h = number ^ x->seed;

    for (int part = 0; part < 2; part++) {
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
        h = (h ^ h >> 27) * 0x94d049bb133111ebu;
        h ^= h >> 31;
        h += part ? 0 : (uintptr_t)object;
    }
    return h;
}

static struct mrd_ofi_item **bucket_of(const struct mrd_ofi_index *x, uint64_t number,
                                       const void *object)
{
    return &x->bucket[hash(x, number, object) & (x->num_buckets - 1)];
}

static struct mrd_ofi_item *next_of(const struct mrd_ofi_item *item)
{
    return mrd_container_of(item->same.next, struct mrd_ofi_item, same);
}

static void push(struct mrd_ofi_index *x, struct mrd_ofi_item *item)
{
    struct mrd_ofi_item **bucket = bucket_of(x, item->number, item->object);

    item->chain = *bucket;
    *bucket = item;
}

/* false: no memory; what there is, does. */
static bool grow(struct mrd_ofi_index *x)
{
    uint32_t num = x->num_buckets ? GROWTH * x->num_buckets : BUCKETS_FIRST;
    struct mrd_ofi_index larger = *x;

    larger.bucket = calloc(num, sizeof(struct mrd_ofi_item *)); /* pages are touched when used */
    larger.num_buckets = num;
    if (!larger.bucket)
        return false;
    for (uint32_t i = 0; i < x->num_buckets; i++) {
        for (struct mrd_ofi_item *item = x->bucket[i], *next; item; item = next) {
            next = item->chain;
            ++*x->steps;
            push(&larger, item);
        }
    }
    free(x->bucket);
    *x = larger;
    return true;
}

struct mrd_ofi_item *mrd_ofi_index_first(const struct mrd_ofi_index *x, uint64_t number,
                                         const void *object)
{
    if (!x->num_keys)
        return NULL;
    for (struct mrd_ofi_item *item = *bucket_of(x, number, object); item; item = item->chain) {
        ++*x->steps;
        if (item->number == number && item->object == object)
            return item;
    }
    return NULL;
}

int mrd_ofi_index_add(struct mrd_ofi_index *x, struct mrd_ofi_item *item, uint64_t number,
                      const void *object)
{
    struct mrd_ofi_item *first = mrd_ofi_index_first(x, number, object);

    ++*x->steps;
    item->number = number;
    item->object = object;
    item->chain = NULL;
    mrd_list_init(&item->same);
    if (first) {
        mrd_list_insert_before(&first->same, &item->same);
        return 0;
    }
    if (x->num_keys == x->num_buckets && x->num_buckets < BUCKETS_MAX && !grow(x) &&
        !x->num_buckets)
        return -FI_ENOMEM;
    push(x, item);
    x->num_keys++;
    return 0;
}

/* Where it is on its bucket; NULL: it is not the first of its key. */
static struct mrd_ofi_item **place_of(const struct mrd_ofi_index *x,
                                      const struct mrd_ofi_item *item)
{
    struct mrd_ofi_item **at = bucket_of(x, item->number, item->object);

    while (*at && *at != item) {
        ++*x->steps;
        at = &(*at)->chain;
    }
    return *at ? at : NULL;
}

void mrd_ofi_index_remove(struct mrd_ofi_index *x, struct mrd_ofi_item *item)
{
    struct mrd_ofi_item **at = place_of(x, item), *next = next_of(item);

    ++*x->steps;
    if (at && next == item) {
        *at = item->chain;
        x->num_keys--;
    } else if (at) {
        next->chain = item->chain;
        *at = next;
    }
    mrd_list_remove(&item->same);
    if (!x->num_keys && x->num_buckets > BUCKETS_KEPT)
        mrd_ofi_index_fini(x);
}
