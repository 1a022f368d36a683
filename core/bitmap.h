/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bits indexed by sequence number. Its size in bits is a power of two, at least 64.
 */
#ifndef MRD_CORE_BITMAP_H
#define MRD_CORE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

static inline bool mrd_bit_test(const uint64_t *map, uint32_t mask, uint32_t seq)
{
    return map[(seq & mask) >> 6] >> (seq & 63) & 1;
}

static inline void mrd_bit_set(uint64_t *map, uint32_t mask, uint32_t seq)
{
    map[(seq & mask) >> 6] |= 1ull << (seq & 63);
}

static inline void mrd_bit_clear(uint64_t *map, uint32_t mask, uint32_t seq)
{
    map[(seq & mask) >> 6] &= ~(1ull << (seq & 63));
}

#endif
