/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's memory allocator: called at creation and in control calls, never for a packet.
 */
#ifndef MRD_CORE_ALLOC_H
#define MRD_CORE_ALLOC_H

#include <stddef.h>

struct mrd_allocator {
    void *(*alloc)(void *arg, size_t bytes); /* zeroed memory; NULL: there is none */
    void (*free)(void *arg, void *ptr, size_t bytes);
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

#endif
