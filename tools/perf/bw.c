/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of a bandwidth test. With -b both ends run the same one: each tells when it has sent all,
 * and the client when it has received all, because until then the server may have to send again.
 */
#include "tools/perf/bw.h"

#include <unistd.h>

#include "tools/perf/message.h"

enum { WATCH_EVERY_US = 500, DONE_WATCH_MS = 1 };

/* What one turn hands on to the next. */
struct recv_meter {
    uint64_t now_ns;
    uint64_t count_ns; /* arrivals are counted then */
    uint64_t heard_ns; /* something came, or the other end was still sending */
};

static struct recv_meter start_recv_meter(void)
{
    uint64_t now_ns = clock_now_ns();

    return (struct recv_meter){.now_ns = now_ns, .heard_ns = now_ns};
}

static int take_completion(struct perf_run *run, const struct perf_wc *wc)
{
    if (wc->kind == PERF_WC_CREDIT)
        return perf_bw_take_credit(run, wc);
    if (wc->kind == PERF_WC_RECV)
        return perf_bw_receives(run) ? perf_bw_take_message(run, wc) : 0;
    perf_endpoint_take_sent(&run->e, wc);
    if (perf_test_is_request(run->params.test))
        perf_endpoint_take_answer(run, wc);
    return 0;
}

/* Returns the number of completions, or -errno. Raw transports have none at the client. */
static int poll_completions(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];
    bool receives = perf_bw_receives(run);
    int n = run->ops->raw && !receives ? 0 : run->ops->poll_cq(run, wcs, PERF_POLL);
    int rc = n < 0 ? n : 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = take_completion(run, &wcs[i]);
    if (receives && rc == 0)
        rc = perf_bw_polled(run, n);
    return rc ? rc : n;
}

static void measure_arrivals(struct perf_run *run, struct recv_meter *meter, bool busy)
{
    if (perf_sampler_due(&run->resent, meter->now_ns))
        perf_sampler_add(&run->resent, meter->now_ns, run->ops->count_retransmissions(run));
    if (perf_bw_receives(run))
        perf_bw_measure(run, meter->now_ns, busy, &meter->count_ns);
    else if (perf_bw_counts_at_sender(run) && !perf_test_is_lat(run->params.test))
        perf_meter_update(&run->meter, meter->now_ns, run->e.acked * run->params.size_bytes);
}

/*
 * Poll, and look after all else that is due. 0, 1: a lossy test is over; or -errno. Silence is
 * judged by the time before the poll: the scheduler may stop this thread after it.
 */
static int run_turn(struct perf_run *run, struct recv_meter *meter)
{
    uint64_t polled_ns = meter->now_ns, before = run->meter.total_bytes;
    bool over = run->peer.done;
    int n = poll_completions(run);
    int rc = 0, ended = 0;

    if (n < 0)
        return n;
    meter->now_ns = clock_now_ns();
    measure_arrivals(run, meter, n > 0);
    if (n || !over || run->meter.total_bytes != before)
        meter->heard_ns = meter->now_ns;
    else if (perf_bw_receives(run))
        ended = perf_bw_check_silence(run, polled_ns - meter->heard_ns);
    if (ended < 0)
        return ended;
    if (run->ops->wait)
        rc = run->ops->wait(run, meter->now_ns, n > 0);
    if (rc == 0)
        rc = perf_run_tick(run, meter->now_ns, perf_bw_sends(run) ? run->sent : run->received);
    return rc ? rc : ended;
}

/* Post until there is no room. 0 or -errno. */
static int post_all(struct perf_run *run)
{
    int rc;

    do {
        rc = perf_bw_post(run);
    } while (rc > 0 && !run->ops->raw);
    return rc < 0 ? rc : 0;
}

static void start_sampling(struct perf_run *run)
{
    if (run->ops->count_retransmissions && !run->thread.main &&
        !perf_test_is_request(run->params.test))
        perf_sampler_start(&run->resent, run->params.interval_ms, clock_now_ns(),
                           run->ops->count_retransmissions(run));
}

int perf_bw_client(struct perf_run *run)
{
    struct recv_meter meter = start_recv_meter();
    int rc = 0, flushed = 0;

    start_sampling(run);
    while (rc == 0 && !perf_run_over(run, run->sent, meter.now_ns)) {
        rc = post_all(run);
        if (rc == 0)
            rc = run_turn(run, &meter);
    }
    while (rc == 0 && !flushed) {
        flushed = perf_bw_flush(run);
        rc = flushed < 0 ? flushed : flushed ? 0 : run_turn(run, &meter);
    }
    if (perf_test_is_request(run->params.test))
        perf_endpoint_conclude(run, run->sent);
    if (perf_bw_counts_at_sender(run))
        run->received = run->e.acked;
    return rc;
}

int perf_bw_progress(struct perf_run *run)
{
    struct recv_meter meter = start_recv_meter();

    return run_turn(run, &meter);
}

/* One look: at its packets, if only this keeps them going. */
static int watch_once(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];

    if (!run->ops->manual_progress) {
        usleep(WATCH_EVERY_US);
        return perf_run_tick(run, clock_now_ns(), 0);
    }
    int n = run->ops->poll_cq(run, wcs, PERF_POLL);
    if (n < 0)
        return n;
    uint64_t now_ns = clock_now_ns();
    int rc = run->ops->wait(run, now_ns, n > 0);
    return rc ? rc : perf_run_tick(run, now_ns, 0);
}

/* The device, or the library, receives alone: wait until the client is done. */
static int watch_client(struct perf_run *run)
{
    double cpu_start_s = perf_cpu_s();
    int rc = 0;

    while (rc == 0 && !run->peer.done)
        rc = watch_once(run);
    run->meter.cpu_s = perf_cpu_s() - cpu_start_s;
    perf_endpoint_conclude_server(run, run->peer.sent + run->params.warmup);
    return rc;
}

int perf_bw_server(struct perf_run *run)
{
    struct recv_meter meter = start_recv_meter();
    int rc = 0;

    if (perf_bw_counts_at_sender(run))
        return watch_client(run);
    while (rc == 0 && !perf_bw_is_complete(run))
        rc = run_turn(run, &meter);
    if (rc < 0)
        return rc;
    perf_bw_conclude(run);
    return 0;
}

/* Send on; or tell, once, that all is sent. 0 or -errno. */
static int post_or_tell_done(struct perf_run *run, uint64_t now_ns, bool *told)
{
    if (*told)
        return 0;
    /* Unless messages are counted, the server sends as long as the client does. */
    bool over = perf_run_over(run, run->sent, now_ns) ||
                (run->server && run->peer.done && run->params.duration_s);
    if (!over)
        return post_all(run);
    int flushed = perf_bw_flush(run);
    if (flushed <= 0)
        return flushed;
    *told = true;
    struct json_object *done = perf_message("done");
    json_add_u64(done, "sent", run->sent);
    return perf_run_say(run, done);
}

int perf_bw_both(struct perf_run *run)
{
    struct recv_meter meter = start_recv_meter();
    bool told = false, has_all = false;
    int rc = 0;

    run->start_ns = meter.now_ns;
    start_sampling(run);
    while (rc == 0 && !(told && has_all && (!run->server || run->peer.finished))) {
        rc = post_or_tell_done(run, meter.now_ns, &told);
        int ended = rc ? 0 : run_turn(run, &meter);
        if (ended < 0)
            rc = ended;
        has_all = has_all || ended > 0 || perf_bw_is_complete(run);
        if (told && run->watch.next_ns > meter.now_ns + DONE_WATCH_MS * PERF_MSEC_NS)
            run->watch.next_ns = meter.now_ns + DONE_WATCH_MS * PERF_MSEC_NS;
    }
    if (rc)
        return rc;
    if (perf_test_is_request(run->params.test)) {
        perf_endpoint_conclude(run, run->sent);
        perf_endpoint_conclude_server(run, run->peer.sent);
    }
    perf_bw_conclude(run);
    return 0;
}
