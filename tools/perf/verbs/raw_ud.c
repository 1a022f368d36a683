/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD has no writes, so all tests send. A message is one datagram or several. Sends are counted in
 * datagrams here, and their completions stay in this file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tools/perf/message.h"
#include "tools/perf/verbs/verbs.h"

enum {
    LINE_BYTES = 64,
    SLOTS = 16,       /* places where datagrams land, hot and never looked at */
    GRH_BYTES = 40,   /* in front of each received datagram */
    DEPTH_MOST = 512, /* datagrams outstanding, each way and QP, unless -t or -r says more */
};

static uint32_t at_most(uint64_t value, uint64_t most)
{
    return (uint32_t)(value < most ? value : most);
}

/* -t and -r count messages. The queues hold their datagrams, up to DEPTH_MOST. */
static uint32_t depth_of(const struct verbs_run *m, uint64_t messages, uint64_t size)
{
    uint64_t datagrams = messages * ((size + m->v.port.mtu - 1) / m->v.port.mtu);
    uint32_t most =
        at_most(messages > DEPTH_MOST ? messages : DEPTH_MOST, (uint32_t)m->v.limits.max_qp_wr);

    return datagrams > PERF_BATCH ? at_most(datagrams, most) : PERF_BATCH;
}

static int open_memory(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    uint32_t bytes = GRH_BYTES + m->v.port.mtu;
    uint32_t slot = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    int rc = perf_endpoint_map(run, m->v.port.mtu, (size_t)SLOTS * slot);

    run->e.rx = (struct perf_layout){.slots = SLOTS, .slot_bytes = slot};
    run->e.recv_bytes = bytes;
    run->e.batch = run->params.size_bytes <= m->v.port.mtu ? PERF_BATCH : 1;
    for (uint32_t i = 0; rc == 0 && i < run->e.num_qps; i++)
        run->e.qps[i].num_recvs = depth_of(m, run->params.rx_depth, run->params.size_bytes);
    return rc ? rc : verbs_reg_mr(run, IBV_ACCESS_LOCAL_WRITE);
}

static int open_queues(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    const struct perf_params *p = &run->params;

    m->send_depth = depth_of(m, p->tx_depth, p->size_bytes);
    m->signal_every = m->send_depth / 4;
    m->send_cq = ibv_create_cq(m->v.ctx, (int)(p->qps * m->send_depth), NULL, NULL, 0);
    m->cq = ibv_create_cq(m->v.ctx, (int)(p->qps * run->e.qps[0].num_recvs), NULL, NULL, 0);
    if (!m->send_cq || !m->cq)
        return perf_ibv_failed(-errno, "cannot create a completion queue", run->error);
    return verbs_open_qps(run, IBV_QPT_UD);
}

static int ud_open(struct perf_run *run)
{
    struct verbs_run *m = run->state;
    int rc = perf_ibv_open(&m->v, run->options, run->params.mtu, run->error);

    if (rc == 0)
        rc = open_memory(run);
    return rc ? rc : open_queues(run);
}

static int ud_set_peer(struct perf_run *run, struct json_object *info)
{
    struct verbs_run *m = run->state;
    int rc = verbs_take_qps(run, info);

    for (uint32_t i = 0; i < run->e.num_qps && rc == 0; i++)
        rc = verbs_qp_start(m->qps[i].qp, run->error);
    if (rc)
        return rc;
    struct ibv_ah_attr attr = perf_ibv_ah(&m->v, &m->v.there);
    m->ah = ibv_create_ah(m->v.pd, &attr);
    if (!m->ah)
        return perf_run_fail(run, -errno, "cannot reach %s: %s", run->control->peer,
                             strerror(errno));
    return perf_endpoint_post_recvs(run);
}

/* Take the completions of sends, until `count` datagrams have room. */
static int make_room(struct perf_run *run, const struct verbs_qp *q, uint32_t count)
{
    struct verbs_run *m = run->state;
    struct ibv_wc wcs[PERF_POLL];
    int rc = 0;

    while (rc == 0 && q->datagrams + count > m->send_depth) {
        int n = verbs_poll(run, m->send_cq, PERF_POLL, wcs);
        for (int i = 0; i < n; i++)
            m->qps[verbs_qp_of(wcs[i].wr_id)].datagrams -= m->signal_every;
        rc = n < 0 ? n : perf_run_tick(run, clock_now_ns(), run->sent);
    }
    return rc;
}

static void set_wr(struct perf_run *run, uint32_t i, uint32_t qp, uint32_t bytes, uint32_t tag)
{
    struct verbs_run *m = run->state;
    struct verbs_qp *q = &m->qps[qp];

    m->sges[i] = (struct ibv_sge){(uintptr_t)run->e.tx_buf, bytes, m->tx_mr->lkey};
    m->wrs[i] = (struct ibv_send_wr){
        .wr_id = verbs_wr_id(VERBS_MESSAGE, qp, 0),
        .next = &m->wrs[i + 1],
        .sg_list = &m->sges[i],
        .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = bytes <= m->inline_bytes ? IBV_SEND_INLINE : 0,
        .imm_data = htonl(tag),
        .wr.ud = {.ah = m->ah, .remote_qpn = q->there.qpn, .remote_qkey = VERBS_QKEY},
    };
    if (++q->since_signal == m->signal_every) {
        m->wrs[i].send_flags |= IBV_SEND_SIGNALED;
        q->since_signal = 0;
    }
    m->bytes_sent += bytes;
}

static int post_list(struct perf_run *run, uint32_t qp, uint32_t count)
{
    struct verbs_run *m = run->state;
    struct verbs_qp *q = &m->qps[qp];
    struct ibv_send_wr *bad;
    int rc = make_room(run, q, count);

    if (rc)
        return rc;
    m->wrs[count - 1].next = NULL;
    q->datagrams += count;
    m->packets += count;
    rc = ibv_post_send(q->qp, m->wrs, &bad);
    return rc ? verbs_failed(run, rc, "ibv_post_send") : 0;
}

static int ud_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct verbs_run *m = run->state;
    uint64_t size = run->params.size_bytes;
    uint32_t filled = 0;
    int rc = 0;

    for (uint32_t i = 0; i < count; i++) {
        for (uint64_t at = 0; at < size && rc == 0; at += m->v.mtu) {
            set_wr(run, filled++, qp, at_most(size - at, m->v.mtu), (uint32_t)n);
            if (filled == PERF_BATCH) {
                rc = post_list(run, qp, filled);
                filled = 0;
            }
        }
    }
    if (filled && rc == 0)
        rc = post_list(run, qp, filled);
    return rc ? rc : (int)count;
}

static int ud_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max)
{
    struct verbs_run *m = run->state;
    struct ibv_wc got[PERF_POLL];
    int n = verbs_poll(run, m->cq, max, got);

    for (int i = 0; i < n; i++)
        wcs[i] = (struct perf_wc){
            .qp = verbs_qp_of(got[i].wr_id),
            .index = (uint32_t)got[i].wr_id,
            .imm = ntohl(got[i].imm_data),
            .bytes = got[i].byte_len - GRH_BYTES,
        };
    return n;
}

static void ud_stats(const struct perf_run *run, struct json_object *report)
{
    const struct verbs_run *m = run->state;

    verbs_stats(run, report);
    json_add_u64(report, "packets_sent", m->packets);
    json_add_u64(report, "bytes_sent", m->bytes_sent);
}

const struct perf_transport_ops perf_raw_ud_ops = {
    .name = "raw-ud",
    .raw = true,
    .lossy = true,
    .rdma = true,
    .mutual = true,
    .state_bytes = sizeof(struct verbs_run),
    .open = ud_open,
    .get_info = verbs_get_info,
    .set_peer = ud_set_peer,
    .post_send = ud_post_send,
    .post_recv = verbs_post_recv,
    .poll_cq = ud_poll_cq,
    .stats = ud_stats,
    .close = verbs_close,
};
