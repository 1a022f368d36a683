/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receives of an endpoint, posted or free.
 *
 * mrd_ofi_rx_alloc() one, mrd_ofi_rx_set_iov() its buffer, mrd_ofi_rx_release() it. They lie side by
 * side in blocks, each twice as large as the one before; a block's memory is touched when a receive
 * of it is needed. Blocks are kept until mrd_ofi_rxs_fini(), which ends all receives.
 */
#ifndef MRD_OFI_RX_H
#define MRD_OFI_RX_H

#include <stddef.h>

#include "transport/adapters/ofi/queue.h"

enum { MRD_OFI_RX_BLOCKS = 21 }; /* 67 million receives */

struct mrd_ofi_rxs {
    struct mrd_ofi_rx *block[MRD_OFI_RX_BLOCKS];
    uint32_t num_blocks;
    uint32_t fresh;       /* of the last block: the first that was never used */
    uint32_t lists;       /* receives with a list of buffers */
    struct mrd_node free; /* mrd_ofi_rx.node */
};

void mrd_ofi_rxs_init(struct mrd_ofi_rxs *rxs);
void mrd_ofi_rxs_fini(struct mrd_ofi_rxs *rxs);
/* Zeros, on no list. NULL: no memory. */
struct mrd_ofi_rx *mrd_ofi_rx_alloc(struct mrd_ofi_rxs *rxs);
/* It is on no list but mrd_ofi_rx.node's. */
void mrd_ofi_rx_release(struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx *rx);
/* At most MRD_OFI_IOV_MAX; the list is copied. 0, or -FI_ENOMEM. */
int mrd_ofi_rx_set_iov(struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx *rx, const struct iovec *iov,
                       size_t num);

static inline const struct iovec *mrd_ofi_rx_iov(const struct mrd_ofi_rx *rx)
{
    return rx->num_iov > 1 ? rx->iov.many : &rx->iov.one;
}

#endif
