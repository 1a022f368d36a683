/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 };

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): unrelated starts for neighbouring n. */
static uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t message_key(uint64_t seed, uint64_t n)
{
    return mix64(seed + mix64(n + 0x9e3779b97f4a7c15ull));
}

/* One multiplication a word: filling must not be what a verified run measures. */
static uint64_t message_word(uint64_t key, uint64_t index)
{
    uint64_t z = key + index * 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 32)) * 0xbf58476d1ce4e5b9ull;
    return z ^ (z >> 29);
}

/* Words [first, ...) of a message, as they lie in memory. */
static void fill_from(uint64_t key, uint64_t first, void *buf, size_t len)
{
    uint8_t *out = buf;
    size_t words = len / 8;

    for (size_t i = 0; i < words; i++) {
        uint64_t word = message_word(key, first + i);
        memcpy(out + 8 * i, &word, 8);
    }
    if (len % 8) {
        uint64_t word = message_word(key, first + words);
        memcpy(out + 8 * words, &word, len % 8);
    }
}

void perf_verify_fill(uint64_t seed, uint64_t n, void *buf, size_t len)
{
    fill_from(message_key(seed, n), 0, buf, len);
}

size_t perf_verify_diff(uint64_t seed, uint64_t n, const void *buf, size_t len)
{
    uint64_t key = message_key(seed, n);
    const uint8_t *in = buf;
    uint8_t block[BLOCK_BYTES];

    for (size_t done = 0; done < len; done += BLOCK_BYTES) {
        size_t part = len - done < BLOCK_BYTES ? len - done : BLOCK_BYTES;
        fill_from(key, done / 8, block, part);
        if (memcmp(in + done, block, part) == 0)
            continue;
        while (in[done] == block[done % BLOCK_BYTES])
            done++;
        return done;
    }
    return len;
}

int perf_verifier_init(struct perf_verifier *v, uint64_t seed, size_t size_bytes, uint32_t window,
                       uint32_t streams)
{
    *v = (struct perf_verifier){.seed = seed,
                                .noun = "message",
                                .size_bytes = size_bytes,
                                .window = window,
                                .streams = streams};
    v->seen = calloc(window, 1);
    v->next = calloc(streams ? streams : 1, sizeof(v->next[0]));
    if (v->seen && v->next)
        return 0;
    perf_verifier_fini(v);
    return -ENOMEM;
}

void perf_verifier_fini(struct perf_verifier *v)
{
    free(v->seen);
    free(v->next);
    v->seen = NULL;
    v->next = NULL;
}

uint64_t perf_verifier_number(const struct perf_verifier *v, uint32_t low_bits)
{
    return v->credit + (uint64_t)(int64_t)(int32_t)(low_bits - (uint32_t)v->credit);
}

static void note_error(struct perf_verifier *v, uint64_t n, const char *what)
{
    if (v->error[0] == '\0')
        snprintf(v->error, sizeof(v->error), "%s %llu %s", v->noun, (unsigned long long)n, what);
}

static bool content_ok(struct perf_verifier *v, uint64_t n, const void *buf, size_t len)
{
    uint64_t as = v->period ? n % v->period : n;
    size_t same = len == v->size_bytes ? perf_verify_diff(v->seed, as, buf, len) : 0;
    char what[100];

    if (len == v->size_bytes && same == len)
        return true;
    if (len != v->size_bytes)
        snprintf(what, sizeof(what), "has %zu bytes instead of %zu", len, v->size_bytes);
    else
        snprintf(what, sizeof(what), "differs from byte %zu on", same);
    note_error(v, n, what);
    return false;
}

static void check_order(struct perf_verifier *v, uint64_t n, uint32_t stream)
{
    if (stream >= v->streams)
        return;
    if (n < v->next[stream])
        note_error(v, n, "arrived after a later one of its ordered QP");
    v->next[stream] = n + 1;
}

/* Is the number one that may come? */
static bool is_due(struct perf_verifier *v, uint64_t n)
{
    v->received++;
    if (n - v->credit < v->window && !v->seen[n % v->window])
        return true;
    note_error(v, n,
               n - v->credit < v->window || n < v->credit ? "arrived twice"
                                                          : "was never allowed by a credit");
    return false;
}

static void take_message(struct perf_verifier *v, uint64_t n, uint32_t stream, bool whole)
{
    check_order(v, n, stream);
    v->checked += whole;
    v->seen[n % v->window] = 1;
    while (v->seen[v->credit % v->window]) {
        v->seen[v->credit % v->window] = 0;
        v->credit++;
    }
}

void perf_verifier_check(struct perf_verifier *v, uint64_t n, uint32_t stream, const void *buf,
                         size_t len)
{
    if (is_due(v, n))
        take_message(v, n, stream, content_ok(v, n, buf, len));
}

void perf_verifier_count(struct perf_verifier *v, uint64_t n, uint32_t stream)
{
    if (is_due(v, n))
        take_message(v, n, stream, true);
}

bool perf_verifier_ok(struct perf_verifier *v, uint64_t sent)
{
    if (v->error[0] != '\0')
        return false;
    if (v->received == sent && v->checked == sent && v->credit == sent)
        return true;
    snprintf(v->error, sizeof(v->error),
             "%llu messages were sent, %llu arrived and %llu were right", (unsigned long long)sent,
             (unsigned long long)v->received, (unsigned long long)v->checked);
    return false;
}
