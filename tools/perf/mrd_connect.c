/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * First contact, before anything is measured.
 *
 * A context challenges whoever writes to it first, which costs a round trip. Both ends therefore
 * exchange empty writes until one succeeds; one that fails is posted again. Then the test measures
 * two peers that know each other.
 */
#include "tools/perf/mrd.h"

#include <errno.h>

#include "tools/perf/message.h"

enum {
    ATTEMPTS_MAX = 20,
    SILENT_S = 60,   /* for messages to silent peers to fail */
    LOOK_EVERY = 64, /* turns between two looks at the control connection */
    DOUBT_BYTES = 300,
};

static int post_empty_write(struct perf_run *run)
{
    struct perf_mrd *m = run->state;
    struct mrd_send_wr *bad,
        wr = {
            .opcode = MRD_WR_RDMA_WRITE,
            .send_flags = MRD_SEND_SIGNALED,
            .ud = {.ah = m->ah, .remote_qpn = m->qps[0].remote_qpn, .remote_qkey = PERF_MRD_QKEY},
            .wr.rdma = {.remote_addr = run->e.remote_addr, .rkey = run->e.remote_rkey},
        };
    int rc = mrd_post_send(m->qps[0].qp, &wr, &bad);

    return rc ? perf_mrd_call_failed(run, rc, "mrd_post_send") : 0;
}

void perf_mrd_forget_events(struct mrd_context *ctx)
{
    struct mrd_async_event event;

    while (mrd_get_async_event(ctx, &event) == 0)
        mrd_ack_async_event(&event);
}

int perf_mrd_send_silent(struct mrd_qp *qp, struct mrd_mr *mr, struct mrd_ah *ah, char *error)
{
    struct mrd_sge sge = {(uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey};
    struct mrd_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = MRD_WR_SEND,
                                 .send_flags = MRD_SEND_SIGNALED,
                                 .ud = {.ah = ah, .remote_qpn = 1},
                             };
    int rc = mrd_post_send(qp, &wr, &bad);

    return rc ? perf_mrd_fail(error, rc, "mrd_post_send") : 0;
}

int perf_mrd_wait_failures(struct mrd_qp *qp, uint32_t count, void (*idle)(void *arg, bool busy),
                           void *arg, char *error)
{
    uint64_t until_ns = clock_now_ns() + SILENT_S * PERF_SEC_NS;
    struct mrd_wc wcs[PERF_POLL];

    while (count) {
        int n = mrd_poll_cq(qp->send_cq, PERF_POLL, wcs);
        if (n < 0)
            return perf_mrd_fail(error, n, "mrd_poll_cq");
        if (idle)
            idle(arg, n > 0);
        count -= (uint32_t)n;
        perf_mrd_forget_events(qp->context);
        if (clock_now_ns() > until_ns)
            return perf_fail(error, -ETIMEDOUT, "messages to silent peers did not fail within %d s",
                             SILENT_S);
    }
    return 0;
}

/* 1: the other end has answered; 0: not yet; or -errno. */
static int take_answer(struct perf_run *run, unsigned *attempts)
{
    struct perf_mrd *m = run->state;
    struct mrd_wc wc;
    char doubt[DOUBT_BYTES];
    int n = mrd_poll_cq(m->cq, 1, &wc);

    if (n < 0)
        return perf_mrd_call_failed(run, n, "mrd_poll_cq");
    if (n == 0)
        return 0;
    if (wc.status == MRD_WC_SUCCESS)
        return 1;
    if (wc.status == MRD_WC_RETRY_EXC_ERR && mrd_query_doubt(m->ah, doubt, sizeof(doubt)) == 0)
        return perf_run_fail(run, -EPROTO, "the %s %s is not understood: %s",
                             run->server ? "client" : "server", run->control->peer, doubt);
    if (wc.status != MRD_WC_RETRY_EXC_ERR || ++*attempts >= ATTEMPTS_MAX)
        return perf_mrd_wc_failed(run, &wc);
    perf_mrd_forget_events(m->ctx);
    return post_empty_write(run);
}

static int watch_control(struct perf_run *run, unsigned turn)
{
    return turn % LOOK_EVERY ? 0 : perf_run_watch(run, clock_now_ns(), 0);
}

int perf_mrd_connect_qps(struct perf_run *run)
{
    struct perf_mrd *m = run->state;
    unsigned attempts = 0, turn = 0;
    int rc = post_empty_write(run);

    for (int answered = 0; rc == 0 && !answered;) {
        answered = take_answer(run, &attempts);
        rc = answered < 0 ? answered : watch_control(run, ++turn);
    }
    if (rc == 0)
        rc = perf_run_say(run, perf_message("met"));
    /* The other end may still need acks. Completions stay in the queue: its test may have begun. */
    while (rc == 0 && !run->peer.connected) {
        int n = mrd_progress(m->ctx);
        rc = n < 0 ? perf_mrd_call_failed(run, n, "mrd_progress") : watch_control(run, ++turn);
    }
    run->watch.next_ns = 0;
    return rc;
}
