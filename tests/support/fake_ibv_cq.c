/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues, their events, and when completions appear.
 *
 * A completion that does not appear yet has its place in the queue already: what may appear at any
 * moment has to fit at any moment. Those of one QP appear in order.
 */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void notify(struct fake_cq *cq)
{
    uint64_t one = 1;

    if (!cq->is_armed)
        return;
    cq->is_armed = false;
    cq->undelivered++;
    if (write(cq->ibv.channel->fd, &one, sizeof(one)) != sizeof(one))
        abort();
}

int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    fake_lock();
    if (!ibv->channel || solicited_only)
        return fake_leave(EINVAL);
    /* What is there already raises no event: whoever arms polls once more. */
    FAKE_OF(fake_cq, ibv)->is_armed = true;
    if (fake.knobs.pace == FAKE_IBV_LAZY)
        fake_transmit();
    return fake_leave(0);
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    uint64_t one;

    if (read(ibv->fd, &one, sizeof(one)) != sizeof(one))
        return -1;
    fake_lock();
    for (struct fake_cq *i = FAKE_OF(fake_channel, ibv)->cqs; i; i = i->next) {
        if (!i->undelivered)
            continue;
        i->undelivered--;
        i->unacked++;
        *cq = &i->ibv;
        *cq_context = i->ibv.cq_context;
        return fake_leave(0);
    }
    fake_leave(EAGAIN); /* its queue was destroyed meanwhile */
    return -1;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
    fake_lock();
    FAKE_OF(fake_cq, ibv)->unacked -= nevents;
    fake_leave(0);
}

/* ---------------------------------------------------------------------------------- completions */

/* What a completion does not say is rubbish, as is all but four fields of a failed one. */
static struct ibv_wc blank(const struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;

    memset(&wc, 0xee, sizeof(wc));
    wc.wr_id = wr_id;
    wc.status = status;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x55;
    wc.qp_num = qp->ibv.qp_num;
    return wc;
}

static void push(struct ibv_cq *ibv, const struct fake_cqe *cqe)
{
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);

    if (cq->count == (unsigned)ibv->cqe) {
        fake_broken("completion queue of %d overrun", ibv->cqe);
        return;
    }
    cq->cqes[cq->count++] = *cqe;
    if (!cqe->is_hidden)
        notify(cq);
}

void fake_send_done(struct fake_qp *qp, const struct fake_send *send, enum ibv_wc_status status)
{
    struct fake_cqe cqe = {.wc = blank(qp, send->wr_id, status),
                           .qp = qp,
                           .is_hidden = fake.knobs.hold_cqes || fake.knobs.late_ppm,
                           .frees = qp->sq_sent};

    if (!send->is_signaled && status == IBV_WC_SUCCESS)
        return; /* its slot is free when a later one's completion is polled */
    if (status == IBV_WC_SUCCESS)
        cqe.wc.opcode = IBV_WC_SEND;
    push(qp->ibv.send_cq, &cqe);
}

void fake_recv_done(struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t len,
                    uint32_t src_qpn)
{
    struct fake_cqe cqe = {.wc = blank(qp, wr_id, status), .qp = qp};

    if (status == IBV_WC_SUCCESS) {
        cqe.wc.opcode = IBV_WC_RECV;
        cqe.wc.wc_flags = IBV_WC_GRH;
        cqe.wc.byte_len = len;
        cqe.wc.src_qp = src_qpn;
    }
    push(qp->ibv.recv_cq, &cqe);
}

void fake_cq_forget(struct ibv_cq *ibv, const struct fake_qp *qp)
{
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);
    unsigned kept = 0;

    for (unsigned i = 0; i < cq->count; i++) {
        struct fake_cqe *cqe = &cq->cqes[i];

        if (cqe->qp == qp && (cqe->is_hidden || !qp->device->keeps_cqes))
            continue;
        if (cqe->qp == qp)
            cqe->qp = NULL;
        cq->cqes[kept++] = *cqe;
    }
    cq->count = kept;
}

/* May this scan take the completion? */
static bool appears(struct fake_cqe *cqe, bool shuffle)
{
    if (cqe->qp && cqe->qp->passed_over == fake.scans)
        return false;
    if (cqe->is_hidden)
        cqe->is_hidden = fake.knobs.hold_cqes || fake_chance(fake.knobs.late_ppm);
    return !cqe->is_hidden && !(shuffle && fake_chance(300000));
}

/* Take up to `max` completions that appear: how many. */
static unsigned scan(struct fake_cq *cq, unsigned max, struct ibv_wc *wc, bool shuffle)
{
    unsigned n = 0, kept = 0;

    fake.scans++;
    for (unsigned i = 0; i < cq->count; i++) {
        struct fake_cqe *cqe = &cq->cqes[i];

        if (n < max && appears(cqe, shuffle)) {
            if (cqe->qp && cqe->frees)
                cqe->qp->sq_free = cqe->frees;
            wc[n++] = cqe->wc;
            continue;
        }
        if (cqe->qp)
            cqe->qp->passed_over = fake.scans;
        cq->cqes[kept++] = *cqe;
    }
    cq->count = kept;
    return n;
}

int fake_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
    int error = fake_enter(FAKE_ibv_poll_cq);
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);
    unsigned n = 0, max = (unsigned)num_entries;

    if (error) {
        fake_leave(error);
        return -1;
    }
    if (fake.knobs.pace == FAKE_IBV_LAZY)
        fake_transmit();
    if (fake.knobs.shuffle_cqes)
        n = scan(cq, max, wc, true);
    n += scan(cq, max - n, wc + n, false);
    fake_leave(0);
    return (int)n;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    int error = fake_enter(FAKE_ibv_create_cq);
    struct fake_context *c = fake_context_of(context);

    if (!error && (cqe < 1 || cqe > c->device->attr.max_cqe || comp_vector != 0 || !channel))
        error = EINVAL;
    struct fake_cq *cq = fake_new(sizeof(*cq), &c->users, error);
    if (cq) {
        cq->ibv.context = context;
        cq->ibv.channel = channel;
        cq->ibv.cq_context = cq_context;
        cq->ibv.cqe = cqe;
        cq->cqes = fake_alloc((unsigned)cqe * sizeof(cq->cqes[0]));
        cq->next = FAKE_OF(fake_channel, channel)->cqs;
        FAKE_OF(fake_channel, channel)->cqs = cq;
        FAKE_OF(fake_channel, channel)->users++;
    }
    return fake_leave_new(cq, error);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);
    struct fake_channel *channel = FAKE_OF(fake_channel, ibv->channel);
    struct fake_cq **i = &channel->cqs;

    fake_lock();
    if (cq->users)
        return fake_leave(EBUSY);
    if (cq->unacked) /* the library would wait for ever */
        fake_broken("ibv_destroy_cq: %u events more than acks", cq->unacked);
    while (*i != cq)
        i = &(*i)->next;
    *i = cq->next;
    channel->users--;
    free(cq->cqes);
    return fake_destroy(cq, 0, &fake_context_of(ibv->context)->users);
}
