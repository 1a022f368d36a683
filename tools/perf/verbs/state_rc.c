/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of this end: queue pairs in RTS, all connected with one that stands for the other ends. Bringing a
 * queue pair to RTS sends nothing, and what it costs does not depend on who answers.
 */
#include <errno.h>

#include "tools/perf/peer_state.h"
#include "tools/perf/transport.h"
#include "tools/perf/verbs/rc.h"

int perf_state_rc(struct perf_state *s)
{
    static struct perf_ibv v;
    const struct perf_params *p = &s->options->params;
    uint32_t send_depth = perf_state_depth(p->tx_depth), recv_depth = perf_state_depth(p->rx_depth);
    uint32_t inline_bytes = 0;
    struct rc_end there = {0};
    int rc = perf_ibv_open(&v, s->options, p->mtu, s->error, sizeof(s->error));

    if (rc)
        return rc;
    if (s->peers >= (uint32_t)v.limits.max_qp) {
        snprintf(s->error, sizeof(s->error), "%s has room for %d queue pairs: lower --peers",
                 v.port.device, v.limits.max_qp);
        return -ENOSPC;
    }
    struct ibv_cq *cq = ibv_create_cq(v.ctx, (int)send_depth, NULL, NULL, 0);
    if (!cq)
        return perf_ibv_failed(-errno, "cannot create a completion queue", s->error,
                               sizeof(s->error));
    for (uint32_t i = 0; i <= s->peers && rc == 0; i++) {
        if (i == s->fewer && perf_state_mark(s))
            return -EIO;
        struct ibv_qp *qp =
            rc_qp_create(&v, cq, send_depth, recv_depth, &inline_bytes, s->error, sizeof(s->error));
        if (!qp)
            return -EIO;
        const struct rc_end here = {.qpn = qp->qp_num};
        if (i == 0)
            there = here;
        rc = rc_qp_connect(&v, qp, &here, &there, &v.here, p->mtu ? p->mtu : v.port.mtu, s->error,
                           sizeof(s->error));
    }
    return rc;
}
