/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define POLL_NS       (100 * 1000ull) /* after the last packet, before sleeping */
#define SLEEP_MOST_NS PERF_MSEC_NS    /* then the clock and the control connection are looked at */
#define LOOK_EVERY_NS (100 * PERF_MSEC_NS)
#define SHARED_PART   10 /* of the time waited for the core: threads of the kernel take less */

/*
 * Read how long this thread was runnable but waited for a core: the second number (proc(5)).
 * Returns false if the kernel does not tell.
 */
static bool read_waited(uint64_t *ns)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "re");

    if (!f)
        return false;
    bool told = fscanf(f, "%*u %" SCNu64, ns) == 1;
    fclose(f);
    return told;
}

/* A core that was shared once counts as shared from then on: a sleeper would not notice. */
static bool core_is_shared(struct mrd_run_wait *w, uint64_t now_ns)
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
    struct mrd_run *m = run->state;
    const char *wait = run->params.wait;

    if (run->ops->rdma || perf_test_is_lat(run->params.test) || strcmp(wait, "spin") == 0)
        return false;
    return strcmp(wait, "sleep") == 0 || core_is_shared(&m->wait, now_ns);
}

int mrd_run_wait(struct perf_run *run, uint64_t now_ns, bool busy)
{
    struct mrd_run *m = run->state;

    if (!may_sleep(run, now_ns))
        return 0;
    if (!busy) {
        int handled = mrd_progress(m->ctx);
        if (handled < 0)
            return mrd_call_failed(run, handled, "mrd_progress");
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
