/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues, their events, and when completions appear.
 *
 * The completion of a send waits at its QP, in the order of posting, until cq_surface() lets it into the queue;
 * that of a receive is in the queue at once. Both count against the capacity from the start: what may appear at any
 * moment has to fit at any moment.
 */
#include "tests/support/fake_ibv_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------- events */

static void notify(struct fake_cq *cq, bool solicited)
{
    uint64_t one = 1;

    if (!cq->armed || (cq->solicited_only && !solicited))
        return;
    cq->armed = false;
    cq->undelivered++;
    if (write(cq->ibv.channel->fd, &one, sizeof(one)) != sizeof(one))
        abort();
}

int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    int error = fake_enter(FAKE_ibv_req_notify_cq);
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);

    if (!error && !ibv->channel) {
        fake_broken("ibv_req_notify_cq: the queue has no channel");
        error = EINVAL;
    }
    if (error)
        return fake_fail(error);
    /* What is there already raises no event: whoever arms polls once more. */
    cq->solicited_only = solicited_only && (!cq->armed || cq->solicited_only);
    cq->armed = true;
    if (fake.knobs.pace == FAKE_IBV_LAZY)
        fake_transmit(UINT32_MAX);
    fake_leave();
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    int error = fake_enter(FAKE_ibv_get_cq_event);
    uint64_t one;

    fake_leave();
    if (error) {
        errno = error;
        return -1;
    }
    if (read(ibv->fd, &one, sizeof(one)) != sizeof(one))
        return -1;
    fake_lock();
    for (struct fake_cq *i = FAKE_OF(fake_channel, ibv)->cqs; i; i = i->channel_next) {
        if (!i->undelivered)
            continue;
        i->undelivered--;
        i->unacked++;
        *cq = &i->ibv;
        *cq_context = i->ibv.cq_context;
        fake_leave();
        return 0;
    }
    fake_fail(EAGAIN); /* its queue was destroyed meanwhile */
    return -1;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);

    fake_lock();
    if (nevents > cq->unacked)
        fake_broken("ibv_ack_cq_events: %u of %u taken", nevents, cq->unacked);
    cq->unacked -= nevents < cq->unacked ? nevents : cq->unacked;
    fake_leave();
}

/* ---------------------------------------------------------------------------------------- completions */

void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe, bool solicited)
{
    unsigned i = cq->count;

    if (cq->count + cq->waiting >= (unsigned)cq->ibv.cqe) {
        struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = &cq->ibv};

        fake_broken("completion queue of %d overrun", cq->ibv.cqe);
        fake_event(fake_context_of(cq->ibv.context), &event);
        return;
    }
    while (fake.knobs.shuffle_cqes && i > 0 && cq->ring[i - 1].wc.qp_num != cqe->wc.qp_num &&
           fake_chance(500000)) {
        cq->ring[i] = cq->ring[i - 1];
        i--;
    }
    cq->ring[i] = *cqe;
    cq->count++;
    notify(cq, solicited || cqe->wc.status != IBV_WC_SUCCESS);
}

/* The first waiting send completion of the QP appears. */
static void surface(struct fake_qp *qp)
{
    struct fake_cqe cqe = qp->late[0];
    struct fake_cq *cq = FAKE_OF(fake_cq, qp->ibv.send_cq);

    memmove(qp->late, qp->late + 1, --qp->num_late * sizeof(qp->late[0]));
    cq->waiting--;
    fake_cq_push(cq, &cqe, false);
}

/* The QP whose first waiting completion is of the oldest post, or of the youngest. */
static struct fake_qp *first_waiting(const struct fake_cq *cq, bool youngest)
{
    struct fake_qp *found = NULL;

    for (unsigned d = 0; d < fake.num_devices; d++) {
        for (struct fake_qp *qp = fake.states[d].qps; qp; qp = qp->next) {
            if (qp->num_late && (!cq || qp->ibv.send_cq == &cq->ibv) &&
                (!found || (qp->late[0].order < found->late[0].order) != youngest))
                found = qp;
        }
    }
    return found;
}

/* Before the queue is polled: what is not held and not late appears. */
static void cq_surface(struct fake_cq *cq)
{
    struct fake_qp *qp;

    if (fake.knobs.hold_cqes || !cq->waiting)
        return;
    if (!fake.knobs.late_ppm) {
        while ((qp = first_waiting(cq, false)))
            surface(qp);
        return;
    }
    for (qp = fake_context_of(cq->ibv.context)->device->state->qps; qp; qp = qp->next) {
        while (qp->ibv.send_cq == &cq->ibv && qp->num_late && !fake_chance(fake.knobs.late_ppm))
            surface(qp);
    }
}

unsigned fake_ibv_release_cqes(unsigned max, bool last_qp_first)
{
    unsigned n = 0;
    struct fake_qp *qp;

    fake_lock();
    while (n < max && (qp = first_waiting(NULL, last_qp_first))) {
        surface(qp);
        n++;
    }
    fake_leave();
    return n;
}

/* What a completion does not say is rubbish, as is all but four fields of a failed one. */
static struct ibv_wc blank(const struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;

    memset(&wc, 0xee, sizeof(wc));
    wc.wr_id = wr_id;
    wc.status = status;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x55;
    wc.qp_num = qp->ibv.qp_num;
    if (status == IBV_WC_SUCCESS)
        wc.wc_flags = 0;
    return wc;
}

void fake_cq_send_done(struct fake_qp *qp, const struct fake_send *send, enum ibv_wc_status status)
{
    struct fake_cq *cq = FAKE_OF(fake_cq, qp->ibv.send_cq);
    struct fake_cqe cqe = {.wc = blank(qp, send->wr_id, status),
                           .qp = qp,
                           .is_send = true,
                           .frees = qp->sq_sent,
                           .order = send->order};

    if (!send->signaled && status == IBV_WC_SUCCESS)
        return; /* its slot is free when a later one's completion is polled */
    if (status == IBV_WC_SUCCESS)
        cqe.wc.opcode = IBV_WC_SEND;
    if (cq->count + cq->waiting >= (unsigned)cq->ibv.cqe) {
        fake_cq_push(cq, &cqe, false); /* tells */
        return;
    }
    assert(qp->num_late < qp->cap.max_send_wr);
    qp->late[qp->num_late++] = cqe;
    cq->waiting++;
    if (!fake.knobs.late_ppm)
        cq_surface(cq);
}

void fake_cq_recv_done(struct fake_qp *qp, struct ibv_wc wc, bool solicited)
{
    struct fake_cqe cqe = {.wc = blank(qp, wc.wr_id, wc.status), .qp = qp};

    if (wc.status == IBV_WC_SUCCESS) {
        cqe.wc.opcode = IBV_WC_RECV;
        cqe.wc.byte_len = wc.byte_len;
        cqe.wc.src_qp = wc.src_qp;
        cqe.wc.wc_flags = wc.wc_flags;
        if (wc.wc_flags & IBV_WC_WITH_IMM)
            cqe.wc.imm_data = wc.imm_data;
        cqe.wc.pkey_index = 0;
        cqe.wc.slid = wc.slid;
        cqe.wc.sl = 0;
        cqe.wc.dlid_path_bits = 0;
    }
    fake_cq_push(FAKE_OF(fake_cq, qp->ibv.recv_cq), &cqe, solicited);
}

/* A QP goes: its waiting completions with it, those in the queue if `remove` says so. */
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp, bool remove)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < cq->count; i++) {
        struct fake_cqe *cqe = &cq->ring[i];

        if (cqe->qp == qp && remove)
            continue;
        if (cqe->qp == qp)
            cqe->qp = NULL;
        cq->ring[kept++] = *cqe;
    }
    cq->count = kept;
}

int fake_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
    int error = fake_enter(FAKE_ibv_poll_cq);
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);
    unsigned n = 0;

    if (error) {
        fake_fail(error);
        return -1;
    }
    if (fake.knobs.pace == FAKE_IBV_LAZY)
        fake_transmit(UINT32_MAX);
    cq_surface(cq);
    while (n < (unsigned)num_entries && n < cq->count) {
        struct fake_cqe *cqe = &cq->ring[n];

        if (cqe->qp && cqe->is_send)
            cqe->qp->sq_free = cqe->frees;
        wc[n++] = cqe->wc;
    }
    cq->count -= n;
    memmove(cq->ring, cq->ring + n, cq->count * sizeof(cq->ring[0]));
    fake_leave();
    return (int)n;
}

/* ---------------------------------------------------------------------------------------- verbs */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    int error = fake_enter(FAKE_ibv_create_cq);
    struct fake_context *c = fake_context_of(context);
    struct fake_cq *cq;

    if (!error &&
        (cqe < 1 || cqe > c->device->attr.max_cqe || comp_vector < 0 ||
         comp_vector >= context->num_comp_vectors || (channel && channel->context != context)))
        error = EINVAL;
    if (!error && !fake_born(c->device, FAKE_CQ))
        error = ENOMEM;
    if (error)
        return fake_fail_null(error);
    cq = fake_alloc(sizeof(*cq));
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.cqe = cqe;
    cq->ring = fake_alloc((unsigned)cqe * sizeof(cq->ring[0]));
    if (channel) {
        channel->refcnt++;
        cq->channel_next = FAKE_OF(fake_channel, channel)->cqs;
        FAKE_OF(fake_channel, channel)->cqs = cq;
    }
    c->children++;
    fake_leave();
    return &cq->ibv;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    int error = fake_enter(FAKE_ibv_destroy_cq);
    struct fake_cq *cq = FAKE_OF(fake_cq, ibv);
    struct fake_context *c = fake_context_of(ibv->context);

    if (!error && cq->users)
        error = EBUSY;
    if (error)
        return fake_fail(error);
    if (cq->unacked) /* the library would wait for ever */
        fake_broken("ibv_destroy_cq: %u events were not acknowledged", cq->unacked);
    if (ibv->channel) {
        struct fake_cq **i = &FAKE_OF(fake_channel, ibv->channel)->cqs;

        while (*i != cq)
            i = &(*i)->channel_next;
        *i = cq->channel_next;
        ibv->channel->refcnt--;
    }
    fake_event_forget(c, cq);
    fake_gone(c->device, FAKE_CQ);
    c->children--;
    free(cq->ring);
    free(cq);
    fake_leave();
    return 0;
}
