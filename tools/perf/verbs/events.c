/* SPDX-License-Identifier: BSD-2-Clause */
/* -e: the completion queue of rc, and how an end sleeps until it has something. */
#include <errno.h>
#include <fcntl.h>

#include "tools/perf/verbs/verbs.h"

int verbs_open_cq(struct perf_run *run, uint64_t cqes)
{
    struct verbs_run *m = run->state;

    if (run->params.events) {
        m->channel = ibv_create_comp_channel(m->v.ctx);
        if (!m->channel)
            return perf_ibv_failed(-errno, "cannot create a completion channel", run->error);
        /* Other things are waited for, too. */
        if (fcntl(m->channel->fd, F_SETFL, O_NONBLOCK))
            return perf_run_fail(run, -errno, "the completion channel cannot be polled");
    }
    m->cq = ibv_create_cq(m->v.ctx, (int)cqes, NULL, m->channel, 0);
    return m->cq ? 0 : perf_ibv_failed(-errno, "cannot create a completion queue", run->error);
}

int verbs_sleep(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    struct ibv_cq *cq;
    void *context;

    /* What came before the request raises no event: there is another poll before sleeping. */
    if (!m->armed) {
        m->armed = true;
        int rc = ibv_req_notify_cq(m->cq, 0);
        return rc ? verbs_failed(run, rc, "ibv_req_notify_cq") : 0;
    }
    int rc = perf_run_sleep(run, m->channel->fd);
    if (rc)
        return rc;
    if (ibv_get_cq_event(m->channel, &cq, &context))
        return errno == EAGAIN || errno == EINTR ? 0 : verbs_failed(run, errno, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    m->armed = false;
    run->events++;
    return 0;
}
