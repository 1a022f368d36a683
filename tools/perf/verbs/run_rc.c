/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/rc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/json.h"
#include "tools/perf/transport.h"

enum { PAGE_BYTES = 4096 };

/* How many receives a QP of this end posts; QP 0 of a verifying client takes the credits. */
static uint32_t recvs_of(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;

    if (!run->server && !perf_test_is_lat(p->test))
        return p->verify && qp == 0 ? RC_CREDITS : 0;
    return rc_recvs_per_qp(run);
}

/* One more than messages: for the write that ends the test. */
static uint32_t send_depth_of(const struct perf_params *p)
{
    return p->tx_depth + 1 > RC_SEND_DEPTH_MIN ? p->tx_depth + 1 : RC_SEND_DEPTH_MIN;
}

static int check_depths(struct perf_run *run)
{
    const struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    uint32_t most = (uint32_t)m->v.limits.max_qp_wr, recvs = recvs_of(run, 0);
    uint64_t cqes = (uint64_t)p->qps * (send_depth_of(p) + recvs);

    if (send_depth_of(p) > most)
        return perf_run_fail(run, -EINVAL, "-t %u: %s has room for %u messages a queue pair",
                             p->tx_depth, m->v.port.device, most - 1);
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

/* The places where messages of SENDs land; WRITEs need the sender's view of the layout. */
static uint32_t receive_slots(const struct perf_run *run)
{
    const struct perf_params *p = &run->params;

    if (!p->verify)
        return 0;
    return perf_test_is_write(p->test) ? p->slots : rc_recvs_per_qp(run) * p->qps;
}

static int open_bufs(struct perf_run *run)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    bool lat = perf_test_is_lat(p->test);

    m->tx = perf_layout_of(p, p->verify ? p->slots : 0);
    m->rx = perf_layout_of(p, receive_slots(run));
    /* In bandwidth tests one direction carries at most credits. */
    m->tx_mr = perf_ibv_map(&m->v, !lat && run->server ? PAGE_BYTES : m->tx.total_bytes,
                            IBV_ACCESS_LOCAL_WRITE, run->error, sizeof(run->error));
    if (!m->tx_mr)
        return -ENOMEM;
    m->rx_mr = perf_ibv_map(&m->v, !lat && !run->server ? PAGE_BYTES : m->rx.total_bytes,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, run->error,
                            sizeof(run->error));
    if (!m->rx_mr)
        return -ENOMEM;
    m->tx_buf = m->tx_mr->addr;
    m->rx_buf = m->rx_mr->addr;
    if (lat)
        memset(m->rx_buf, 0, m->rx_mr->length); /* what a polled last byte starts from */
    return 0;
}

static int open_qp(struct perf_run *run, uint32_t i)
{
    struct rc_run *m = run->state;
    struct rc_qp *q = &m->qps[i];

    q->num_recvs = recvs_of(run, i);
    q->recvs = calloc(q->num_recvs + 1, sizeof(q->recvs[0]));
    q->recv_sges = calloc(q->num_recvs + 1, sizeof(q->recv_sges[0]));
    if (!q->recvs || !q->recv_sges)
        return perf_run_fail(run, -ENOMEM, "no memory for %u receives", q->num_recvs);
    q->qp = rc_qp_create(&m->v, m->cq, send_depth_of(&run->params), q->num_recvs, &m->inline_bytes,
                         run->error, sizeof(run->error));
    if (!q->qp)
        return -EIO;
    q->here = (struct rc_end){q->qp->qp_num, (uint32_t)random() & 0xffffff};
    return 0;
}

static int open_queues(struct perf_run *run)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    int cqes = (int)(p->qps * (send_depth_of(p) + recvs_of(run, 0)));
    int32_t given = run->options->params.inline_bytes; /* -1 at the server, which is not asked */

    m->cq = ibv_create_cq(m->v.ctx, cqes, NULL, NULL, 0);
    if (!m->cq)
        return perf_ibv_failed(-errno, "cannot create a completion queue", run->error,
                               sizeof(run->error));
    m->qps = calloc(p->qps, sizeof(m->qps[0]));
    if (!m->qps)
        return perf_run_fail(run, -ENOMEM, "no memory for %u QPs", p->qps);
    m->num_qps = p->qps;
    m->inline_bytes = (uint32_t)p->inline_bytes;
    for (uint32_t i = 0; i < p->qps; i++) {
        int rc = open_qp(run, i);
        if (rc)
            return rc;
    }
    if (given > 0 && m->inline_bytes < (uint32_t)given)
        return perf_run_fail(run, -EINVAL, "-I %d: %s sends at most %u bytes inline", given,
                             m->v.port.device, m->inline_bytes);
    return 0;
}

static int run_rc_open(struct perf_run *run)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    int rc = perf_ibv_open(&m->v, run->options, p->mtu, run->error, sizeof(run->error));

    srandom((unsigned)perf_now_ns());
    if (rc == 0)
        rc = check_depths(run);
    if (rc == 0)
        rc = open_bufs(run);
    if (rc == 0)
        rc = open_queues(run);
    if (rc == 0 && p->verify) {
        uint64_t seed = p->seed + (perf_test_is_lat(p->test) && !run->server ? 1 : 0);
        rc = perf_verifier_init(&m->verifier, seed, p->size_bytes, p->slots, p->qps);
        m->verifier_ready = rc == 0;
        if (rc)
            perf_run_fail(run, rc, "out of memory");
    }
    return rc;
}

static void run_rc_get_info(struct perf_run *run, struct json_object *info)
{
    struct rc_run *m = run->state;
    struct json_object *qpns = json_object_new_array(), *psns = json_object_new_array();

    perf_ibv_tell(&m->v, info);
    json_object_object_add(info, "addr", json_object_new_uint64((uintptr_t)m->rx_buf));
    json_object_object_add(info, "rkey", json_object_new_uint64(m->rx_mr->rkey));
    for (uint32_t i = 0; i < m->num_qps; i++) {
        json_object_array_add(qpns, json_object_new_uint64(m->qps[i].here.qpn));
        json_object_array_add(psns, json_object_new_uint64(m->qps[i].here.psn));
    }
    json_object_object_add(info, "qpns", qpns);
    json_object_object_add(info, "psns", psns);
}

static uint32_t number_at(struct json_object *array, uint32_t i)
{
    return (uint32_t)json_object_get_uint64(json_object_array_get_idx(array, i));
}

static struct json_object *array_of(struct json_object *info, const char *key, size_t count)
{
    struct json_object *array;

    return json_object_object_get_ex(info, key, &array) &&
                   json_object_is_type(array, json_type_array) &&
                   json_object_array_length(array) == count
               ? array
               : NULL;
}

static int connect_qps(struct perf_run *run, struct json_object *info)
{
    struct rc_run *m = run->state;
    struct json_object *qpns = array_of(info, "qpns", m->num_qps);
    struct json_object *psns = array_of(info, "psns", m->num_qps);

    if (!qpns || !psns)
        return perf_run_fail(run, -EPROTO, "the other end does not tell its queue pairs");
    for (uint32_t i = 0; i < m->num_qps; i++) {
        struct rc_qp *q = &m->qps[i];
        q->there = (struct rc_end){number_at(qpns, i), number_at(psns, i)};
        int rc = rc_qp_connect(&m->v, q->qp, &q->here, &q->there, &m->v.there, m->v.mtu, run->error,
                               sizeof(run->error));
        if (rc)
            return rc;
    }
    return 0;
}

static int run_rc_set_peer(struct perf_run *run, struct json_object *info)
{
    struct rc_run *m = run->state;
    const struct perf_params *p = &run->params;
    uint64_t rkey;
    int rc = perf_ibv_hear(run, &m->v, info);

    if (rc)
        return rc;
    if (perf_json_get_u64(info, "addr", &m->remote_addr) || perf_json_get_u64(info, "rkey", &rkey))
        return perf_run_fail(run, -EPROTO, "the other end does not tell its memory");
    m->remote_rkey = (uint32_t)rkey;
    /* A message of no byte has no last byte to poll and no byte to count. */
    m->with_imm = perf_test_is_write(p->test) && (p->verify || p->size_bytes == 0);
    m->takes_recvs = m->with_imm || !perf_test_is_write(p->test);
    rc_post_prepare(run);
    /* Before the QP can receive, so that nothing finds it without. */
    rc = rc_post_recvs(run);
    return rc ? rc : connect_qps(run, info);
}

static int run_rc_client(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? rc_lat_client(run) : rc_bw_client(run);
}

static int run_rc_server(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? rc_lat_server(run) : rc_bw_server(run);
}

static void run_rc_stats(const struct perf_run *run, struct json_object *report)
{
    const struct rc_run *m = run->state;

    json_object_object_add(report, "device", json_object_new_string(m->v.port.device));
    json_object_object_add(report, "packet_bytes", json_object_new_uint64(m->v.mtu));
    json_object_object_add(report, "paths", json_object_new_uint64(m->num_qps));
    json_object_object_add(report, "order", json_object_new_string("msg"));
}

static void run_rc_close(struct perf_run *run)
{
    struct rc_run *m = run->state;

    for (uint32_t i = 0; i < m->num_qps; i++) {
        if (m->qps[i].qp)
            ibv_destroy_qp(m->qps[i].qp);
        free(m->qps[i].recvs);
        free(m->qps[i].recv_sges);
    }
    free(m->qps);
    if (m->cq)
        ibv_destroy_cq(m->cq);
    if (m->rx_mr)
        perf_ibv_unmap(m->rx_mr);
    if (m->tx_mr)
        perf_ibv_unmap(m->tx_mr);
    perf_ibv_close(&m->v);
    if (m->verifier_ready)
        perf_verifier_fini(&m->verifier);
}

const struct perf_transport_ops perf_rc_ops = {
    .name = "rc",
    .rdma = true,
    .state_bytes = sizeof(struct rc_run),
    .open = run_rc_open,
    .get_info = run_rc_get_info,
    .set_peer = run_rc_set_peer,
    .client = run_rc_client,
    .server = run_rc_server,
    .stats = run_rc_stats,
    .close = run_rc_close,
    .peer_state = perf_state_rc,
};
