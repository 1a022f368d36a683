/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/zeroed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * AddressSanitizer knows the ends of blocks of the heap only, and looks for pointers to leaked ones
 * there only. Its calloc() maps large blocks each time.
 */
#if defined(__SANITIZE_ADDRESS__)
#define WITHOUT_MAPS true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITHOUT_MAPS true
#endif
#endif
#ifndef WITHOUT_MAPS
#define WITHOUT_MAPS false
#endif

static bool is_mapped(size_t bytes)
{
    return !WITHOUT_MAPS && bytes >= MRD_ZEROED_MAP_BYTES;
}

void *mrd_zeroed_alloc(size_t bytes)
{
    if (!is_mapped(bytes))
        return calloc(1, bytes);

    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return block == MAP_FAILED ? NULL : block;
}

void mrd_zeroed_release(void *ptr, size_t bytes)
{
    if (!is_mapped(bytes))
        free(ptr);
    else if (ptr)
        (void)munmap(ptr, bytes);
}
