/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: created, changed, destroyed. */
#include <errno.h>

#include "core/engine/query.h"

struct mrd_srq *mrd_engine_create_srq(struct mrd_engine *e, struct mrd_pd *pd,
                                      const struct mrd_srq_init_attr *attr, int *error)
{
    size_t bytes = mrd_srq_bytes(attr->attr.max_wr, attr->attr.max_sge);
    struct mrd_srq_impl *srq;

    *error = -EINVAL;
    if (!bytes) {
        mrd_error_keep(e, 0,
                       "a shared receive queue holds 1 to 1048576 receives of 16 entries at most");
        return NULL;
    }
    *error = -ENOMEM;
    srq = mrd_alloc(&e->allocator, bytes);
    if (!srq) {
        mrd_error_keep(e, 0, "no memory for the shared receive queue");
        return NULL;
    }
    mrd_srq_init(srq, pd, attr);
    ((struct mrd_pd_impl *)(void *)pd)->users++;
    e->objects.num_srqs++;
    mrd_event_check_srq(e, srq); /* nothing is posted yet */
    *error = 0;
    return &srq->pub;
}

void mrd_engine_query_srq(const struct mrd_srq *srq_pub, struct mrd_srq_attr *attr)
{
    const struct mrd_srq_impl *srq = (const struct mrd_srq_impl *)(const void *)srq_pub;

    *attr = (struct mrd_srq_attr){
        .max_wr = srq->recvq.max_wr, .max_sge = srq->recvq.max_sge, .srq_limit = srq->limit};
}

int mrd_engine_modify_srq(struct mrd_engine *e, struct mrd_srq *srq_pub,
                          const struct mrd_srq_attr *attr, int mask)
{
    struct mrd_srq_impl *srq = mrd_srq_impl(srq_pub);

    if (mask & ~MRD_SRQ_LIMIT)
        return mrd_error_keep(e, -EINVAL, "of a shared receive queue only the limit can change");
    if (mask & MRD_SRQ_LIMIT) {
        srq->limit = attr->srq_limit;
        mrd_event_check_srq(e, srq);
    }
    return 0;
}

int mrd_engine_destroy_srq(struct mrd_engine *e, struct mrd_srq *srq_pub)
{
    struct mrd_srq_impl *srq = mrd_srq_impl(srq_pub);

    if (srq->users)
        return mrd_error_keep(e, -EBUSY, "the shared receive queue is still used by a queue pair");
    if (srq->event.taken)
        return mrd_error_keep(e, -EBUSY, "events of the shared receive queue were not acked");
    mrd_list_remove(&srq->event.node); /* if nobody took it, nobody is told */
    ((struct mrd_pd_impl *)(void *)srq->pub.pd)->users--;
    mrd_free(&e->allocator, srq, srq->bytes);
    e->objects.num_srqs--;
    return 0;
}
