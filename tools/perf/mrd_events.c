/* SPDX-License-Identifier: BSD-2-Clause */
/* -e: the completion queue, and how an end sleeps until it has something. */
#include <errno.h>
#include <fcntl.h>

#include "tools/perf/mrd.h"

int mrd_open_cq(struct perf_run *run, uint64_t cqes)
{
    struct mrd_run *m = run->state;
    struct mrd_cq_init_attr attr = {.cqe = (int)cqes};

    if (run->params.events) {
        attr.channel = m->channel = mrd_create_comp_channel(m->ctx);
        if (!m->channel)
            return mrd_call_failed(run, -errno, "mrd_create_comp_channel");
        /* Other things are waited for, too. */
        if (fcntl(m->channel->fd, F_SETFL, O_NONBLOCK))
            return perf_run_fail(run, -errno, "the completion channel cannot be polled");
    }
    m->cq = mrd_create_cq_ex(m->ctx, &attr);
    return m->cq ? 0 : mrd_call_failed(run, -errno, "mrd_create_cq_ex");
}

int mrd_run_sleep(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    struct mrd_cq *cq;
    void *context;

    /* What came before the request raises no event: there is another poll before sleeping. */
    if (!m->armed) {
        m->armed = true;
        int rc = mrd_req_notify_cq(m->cq, 0);
        return rc ? mrd_call_failed(run, rc, "mrd_req_notify_cq") : 0;
    }
    int rc = perf_run_sleep(run, m->channel->fd);
    if (rc)
        return rc;
    rc = mrd_get_cq_event(m->channel, &cq, &context); /* handles packets and timers, too */
    if (rc == -EAGAIN || rc == -EINTR)
        return 0;
    if (rc)
        return mrd_call_failed(run, rc, "mrd_get_cq_event");
    mrd_ack_cq_events(cq, 1);
    m->armed = false;
    run->events++;
    return 0;
}
