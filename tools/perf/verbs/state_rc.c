/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs in RTS, all connected with one that stands for the other ends. Bringing a queue pair
 * to RTS sends nothing, and its cost does not depend on who answers.
 */
#include <errno.h>

#include "tools/perf/verbs/verbs.h"

enum { DEPTH = 16 }; /* of the queues, where -t and -r do not say */

int perf_state_rc(struct perf_state *s)
{
    static struct perf_ibv v;
    const struct perf_params *p = &s->options->params;
    uint32_t send_depth = p->tx_depth ? p->tx_depth : DEPTH;
    uint32_t recv_depth = p->rx_depth ? p->rx_depth : DEPTH;
    struct verbs_end there = {0};
    int rc = perf_ibv_open(&v, s->options, p->mtu, s->error);

    if (rc)
        return rc;
    if (s->peers >= (uint32_t)v.limits.max_qp)
        return perf_fail(s->error, -ENOSPC, "%s has room for %d queue pairs: lower --peers",
                         v.port.device, v.limits.max_qp);
    struct ibv_cq *cq = ibv_create_cq(v.ctx, (int)send_depth, NULL, NULL, 0);
    if (!cq)
        return perf_ibv_failed(-errno, "cannot create a completion queue", s->error);
    for (uint32_t i = 0; i <= s->peers && rc == 0; i++) {
        if (i == s->fewer && perf_state_mark(s))
            return -EIO;
        struct ibv_qp_init_attr attr = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = send_depth, .max_recv_wr = recv_depth},
        };
        struct ibv_qp *qp = verbs_qp_create(&v, &attr, s->error);
        if (!qp)
            return -EIO;
        const struct verbs_end here = {.qpn = qp->qp_num};
        if (i == 0)
            there = here;
        rc = verbs_qp_connect(&v, qp, &here, &there, &v.here, p->mtu ? p->mtu : v.port.mtu,
                              s->error);
    }
    return rc;
}
