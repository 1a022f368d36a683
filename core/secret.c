/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/secret.h"

#include <assert.h>
#include <string.h>

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], unsigned n)
{
    for (; n; n--) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

/* Up to 8 bytes as a number, the first one lowest. */
static uint64_t load(const uint8_t *bytes, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

uint64_t mrd_siphash(const uint64_t key[2], const void *data, size_t len)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    const uint8_t *bytes = data;
    size_t at = 0;

    for (; at + 8 <= len; at += 8)
        absorb(v, load(bytes + at, 8));
    absorb(v, load(bytes + at, len - at) | (uint64_t)len << 56);
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t mrd_secret_of(const struct mrd_secret *secret, enum mrd_secret_use use, const void *data,
                       size_t len)
{
    uint8_t text[64] = {(uint8_t)use};

    assert(len <= sizeof(text) - 8);
    memcpy(text + 8, data, len);
    return mrd_siphash(secret->key, text, 8 + len);
}

uint64_t mrd_secret_draw(struct mrd_secret *secret)
{
    uint64_t number = secret->drawn++;

    return mrd_secret_of(secret, MRD_SECRET_DRAW, &number, sizeof(number));
}
