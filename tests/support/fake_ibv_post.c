/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting work, and the strings. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------- receives */

static int recv_post(struct fake_recv_queue *queue, const struct ibv_recv_wr *wr)
{
    struct fake_recv *recv;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge)
        return EINVAL;
    if (queue->tail - queue->head >= queue->max)
        return ENOMEM;
    recv = &queue->entry[queue->tail++ % queue->max];
    recv->wr_id = wr->wr_id;
    recv->num_sge = wr->num_sge;
    memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(recv->sge[0]));
    return 0;
}

struct fake_recv *fake_recv_take(struct fake_recv_queue *queue, bool any)
{
    uint64_t n = queue->tail - queue->head;
    struct fake_recv *first;

    if (n == 0)
        return NULL;
    first = &queue->entry[queue->head % queue->max];
    if (any) {
        uint64_t i = queue->head + mrd_rng_below(&fake.rng, (uint32_t)n);
        struct fake_recv taken = queue->entry[i % queue->max];

        queue->entry[i % queue->max] = *first;
        *first = taken;
    }
    queue->head++;
    return first;
}

int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int error = fake_enter(FAKE_ibv_post_recv);
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);

    if (!error && qp->device->state->fatal)
        error = EIO;
    if (!error && (ibv->srq || ibv->state == IBV_QPS_RESET))
        error = EINVAL;
    for (; wr && !error; wr = wr->next) {
        error = recv_post(&qp->rq, wr);
        if (error)
            break;
        if (ibv->state == IBV_QPS_ERR) {
            struct ibv_wc wc = {.wr_id = fake_recv_take(&qp->rq, false)->wr_id,
                                .status = IBV_WC_WR_FLUSH_ERR};

            fake_cq_recv_done(qp, wc, false);
        }
    }
    if (error)
        *bad_wr = wr;
    return fake_fail(error);
}

int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int error = fake_enter(FAKE_ibv_post_srq_recv);
    struct fake_srq *srq = FAKE_OF(fake_srq, ibv);

    if (!error && fake_context_of(ibv->context)->device->state->fatal)
        error = EIO;
    for (; wr && !error; wr = wr->next) {
        error = recv_post(&srq->queue, wr);
        if (error)
            break;
    }
    if (error)
        *bad_wr = wr;
    return fake_fail(error);
}

/* ---------------------------------------------------------------------------------------- sends */

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

/* Inline data goes with the post; its keys mean nothing. */
static void copy_inline(struct fake_send *send)
{
    uint32_t at = 0;

    send->bytes = fake_alloc(send->len);
    for (int i = 0; i < send->num_sge; i++) {
        if (send->sge[i].length)
            memcpy(send->bytes + at, (const void *)(uintptr_t)send->sge[i].addr,
                   send->sge[i].length);
        at += send->sge[i].length;
    }
}

static int send_check(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t len = 0;

    if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
        return EINVAL;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    if (qp->device->all_signaled && !qp->sq_sig_all && !(wr->send_flags & IBV_SEND_SIGNALED))
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    if (len > UINT32_MAX || ((wr->send_flags & IBV_SEND_INLINE) && len > qp->cap.max_inline_data))
        return EINVAL;
    if (!wr->wr.ud.ah || wr->wr.ud.ah->pd != qp->ibv.pd || wr->wr.ud.remote_qpn > 0xffffff)
        return EINVAL;
    if (qp->sq_posted - qp->sq_free >= qp->cap.max_send_wr)
        return ENOMEM;
    return 0;
}

static void send_put(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    struct fake_send *send = fake_send_at(qp, qp->sq_posted++);

    memset(send, 0, sizeof(*send));
    send->wr_id = wr->wr_id;
    send->order = ++fake.order;
    send->signaled = qp->sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED);
    send->solicited = (wr->send_flags & IBV_SEND_SOLICITED) != 0;
    send->is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
    send->with_imm = wr->opcode == IBV_WR_SEND_WITH_IMM;
    send->imm_data = wr->imm_data;
    send->num_sge = wr->num_sge;
    memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(send->sge[0]));
    for (int i = 0; i < wr->num_sge; i++)
        send->len += wr->sg_list[i].length;
    if (send->is_inline)
        copy_inline(send);
    send->ah = FAKE_OF(fake_ah, wr->wr.ud.ah);
    send->ah->posted++;
    send->av = send->ah->attr;
    send->qpn = wr->wr.ud.remote_qpn;
    send->qkey = wr->wr.ud.remote_qkey;
}

int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    int error = fake_enter(FAKE_ibv_post_send);
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);
    unsigned taken = 0;

    if (!error && qp->device->state->fatal)
        error = EIO;
    if (!error && ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_ERR)
        error = EINVAL;
    for (; wr && !error; wr = wr->next) {
        error = send_check(qp, wr);
        if (!error && ((fake.knobs.post_takes && taken == fake.knobs.post_takes) ||
                       (fake.knobs.post_total && fake.posted == fake.knobs.post_total)))
            error = fake.knobs.post_error ? fake.knobs.post_error : ENOMEM;
        if (error)
            break;
        send_put(qp, wr);
        taken++;
        fake.posted++;
        if (ibv->state == IBV_QPS_ERR) {
            struct fake_send *send = fake_send_at(qp, qp->sq_sent++);

            fake_send_release(send);
            fake_cq_send_done(qp, send, IBV_WC_WR_FLUSH_ERR);
        }
    }
    if (error)
        *bad_wr = wr;
    if (fake.knobs.pace == FAKE_IBV_EAGER)
        fake_transmit(UINT32_MAX);
    return fake_fail(error);
}

/* ---------------------------------------------------------------------------------------- strings */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error",
        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [IBV_WC_LOC_PROT_ERR] = "local protection error",
        [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
        [IBV_WC_GENERAL_ERR] = "general error",
    };

    if ((unsigned)status >= sizeof(names) / sizeof(names[0]) || !names[status])
        return "unknown";
    return names[status];
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const names[] = {
        "no state change (NOP)", "down", "init", "armed", "active", "active defer",
    };

    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return "CQ error";
    case IBV_EVENT_QP_FATAL:
        return "local work queue catastrophic error";
    case IBV_EVENT_DEVICE_FATAL:
        return "local catastrophic error";
    case IBV_EVENT_PORT_ACTIVE:
        return "port active";
    case IBV_EVENT_PORT_ERR:
        return "port error";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return "SRQ limit reached";
    default:
        return "unknown";
    }
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
    switch (type) {
    case IBV_NODE_CA:
        return "InfiniBand channel adapter";
    case IBV_NODE_RNIC:
        return "iWARP NIC";
    case IBV_NODE_UNSPECIFIED:
        return "unspecified";
    default:
        return "unknown";
    }
}
