/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which numbers of a sender were seen: a sliding window, as in RFC 6479. Its bits are a ring that
 * moves by whole words. Zeroed, it has seen none.
 */
#ifndef MRD_CORE_REPLAY_H
#define MRD_CORE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Packets of a sender to all its peers share its numbers, and overtake each other on their paths: at
 * 10 Gb/s and 1.4 KB by up to 16 ms.
 */
enum { MRD_REPLAY_WORDS = 256, MRD_REPLAY_NUMBERS = (MRD_REPLAY_WORDS - 1) * 64 };

struct mrd_replay {
    uint64_t top; /* above all that were seen: none is as large */
    uint64_t bits[MRD_REPLAY_WORDS];
};

/* Is the number too old to be told, or was it seen? */
static inline bool mrd_replay_knows(const struct mrd_replay *r, uint64_t number)
{
    if (number >= r->top)
        return false;
    if (number / 64 + MRD_REPLAY_WORDS <= (r->top - 1) / 64)
        return true;
    return r->bits[number / 64 % MRD_REPLAY_WORDS] >> number % 64 & 1;
}

/* It was seen, and is not known. The largest number is not allowed. */
static inline void mrd_replay_add(struct mrd_replay *r, uint64_t number)
{
    if (number >= r->top) {
        uint64_t word = r->top ? (r->top - 1) / 64 : 0, last = number / 64;

        if (last - word > MRD_REPLAY_WORDS)
            word = last - MRD_REPLAY_WORDS;
        while (word < last)
            r->bits[++word % MRD_REPLAY_WORDS] = 0;
        r->top = number + 1;
    }
    r->bits[number / 64 % MRD_REPLAY_WORDS] |= 1ull << number % 64;
}

#endif
