/* SPDX-License-Identifier: BSD-2-Clause */
/* The completion queue, and how an end waits until it has something. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "tools/perf/mrd.h"

#define POLL_NS       (100 * 1000ull) /* after the last packet, before sleeping */
#define SLEEP_MOST_NS PERF_MSEC_NS    /* then the clock and the control connection are looked at */
#define LOOK_EVERY_NS (100 * PERF_MSEC_NS)
#define SHARED_PART   10 /* of the time waited for the core: threads of the kernel take less */

int perf_mrd_open_cq(struct perf_run *run, uint64_t cqes)
{
    struct perf_mrd *m = run->state;
    struct mrd_cq_init_attr attr = {.cqe = (int)cqes};

    if (run->params.events) {
        attr.channel = m->channel = mrd_create_comp_channel(m->ctx);
        if (!m->channel)
            return perf_mrd_call_failed(run, -errno, "mrd_create_comp_channel");
        /* Other things are waited for, too. */
        if (fcntl(m->channel->fd, F_SETFL, O_NONBLOCK))
            return perf_run_fail(run, -errno, "the completion channel cannot be polled");
    }
    m->cq = mrd_create_cq_ex(m->ctx, &attr);
    return m->cq ? 0 : perf_mrd_call_failed(run, -errno, "mrd_create_cq_ex");
}

/* -e: a poll found nothing. Ask for an event, or if that is done sleep until one comes. */
static int sleep_on_channel(struct perf_run *run)
{
    struct perf_mrd *m = run->state;
    struct mrd_cq *cq;
    void *context;

    /* What came before the request raises no event: there is another poll before sleeping. */
    if (!m->armed) {
        m->armed = true;
        int rc = mrd_req_notify_cq(m->cq, 0);
        return rc ? perf_mrd_call_failed(run, rc, "mrd_req_notify_cq") : 0;
    }
    int rc = perf_run_sleep(run, m->channel->fd);
    if (rc)
        return rc;
    rc = mrd_get_cq_event(m->channel, &cq, &context); /* handles packets and timers, too */
    if (rc == -EAGAIN || rc == -EINTR)
        return 0;
    if (rc)
        return perf_mrd_call_failed(run, rc, "mrd_get_cq_event");
    mrd_ack_cq_events(cq, 1);
    m->armed = false;
    run->events++;
    return 0;
}

/*
 * Read how long this thread was runnable but waited for a core: the second number (proc(5)).
 * Returns false if the kernel does not tell.
 */
static bool read_waited(uint64_t *ns)
{
    char line[80];

    return perf_read_line("/proc/thread-self/schedstat", line, sizeof(line)) &&
           sscanf(line, "%*u %" SCNu64, ns) == 1;
}

/* A core that was shared once counts as shared from then on: a sleeper would not notice. */
static bool core_is_shared(struct perf_mrd_wait *w, uint64_t now_ns)
{
    uint64_t waited_ns;

    if (w->shared || now_ns < w->looked_ns + LOOK_EVERY_NS || !read_waited(&waited_ns))
        return w->shared;
    w->shared = w->looked_ns && waited_ns - w->waited_ns > (now_ns - w->looked_ns) / SHARED_PART;
    w->waited_ns = waited_ns;
    w->looked_ns = now_ns;
    return w->shared;
}

static bool may_sleep(struct perf_run *run, uint64_t now_ns)
{
    struct perf_mrd *m = run->state;
    const char *wait = run->params.wait;

    if (run->ops->rdma || perf_test_is_lat(run->params.test) || strcmp(wait, "spin") == 0)
        return false;
    return strcmp(wait, "sleep") == 0 || core_is_shared(&m->wait, now_ns);
}

int perf_mrd_wait(struct perf_run *run, uint64_t now_ns, bool busy)
{
    struct perf_mrd *m = run->state;

    if (run->params.events)
        return busy ? 0 : sleep_on_channel(run);
    if (!may_sleep(run, now_ns))
        return 0;
    if (!busy) {
        int handled = mrd_progress(m->ctx);
        if (handled < 0)
            return perf_mrd_call_failed(run, handled, "mrd_progress");
        busy = handled > 0;
    }
    if (busy)
        m->wait.busy_ns = now_ns;
    if (now_ns - m->wait.busy_ns < POLL_NS)
        return 0;

    uint64_t ns = mrd_next_timeout_ns(m->ctx);
    if (ns < POLL_NS)
        return 0;
    struct pollfd packets = {.fd = mrd_context_fd(m->ctx), .events = POLLIN};
    struct timespec timeout = {.tv_nsec = (long)(ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS)};
    if (ppoll(&packets, 1, &timeout, NULL) < 0 && errno != EINTR)
        return perf_run_fail(run, -errno, "cannot wait for packets: %s", strerror(errno));
    return 0;
}
