/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/iov.h"

#include <string.h>

uint64_t mrd_ofi_iov_bytes(const struct iovec *iov, size_t num)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < num; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

/* Copies at most `len` bytes between memory and the list, from `offset` on. */
static size_t copy(const struct iovec *iov, uint32_t num, uint64_t offset, uint8_t *memory,
                   size_t len, bool to_list)
{
    size_t done = 0;

    for (uint32_t i = 0; i < num && done < len; i++) {
        size_t n = iov[i].iov_len;

        if (offset >= n) {
            offset -= n;
            continue;
        }
        n = n - offset < len - done ? n - offset : len - done;
        if (to_list)
            memcpy((uint8_t *)iov[i].iov_base + offset, memory + done, n);
        else
            memcpy(memory + done, (const uint8_t *)iov[i].iov_base + offset, n);
        done += n;
        offset = 0;
    }
    return done;
}

size_t mrd_ofi_iov_read(const struct iovec *iov, uint32_t num, uint64_t offset, void *to,
                        size_t len)
{
    return copy(iov, num, offset, to, len, false);
}

size_t mrd_ofi_iov_write(const struct iovec *iov, uint32_t num, uint64_t offset, const void *from,
                         size_t len)
{
    return copy(iov, num, offset, (uint8_t *)(uintptr_t)from, len, true);
}
