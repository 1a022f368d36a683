/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/copy.h"

#include <stdint.h>
#include <string.h>

enum { WORD = 8, LINE = 128 };

void copy_lines(void *to, const void *from, size_t len)
{
    const unsigned char *source = from;
    uint64_t *words = to, word;
    size_t n = (uintptr_t)to % WORD ? 0 : len / WORD;

    for (size_t i = 0; i < n; i++) {
        memcpy(&word, source + i * WORD, WORD);
        if ((uintptr_t)&words[i + 1] % LINE)
            __atomic_store_n(&words[i], word, __ATOMIC_RELAXED);
        else
            __atomic_store_n(&words[i], word, __ATOMIC_RELEASE);
    }
    memcpy((unsigned char *)to + n * WORD, source + n * WORD, len - n * WORD);
}
