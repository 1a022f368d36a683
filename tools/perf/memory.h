/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory is in use: this process's own, and the kernel's.
 */
#ifndef MRD_PERF_MEMORY_H
#define MRD_PERF_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct perf_memory {
    int64_t user_bytes; /* anonymous pages of this process */
    /* Of the whole machine: slab objects, vmalloc, per-CPU, stacks, page tables. */
    int64_t kernel_bytes;
};

/*
 * Call before the first of several readings. From then on only small pages are used, so that memory
 * which was touched is what counts. Also waits until the kernel has freed memory of the last
 * process.
 */
void perf_memory_settle(void);
/* 0, or -errno with a sentence. */
int perf_memory_read(struct perf_memory *memory, char *error);

#endif
