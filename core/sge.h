/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts gather and scatter lists into pieces of memory. */
#ifndef MRD_CORE_SGE_H
#define MRD_CORE_SGE_H

#include <assert.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mrd/mrd.h"

/* Returns the entry that holds byte `offset` of the list, which must have it. */
static inline const struct mrd_sge *mrd_sge_at(const struct mrd_sge *sge, uint32_t offset)
{
    while (offset >= sge->length) {
        offset -= sge->length;
        sge++;
    }
    return sge;
}

/* Returns the bytes from byte `offset` of the list to the end of its entry, 0 at the list's end. */
static inline uint32_t mrd_sge_rest(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset)
{
    for (uint32_t i = 0; i < num_sge; i++) {
        if (offset < sge[i].length)
            return sge[i].length - offset;
        offset -= sge[i].length;
    }
    return 0;
}

/*
 * Fills `iov` with the pieces of bytes [offset, offset + len) of the list, which must hold them.
 * Returns their number, at most num_sge.
 */
static inline unsigned mrd_sge_pieces(const struct mrd_sge *sge, uint32_t num_sge, uint32_t offset,
                                      uint32_t len, struct iovec *iov)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < num_sge && len; i++) {
        uint32_t take;

        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        take = sge[i].length - offset < len ? sge[i].length - offset : len;
        iov[n].iov_base = (char *)(uintptr_t)sge[i].addr + offset;
        iov[n++].iov_len = take;
        len -= take;
        offset = 0;
    }
    assert(!len);
    return n;
}

#endif
