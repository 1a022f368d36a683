/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses an application means, by names or in its hints. */
#ifndef MRD_OFI_ENDS_H
#define MRD_OFI_ENDS_H

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ofi.h"

/*
 * The addresses that are asked for. A source of address 0 is any of this machine, of its family, at
 * that port; of family AF_UNSPEC, any of either.
 */
struct mrd_ofi_ends {
    bool has_src, has_dest;
    union mrd_ofi_addr src, dest;
};

/*
 * From what fi_getinfo() is called with. `rdma`: addresses are those of an RDMA device. 0, or
 * -FI_ENODATA with a line in the log.
 */
int mrd_ofi_ends_find(const char *node, const char *service, uint64_t flags,
                      const struct fi_info *hints, bool rdma, struct mrd_ofi_ends *ends);

#endif
