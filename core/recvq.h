/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queues: posted receives, oldest first. A queue pair has one of its own, or shares one.
 *
 * A receive is taken for a message, and then exactly one of mrd_recvq_return() and mrd_recvq_free()
 * follows. Free lists keep the slots, because messages end in any order.
 */
#ifndef MRD_CORE_RECVQ_H
#define MRD_CORE_RECVQ_H

#include <stddef.h>
#include <stdint.h>

#include "core/list.h"
#include "core/packet.h"
#include "mrd/mrd.h"

struct mrd_recv {
    struct mrd_node node; /* on `posted` or `free`; on no list while bound to a message */
    uint64_t wr_id;
    uint64_t memory_seen; /* of mrd_mr_list_stays() */
    uint32_t seq;         /* its place in the order of posting */
    uint32_t length;
    uint32_t num_sge;
    struct mrd_sge *sge;
};

struct mrd_recvq {
    struct mrd_pd *pd; /* whose keys cover the buffers */
    struct mrd_node free, posted;
    struct mrd_node rnr_waiters; /* mrd_rnr_waiter.queue_node: peers refused without a receive */
    uint32_t num_posted;
    uint32_t seq_next;
    uint32_t max_wr, max_sge;
};

/* Returns how much memory the slots of a queue take. max_sge: 0 means 1. */
size_t mrd_recvq_bytes(uint32_t max_wr, uint32_t max_sge);
/* Initializes a queue, with slots in zeroed memory of mrd_recvq_bytes(), aligned to 16. */
void mrd_recvq_init(struct mrd_recvq *q, void *slots, uint32_t max_wr, uint32_t max_sge,
                    struct mrd_pd *pd);

/* Takes the oldest posted receive; NULL: none. */
struct mrd_recv *mrd_recvq_take(struct mrd_recvq *q);
/* Puts an unused receive back to its place in the order of posting, which is near the front. */
void mrd_recvq_return(struct mrd_recvq *q, struct mrd_recv *recv);
void mrd_recvq_free(struct mrd_recvq *q, struct mrd_recv *recv);
/* Fills a free slot and posts it. Returns 0, -EINVAL, or -ENOMEM if no slot is free. */
int mrd_recvq_post(struct mrd_recvq *q, const struct mrd_recv_wr *wr);
/* The receive posted last; there must be one. */
static inline struct mrd_recv *mrd_recvq_newest(struct mrd_recvq *q)
{
    return mrd_container_of(q->posted.prev, struct mrd_recv, node);
}

/* What an object has to tell its user: one event at a time, so that none is lost. */
struct mrd_event_source {
    struct mrd_node node; /* on the engine's list: it is to be told */
    enum mrd_event_type type;
    void *object;   /* the user's pointer */
    uint32_t taken; /* by the user, and not given back */
    uint32_t peer_id;
    struct mrd_addr addr; /* of the peer that caused the latest one; port 0: none did */
};

/* A receive queue that queue pairs share. */
struct mrd_srq_impl {
    struct mrd_srq pub; /* first: the user's pointer */
    struct mrd_recvq recvq;
    struct mrd_event_source event;
    uint32_t limit; /* an event is raised when fewer receives are posted; 0: none */
    uint32_t users; /* queue pairs */
    size_t bytes;   /* size of the one allocation that holds all of the above */
};

static inline struct mrd_srq_impl *mrd_srq_impl(struct mrd_srq *srq)
{
    return (struct mrd_srq_impl *)(void *)srq;
}

/* Returns the size of a shared receive queue; 0: max_wr or max_sge is out of range. */
size_t mrd_srq_bytes(uint32_t max_wr, uint32_t max_sge);
/* Initializes a shared receive queue in zeroed memory of mrd_srq_bytes(). */
void mrd_srq_init(struct mrd_srq_impl *srq, struct mrd_pd *pd,
                  const struct mrd_srq_init_attr *attr);

#endif
