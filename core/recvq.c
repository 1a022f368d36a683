/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/recvq.h"

#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "core/seq.h"

static size_t round16(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

size_t mrd_recvq_bytes(uint32_t max_wr, uint32_t max_sge)
{
    return round16(max_wr * sizeof(struct mrd_recv)) +
           round16((size_t)max_wr * (max_sge ? max_sge : 1) * sizeof(struct mrd_sge));
}

void mrd_recvq_init(struct mrd_recvq *q, void *slots, uint32_t max_wr, uint32_t max_sge,
                    struct mrd_pd *pd)
{
    struct mrd_recv *recv = slots;
    struct mrd_sge *sge = (void *)((char *)slots + round16(max_wr * sizeof(*recv)));

    *q = (struct mrd_recvq){.pd = pd, .max_wr = max_wr, .max_sge = max_sge ? max_sge : 1};
    mrd_list_init(&q->free);
    mrd_list_init(&q->posted);
    mrd_list_init(&q->rnr_waiters);
    for (uint32_t i = 0; i < max_wr; i++) {
        recv[i].sge = &sge[(size_t)i * q->max_sge];
        mrd_list_append(&q->free, &recv[i].node);
    }
}

struct mrd_recv *mrd_recvq_take(struct mrd_recvq *q)
{
    struct mrd_node *n = mrd_list_pop(&q->posted);

    if (!n)
        return NULL;
    q->num_posted--;
    return mrd_container_of(n, struct mrd_recv, node);
}

void mrd_recvq_return(struct mrd_recvq *q, struct mrd_recv *recv)
{
    struct mrd_node *n = q->posted.next;

    while (n != &q->posted &&
           mrd_seq_before(mrd_container_of(n, struct mrd_recv, node)->seq, recv->seq))
        n = n->next;
    mrd_list_insert_before(n, &recv->node);
    q->num_posted++;
}

void mrd_recvq_free(struct mrd_recvq *q, struct mrd_recv *recv)
{
    mrd_list_prepend(&q->free, &recv->node);
}

int mrd_recvq_post(struct mrd_recvq *q, const struct mrd_recv_wr *wr)
{
    struct mrd_recv *recv;
    uint64_t length = 0;
    struct mrd_node *n;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
        return -EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    if (length > UINT32_MAX)
        return -EINVAL;
    n = mrd_list_pop(&q->free);
    if (!n)
        return -ENOMEM;
    recv = mrd_container_of(n, struct mrd_recv, node);
    recv->wr_id = wr->wr_id;
    recv->memory_seen = 0;
    recv->seq = q->seq_next++;
    recv->num_sge = (uint32_t)wr->num_sge;
    recv->length = (uint32_t)length;
    if (wr->num_sge)
        memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*recv->sge));
    mrd_list_append(&q->posted, &recv->node);
    q->num_posted++;
    return 0;
}

size_t mrd_srq_bytes(uint32_t max_wr, uint32_t max_sge)
{
    if (!max_wr || max_wr > MRD_WR_MAX || max_sge > MRD_SGE_MAX)
        return 0;
    return round16(sizeof(struct mrd_srq_impl)) + mrd_recvq_bytes(max_wr, max_sge);
}

void mrd_srq_init(struct mrd_srq_impl *srq, struct mrd_pd *pd, const struct mrd_srq_init_attr *attr)
{
    srq->pub = (struct mrd_srq){.context = pd->context, .srq_context = attr->srq_context, .pd = pd};
    srq->event = (struct mrd_event_source){.type = MRD_EVENT_SRQ_LIMIT_REACHED, .object = srq};
    mrd_list_init(&srq->event.node);
    srq->limit = attr->attr.srq_limit;
    srq->bytes = mrd_srq_bytes(attr->attr.max_wr, attr->attr.max_sge);
    mrd_recvq_init(&srq->recvq, (char *)srq + round16(sizeof(*srq)), attr->attr.max_wr,
                   attr->attr.max_sge, pd);
}
