/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of datagram queue pairs, and the error state. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_init(const struct fake_ibv_device *device, const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;
    uint32_t max_wr = (uint32_t)device->attr.max_qp_wr, max_sge = (uint32_t)device->attr.max_sge;

    if (device->state->fatal)
        return EIO;
    if (init->qp_type != IBV_QPT_UD || device->transport_type == IBV_TRANSPORT_IWARP)
        return EOPNOTSUPP;
    if (cap->max_send_wr > max_wr || cap->max_send_sge > max_sge ||
        cap->max_send_sge > FAKE_IBV_SGE_MAX || cap->max_inline_data > device->max_inline)
        return EINVAL;
    if (!init->srq && (cap->max_recv_wr > max_wr || cap->max_recv_sge > max_sge ||
                       cap->max_recv_sge > FAKE_IBV_SGE_MAX))
        return EINVAL;
    return device->state->qp_count == device->attr.max_qp ? ENOMEM : 0;
}

static void queues_init(struct fake_qp *qp, const struct ibv_qp_init_attr *init)
{
    qp->cap = init->cap;
    if (init->srq)
        qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
    qp->rq.max = qp->cap.max_recv_wr;
    qp->rq.max_sge = qp->cap.max_recv_sge;
    qp->rq.entry = fake_alloc(qp->rq.max * sizeof(struct fake_recv));
    qp->sq = fake_alloc(qp->cap.max_send_wr * sizeof(struct fake_send));
}

static void count_users(struct fake_qp *qp, unsigned change)
{
    FAKE_OF(fake_cq, qp->ibv.send_cq)->users += change;
    FAKE_OF(fake_cq, qp->ibv.recv_cq)->users += change;
    if (qp->ibv.srq)
        FAKE_OF(fake_srq, qp->ibv.srq)->users += change;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    int error = fake_enter(FAKE_ibv_create_qp);
    struct fake_ibv_device *device = fake_context_of(pd->context)->device;
    struct fake_qp *qp, **last = &device->state->qps;

    if (!error)
        error = check_init(device, init);
    qp = fake_new(sizeof(*qp), &FAKE_OF(fake_pd, pd)->users, error);
    if (!qp)
        return fake_leave_new(NULL, error);
    qp->device = device;
    qp->ibv.context = pd->context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->ibv.qp_num = device->state->next_qpn++;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = IBV_QPT_UD;
    queues_init(qp, init);
    init->cap = qp->cap;
    count_users(qp, 1);
    while (*last)
        last = &(*last)->next;
    *last = qp;
    device->state->qp_count++;
    return fake_leave_new(&qp->ibv, 0);
}

/* All work is forgotten, without completions. */
static void drop_work(struct fake_qp *qp)
{
    for (uint64_t i = qp->sq_sent; i != qp->sq_posted; i++)
        fake_send_release(fake_send_at(qp, i));
    qp->sq_posted = qp->sq_sent = qp->sq_free = 0;
    qp->rq.head = qp->rq.tail = 0;
    fake_cq_forget(qp->ibv.send_cq, qp);
    fake_cq_forget(qp->ibv.recv_cq, qp);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);
    struct fake_qp **i = &qp->device->state->qps;

    fake_lock();
    drop_work(qp);
    fake_event_forget(fake_context_of(ibv->context), qp);
    while (*i != qp)
        i = &(*i)->next;
    *i = qp->next;
    qp->device->state->qp_count--;
    count_users(qp, -1u);
    free(qp->rq.entry);
    free(qp->sq);
    return fake_destroy(qp, 0, &FAKE_OF(fake_pd, ibv->pd)->users);
}

/* --------------------------------------------------------------------------------------- states */

void fake_qp_break(struct fake_qp *qp)
{
    if (qp->ibv.state == IBV_QPS_ERR)
        return;
    qp->ibv.state = IBV_QPS_ERR;
    while (qp->sq_sent != qp->sq_posted) {
        struct fake_send *send = fake_send_at(qp, qp->sq_sent++);

        fake_send_release(send);
        fake_send_done(qp, send, IBV_WC_WR_FLUSH_ERR);
    }
    while (qp->rq.head != qp->rq.tail)
        fake_recv_done(qp, fake_recv_take(&qp->rq, false)->wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
}

/* What ibv_modify_qp() demands for a step of a datagram QP. */
static int check_step(const struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp->ibv.state;
    int must = IBV_QP_STATE;

    if (attr->qp_state == IBV_QPS_INIT && from == IBV_QPS_RESET)
        must |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    else if (attr->qp_state == IBV_QPS_RTS && from == IBV_QPS_RTR)
        must |= IBV_QP_SQ_PSN;
    else if (attr->qp_state != IBV_QPS_RESET &&
             (attr->qp_state != IBV_QPS_RTR || from != IBV_QPS_INIT))
        return EINVAL;
    if (mask != must || ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0) ||
        ((mask & IBV_QP_PORT) &&
         (attr->port_num < 1 || attr->port_num > qp->device->attr.phys_port_cnt)))
        return EINVAL;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    int error = fake_enter(FAKE_ibv_modify_qp);
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);

    if (!error)
        error = qp->device->state->fatal ? EIO : check_step(qp, attr, mask);
    if (error)
        return fake_leave(error);
    if (mask & IBV_QP_PORT)
        qp->port_num = attr->port_num;
    if (mask & IBV_QP_QKEY)
        qp->qkey = attr->qkey;
    if (attr->qp_state == IBV_QPS_RESET)
        drop_work(qp);
    ibv->state = attr->qp_state;
    return fake_leave(0);
}

bool fake_ibv_break_qp(struct fake_ibv_device *device, uint32_t qpn)
{
    struct fake_qp *qp;

    fake_lock();
    for (qp = device->state->qps; qp && qp->ibv.qp_num != qpn; qp = qp->next)
        ;
    if (qp) {
        struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL, .element.qp = &qp->ibv};

        fake_qp_break(qp);
        fake_event(fake_context_of(qp->ibv.context), &event);
    }
    fake_leave(0);
    return qp != NULL;
}

uint32_t fake_ibv_qpn(const struct fake_ibv_device *device, unsigned index)
{
    const struct fake_qp *qp;

    fake_lock();
    for (qp = device->state->qps; qp && index > 0; qp = qp->next)
        index--;
    uint32_t qpn = qp ? qp->ibv.qp_num : 0;
    fake_leave(0);
    return qpn;
}
