/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/last_bytes.h"

#include <string.h>

uint32_t mrd_last_bytes_keep(struct mrd_last_bytes *tail, uint64_t addr, uint32_t total,
                             uint32_t offset, const uint8_t *data, uint32_t len)
{
    uint32_t from = total - mrd_last_bytes_len(total), head = 0;

    if (offset + len <= from)
        return len;
    if (offset < from)
        head = from - offset;
    tail->addr = addr + from;
    tail->len = (uint8_t)mrd_last_bytes_len(total);
    memcpy(tail->bytes + (offset + head - from), data + head, len - head);
    return head;
}

static uint8_t *copy_bytes(uint8_t *to, const uint8_t *from, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
    return to + len;
}

void mrd_last_bytes_copy_up(void *to, const uint8_t *from, uint32_t len)
{
    uint32_t before = (uint32_t)(-(uintptr_t)to % sizeof(uint64_t));
    uint8_t *at;
    uint64_t word;

    if (before > len)
        before = len;
    at = copy_bytes(to, from, before);
    for (from += before, len -= before; len >= sizeof(word); len -= (uint32_t)sizeof(word)) {
        memcpy(&word, from, sizeof(word));
        __atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
        at += sizeof(word);
        from += sizeof(word);
    }
    copy_bytes(at, from, len);
}

void mrd_last_bytes_store(const struct mrd_last_bytes *tail)
{
    uint8_t *to = (uint8_t *)(uintptr_t)tail->addr, *last;
    uint32_t word = MRD_LAST_BYTES;
    const uint8_t *from;
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;

    if (!tail->len)
        return;
    while (word > tail->len || (tail->addr + tail->len) % word)
        word /= 2;
    mrd_last_bytes_copy_up(to, tail->bytes, tail->len - word);
    last = to + tail->len - word;
    from = tail->bytes + tail->len - word;
    switch (word) {
    case 8:
        memcpy(&v8, from, sizeof(v8));
        __atomic_store_n((uint64_t *)(void *)last, v8, __ATOMIC_RELEASE);
        break;
    case 4:
        memcpy(&v4, from, sizeof(v4));
        __atomic_store_n((uint32_t *)(void *)last, v4, __ATOMIC_RELEASE);
        break;
    case 2:
        memcpy(&v2, from, sizeof(v2));
        __atomic_store_n((uint16_t *)(void *)last, v2, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n(last, *from, __ATOMIC_RELEASE);
    }
}
