/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a write whose target wants it in order: the last MRD_LAST_BYTES bytes of the message,
 * or all of a shorter one. They are kept as they come, and stored in the message's turn.
 */
#ifndef MRD_CORE_LAST_BYTES_H
#define MRD_CORE_LAST_BYTES_H

#include <stdint.h>

enum { MRD_LAST_BYTES = 8 };

struct mrd_last_bytes {
    uint64_t addr; /* where they belong */
    uint32_t rkey;
    uint8_t len; /* 0: nothing is kept */
    uint8_t bytes[MRD_LAST_BYTES];
};

/* Returns how many of the last bytes of a message are kept. */
static inline uint32_t mrd_last_bytes_len(uint32_t total)
{
    return total < MRD_LAST_BYTES ? total : MRD_LAST_BYTES;
}

/*
 * Bytes [offset, offset + len) of a message of `total` bytes to `addr` came. Keeps those of its
 * end, and returns the number of the others, which come first.
 */
uint32_t mrd_last_bytes_keep(struct mrd_last_bytes *tail, uint64_t addr, uint32_t total,
                             uint32_t offset, const uint8_t *data, uint32_t len);
/* Copies upwards: each aligned word of 8 bytes is stored after all bytes below it. */
void mrd_last_bytes_copy_up(void *to, const uint8_t *from, uint32_t len);
/*
 * Stores what is kept, upwards: the last aligned word of 8, 4, 2 or 1 bytes after all others, at once,
 * and after whatever was stored before the call.
 */
void mrd_last_bytes_store(const struct mrd_last_bytes *tail);

#endif
