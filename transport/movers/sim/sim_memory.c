/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 2 << 20, CHUNK_BYTES = 32 << 20 };

struct mrd_sim_chunk {
    struct mrd_sim_chunk *next;
    void *base; /* of CHUNK_BYTES + PAGE_BYTES */
};

void mrd_sim_memory_init(struct mrd_sim_memory *memory)
{
    *memory = (struct mrd_sim_memory){0};
}

void mrd_sim_memory_fini(struct mrd_sim_memory *memory)
{
    while (memory->chunks) {
        struct mrd_sim_chunk *chunk = memory->chunks;

        memory->chunks = chunk->next;
        munmap(chunk->base, CHUNK_BYTES + PAGE_BYTES);
        free(chunk);
    }
    mrd_sim_memory_init(memory);
}

/* What was left of the chunk before is lost, less than a block. */
static void add_chunk(struct mrd_sim_memory *memory)
{
    struct mrd_sim_chunk *chunk = malloc(sizeof(*chunk));

    if (!chunk)
        return;
    chunk->base = mmap(NULL, CHUNK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk->base == MAP_FAILED) {
        free(chunk);
        return;
    }
    memory->at = (char *)chunk->base + PAGE_BYTES - (uintptr_t)chunk->base % PAGE_BYTES;
    memory->end = memory->at + CHUNK_BYTES;
    /* A kernel without large pages has no such advice: then they are small. */
    (void)madvise(memory->at, CHUNK_BYTES, MADV_HUGEPAGE);
    chunk->next = memory->chunks;
    memory->chunks = chunk;
}

void *mrd_sim_memory_alloc(struct mrd_sim_memory *memory, size_t bytes)
{
    void *block;

    if (bytes > MRD_SIM_BLOCK_BYTES_MAX) {
        block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return block == MAP_FAILED ? NULL : block;
    }

    size_t units = (bytes + MRD_SIM_BLOCK_UNIT - 1) / MRD_SIM_BLOCK_UNIT;

    block = memory->free[units];
    if (block) {
        memcpy(&memory->free[units], block, sizeof(block));
        return memset(block, 0, bytes);
    }
    if ((size_t)(memory->end - memory->at) < units * MRD_SIM_BLOCK_UNIT)
        add_chunk(memory);
    if ((size_t)(memory->end - memory->at) < units * MRD_SIM_BLOCK_UNIT)
        return NULL;
    block = memory->at;
    memory->at += units * MRD_SIM_BLOCK_UNIT;
    return block;
}

void mrd_sim_memory_release(struct mrd_sim_memory *memory, void *block, size_t bytes)
{
    size_t units = (bytes + MRD_SIM_BLOCK_UNIT - 1) / MRD_SIM_BLOCK_UNIT;

    if (!block)
        return;
    if (bytes > MRD_SIM_BLOCK_BYTES_MAX) {
        (void)munmap(block, bytes);
    } else {
        memcpy(block, &memory->free[units], sizeof(block));
        memory->free[units] = block;
    }
}
