/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting work. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Post a list: 0, or the error at *bad_wr. */
static int recv_post(struct fake_recv_queue *queue, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad_wr)
{
    for (; wr; wr = wr->next) {
        *bad_wr = wr;
        if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge)
            return EINVAL;
        if (queue->tail - queue->head >= queue->max)
            return ENOMEM;
        struct fake_recv *recv = &queue->entry[queue->tail++ % queue->max];
        recv->wr_id = wr->wr_id;
        recv->num_sge = wr->num_sge;
        memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(recv->sge[0]));
    }
    return 0;
}

struct fake_recv *fake_recv_take(struct fake_recv_queue *queue, bool any)
{
    uint32_t n = (uint32_t)(queue->tail - queue->head), i;

    if (n == 0)
        return NULL;
    i = any ? mrd_rng_below(&fake.rng, n) : 0;
    struct fake_recv *first = &queue->entry[queue->head % queue->max];
    struct fake_recv swap = *first;
    *first = queue->entry[(queue->head + i) % queue->max];
    queue->entry[(queue->head++ + i) % queue->max] = swap;
    return first;
}

int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);

    fake_lock();
    *bad_wr = wr;
    if (qp->device->state->fatal)
        return fake_leave(EIO);
    if (ibv->srq || ibv->state == IBV_QPS_RESET || ibv->state == IBV_QPS_ERR)
        return fake_leave(EINVAL);
    return fake_leave(recv_post(&qp->rq, wr, bad_wr));
}

int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int error = fake_enter(FAKE_ibv_post_srq_recv);

    *bad_wr = wr;
    if (!error && fake_context_of(ibv->context)->device->state->fatal)
        error = EIO;
    return fake_leave(error ? error : recv_post(&FAKE_OF(fake_srq, ibv)->queue, wr, bad_wr));
}

struct fake_send *fake_send_at(const struct fake_qp *qp, uint64_t index)
{
    return &qp->sq[index % qp->cap.max_send_wr];
}

void fake_send_release(struct fake_send *send)
{
    send->ah->posted--;
    send->ah = NULL;
    free(send->bytes);
    send->bytes = NULL;
}

void fake_gather(const struct fake_qp *qp, struct fake_send *send)
{
    uint32_t at = 0;

    send->bytes = fake_alloc(send->len);
    for (int i = 0; i < send->num_sge; i++) {
        const struct ibv_sge *sge = &send->sge[i];

        if (!send->is_inline && !fake_memory(qp->ibv.pd, sge, 0))
            fake_broken("the key of a send does not cover its %u bytes", sge->length);
        else
            memcpy(send->bytes + at, (const void *)(uintptr_t)sge->addr, sge->length);
        at += sge->length;
    }
}

static int check_send(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t len = 0;

    if (qp->device->state->fatal)
        return EIO;
    if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_ERR)
        return EINVAL;
    if (wr->opcode != IBV_WR_SEND || wr->num_sge < 0 ||
        (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    if ((wr->send_flags & IBV_SEND_INLINE) && len > qp->cap.max_inline_data)
        return EINVAL;
    if (!wr->wr.ud.ah || wr->wr.ud.ah->pd != qp->ibv.pd || wr->wr.ud.remote_qpn > 0xffffff)
        return EINVAL;
    return qp->sq_posted - qp->sq_free >= qp->cap.max_send_wr ? ENOMEM : 0;
}

/* The errors that a test asked for, after `taken` requests of this call. */
static int check_knobs(unsigned taken)
{
    const struct fake_ibv_knobs *k = &fake.knobs;

    if ((k->post_takes && taken == k->post_takes) ||
        (k->post_total && fake.posted == k->post_total))
        return k->post_error ? k->post_error : ENOMEM;
    return 0;
}

static void put_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    struct fake_send *send = fake_send_at(qp, qp->sq_posted++);

    *send = (struct fake_send){
        .wr_id = wr->wr_id,
        .order = ++fake.order,
        .is_signaled = (wr->send_flags & IBV_SEND_SIGNALED) != 0,
        .is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0,
        .num_sge = wr->num_sge,
        .ah = FAKE_OF(fake_ah, wr->wr.ud.ah),
        .qpn = wr->wr.ud.remote_qpn,
        .qkey = wr->wr.ud.remote_qkey,
    };
    memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(send->sge[0]));
    for (int i = 0; i < wr->num_sge; i++)
        send->len += wr->sg_list[i].length;
    if (send->is_inline)
        fake_gather(qp, send);
    send->ah->posted++;
    fake.posted++;
    if (qp->ibv.state == IBV_QPS_ERR) {
        qp->sq_sent++;
        fake_send_release(send);
        fake_send_done(qp, send, IBV_WC_WR_FLUSH_ERR);
    }
}

int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);
    int error = 0;

    fake_lock();
    for (unsigned taken = 0; wr; wr = wr->next, taken++) {
        error = check_send(qp, wr);
        if (!error)
            error = check_knobs(taken);
        if (error) {
            *bad_wr = wr;
            break;
        }
        put_send(qp, wr);
    }
    if (fake.knobs.pace == FAKE_IBV_EAGER)
        fake_transmit();
    return fake_leave(error);
}
