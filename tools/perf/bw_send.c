/* SPDX-License-Identifier: BSD-2-Clause */
/* Verified messages have slots. The receiver tells by credits which ones may be used again. */
#include "tools/perf/bw.h"

/* The window is the QPs' depth, or the slots that a credit has freed. */
static uint32_t room_for(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;
    uint64_t room =
        run->e.qps[qp].outstanding < p->tx_depth ? p->tx_depth - run->e.qps[qp].outstanding : 0;

    if (p->verify && room > run->e.credit + p->slots - run->sent)
        room = run->e.credit + p->slots - run->sent;
    return run->ops->raw || room > run->e.batch ? run->e.batch : (uint32_t)room;
}

int perf_bw_post(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    /* Batches go round the QPs; verified messages singly, so that each QP knows its share. */
    uint32_t batch = p->verify && p->qps > 1 ? 1 : run->e.batch;
    uint32_t qp = (uint32_t)(run->sent / batch % p->qps);
    uint64_t wanted = batch - run->sent % batch;
    uint32_t room = room_for(run, qp);

    if (p->iterations && p->iterations - run->sent < wanted)
        wanted = p->iterations - run->sent;
    if (wanted == 0 || room == 0)
        return 0;
    /* A full batch after the next completion beats a half one now: small messages would trickle. */
    if (room < wanted && !p->verify && run->e.qps[qp].outstanding > run->e.qps[qp].since_signal)
        return 0;
    uint32_t count = room < wanted ? room : (uint32_t)wanted;
    for (uint32_t i = 0; p->verify && i < count; i++)
        perf_endpoint_fill(run, qp, run->sent + i);
    int n = run->ops->post_send(run, qp, run->sent, count);
    if (n > 0) {
        run->e.qps[qp].outstanding += (uint32_t)n;
        run->sent += (uint64_t)n;
    }
    return n;
}

int perf_bw_take_credit(struct perf_run *run, const struct perf_wc *wc)
{
    int32_t more = (int32_t)(wc->imm - (uint32_t)run->e.credit);

    if (more > 0) /* credits may overtake each other */
        run->e.credit += (uint32_t)more;
    return perf_endpoint_repost(run, wc);
}

static int post_flushes(struct perf_run *run)
{
    int rc = 0;

    for (uint32_t qp = 0; qp < run->e.num_qps && rc == 0; qp++) {
        if (run->e.qps[qp].outstanding)
            rc = run->ops->post_flush(run, qp);
    }
    run->e.flushed = true;
    return rc;
}

int perf_bw_flush(struct perf_run *run)
{
    /* All answers are here when all is acknowledged. */
    if (perf_test_is_request(run->params.test))
        return run->e.acked >= run->sent;
    if (!run->ops->post_flush)
        return 1;
    if (!run->e.flushed)
        return post_flushes(run);
    for (uint32_t qp = 0; qp < run->e.num_qps; qp++) {
        if (run->e.qps[qp].outstanding)
            return 0;
    }
    return 1;
}
