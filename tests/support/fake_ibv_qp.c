/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of datagram queue pairs, and the error state. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QPN_MAX = 0xffffff };

/* ---------------------------------------------------------------------------------------- create, destroy */

static int check_init(const struct fake_ibv_device *device, const struct ibv_pd *pd,
                      const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;
    uint32_t max_wr = (uint32_t)device->attr.max_qp_wr, max_sge = (uint32_t)device->attr.max_sge;

    if (device->state->fatal)
        return EIO;
    if (init->qp_type != IBV_QPT_UD || device->transport_type == IBV_TRANSPORT_IWARP)
        return EOPNOTSUPP;
    if (!init->send_cq || !init->recv_cq || init->send_cq->context != pd->context ||
        init->recv_cq->context != pd->context || (init->srq && init->srq->context != pd->context))
        return EINVAL;
    if (cap->max_send_wr > max_wr || cap->max_send_sge > max_sge ||
        cap->max_inline_data > device->max_inline)
        return EINVAL;
    if (!init->srq && (cap->max_recv_wr > max_wr || cap->max_recv_sge > max_sge))
        return EINVAL;
    return 0;
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
    qp->late = fake_alloc(qp->cap.max_send_wr * sizeof(struct fake_cqe));
}

static void users(struct fake_qp *qp, int change)
{
    FAKE_OF(fake_pd, qp->ibv.pd)->children += change;
    FAKE_OF(fake_cq, qp->ibv.send_cq)->users += change;
    FAKE_OF(fake_cq, qp->ibv.recv_cq)->users += change;
    if (qp->ibv.srq)
        FAKE_OF(fake_srq, qp->ibv.srq)->users += change;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    int error = fake_enter(FAKE_ibv_create_qp);
    struct fake_ibv_device *device = fake_context_of(pd->context)->device;
    struct fake_qp **last = &device->state->qps;
    struct fake_qp *qp;

    if (!error)
        error = check_init(device, pd, init);
    if (!error && !fake_born(device, FAKE_QP))
        error = ENOMEM;
    if (error)
        return fake_fail_null(error);
    qp = fake_alloc(sizeof(*qp));
    qp->device = device;
    qp->ibv.context = pd->context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->ibv.qp_num = device->state->next_qpn++ & QPN_MAX;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = IBV_QPT_UD;
    qp->sq_sig_all = init->sq_sig_all;
    queues_init(qp, init);
    init->cap = qp->cap;
    users(qp, 1);
    while (*last)
        last = &(*last)->next;
    *last = qp;
    fake_leave();
    return &qp->ibv;
}

/* All work is forgotten, without completions. */
static void drop_work(struct fake_qp *qp, bool drop_cqes)
{
    for (uint64_t i = qp->sq_sent; i != qp->sq_posted; i++)
        fake_send_release(fake_send_at(qp, i));
    qp->sq_posted = qp->sq_sent = qp->sq_free = 0;
    qp->rq.head = qp->rq.tail = 0;
    FAKE_OF(fake_cq, qp->ibv.send_cq)->waiting -= qp->num_late;
    qp->num_late = 0;
    fake_cq_forget(FAKE_OF(fake_cq, qp->ibv.send_cq), qp, drop_cqes);
    fake_cq_forget(FAKE_OF(fake_cq, qp->ibv.recv_cq), qp, drop_cqes);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    int error = fake_enter(FAKE_ibv_destroy_qp);
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);
    struct fake_qp **i = &qp->device->state->qps;

    if (error)
        return fake_fail(error);
    if (qp->unacked) /* the library would wait for ever */
        fake_broken("ibv_destroy_qp: %u events were not acknowledged", qp->unacked);
    drop_work(qp, !qp->device->keeps_cqes);
    fake_event_forget(fake_context_of(ibv->context), qp);
    while (*i != qp)
        i = &(*i)->next;
    *i = qp->next;
    users(qp, -1);
    fake_gone(qp->device, FAKE_QP);
    free(qp->rq.entry);
    free(qp->sq);
    free(qp->late);
    free(qp);
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- states */

void fake_qp_break(struct fake_qp *qp)
{
    if (qp->ibv.state == IBV_QPS_ERR)
        return;
    qp->ibv.state = IBV_QPS_ERR;
    while (qp->sq_sent != qp->sq_posted) {
        struct fake_send *send = fake_send_at(qp, qp->sq_sent++);

        fake_send_release(send);
        fake_cq_send_done(qp, send, IBV_WC_WR_FLUSH_ERR);
    }
    while (qp->rq.head != qp->rq.tail) {
        struct ibv_wc wc = {.wr_id = fake_recv_take(&qp->rq, false)->wr_id,
                            .status = IBV_WC_WR_FLUSH_ERR};

        fake_cq_recv_done(qp, wc, false);
    }
}

/* What ibv_modify_qp() demands and allows for a step of a datagram QP. */
static const struct step {
    enum ibv_qp_state from, to;
    int must, may;
} steps[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static int check_step(const struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp->ibv.state, to = mask & IBV_QP_STATE ? attr->qp_state : from;

    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE) ? EINVAL : 0;
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct step *step = &steps[i];

        if (step->from != from || step->to != to)
            continue;
        if ((mask & step->must) != step->must ||
            (mask & ~(step->must | step->may | IBV_QP_STATE)) != 0)
            return EINVAL;
        if ((mask & IBV_QP_PORT) &&
            (attr->port_num < 1 || attr->port_num > qp->device->attr.phys_port_cnt))
            return EINVAL;
        if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
            return EINVAL;
        return 0;
    }
    return EINVAL;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    int error = fake_enter(FAKE_ibv_modify_qp);
    struct fake_qp *qp = FAKE_OF(fake_qp, ibv);

    if (!error && qp->device->state->fatal)
        error = EIO;
    if (!error)
        error = check_step(qp, attr, mask);
    if (error)
        return fake_fail(error);
    if (mask & IBV_QP_PORT)
        qp->port_num = attr->port_num;
    if (mask & IBV_QP_QKEY)
        qp->qkey = attr->qkey;
    if (mask & IBV_QP_SQ_PSN)
        qp->sq_psn = attr->sq_psn;
    if (mask & IBV_QP_STATE) {
        if (attr->qp_state == IBV_QPS_ERR)
            fake_qp_break(qp);
        else if (attr->qp_state == IBV_QPS_RESET)
            drop_work(qp, !qp->device->keeps_cqes);
        ibv->state = attr->qp_state;
    }
    fake_leave();
    return 0;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    int error = fake_enter(FAKE_ibv_query_qp);
    const struct fake_qp *qp = FAKE_OF(fake_qp, ibv);

    (void)mask; /* devices may tell more than was asked for */
    if (!error) {
        memset(attr, 0, sizeof(*attr));
        attr->qp_state = attr->cur_qp_state = ibv->state;
        attr->qkey = qp->qkey;
        attr->sq_psn = qp->sq_psn;
        attr->port_num = qp->port_num;
        attr->cap = qp->cap;
        *init = (struct ibv_qp_init_attr){
            .qp_context = ibv->qp_context,
            .send_cq = ibv->send_cq,
            .recv_cq = ibv->recv_cq,
            .srq = ibv->srq,
            .cap = qp->cap,
            .qp_type = IBV_QPT_UD,
            .sq_sig_all = qp->sq_sig_all,
        };
    }
    return fake_fail(error);
}

/* ---------------------------------------------------------------------------------------- for tests */

bool fake_ibv_break_qp(struct fake_ibv_device *device, uint32_t qpn)
{
    bool found = false;

    fake_lock();
    for (struct fake_qp *qp = device->state->qps; qp; qp = qp->next) {
        struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL, .element.qp = &qp->ibv};

        if (qp->ibv.qp_num != qpn)
            continue;
        fake_qp_break(qp);
        fake_event(fake_context_of(qp->ibv.context), &event);
        found = true;
    }
    fake_leave();
    return found;
}

uint32_t fake_ibv_qpn(const struct fake_ibv_device *device, unsigned index)
{
    const struct fake_qp *qp;
    uint32_t qpn;

    fake_lock();
    for (qp = device->state->qps; qp && index > 0; qp = qp->next)
        index--;
    qpn = qp ? qp->ibv.qp_num : 0;
    fake_leave();
    return qpn;
}
