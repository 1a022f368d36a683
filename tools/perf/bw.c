/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of a bandwidth test. With -b both ends run the same one: each tells when it has sent all,
 * and the client when it has received all, because until then the server may have to send again.
 */
#include "tools/perf/bw.h"

#include <unistd.h>

#include "tools/perf/json.h"

enum { WATCH_EVERY_US = 500, DONE_WATCH_MS = 1 };

/* What one turn hands on to the next. */
struct ear {
    uint64_t now_ns;
    uint64_t count_ns; /* arrivals are counted then */
    uint64_t heard_ns; /* something came, or the other end was still sending */
};

static struct ear start_ear(void)
{
    uint64_t now_ns = perf_now_ns();

    return (struct ear){.now_ns = now_ns, .heard_ns = now_ns};
}

static int take(struct perf_run *run, const struct perf_wc *wc)
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
static int take_completions(struct perf_run *run)
{
    struct perf_wc wcs[PERF_POLL];
    bool receives = perf_bw_receives(run);
    int n = run->ops->raw && !receives ? 0 : run->ops->poll_cq(run, wcs, PERF_POLL);
    int rc = n < 0 ? n : 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = take(run, &wcs[i]);
    if (receives && rc == 0)
        rc = perf_bw_polled(run, n);
    return rc ? rc : n;
}

static void measure(struct perf_run *run, struct ear *ear, bool busy)
{
    if (perf_sampler_due(&run->resent, ear->now_ns))
        perf_sampler_add(&run->resent, ear->now_ns, run->ops->count_retransmissions(run));
    if (perf_bw_receives(run))
        perf_bw_measure(run, ear->now_ns, busy, &ear->count_ns);
    else if (perf_bw_is_blind(run) && !perf_test_is_lat(run->params.test))
        perf_meter_update(&run->meter, ear->now_ns, run->e.acked * run->params.size_bytes);
}

/*
 * Poll, and look after all else that is due. 0, 1: a lossy test is over; or -errno. Silence is
 * judged by the time before the poll: the scheduler may stop this thread after it.
 */
static int turn(struct perf_run *run, struct ear *ear)
{
    uint64_t polled_ns = ear->now_ns, before = run->meter.total_bytes;
    bool over = run->peer.done;
    int n = take_completions(run);
    int rc = 0, ended = 0;

    if (n < 0)
        return n;
    ear->now_ns = perf_now_ns();
    measure(run, ear, n > 0);
    if (n || !over || run->meter.total_bytes != before)
        ear->heard_ns = ear->now_ns;
    else if (perf_bw_receives(run))
        ended = perf_bw_judge_silence(run, polled_ns - ear->heard_ns);
    if (ended < 0)
        return ended;
    if (run->ops->wait)
        rc = run->ops->wait(run, ear->now_ns, n > 0);
    if (rc == 0)
        rc = perf_run_tick(run, ear->now_ns, perf_bw_sends(run) ? run->sent : run->received);
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
        perf_sampler_start(&run->resent, run->params.interval_ms, perf_now_ns(),
                           run->ops->count_retransmissions(run));
}

int perf_bw_client(struct perf_run *run)
{
    struct ear ear = start_ear();
    int rc = 0, flushed = 0;

    start_sampling(run);
    while (rc == 0 && !perf_run_over(run, run->sent, ear.now_ns)) {
        rc = post_all(run);
        if (rc == 0)
            rc = turn(run, &ear);
    }
    while (rc == 0 && !flushed) {
        flushed = perf_bw_flush(run);
        rc = flushed < 0 ? flushed : flushed ? 0 : turn(run, &ear);
    }
    if (perf_test_is_request(run->params.test))
        perf_endpoint_conclude(run, run->sent);
    if (perf_bw_is_blind(run))
        run->received = run->e.acked;
    return rc;
}

int perf_bw_progress(struct perf_run *run)
{
    struct ear ear = start_ear();

    return turn(run, &ear);
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

    while (rc == 0 && !run->peer.done)
        rc = turn_watch(run);
    run->meter.cpu_s = perf_cpu_s() - cpu_start_s;
    perf_endpoint_conclude_server(run, run->peer.sent + run->params.warmup);
    return rc;
}

int perf_bw_server(struct perf_run *run)
{
    struct ear ear = start_ear();
    int rc = 0;

    if (perf_bw_is_blind(run))
        return watch_client(run);
    while (rc == 0 && !perf_bw_is_complete(run))
        rc = turn(run, &ear);
    if (rc < 0)
        return rc;
    perf_bw_conclude(run);
    return 0;
}

/* Send on; or tell, once, that all is sent. 0 or -errno. */
static int push(struct perf_run *run, uint64_t now_ns, bool *told)
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
    perf_json_add_u64(done, "sent", run->sent);
    return perf_run_say(run, done);
}

int perf_bw_both(struct perf_run *run)
{
    struct ear ear = start_ear();
    bool told = false, whole = false;
    int rc = 0;

    run->start_ns = ear.now_ns;
    start_sampling(run);
    while (rc == 0 && !(told && whole && (!run->server || run->peer.finished))) {
        rc = push(run, ear.now_ns, &told);
        int ended = rc ? 0 : turn(run, &ear);
        if (ended < 0)
            rc = ended;
        whole = whole || ended > 0 || perf_bw_is_complete(run);
        if (told && run->watch.next_ns > ear.now_ns + DONE_WATCH_MS * PERF_MSEC_NS)
            run->watch.next_ns = ear.now_ns + DONE_WATCH_MS * PERF_MSEC_NS;
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
