/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The allocator of the unit tests: zeroed memory, counted, so that a test can ask whether all of it
 * came back with the size it was taken with; and the n-th request can be made to fail.
 */
#ifndef MRD_UNIT_ALLOC_H
#define MRD_UNIT_ALLOC_H

#include <stdint.h>
#include <stdlib.h>

#include "core/engine/engine.h"

struct unit_alloc {
    struct mrd_allocator ops;
    size_t live_bytes;
    uint32_t requests;
    uint32_t fail_at; /* number of the request that fails, from 1; 0: none */
};

static inline void *unit_alloc_take(void *arg, size_t bytes)
{
    struct unit_alloc *a = arg;

    if (++a->requests == a->fail_at)
        return NULL;
    a->live_bytes += bytes;
    return calloc(1, bytes ? bytes : 1);
}

static inline void unit_alloc_give(void *arg, void *ptr, size_t bytes)
{
    struct unit_alloc *a = arg;

    a->live_bytes -= bytes;
    free(ptr);
}

static inline void unit_alloc_init(struct unit_alloc *a)
{
    *a = (struct unit_alloc){.ops = {.alloc = unit_alloc_take, .free = unit_alloc_give, .arg = a}};
}

#endif
