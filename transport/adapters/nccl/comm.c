/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/nccl/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/adapters/nccl/log.h"

uint32_t comm_random(void)
{
    uint32_t value;

    while (getrandom(&value, sizeof(value), 0) != sizeof(value))
        ;
    return value;
}

void comm_break(struct comm *comm, const char *why)
{
    if (atomic_load(&comm->broken))
        return;
    snprintf(comm->why, sizeof(comm->why), "%s", why);
    atomic_store(&comm->broken, 1);
}

static void peer_gone(struct lane_user *user, const char *why)
{
    comm_break((struct comm *)((char *)user - offsetof(struct comm, user)), why);
}

static void control_done(struct lane_op *op, const struct mrd_wc *wc)
{
    struct comm *comm = (struct comm *)((char *)op - offsetof(struct comm, control));

    if (wc->status == MRD_WC_SUCCESS && comm->ready && comm->qp)
        comm->ready(comm);
    else if (wc->status != MRD_WC_SUCCESS && wc->status != MRD_WC_WR_FLUSH_ERR)
        comm->user.gone(&comm->user, wc->status == MRD_WC_REM_INV_REQ_ERR
                                         ? "it has closed the connection"
                                         : mrd_wc_status_str(wc->status));
}

void comm_end_request(struct comm_request *request, enum comm_end end)
{
    atomic_store_explicit(&request->end, (int)end, memory_order_release);
}

struct comm_request *comm_take(struct comm *comm)
{
    struct comm_request *request =
        &comm->requests[comm->next % (comm->sends ? COMM_SENDS : COMM_GROUPS)];

    if (request->used)
        return NULL;
    request->used = true;
    request->number = comm->next++;
    atomic_store_explicit(&request->end, COMM_PENDING, memory_order_relaxed);
    return request;
}

bool comm_init(struct comm *comm, struct lane *lane, bool sends)
{
    unsigned n = sends ? COMM_SENDS : COMM_GROUPS;

    comm->lane = lane;
    comm->sends = sends;
    comm->user.gone = peer_gone;
    comm->control.done = control_done;
    comm->requests = calloc(n, sizeof(*comm->requests));
    for (unsigned i = 0; comm->requests && i < n; i++)
        comm->requests[i].comm = comm;
    return comm->requests;
}

bool comm_open(struct comm *comm, enum mrd_qp_state state, struct mrd_qp_cap cap)
{
    struct lane *lane = comm->lane;
    struct mrd_qp_init_attr attr = {.comp_mask = MRD_QP_INIT_ATTR_STATE,
                                    .send_cq = lane->cq,
                                    .recv_cq = lane->cq,
                                    .cap = cap,
                                    .qkey = comm_random(),
                                    .qp_state = state};
    int cqe = (int)(cap.max_send_wr + cap.max_recv_wr);

    if (!lane_reserve(lane, cqe))
        return false;
    comm->cqe = cqe;
    comm->qp = mrd_create_qp(lane->pd, &attr);
    return comm->qp;
}

static void close_qp(struct comm *comm)
{
    if (comm->qp)
        mrd_destroy_qp(comm->qp);
    comm->qp = NULL;
    lane_drain(comm->lane);
    if (comm->cqe)
        (void)lane_reserve(comm->lane, -comm->cqe);
    comm->cqe = 0;
}

bool comm_renew(struct comm *comm)
{
    struct mrd_qp_cap cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_inline_data = sizeof(union comm_message)};

    close_qp(comm);
    return comm_open(comm, MRD_QPS_RTS, cap);
}

void comm_close(struct comm *comm)
{
    close_qp(comm);
    lane_leave(&comm->user);
    for (unsigned i = 0; i < (comm->sends ? COMM_SENDS : COMM_GROUPS); i++) {
        if (comm->requests[i].bounce.mr)
            mrd_dereg_mr(comm->requests[i].bounce.mr);
        free(comm->requests[i].bounce.data);
    }
}

void comm_free(struct comm *comm)
{
    free(comm->requests);
    comm->requests = NULL;
}

bool comm_post(struct comm *comm, struct lane_op *op, uint32_t qp_num, uint32_t qkey,
               const void *data, size_t bytes)
{
    struct mrd_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)bytes};
    struct mrd_send_wr wr = {.wr_id = (uintptr_t)op,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
                             .ud = {comm->user.peer->ah, qp_num, qkey}},
                       *bad;

    int rc = mrd_post_send(comm->qp, &wr, &bad);
    if (rc && (rc != -ENOMEM || !comm->ready))
        comm_break(comm, mrd_last_error());
    return !rc;
}

/* ------------------------------------------------------------------------------------------ bye */

bool comm_is_idle(struct comm *comm)
{
    for (unsigned i = 0; i < (comm->sends ? COMM_SENDS : COMM_GROUPS); i++)
        if (comm->requests[i].used && atomic_load(&comm->requests[i].end) == COMM_PENDING)
            return false;
    return true;
}

bool comm_has_peer(const struct comm *comm)
{
    return comm->user.peer && !comm->user.peer->gone;
}

static void run_finish(struct lane_work *work)
{
    struct comm *comm = (struct comm *)((char *)work - offsetof(struct comm, closing));

    lane_remove_last(comm->lane, &comm->last);
    comm->finish(comm);
}

static void finish_last(struct lane_last *last)
{
    struct comm *comm = (struct comm *)((char *)last - offsetof(struct comm, last));

    comm->finish(comm);
}

/* Not now: completions are being handled. */
static void bye_done(struct lane_op *op, const struct mrd_wc *wc)
{
    struct comm *comm = (struct comm *)((char *)op - offsetof(struct comm, bye));

    (void)wc;
    if (comm->closing.run || !comm->qp)
        return;
    comm->closing.run = run_finish;
    lane_push(comm->lane, &comm->closing);
}

bool comm_say_bye(struct comm *comm, struct mrd_send_wr *wr)
{
    struct mrd_send_wr *bad;

    comm->bye.done = bye_done;
    comm->last.finish = finish_last;
    wr->wr_id = (uintptr_t)&comm->bye;
    wr->send_flags |= MRD_SEND_SIGNALED;
    if (mrd_post_send(comm->qp, wr, &bad))
        return false;
    lane_add_last(comm->lane, &comm->last);
    return true;
}
