/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's memory allocator: called at creation, in control calls, and when the state of a peer
 * grows with what is in flight to it; never for each packet.
 */
#ifndef MRD_CORE_ALLOC_H
#define MRD_CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct mrd_allocator {
    /*
     * Zeroed memory; NULL: there is none. Most pages of large blocks are never touched: they should
     * cost nothing, so whoever clears blocks takes many times the memory.
     */
    void *(*alloc)(void *arg, size_t bytes);
    void (*free)(void *arg, void *ptr, size_t bytes); /* `bytes` as they were allocated */
    void *arg;
};

static inline void *mrd_alloc(const struct mrd_allocator *a, size_t bytes)
{
    return a->alloc(a->arg, bytes);
}

static inline void mrd_free(const struct mrd_allocator *a, void *ptr, size_t bytes)
{
    a->free(a->arg, ptr, bytes);
}

/*
 * Makes an array longer: allocates `bytes`, copies the first `old_bytes`, frees `array`, which may be
 * NULL. Returns the new array, zeroed behind the old one; NULL: no memory, the old one is left.
 */
static inline void *mrd_grow(const struct mrd_allocator *a, void *array, size_t old_bytes,
                             size_t bytes)
{
    void *grown = mrd_alloc(a, bytes);

    if (!grown || !array)
        return grown;
    memcpy(grown, array, old_bytes);
    mrd_free(a, array, old_bytes);
    return grown;
}

#endif
