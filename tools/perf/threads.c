/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/bw.h"
#include "tools/perf/message.h"

enum { LOOK_EVERY_MS = 1 };

/* A thread that is not the main one. */
struct worker {
    struct perf_run run;
    pthread_t id;
};

struct perf_threads {
    unsigned count; /* of workers */
    struct worker *workers;
    int (*test)(struct perf_run *run);
    uint64_t sent[PERF_THREADS_MAX], received[PERF_THREADS_MAX]; /* when all have ended */

    pthread_mutex_t lock; /* of what follows */
    unsigned running;
    int rc; /* of the first that failed */
    char error[PERF_ERROR_BYTES];
    bool stop;      /* the main thread failed */
    bool whole;     /* the main thread has seen all */
    bool peer_done; /* the client has sent all... */
    uint64_t peer_sent[PERF_THREADS_MAX];
    uint64_t done[PERF_THREADS_MAX]; /* for the line of a run that goes on */
};

/* Called by another thread: copies what the main one knows of the other end. */
static int watch_main(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    struct perf_threads *t = run->thread.all;

    run->watch.next_ns = now_ns + LOOK_EVERY_MS * PERF_MSEC_NS;
    pthread_mutex_lock(&t->lock);
    t->done[run->thread.number] = done;
    run->peer.done = t->peer_done;
    run->peer.sent = t->peer_sent[run->thread.number];
    run->peer.finished = t->whole;
    bool stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return stop ? -ECANCELED : 0;
}

static int add_done(struct perf_run *run, uint64_t *done)
{
    struct perf_threads *t = run->thread.all;

    pthread_mutex_lock(&t->lock);
    int rc = t->rc ? perf_run_fail(run, t->rc, "%s", t->error) : 0;
    for (unsigned i = 1; i <= t->count; i++)
        *done += t->done[i];
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static int take_sent(struct perf_run *run, struct json_object *message)
{
    struct perf_threads *t = run->thread.all;
    /* What no completion tells of, the main thread counts for all. */
    bool alone = !run->e.takes_recvs && !perf_bw_counts_at_sender(run);
    struct json_object *all = json_get_array(message, "each", run->params.threads);

    if (!all)
        return -EPROTO;
    pthread_mutex_lock(&t->lock);
    for (unsigned i = 0; i < run->params.threads; i++)
        t->peer_sent[i] = json_object_get_uint64(json_object_array_get_idx(all, i));
    t->peer_done = true;
    if (!alone)
        run->peer.sent = t->peer_sent[0];
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static const struct perf_thread_ops thread_ops = {
    .watch = watch_main,
    .add_done = add_done,
    .take_sent = take_sent,
};

static int open_worker(struct perf_run *run, struct worker *worker, unsigned thread)
{
    struct perf_run *w = &worker->run;

    *w = (struct perf_run){
        .options = run->options,
        .params = run->params,
        .ops = run->ops,
        .server = run->server,
        .control = run->control,
        .verdict.verified = -1,
        .resent.due_ns = UINT64_MAX,
        .thread = {.main = run, .number = thread, .all = run->thread.all, .ops = run->thread.ops},
    };
    perf_meter_init(&w->meter, w->params.interval_ms);
    w->state = calloc(1, run->ops->state_bytes);
    int rc = w->state ? run->ops->open(w) : -ENOMEM;
    return rc ? perf_run_fail(run, rc, "%s", w->error[0] ? w->error : "out of memory") : 0;
}

int perf_threads_open(struct perf_run *run)
{
    unsigned count = run->params.threads - 1;
    struct perf_threads *t;
    int rc = 0;

    if (count == 0)
        return 0;
    t = run->thread.all = calloc(1, sizeof(*t));
    if (!t)
        return perf_run_fail(run, -ENOMEM, "out of memory");
    run->thread.ops = &thread_ops;
    pthread_mutex_init(&t->lock, NULL);
    t->workers = calloc(count, sizeof(t->workers[0]));
    if (!t->workers)
        return perf_run_fail(run, -ENOMEM, "out of memory");
    for (; t->count < count && rc == 0; t->count++)
        rc = open_worker(run, &t->workers[t->count], t->count + 1);
    return rc;
}

void perf_threads_close(struct perf_run *run)
{
    struct perf_threads *t = run->thread.all;

    for (unsigned i = 0; t && i < t->count; i++) {
        struct perf_run *w = &t->workers[i].run;
        if (w->state)
            w->ops->close(w);
        free(w->state);
        perf_meter_fini(&w->meter);
    }
    if (t) {
        pthread_mutex_destroy(&t->lock);
        free(t->workers);
    }
    free(t);
    run->thread.all = NULL;
}

void perf_threads_get_info(struct perf_run *run, struct json_object *info)
{
    struct json_object *all = json_object_new_array();

    for (unsigned i = 0; run->thread.all && i < run->thread.all->count; i++) {
        struct perf_run *w = &run->thread.all->workers[i].run;
        struct json_object *one = json_object_new_object();
        w->ops->get_info(w, one);
        json_object_array_add(all, one);
    }
    json_object_object_add(info, "threads", all);
}

int perf_threads_set_peer(struct perf_run *run, struct json_object *info)
{
    struct perf_threads *t = run->thread.all;
    struct json_object *all = t ? json_get_array(info, "threads", t->count) : NULL;
    int rc = 0;

    if (t && !all)
        return perf_run_fail(run, -EPROTO, "the other end does not tell of its threads");
    for (unsigned i = 0; t && i < t->count && rc == 0; i++) {
        struct perf_run *w = &t->workers[i].run;
        rc = w->ops->set_peer(w, json_object_array_get_idx(all, i));
        if (rc)
            perf_run_fail(run, rc, "%s", w->error);
    }
    return rc;
}

static void *run_worker(void *arg)
{
    struct perf_run *w = arg;
    struct perf_threads *t = w->thread.all;
    int rc = t->test(w);

    pthread_mutex_lock(&t->lock);
    if (rc && t->rc == 0) {
        t->rc = rc;
        snprintf(t->error, sizeof(t->error), "%s", w->error);
    }
    t->running--;
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* A number of messages is of all threads together. */
static uint64_t share_of(const struct perf_run *run, uint64_t iterations, unsigned thread)
{
    return iterations / run->params.threads + (thread < iterations % run->params.threads);
}

/* Returns how many of the threads were started. */
static unsigned start_workers(struct perf_run *run, uint64_t iterations)
{
    struct perf_threads *t = run->thread.all;

    for (unsigned i = 0; i < t->count; i++) {
        struct worker *worker = &t->workers[i];
        worker->run.start_ns = run->start_ns;
        worker->run.params.iterations = share_of(run, iterations, i + 1);
        t->running++;
    }
    for (unsigned i = 0; i < t->count; i++) {
        int rc = pthread_create(&t->workers[i].id, NULL, run_worker, &t->workers[i].run);
        if (rc) {
            perf_run_fail(run, -rc, "cannot start a thread: %s", strerror(rc));
            return i;
        }
    }
    return t->count;
}

static bool is_running(struct perf_threads *t)
{
    pthread_mutex_lock(&t->lock);
    bool running = t->running > 0;
    pthread_mutex_unlock(&t->lock);
    return running;
}

static void release_workers(struct perf_threads *t, int rc)
{
    pthread_mutex_lock(&t->lock);
    t->stop = rc != 0;
    t->whole = true;
    pthread_mutex_unlock(&t->lock);
}

/* The samples are taken at the main thread's times. */
static void add_meter(struct perf_meter *m, const struct perf_meter *other)
{
    for (size_t i = 0; i < m->sampler.count; i++)
        m->sampler.samples[i].total += perf_sampler_at(&other->sampler, m->sampler.samples[i].t_ns);
    if (other->first_ns && (m->first_ns == 0 || other->first_ns < m->first_ns)) {
        m->first_ns = other->first_ns;
        m->first_bytes = other->first_bytes;
        m->cpu_start_s = other->cpu_start_s;
    }
    if (other->last_ns > m->last_ns)
        m->last_ns = other->last_ns;
    m->total_bytes += other->total_bytes;
}

static void add_up(struct perf_run *run)
{
    struct perf_threads *t = run->thread.all;

    t->sent[0] = run->sent;
    t->received[0] = run->received;
    for (unsigned i = 0; i < t->count; i++) {
        const struct perf_run *w = &t->workers[i].run;
        t->sent[w->thread.number] = w->sent;
        t->received[w->thread.number] = w->received;
        run->sent += w->sent;
        run->received += w->received;
        run->events += w->events;
        add_meter(&run->meter, &w->meter);
        if (w->verdict.verified < 0 || run->verdict.verified == 0)
            continue;
        run->verdict = w->verdict;
    }
}

int perf_threads_run(struct perf_run *run, int (*test)(struct perf_run *run))
{
    struct perf_threads *t = run->thread.all;
    uint64_t iterations = run->params.iterations;

    if (!t)
        return test(run);
    t->test = test;
    run->params.iterations = share_of(run, iterations, 0);
    unsigned started = start_workers(run, iterations);
    int rc = started < t->count ? -EAGAIN : test(run);
    release_workers(t, rc);
    /* Only polling keeps the packets of all going. */
    while (rc == 0 && is_running(t))
        rc = perf_bw_progress(run);
    release_workers(t, rc);
    for (unsigned i = 0; i < started; i++)
        pthread_join(t->workers[i].id, NULL);
    run->params.iterations = iterations;
    if (rc == 0 && t->rc)
        rc = perf_run_fail(run, t->rc, "%s", t->error);
    if (rc == 0)
        add_up(run);
    return rc;
}

static void put_each(const struct perf_run *run, const uint64_t *each, struct json_object *message)
{
    struct json_object *all = json_object_new_array();

    for (unsigned i = 0; i < run->params.threads; i++)
        json_object_array_add(all, json_object_new_uint64(each[i]));
    json_object_object_add(message, "each", all);
}

void perf_threads_put_sent(const struct perf_run *run, struct json_object *message)
{
    if (run->thread.all)
        put_each(run, run->thread.all->sent, message);
}

void perf_threads_put_received(const struct perf_run *run, struct json_object *message)
{
    if (run->thread.all)
        put_each(run, run->thread.all->received, message);
}

void perf_threads_report(const struct perf_run *run, struct json_object *report)
{
    struct perf_threads *t = run->thread.all;
    struct json_object *all = json_object_new_array();
    bool at_sender = perf_bw_counts_at_sender(run); /* of this end */
    struct json_object *there =
        t && run->e.takes_recvs ? json_get_array(run->findings, "each", run->params.threads) : NULL;

    for (unsigned i = 0; t && i < run->params.threads; i++) {
        struct json_object *one = json_object_new_object(), *received = NULL;
        if (at_sender)
            received = json_object_new_uint64(t->received[i]);
        else if (there)
            received = json_object_get(json_object_array_get_idx(there, i));
        json_add_u64(one, "messages_sent", t->sent[i]);
        json_object_object_add(one, "messages_received", received);
        json_object_array_add(all, one);
    }
    if (t)
        json_object_object_add(report, "threads", all);
    else
        json_object_put(all);
}
