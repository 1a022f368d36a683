/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd_run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum {
    COUNT_EVERY_NS = 50 * 1000, /* between two looks at the counter of arrived bytes */
    STALL_S = 15, /* all is sent, but the rest does not arrive: longer than a peer's timeout */
};

/* The client's window is its QPs' depth, or the slots that a credit has freed. */
static uint32_t room_for(const struct perf_run *run, uint32_t qp)
{
    const struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    const struct mrd_run_qp *q = &m->qps[qp];
    uint64_t room = q->outstanding < p->tx_depth ? p->tx_depth - q->outstanding : 0;

    if (p->verify && room > m->credit + p->slots - run->sent)
        room = m->credit + p->slots - run->sent;
    return room < MRD_RUN_BATCH ? (uint32_t)room : MRD_RUN_BATCH;
}

static int post_some(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    /* Batches go round the QPs; verified messages one by one, so that each QP knows how many it may be sent. */
    uint32_t batch = p->verify && p->qps > 1 ? 1 : MRD_RUN_BATCH;
    uint32_t qp = (uint32_t)(run->sent / batch % p->qps);
    uint64_t wanted = batch - run->sent % batch;
    uint32_t room = room_for(run, qp);

    if (p->iterations && p->iterations - run->sent < wanted)
        wanted = p->iterations - run->sent;
    if (wanted == 0 || room == 0)
        return 0;
    /* Better a full batch after the next completion than a half one now, or small messages would trickle. */
    if (room < wanted && !p->verify && m->qps[qp].outstanding > m->qps[qp].since_signal)
        return 0;
    uint32_t count = room < wanted ? room : (uint32_t)wanted;
    int n = mrd_post_batch(run, qp, run->sent, count);
    if (n > 0)
        run->sent += (uint64_t)n;
    return n;
}

static int take_credit(struct perf_run *run, const struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    uint64_t credit;

    memcpy(&credit, m->rx_buf + (uint32_t)wc->wr_id * MRD_RUN_CREDIT_BYTES, sizeof(credit));
    if (credit > m->credit) /* credits may overtake each other */
        m->credit = credit;
    return mrd_recycle(run, wc, false);
}

static int client_poll(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    struct mrd_wc wcs[MRD_RUN_POLL];
    int n = mrd_poll_cq(m->cq, MRD_RUN_POLL, wcs);

    if (n < 0)
        return mrd_call_failed(run, n, "mrd_poll_cq");
    for (int i = 0; i < n; i++) {
        const struct mrd_wc *wc = &wcs[i];
        if (wc->status != MRD_WC_SUCCESS)
            return mrd_wc_failed(run, wc);
        if (wc->opcode >= MRD_WC_RECV) {
            int rc = take_credit(run, wc);
            if (rc)
                return rc;
        } else {
            m->qps[wc->wr_id >> 32].outstanding -= run->params.cq_mod;
        }
    }
    return n;
}

static void client_sample(struct perf_run *run, uint64_t now_ns)
{
    struct mrd_run *m = run->state;

    if (perf_sampler_due(&run->resent, now_ns))
        perf_sampler_add(&run->resent, now_ns, mrd_counter_value(m, m->retx_index));
}

/* The client ends when all is posted; what is unacknowledged then goes on while it waits for the findings. */
int mrd_bw_client(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    uint64_t now_ns = perf_now_ns();

    if (m->retx_index >= 0)
        perf_sampler_start(&run->resent, run->params.interval_ms, now_ns,
                           mrd_counter_value(m, m->retx_index));
    while (!perf_run_over(run, run->sent, now_ns)) {
        int rc;
        do {
            rc = post_some(run);
        } while (rc > 0);
        if (rc == 0)
            rc = client_poll(run);
        now_ns = perf_now_ns();
        client_sample(run, now_ns);
        if (rc >= 0)
            rc = mrd_run_wait(run, now_ns, rc > 0);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->sent);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Called while the client waits for the findings. */
int mrd_bw_idle(struct perf_run *run)
{
    uint64_t now_ns = perf_now_ns();
    int rc = client_poll(run);

    client_sample(run, now_ns);
    return rc < 0 ? rc : mrd_run_wait(run, now_ns, rc > 0);
}

static void check_message(struct perf_run *run, const struct mrd_wc *wc)
{
    struct mrd_run *m = run->state;
    uint32_t qp = (uint32_t)(wc->wr_id >> 32), index = (uint32_t)wc->wr_id;
    uint64_t n = perf_verifier_number(&m->verifier, ntohl(wc->imm_data));
    uint32_t slot = perf_test_is_write(run->params.test) ? (uint32_t)(n % m->rx.slots)
                                                         : qp * m->qps[qp].num_recvs + index;

    perf_verifier_check(&m->verifier, n, qp, m->rx_buf + perf_layout_offset(&m->rx, qp, slot),
                        wc->byte_len);
}

/* Credits go out when a quarter of the slots is free again, or when nothing else is to be done. */
static int give_credit(struct perf_run *run, bool idle)
{
    struct mrd_run *m = run->state;
    uint64_t fresh = m->verifier.credit - m->credit;

    if (fresh == 0 || (!idle && fresh < (run->params.slots + 3) / 4))
        return 0;
    return mrd_post_credit(run);
}

static int server_poll(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    struct mrd_wc wcs[MRD_RUN_POLL];
    int n = mrd_poll_cq(m->cq, MRD_RUN_POLL, wcs);
    int rc = 0;

    if (n < 0)
        return mrd_call_failed(run, n, "mrd_poll_cq");
    for (int i = 0; i < n && rc == 0; i++) {
        const struct mrd_wc *wc = &wcs[i];
        if (wc->status != MRD_WC_SUCCESS)
            return mrd_wc_failed(run, wc);
        run->received++;
        if (run->params.verify)
            check_message(run, wc);
        /* Before the credit, which lets the client use it. */
        rc = mrd_recycle(run, wc, run->params.verify);
        if (run->params.verify && rc == 0)
            rc = give_credit(run, false);
    }
    for (uint32_t qp = 0; n < MRD_RUN_POLL && qp < m->num_qps && rc == 0; qp++)
        rc = mrd_recycle_flush(run, &m->qps[qp]);
    if (run->params.verify && rc == 0 && n < MRD_RUN_POLL)
        rc = give_credit(run, true);
    return rc ? rc : n;
}

/* Payload that has arrived, in whole messages or not. */
static uint64_t arrived_bytes(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    uint64_t whole = run->received * run->params.size_bytes;
    uint64_t counted = m->rx_bytes_index >= 0 ? mrd_counter_value(m, m->rx_bytes_index) : 0;

    return counted > whole ? counted : whole;
}

/* Has all that was sent arrived? */
static bool complete(struct perf_run *run)
{
    const struct mrd_run *m = run->state;

    if (!run->peer_done)
        return false;
    if (m->takes_recvs)
        return run->received >= run->peer_sent;
    return run->meter.total_bytes >= run->peer_sent * run->params.size_bytes;
}

static int server_loop(struct perf_run *run)
{
    uint64_t count_ns = 0, progress_ns = perf_now_ns();

    for (;;) {
        int n = server_poll(run);
        if (n < 0)
            return n;
        uint64_t now_ns = perf_now_ns();
        int rc = mrd_run_wait(run, now_ns, n > 0);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->received);
        if (rc)
            return rc;
        if (now_ns >= count_ns || (n && run->meter.first_ns == 0)) {
            uint64_t before = run->meter.total_bytes;
            perf_meter_update(&run->meter, now_ns, arrived_bytes(run));
            count_ns = run->meter.first_ns ? now_ns + COUNT_EVERY_NS : 0;
            if (run->meter.total_bytes != before || n)
                progress_ns = now_ns;
        }
        if (complete(run))
            return 0;
        if (run->peer_done && now_ns > progress_ns + STALL_S * PERF_SEC_NS)
            return perf_run_fail(
                run, -ETIMEDOUT, "%llu messages were sent, but only %llu (%llu bytes) arrived",
                (unsigned long long)run->peer_sent, (unsigned long long)run->received,
                (unsigned long long)run->meter.total_bytes);
    }
}

int mrd_bw_server(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    int rc = server_loop(run);

    if (rc)
        return rc;
    perf_meter_update(&run->meter, perf_now_ns(), arrived_bytes(run));
    if (!m->takes_recvs)
        run->received =
            run->params.size_bytes ? run->meter.total_bytes / run->params.size_bytes : 0;
    if (run->params.verify) {
        run->verified = perf_verifier_ok(&m->verifier, run->peer_sent);
        snprintf(run->verify_error, sizeof(run->verify_error), "%s", m->verifier.error);
    }
    return 0;
}
