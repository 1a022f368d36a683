/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/cq.h"

#include <assert.h>

bool mrd_cq_reserve(struct mrd_cq_impl *cq)
{
    if (cq->reserved + (cq->tail - cq->head) >= (uint32_t)cq->pub.cqe)
        return false;
    cq->reserved++;
    return true;
}

void mrd_cq_unreserve(struct mrd_cq_impl *cq)
{
    assert(cq->reserved > 0);
    cq->reserved--;
}

void mrd_cq_push(struct mrd_cq_impl *cq, const struct mrd_wc *wc)
{
    mrd_cq_unreserve(cq);
    cq->ring[cq->tail++ & cq->mask] = *wc;
}

int mrd_cq_take(struct mrd_cq_impl *cq, int n, struct mrd_wc *wc)
{
    int taken = 0;

    while (taken < n && cq->head != cq->tail)
        wc[taken++] = cq->ring[cq->head++ & cq->mask];
    return taken;
}
