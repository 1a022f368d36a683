/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: rings of completions. Posting work reserves room, so a ring cannot overflow.
 *
 * mrd_cq_reserve() at post; then exactly one of mrd_cq_push() and mrd_cq_unreserve() for each;
 * mrd_cq_take() polls.
 */
#ifndef MRD_CORE_CQ_H
#define MRD_CORE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "mrd/mrd.h"

struct mrd_cq_impl {
    struct mrd_cq pub; /* first: the user's pointer */
    struct mrd_wc *ring;
    uint32_t mask;       /* ring size - 1; the size is at least pub.cqe */
    uint32_t head, tail; /* free-running; head: next to poll */
    uint32_t reserved;   /* places reserved for posted work */
    uint32_t users;      /* queue pairs that use it */
};

static inline struct mrd_cq_impl *mrd_cq_impl(struct mrd_cq *cq)
{
    return (struct mrd_cq_impl *)(void *)cq;
}

/* Reserves a place. false: the queue is full. */
bool mrd_cq_reserve(struct mrd_cq_impl *cq);
void mrd_cq_unreserve(struct mrd_cq_impl *cq);
void mrd_cq_push(struct mrd_cq_impl *cq, const struct mrd_wc *wc);
int mrd_cq_take(struct mrd_cq_impl *cq, int n, struct mrd_wc *wc);

#endif
