/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory is in use, this process's own and the kernel's. */
#ifndef MRD_PERF_MEMORY_H
#define MRD_PERF_MEMORY_H

#include <stdint.h>

struct perf_memory {
    int64_t user_bytes; /* anonymous pages of this process */
    /*
     * Of the whole machine: slab objects, vmalloc, per-CPU, stacks, page tables. Pages that a
     * driver takes singly are in none of the kernel's counters.
     */
    int64_t kernel_bytes;
};

/* 0, or -errno with a sentence. */
int perf_memory_read(struct perf_memory *memory, char *error);

#endif
