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
    int64_t
        kernel_bytes; /* of the whole machine: slab objects, vmalloc, per-CPU, stacks, page tables */
};

/*
 * Before the first of several readings: from now on pages are small ones, so that what is touched is what counts.
 * Also waits until the kernel has freed what the last process had.
 */
void perf_memory_settle(void);
/* 0, or -errno with a sentence. */
int perf_memory_read(struct perf_memory *memory, char *error);

#endif
