/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver learns of messages by completions, or of mrd's plain writes by a counter. Plain
 * writes of rc it does not see at all: as in perftest, what was acknowledged is taken for what
 * arrived, and the client's meter counts. So it does for reads and atomics, whose server only keeps
 * its packets going.
 *
 * Verified messages have slots. The server tells by credits which ones the client may use again.
 */
#include <errno.h>
#include <unistd.h>

#include "tools/perf/transport.h"

enum {
    COUNT_EVERY_NS = 50 * 1000, /* between two looks at a counter of the device */
    QUIET_MS = 20,              /* after the client's last message, of what may be lost */
    STALL_MS = 15 * 1000,       /* ...of what may not: longer than a peer's timeout */
    WATCH_EVERY_US = 500,
};

/* Does the server's host not notice the messages? */
static bool is_blind(const struct perf_run *run)
{
    return perf_test_is_request(run->params.test) ||
           (!run->e.takes_recvs && !run->ops->count_received_bytes);
}

/* ------------------------------------------------------------------------------- the client */

/* The client's window is its QPs' depth, or the slots that a credit has freed. */
static uint32_t room_for(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;
    uint64_t room =
        run->e.qps[qp].outstanding < p->tx_depth ? p->tx_depth - run->e.qps[qp].outstanding : 0;

    if (p->verify && room > run->e.credit + p->slots - run->sent)
        room = run->e.credit + p->slots - run->sent;
    return run->ops->raw || room > run->e.batch ? run->e.batch : (uint32_t)room;
}

/* Returns the number posted, 0 if there is no room, or -errno. */
static int post_some(struct perf_run *run)
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

static int take_credit(struct perf_run *run, const struct perf_wc *wc)
{
    int32_t more = (int32_t)(wc->imm - (uint32_t)run->e.credit);

    if (more > 0) /* credits may overtake each other */
        run->e.credit += (uint32_t)more;
    return perf_endpoint_repost(run, wc);
}

/* Raw transports have no completions at the client. */
static int poll_client(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];
    int n = run->ops->raw ? 0 : run->ops->poll_cq(run, wcs, PERF_POLL);
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        if (wcs[i].kind == PERF_WC_CREDIT)
            rc = take_credit(run, &wcs[i]);
        else
            perf_endpoint_take_sent(&run->e, &wcs[i]);
        if (perf_test_is_request(run->params.test))
            perf_endpoint_take_answer(run, &wcs[i]);
    }
    return rc ? rc : n;
}

/* Poll, and look after all else that is due. 0 or -errno. */
static int turn_client(struct perf_run *run, uint64_t *now_ns)
{
    int n = poll_client(run);
    int rc = n < 0 ? n : 0;

    *now_ns = perf_now_ns();
    if (perf_sampler_due(&run->resent, *now_ns))
        perf_sampler_add(&run->resent, *now_ns, run->ops->count_retransmissions(run));
    if (is_blind(run) && !perf_test_is_lat(run->params.test))
        perf_meter_update(&run->meter, *now_ns, run->e.acked * run->params.size_bytes);
    if (rc == 0 && run->ops->wait)
        rc = run->ops->wait(run, *now_ns, n > 0);
    return rc ? rc : perf_run_tick(run, *now_ns, run->sent);
}

/* All answers are here when all is acknowledged. */
static int await_answers(struct perf_run *run, uint64_t *now_ns)
{
    int rc = 0;

    while (rc == 0 && run->e.acked < run->sent)
        rc = turn_client(run, now_ns);
    perf_endpoint_conclude(run, run->sent);
    return rc;
}

/* All that was posted has arrived when it is acknowledged. */
static int flush_client(struct perf_run *run, uint64_t *now_ns)
{
    int rc = 0;

    for (uint32_t qp = 0; qp < run->e.num_qps && rc == 0; qp++) {
        if (run->e.qps[qp].outstanding)
            rc = run->ops->post_flush(run, qp);
        while (rc == 0 && run->e.qps[qp].outstanding)
            rc = turn_client(run, now_ns);
    }
    return rc;
}

int perf_bw_client(struct perf_run *run)
{
    uint64_t now_ns = perf_now_ns();
    int rc = 0;

    if (run->ops->count_retransmissions && !perf_test_is_request(run->params.test))
        perf_sampler_start(&run->resent, run->params.interval_ms, now_ns,
                           run->ops->count_retransmissions(run));
    while (rc == 0 && !perf_run_over(run, run->sent, now_ns)) {
        do {
            rc = post_some(run);
        } while (rc > 0 && !run->ops->raw);
        if (rc >= 0)
            rc = turn_client(run, &now_ns);
    }
    if (rc == 0 && perf_test_is_request(run->params.test))
        rc = await_answers(run, &now_ns);
    else if (rc == 0 && run->ops->post_flush)
        rc = flush_client(run, &now_ns);
    if (is_blind(run))
        run->received = run->e.acked;
    return rc;
}

int perf_bw_progress(struct perf_run *run)
{
    uint64_t now_ns;

    return turn_client(run, &now_ns);
}

/* ------------------------------------------------------------------------------- the server */

/* A credit is due when a quarter of the slots is free again, or when nothing else is to do. */
static int give_credit(struct perf_run *run, bool idle)
{
    uint64_t credit = run->e.verifier.credit, fresh = credit - run->e.credit;

    if (fresh == 0 || (!idle && fresh < (run->params.slots + 3) / 4))
        return 0;
    int n = run->ops->post_credit(run, credit);
    if (n > 0)
        run->e.credit = credit;
    return n < 0 ? n : 0;
}

static int take_message(struct perf_run *run, const struct perf_wc *wc)
{
    run->received++;
    run->e.arrived_bytes += run->ops->raw ? wc->bytes : run->params.size_bytes;
    if (!run->ops->post_recv)
        return 0;
    if (run->params.verify)
        perf_endpoint_check(run, wc);
    /* Before the credit, which lets the client use it. */
    int rc = perf_endpoint_repost(run, wc);
    return rc == 0 && run->params.verify ? give_credit(run, false) : rc;
}

/* Returns the number of completions, or -errno. */
static int poll_server(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];
    int n = run->ops->poll_cq(run, wcs, PERF_POLL);
    int rc = n < 0 ? n : 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = take_message(run, &wcs[i]);
    if (run->ops->raw) /* a completion is of a packet */
        run->received = run->e.arrived_bytes / run->params.size_bytes;
    for (uint32_t qp = 0; n < PERF_POLL && qp < run->e.num_qps && rc == 0; qp++)
        rc = perf_endpoint_repost_rest(run, qp);
    if (run->params.verify && rc == 0 && n < PERF_POLL)
        rc = give_credit(run, true);
    return rc ? rc : n;
}

/* Returns the payload that has arrived, in whole messages or not. */
static uint64_t count_arrived(struct perf_run *run)
{
    uint64_t counted = run->ops->count_received_bytes ? run->ops->count_received_bytes(run) : 0;

    return counted > run->e.arrived_bytes ? counted : run->e.arrived_bytes;
}

static bool is_complete(const struct perf_run *run)
{
    if (!run->peer_done || run->ops->lossy)
        return false;
    return run->e.takes_recvs ? run->received >= run->peer_sent
                              : run->meter.total_bytes >= run->peer_sent * run->params.size_bytes;
}

/* All is sent, and nothing came for silent_ns. 1: this ends a lossy test; 0: wait on; or -errno. */
static int judge_silence(struct perf_run *run, uint64_t silent_ns)
{
    if (silent_ns <= (run->ops->lossy ? QUIET_MS : STALL_MS) * PERF_MSEC_NS)
        return 0;
    if (run->ops->lossy)
        return 1;
    return perf_run_fail(run, -ETIMEDOUT,
                         "%llu messages were sent, but only %llu (%llu bytes) arrived",
                         (unsigned long long)run->peer_sent, (unsigned long long)run->received,
                         (unsigned long long)run->meter.total_bytes);
}

/* Count what has arrived, if it is time to. */
static void measure_arrivals(struct perf_run *run, uint64_t now_ns, bool busy, uint64_t *count_ns)
{
    if (now_ns < *count_ns && (!busy || run->meter.first_ns))
        return;
    perf_meter_update(&run->meter, now_ns, count_arrived(run));
    if (run->ops->count_received_bytes && run->meter.first_ns)
        *count_ns = now_ns + COUNT_EVERY_NS;
}

/* Silence is judged by the time before a poll: the scheduler may stop this thread after one. */
static int receive_all(struct perf_run *run)
{
    uint64_t count_ns = 0, now_ns = perf_now_ns(), heard_ns = now_ns;
    int rc = 0;

    while (rc == 0 && !is_complete(run)) {
        uint64_t polled_ns = now_ns, before = run->meter.total_bytes;
        bool over = run->peer_done;
        int n = poll_server(run);
        if (n < 0)
            return n;
        now_ns = perf_now_ns();
        measure_arrivals(run, now_ns, n > 0, &count_ns);
        if (n || !over || run->meter.total_bytes != before)
            heard_ns = now_ns;
        else
            rc = judge_silence(run, polled_ns - heard_ns);
        if (rc == 0 && run->ops->wait)
            rc = run->ops->wait(run, now_ns, n > 0);
        if (rc == 0)
            rc = perf_run_tick(run, now_ns, run->received);
    }
    return rc < 0 ? rc : 0;
}

/* One look: at its packets, if only this keeps them going. */
static int turn_watch(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];

    if (!run->ops->manual_progress) {
        usleep(WATCH_EVERY_US);
        return perf_run_tick(run, perf_now_ns(), 0);
    }
    int n = run->ops->poll_cq(run, wcs, PERF_POLL);
    if (n < 0)
        return n;
    uint64_t now_ns = perf_now_ns();
    int rc = run->ops->wait(run, now_ns, n > 0);
    return rc ? rc : perf_run_tick(run, now_ns, 0);
}

/* The device, or the library, receives alone: wait until the client is done. */
static int watch_client(struct perf_run *run)
{
    double cpu_start_s = perf_cpu_s();
    int rc = 0;

    while (rc == 0 && !run->peer_done)
        rc = turn_watch(run);
    run->meter.cpu_s = perf_cpu_s() - cpu_start_s;
    perf_endpoint_conclude_server(run, run->peer_sent + run->params.warmup);
    return rc;
}

int perf_bw_server(struct perf_run *run)
{
    if (is_blind(run))
        return watch_client(run);
    int rc = receive_all(run);
    if (rc)
        return rc;
    perf_meter_update(&run->meter, perf_now_ns(), count_arrived(run));
    if (!run->e.takes_recvs && run->params.size_bytes)
        run->received = run->meter.total_bytes / run->params.size_bytes;
    perf_endpoint_conclude(run, run->peer_sent);
    return 0;
}
