/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that strangers must not guess: what peers are told to know each other by, cookies, memory
 * keys, tokens. All follow from one key of 128 bits by SipHash-2-4 (Aumasson, Bernstein: SipHash: a
 * fast short-input PRF, 2012): who knows some of them learns nothing of the others.
 *
 * The key is the caller's: from the system for a real context, from the seed in a simulation.
 */
#ifndef MRD_CORE_SECRET_H
#define MRD_CORE_SECRET_H

#include <stddef.h>
#include <stdint.h>

struct mrd_secret {
    uint64_t key[2];
    uint64_t drawn; /* numbers handed out by mrd_secret_draw() */
};

/* What a number is for: the same data gives another number for each. */
enum mrd_secret_use { MRD_SECRET_DRAW = 1, MRD_SECRET_PAIR, MRD_SECRET_COOKIE };

/* Returns SipHash-2-4 of the bytes. */
uint64_t mrd_siphash(const uint64_t key[2], const void *data, size_t len);
/* Returns the number that belongs to the data: always the same. At most 56 bytes. */
uint64_t mrd_secret_of(const struct mrd_secret *secret, enum mrd_secret_use use, const void *data,
                       size_t len);
/* Returns another number each time. */
uint64_t mrd_secret_draw(struct mrd_secret *secret);

#endif
