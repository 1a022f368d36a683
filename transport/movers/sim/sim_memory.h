/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in large pages for what the hosts of a simulation touch at each event.
 *
 * A run visits its hosts in turn. The contexts of a thousand of them lie on more pages than a
 * processor keeps translations of, and to look those up costs time at each visit.
 *
 * Blocks are cut from chunks, one behind the other. A released block serves the next request of its
 * size. Blocks above MRD_SIM_BLOCK_BYTES_MAX are mapped one by one, in small pages: they are pools
 * of which few pages are ever used. Large pages would take memory for all of them.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_MEMORY_H
#define MRD_TRANSPORT_SIM_SIM_MEMORY_H

#include <stddef.h>

enum {
    MRD_SIM_BLOCK_UNIT = 64, /* a cache line */
    MRD_SIM_BLOCK_BYTES_MAX = 64 << 10,
};

struct mrd_sim_chunk;

struct mrd_sim_memory {
    struct mrd_sim_chunk *chunks; /* owned */
    char *at, *end;               /* the rest of the newest chunk */
    /* Released blocks by size in units, linked through their first word. */
    void *free[MRD_SIM_BLOCK_BYTES_MAX / MRD_SIM_BLOCK_UNIT + 1];
};

void mrd_sim_memory_init(struct mrd_sim_memory *memory);
/* Frees all blocks but the largest, which the caller has released. */
void mrd_sim_memory_fini(struct mrd_sim_memory *memory);
/* A zeroed block, aligned to a cache line. NULL: no memory. */
void *mrd_sim_memory_alloc(struct mrd_sim_memory *memory, size_t bytes);
/* `bytes` as they were allocated; `block` may be NULL. */
void mrd_sim_memory_release(struct mrd_sim_memory *memory, void *block, size_t bytes);

#endif
