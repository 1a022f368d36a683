/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain WRITE is not seen by the receiving host: what arrived is then what was acknowledged, as perftest has it,
 * and the client's meter counts. SENDs and writes with an immediate are counted by the server.
 */
#include "tools/perf/verbs/rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { WATCH_EVERY_US = 500 };

/* The client's window is its QPs' depth, or the slots that a credit has freed. */
static uint32_t room_for(const struct perf_run *run, uint32_t qp)
{
    const struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    const struct rc_qp *q = &m->qps[qp];
    uint64_t room = q->outstanding < p->tx_depth ? p->tx_depth - q->outstanding : 0;

    if (p->verify && room > m->credit + p->slots - run->sent)
        room = m->credit + p->slots - run->sent;
    return room < RC_BATCH ? (uint32_t)room : RC_BATCH;
}

/* How many were posted: 0 if there is no room, or -errno. */
static int post_some(struct perf_run *run)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    /* Batches go round the QPs; verified messages one by one, so that each QP knows how many it may be sent. */
    uint32_t batch = p->verify && p->qps > 1 ? 1 : RC_BATCH;
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
    int rc = rc_post_batch(run, qp, run->sent, count);
    if (rc)
        return rc;
    run->sent += count;
    return (int)count;
}

static int take_credit(struct perf_run *run, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;

    memcpy(&m->credit, m->rx_buf + (uint32_t)wc->wr_id * RC_CREDIT_BYTES, sizeof(m->credit));
    return rc_recycle(run, wc->wr_id, false);
}

static int client_take(struct perf_run *run, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[rc_qp_of(wc->wr_id)];

    switch (rc_kind_of(wc->wr_id)) {
    case RC_MESSAGE:
        q->outstanding -= run->params.cq_mod;
        m->acked += run->params.cq_mod;
        return 0;
    case RC_FLUSH:
        m->acked += q->outstanding;
        q->outstanding = 0;
        q->flushed = true;
        return 0;
    default:
        return take_credit(run, wc);
    }
}

static int client_poll(struct perf_run *run)
{
    struct rc_run *m = run->state;
    struct ibv_wc wcs[RC_POLL];
    int n = rc_poll(run, RC_POLL, wcs);
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = client_take(run, &wcs[i]);
    uint64_t now_ns = perf_now_ns();
    if (n > 0)
        m->heard_ns = now_ns;
    if (!m->takes_recvs)
        perf_meter_update(&run->meter, now_ns, m->acked * run->params.size_bytes);
    if (n >= 0 && rc == 0)
        rc = perf_run_tick(run, now_ns, run->sent);
    if (n == 0 && rc == 0)
        rc = rc_check_silence(run, now_ns);
    return rc ? rc : n < 0 ? n : 0;
}

/* All that was posted has arrived when a last write is acknowledged on each QP. */
static int client_flush(struct perf_run *run)
{
    struct rc_run *m = run->state;
    int rc = 0;

    for (uint32_t qp = 0; qp < m->num_qps && rc == 0; qp++) {
        rc = rc_post_flush(run, qp);
        while (rc == 0 && !m->qps[qp].flushed)
            rc = client_poll(run);
    }
    return rc;
}

int rc_bw_client(struct perf_run *run)
{
    struct rc_run *m = run->state;
    int rc = 0;

    m->heard_ns = perf_now_ns();
    while (rc == 0 && !perf_run_over(run, run->sent, perf_now_ns())) {
        do {
            rc = post_some(run);
        } while (rc > 0);
        if (rc == 0)
            rc = client_poll(run);
    }
    if (rc == 0)
        rc = client_flush(run);
    if (rc == 0 && !m->takes_recvs)
        run->received = m->acked;
    return rc;
}

static void check_message(struct perf_run *run, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;
    uint32_t qp = rc_qp_of(wc->wr_id), index = (uint32_t)wc->wr_id;
    uint64_t n = perf_verifier_number(&m->verifier, ntohl(wc->imm_data));
    uint32_t slot = perf_test_is_write(run->params.test) ? (uint32_t)(n % m->rx.slots)
                                                         : qp * m->qps[qp].num_recvs + index;

    perf_verifier_check(&m->verifier, n, qp, m->rx_buf + perf_layout_offset(&m->rx, qp, slot),
                        wc->byte_len);
}

/* Credits go out when a quarter of the slots is free again, or when nothing else is to be done. */
static int give_credit(struct perf_run *run, bool idle)
{
    struct rc_run *m = run->state;
    uint64_t fresh = m->verifier.credit - m->credit;

    if (fresh == 0 || (!idle && fresh < (run->params.slots + 3) / 4))
        return 0;
    return rc_post_credit(run);
}

static int server_take(struct perf_run *run, const struct ibv_wc *wc)
{
    struct rc_run *m = run->state;

    if (rc_kind_of(wc->wr_id) == RC_CREDIT) {
        m->credits_sent--;
        return 0;
    }
    run->received++;
    if (run->params.verify)
        check_message(run, wc);
    /* Before the credit, which lets the client use it. */
    int rc = rc_recycle(run, wc->wr_id, run->params.verify);
    return rc == 0 && run->params.verify ? give_credit(run, false) : rc;
}

static int server_poll(struct perf_run *run)
{
    struct rc_run *m = run->state;
    struct ibv_wc wcs[RC_POLL];
    int n = rc_poll(run, RC_POLL, wcs);
    int rc = n < 0 ? n : 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = server_take(run, &wcs[i]);
    for (uint32_t qp = 0; n < RC_POLL && qp < m->num_qps && rc == 0; qp++)
        rc = rc_recycle_flush(run, &m->qps[qp]);
    if (run->params.verify && rc == 0 && n < RC_POLL)
        rc = give_credit(run, true);
    return rc;
}

/* Nothing to see until the client is done: the device alone receives. */
static int server_wait(struct perf_run *run)
{
    double cpu_start_s = perf_cpu_s();

    while (!run->peer_done) {
        int rc = perf_run_tick(run, perf_now_ns(), 0);
        if (rc)
            return rc;
        usleep(WATCH_EVERY_US);
    }
    run->meter.cpu_s = perf_cpu_s() - cpu_start_s;
    return 0;
}

int rc_bw_server(struct perf_run *run)
{
    struct rc_run *m = run->state;

    if (!m->takes_recvs)
        return server_wait(run);
    /* The client's last word follows the acknowledgement of all: what it sent is here. */
    while (!run->peer_done || run->received < run->peer_sent) {
        int rc = server_poll(run);
        uint64_t now_ns = perf_now_ns();
        perf_meter_update(&run->meter, now_ns, run->received * run->params.size_bytes);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->received);
        if (rc)
            return rc;
    }
    if (run->params.verify) {
        run->verified = perf_verifier_ok(&m->verifier, run->peer_sent);
        snprintf(run->verify_error, sizeof(run->verify_error), "%s", m->verifier.error);
    }
    return 0;
}
