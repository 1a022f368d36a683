/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/rx.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST = 32, /* receives of the first block */
    HUGE_BYTES = 2 << 20,
};

static struct mrd_ofi_rx *rx_of(struct mrd_node *n)
{
    return mrd_container_of(n, struct mrd_ofi_rx, node);
}

static uint32_t length_of(uint32_t block)
{
    return FIRST << block;
}

void mrd_ofi_rxs_init(struct mrd_ofi_rxs *rxs)
{
    *rxs = (struct mrd_ofi_rxs){0};
    mrd_list_init(&rxs->free);
}

/* Those that were used so far; of a free one there is no list. */
static void free_lists(struct mrd_ofi_rxs *rxs)
{
    for (uint32_t b = 0; b < rxs->num_blocks && rxs->lists; b++) {
        uint32_t used = b + 1 < rxs->num_blocks ? length_of(b) : rxs->fresh;

        for (uint32_t i = 0; i < used; i++) {
            if (rxs->block[b][i].num_iov > 1)
                free(rxs->block[b][i].iov.many);
        }
    }
}

void mrd_ofi_rxs_fini(struct mrd_ofi_rxs *rxs)
{
    free_lists(rxs);
    for (uint32_t b = 0; b < rxs->num_blocks; b++)
        free(rxs->block[b]);
    mrd_ofi_rxs_init(rxs);
}

/* First touch is most of what posting many costs: large ones ask the kernel for huge pages. */
static struct mrd_ofi_rx *make_block(size_t bytes)
{
    struct mrd_ofi_rx *block;

    if (bytes < HUGE_BYTES)
        return malloc(bytes);
    bytes = (bytes + HUGE_BYTES - 1) & ~(size_t)(HUGE_BYTES - 1);
    block = aligned_alloc(HUGE_BYTES, bytes);
    if (block)
        (void)madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

static bool add_block(struct mrd_ofi_rxs *rxs)
{
    uint32_t b = rxs->num_blocks;

    if (b == MRD_OFI_RX_BLOCKS)
        return false;
    rxs->block[b] = make_block(length_of(b) * sizeof(struct mrd_ofi_rx));
    if (!rxs->block[b])
        return false;
    rxs->num_blocks++;
    rxs->fresh = 0;
    return true;
}

struct mrd_ofi_rx *mrd_ofi_rx_alloc(struct mrd_ofi_rxs *rxs)
{
    struct mrd_node *n = mrd_list_pop(&rxs->free);
    struct mrd_ofi_rx *rx = NULL;
    bool full = !rxs->num_blocks || rxs->fresh == length_of(rxs->num_blocks - 1);

    if (n)
        rx = rx_of(n);
    else if (!full || add_block(rxs))
        rx = &rxs->block[rxs->num_blocks - 1][rxs->fresh++];
    if (!rx)
        return NULL;
    memset(rx, 0, sizeof(*rx));
    mrd_list_init(&rx->node);
    mrd_list_init(&rx->from_node);
    return rx;
}

static void drop_list(struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx *rx)
{
    if (rx->num_iov > 1) {
        free(rx->iov.many);
        rxs->lists--;
    }
    rx->num_iov = 0;
}

void mrd_ofi_rx_release(struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx *rx)
{
    drop_list(rxs, rx);
    mrd_list_remove(&rx->node);
    mrd_list_prepend(&rxs->free, &rx->node);
}

int mrd_ofi_rx_set_iov(struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx *rx, const struct iovec *iov,
                       size_t num)
{
    struct iovec *many = NULL;

    assert(num <= MRD_OFI_IOV_MAX);
    if (num > 1) {
        many = malloc(num * sizeof(*many));
        if (!many)
            return -FI_ENOMEM;
        memcpy(many, iov, num * sizeof(*many));
    }
    drop_list(rxs, rx);
    rx->num_iov = (uint8_t)num;
    if (num > 1) {
        rx->iov.many = many;
        rxs->lists++;
    } else if (num) {
        rx->iov.one = *iov;
    }
    return 0;
}
