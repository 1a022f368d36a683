/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>

#include "tools/perf/message.h"
#include "tools/perf/verbs/verbs.h"

enum {
    SEND_DEPTH_MIN = 64,   /* of latency tests, and for credits */
    LAT_SIGNAL_EVERY = 16, /* messages */
    SILENT_S = 10,         /* Soft-RoCE takes a retry count of 7 for endless */
};

static int check_depths(struct perf_run *run)
{
    const struct verbs_run *m = run->state;
    uint32_t most = (uint32_t)m->v.limits.max_qp_wr, recvs = run->e.qps[0].num_recvs;
    uint64_t cqes = perf_endpoint_cqes(run, m->send_depth);

    if (m->send_depth > most)
        return perf_run_fail(run, -EINVAL, "-t %u: %s has room for %u messages a queue pair",
                             run->params.tx_depth, m->v.port.device, most - 1);
    if (recvs > most)
        return perf_run_fail(run, -EINVAL, "-r %u: %s has room for %u receives a queue pair", recvs,
                             m->v.port.device, most);
    if (cqes > (uint64_t)m->v.limits.max_cqe)
        return perf_run_fail(run, -EINVAL,
                             "%llu completions may be outstanding, but a queue of %s holds %d: use "
                             "fewer queue pairs (-q), or lower -t and -r",
                             (unsigned long long)cqes, m->v.port.device, m->v.limits.max_cqe);
    return 0;
}

static int open_queues(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    int32_t given = run->options->params.inline_bytes; /* -1 at the server, which is not asked */
    int rc = verbs_open_cq(run, perf_endpoint_cqes(run, m->send_depth));

    m->send_cq = m->cq;
    if (rc == 0)
        rc = verbs_open_qps(run, IBV_QPT_RC);
    if (rc == 0 && given > 0 && m->inline_bytes < (uint32_t)given)
        rc = perf_run_fail(run, -EINVAL, "-I %d: %s sends at most %u bytes inline", given,
                           m->v.port.device, m->inline_bytes);
    return rc;
}

/* Not every device has all of it: only what the test needs. */
static int access_of(const struct perf_params *p)
{
    if (perf_test_is_atomic(p->test))
        return IBV_ACCESS_REMOTE_ATOMIC;
    return perf_test_is_request(p->test) ? IBV_ACCESS_REMOTE_READ : 0;
}

/* The most reads and atomics that a queue pair may have outstanding, in both roles. */
static uint32_t most_requests(const struct verbs_run *m)
{
    int asked = m->v.limits.max_qp_init_rd_atom, answered = m->v.limits.max_qp_rd_atom;
    int most = asked < answered ? asked : answered;

    return (uint32_t)(most < UINT8_MAX ? most : UINT8_MAX);
}

/* As many as the test needs: queue pairs without reads and atomics are not to cost more. */
static uint8_t requests_of(const struct perf_run *run)
{
    if (!perf_test_is_request(run->params.test))
        return 1;
    return (uint8_t)(run->params.outs ? run->params.outs : most_requests(run->state));
}

static int check_requests(struct perf_run *run)
{
    const struct verbs_run *m = run->state;
    uint32_t most = most_requests(m);

    if (perf_test_is_atomic(run->params.test) && m->v.limits.atomic_cap == IBV_ATOMIC_NONE)
        return perf_run_fail(run, -EOPNOTSUPP, "%s has no atomics", m->v.port.device);
    if (run->params.outs > most)
        return perf_run_fail(run, -EINVAL,
                             "-o %u: %s has at most %u reads and atomics outstanding a queue pair",
                             run->params.outs, m->v.port.device, most);
    return 0;
}

static int rc_open(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    const struct perf_params *p = &run->params;
    int rc = 0;

    if (run->thread.main) /* all threads have one context */
        m->v = ((struct verbs_run *)run->thread.main->state)->v;
    else
        rc = perf_ibv_open(&m->v, run->options, p->mtu, run->error);
    /* One more than messages: for the write that ends the test. */
    m->send_depth = p->tx_depth + 1 > SEND_DEPTH_MIN ? p->tx_depth + 1 : SEND_DEPTH_MIN;
    if (rc == 0)
        rc = perf_endpoint_open(run);
    if (rc == 0)
        rc = check_depths(run);
    if (rc == 0)
        rc = check_requests(run);
    if (perf_test_is_lat(p->test) && !perf_test_is_request(p->test))
        run->e.signal_every = LAT_SIGNAL_EVERY;
    if (rc == 0)
        rc = verbs_reg_mr(run, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | access_of(p));
    return rc ? rc : open_queues(run);
}

static enum ibv_wr_opcode opcode_of(const struct perf_run *run)
{
    if (perf_test_is_atomic(run->params.test))
        return IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (perf_test_is_request(run->params.test))
        return IBV_WR_RDMA_READ;
    if (perf_test_is_write(run->params.test))
        return run->e.with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    return run->params.verify ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

/* Templates of a batch: what changes from message to message is set when posting. */
static void prepare_sends(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    const struct perf_params *p = &run->params;
    bool is_inline = !perf_test_is_request(p->test) && p->size_bytes <= m->inline_bytes;

    for (unsigned i = 0; i < PERF_POST_LIST_MAX; i++) {
        m->sges[i] = (struct ibv_sge){.length = (uint32_t)p->size_bytes, .lkey = m->tx_mr->lkey};
        m->wrs[i] = (struct ibv_send_wr){
            .sg_list = &m->sges[i],
            .num_sge = p->size_bytes ? 1 : 0,
            .opcode = opcode_of(run),
            .send_flags = is_inline ? IBV_SEND_INLINE : 0,
            .wr.rdma.rkey = run->e.remote_rkey,
        };
        if (perf_test_is_atomic(p->test)) {
            m->wrs[i].wr.atomic.remote_addr = run->e.remote_addr;
            m->wrs[i].wr.atomic.compare_add = 1;
            m->wrs[i].wr.atomic.rkey = run->e.remote_rkey;
        }
    }
}

static int rc_set_peer(struct perf_run *run, struct json_object *info)
{
    struct verbs_run *m = run->state;
    int rc = verbs_take_qps(run, info);

    if (rc)
        return rc;
    perf_endpoint_choose_imm(run, false);
    prepare_sends(run);
    /* Before the QPs can receive, so that no message finds them without receives. */
    rc = perf_endpoint_post_recvs(run);
    for (uint32_t i = 0; i < run->e.num_qps && rc == 0; i++) {
        struct verbs_qp *q = &m->qps[i];
        rc = verbs_qp_connect(&m->v, q->qp, &q->here, &q->there, &m->v.there, m->v.mtu,
                              requests_of(run), run->error);
    }
    return rc;
}

static int rc_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct verbs_run *m = run->state;
    struct ibv_send_wr *bad;

    for (uint32_t i = 0; i < count; i++) {
        struct ibv_send_wr *wr = &m->wrs[i];
        size_t place = perf_endpoint_place(&run->e, qp, n + i);
        m->sges[i].addr = (uintptr_t)run->e.tx_buf + place;
        wr->wr_id = verbs_wr_id(VERBS_MESSAGE, qp, (uint32_t)(n + i));
        wr->imm_data = htonl((uint32_t)(n + i));
        if (!perf_test_is_atomic(run->params.test))
            wr->wr.rdma.remote_addr = run->e.remote_addr + place;
        wr->send_flags &= (unsigned)~IBV_SEND_SIGNALED;
        if (perf_endpoint_count_signal(&run->e, &run->e.qps[qp]))
            wr->send_flags |= IBV_SEND_SIGNALED;
        wr->next = i + 1 < count ? wr + 1 : NULL;
    }
    int rc = ibv_post_send(m->qps[qp].qp, m->wrs, &bad);
    return rc ? verbs_failed(run, rc, "ibv_post_send") : (int)count;
}

/* A write of no byte: complete when all that was posted before is. */
static int rc_post_flush(struct perf_run *run, uint32_t qp)
{
    struct verbs_run *m = run->state;
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = verbs_wr_id(VERBS_FLUSH, qp, 0),
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = run->e.remote_addr, .rkey = run->e.remote_rkey},
        };
    int rc = ibv_post_send(m->qps[qp].qp, &wr, &bad);

    return rc ? verbs_failed(run, rc, "ibv_post_send") : 0;
}

static int rc_post_credit(struct perf_run *run, uint64_t credit)
{
    struct verbs_run *m = run->state;
    struct ibv_send_wr *bad;

    if (m->credits_sent >= PERF_CREDITS / 2)
        return 0;
    struct ibv_send_wr wr = {
        .wr_id = verbs_wr_id(VERBS_CREDIT, run->e.credit_qp, 0),
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = htonl((uint32_t)credit),
        .send_flags = IBV_SEND_SIGNALED,
    };
    int rc = ibv_post_send(m->qps[run->e.credit_qp].qp, &wr, &bad);
    if (rc)
        return verbs_failed(run, rc, "ibv_post_send");
    m->credits_sent++;
    return 1;
}

static int rc_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max)
{
    static const enum perf_wc_kind kinds[] = {
        [VERBS_MESSAGE] = PERF_WC_SENT, [VERBS_FLUSH] = PERF_WC_FLUSHED};
    struct verbs_run *m = run->state;
    struct ibv_wc got[PERF_POLL];
    int n = verbs_poll(run, m->cq, max, got), count = 0;

    for (int i = 0; i < n; i++) {
        enum verbs_kind kind = verbs_kind_of(got[i].wr_id);
        uint32_t qp = verbs_qp_of(got[i].wr_id);
        if (kind == VERBS_CREDIT)
            m->credits_sent--;
        else
            wcs[count++] = (struct perf_wc){
                .kind = kind == VERBS_RECV ? perf_endpoint_recv_kind(&run->e, qp) : kinds[kind],
                .qp = qp,
                .index = (uint32_t)got[i].wr_id,
                .imm = ntohl(got[i].imm_data),
                .bytes = got[i].byte_len,
            };
    }
    return n < 0 ? n : count;
}

/* With -e sleep if there was nothing. Give up a silent peer, if the device does not. */
static int rc_wait(struct perf_run *run, uint64_t now_ns, bool busy)
{
    struct verbs_run *m = run->state;
    char name[64];

    if (busy || m->heard_ns == 0)
        m->heard_ns = now_ns;
    if (run->server || now_ns < m->heard_ns + SILENT_S * PERF_SEC_NS)
        return run->params.events && !busy ? verbs_sleep(run) : 0;
    perf_ibv_format(&m->v.there, name, sizeof(name));
    return perf_run_fail(run, -ETIMEDOUT,
                         "nothing was acknowledged by %s (%s, QPN 0x%x) for %d s, and the device "
                         "does not give up: is the peer's port up, is there a route?",
                         run->control->peer, name, m->qps[0].there.qpn, SILENT_S);
}

static void rc_stats(const struct perf_run *run, struct json_object *report)
{
    verbs_stats(run, report);
    json_add_string(report, "order", "msg");
}

/*
 * Queue pairs in RTS, all connected with one that stands for the other ends. Bringing a queue pair
 * to RTS sends nothing, and its cost does not depend on who answers.
 */

enum { DEPTH = 16 }; /* of the queues, where -t and -r do not say */

static int make_peers(struct perf_state *s)
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
        rc = verbs_qp_connect(&v, qp, &here, &there, &v.here, p->mtu ? p->mtu : v.port.mtu, 1,
                              s->error);
    }
    return rc;
}

const struct perf_transport_ops perf_rc_ops = {
    .name = "rc",
    .rdma = true,
    .ordered = true,
    .requests = true,
    .mutual = true,
    .state_bytes = sizeof(struct verbs_run),
    .open = rc_open,
    .get_info = verbs_get_info,
    .set_peer = rc_set_peer,
    .post_send = rc_post_send,
    .post_recv = verbs_post_recv,
    .poll_cq = rc_poll_cq,
    .post_credit = rc_post_credit,
    .post_flush = rc_post_flush,
    .wait = rc_wait,
    .stats = rc_stats,
    .close = verbs_close,
    .peer_state = make_peers,
};
