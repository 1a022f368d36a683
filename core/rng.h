/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers: the same seed gives the same numbers. Not for secrets that an attacker may
 * probe. SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * OOPSLA 2014).
 */
#ifndef MRD_CORE_RNG_H
#define MRD_CORE_RNG_H

#include <stdint.h>

struct mrd_rng {
    uint64_t state;
};

static inline void mrd_rng_init(struct mrd_rng *rng, uint64_t seed)
{
    rng->state = seed;
}

static inline uint64_t mrd_rng_u64(struct mrd_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, bound), bound > 0; the bias of at most bound / 2^32 is accepted. */
static inline uint32_t mrd_rng_below(struct mrd_rng *rng, uint32_t bound)
{
    return (uint32_t)(((mrd_rng_u64(rng) >> 32) * bound) >> 32);
}

#endif
