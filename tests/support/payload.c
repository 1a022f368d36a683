/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/payload.h"

#include <string.h>

#include "core/rng.h"

static struct mrd_rng rng_of(uint64_t seed, uint64_t message)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, seed ^ (message + 1) * 0xd1342543de82ef95u);
    mrd_rng_init(&rng, mrd_rng_u64(&rng));
    return rng;
}

void payload_fill(uint8_t *buf, size_t len, uint64_t seed, uint64_t message)
{
    struct mrd_rng rng = rng_of(seed, message);

    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = mrd_rng_u64(&rng);

        memcpy(buf + at, &word, len - at < 8 ? len - at : 8);
    }
}

static size_t first_difference(const uint8_t *buf, const uint8_t *word, size_t len, int blank)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != word[i] && (int)buf[i] != blank)
            return i;
    }
    return len;
}

/* `blank`: a value that each byte may have instead; -1: none. */
static size_t mismatch(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message, int blank)
{
    struct mrd_rng rng = rng_of(seed, message);

    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = mrd_rng_u64(&rng);
        size_t n = len - at < 8 ? len - at : 8;

        if (memcmp(buf + at, &word, n) == 0)
            continue;

        size_t i = first_difference(buf + at, (const uint8_t *)&word, n, blank);

        if (i < n)
            return at + i;
    }
    return len;
}

size_t payload_mismatch(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message)
{
    return mismatch(buf, len, seed, message, -1);
}

size_t payload_mismatch_partial(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message,
                                uint8_t blank)
{
    return mismatch(buf, len, seed, message, blank);
}

bool payload_is_blank(const uint8_t *buf, size_t len, uint8_t value)
{
    return len == 0 || (buf[0] == value && memcmp(buf, buf + 1, len - 1) == 0);
}
