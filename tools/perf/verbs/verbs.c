/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/message.h"

enum {
    TIMEOUT = 14, /* 4.096 us * 2^14 */
    RETRY_COUNT = 7,
    RNR_RETRY_FOREVER = 7,
    RNR_TIMER = 12,    /* 0.64 ms */
    INLINE_SMALL = 64, /* what about every device takes */
};

static int to_init(struct perf_ibv *v, struct ibv_qp *qp, bool connected)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = v->port.number,
        .qkey = VERBS_QKEY,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           (v->limits.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC),
    };

    return -ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                              (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY));
}

/* Devices have various limits of inline data, and no way to ask for them: try less and less. */
static struct ibv_qp *try_create(struct perf_ibv *v, struct ibv_qp_init_attr *attr)
{
    uint32_t wanted = attr->cap.max_inline_data;
    const uint32_t tries[] = {wanted, INLINE_SMALL < wanted ? INLINE_SMALL : 0, 0};
    struct ibv_qp *qp = NULL;

    errno = EINVAL;
    for (unsigned i = 0; i < 3 && !qp && errno == EINVAL; i++) {
        attr->cap.max_inline_data = tries[i];
        attr->cap.max_send_sge = attr->cap.max_recv_sge = 1;
        qp = ibv_create_qp(v->pd, attr);
    }
    if (attr->cap.max_inline_data > wanted)
        attr->cap.max_inline_data = wanted;
    return qp;
}

struct ibv_qp *verbs_qp_create(struct perf_ibv *v, struct ibv_qp_init_attr *attr, char *error)
{
    bool connected = attr->qp_type == IBV_QPT_RC;
    struct ibv_qp *qp = try_create(v, attr);

    if (!qp) {
        perf_ibv_failed(
            -errno, connected ? "cannot create an RC queue pair" : "cannot create a UD queue pair",
            error);
        return NULL;
    }
    int rc = to_init(v, qp, connected);
    if (rc == 0)
        return qp;
    perf_ibv_failed(rc, "cannot bring a queue pair to INIT", error);
    ibv_destroy_qp(qp);
    return NULL;
}

int verbs_qp_start(struct ibv_qp *qp, char *error)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return rc ? perf_ibv_failed(-rc, "cannot bring a queue pair to RTS", error) : 0;
}

int verbs_qp_connect(struct perf_ibv *v, struct ibv_qp *qp, const struct verbs_end *here,
                     const struct verbs_end *there, const struct perf_ibv_place *place,
                     uint32_t mtu, uint8_t outs, char *error)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = perf_ibv_mtu_value(mtu),
        .dest_qp_num = there->qpn,
        .rq_psn = there->psn,
        .max_dest_rd_atomic = outs,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = perf_ibv_ah(v, place),
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = here->psn,
        .timeout = TIMEOUT,
        .retry_cnt = RETRY_COUNT,
        .rnr_retry = RNR_RETRY_FOREVER,
        .max_rd_atomic = outs,
    };
    char what[128], name[64];

    int rc = -ibv_modify_qp(qp, &rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc == 0)
        rc = -ibv_modify_qp(qp, &rts,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (rc == 0)
        return 0;
    perf_ibv_format(place, name, sizeof(name));
    snprintf(what, sizeof(what), "cannot connect a queue pair with %s", name);
    return perf_ibv_failed(rc, what, error);
}

int verbs_failed(struct perf_run *run, int error, const char *what)
{
    return perf_run_fail(run, -error, "%s: %s", what, strerror(error));
}

int verbs_reg_mr(struct perf_run *run, int rx_access)
{
    struct verbs_run *m = run->state;

    m->tx_mr = ibv_reg_mr(m->v.pd, run->e.tx_buf, run->e.tx_bytes, IBV_ACCESS_LOCAL_WRITE);
    m->rx_mr = ibv_reg_mr(m->v.pd, run->e.rx_buf, run->e.rx_bytes, rx_access);
    return m->tx_mr && m->rx_mr
               ? 0
               : perf_ibv_failed(-errno, "cannot register the messages' memory", run->error);
}

static int open_recvs(struct perf_run *run, uint32_t qp)
{
    struct verbs_run *m = run->state;
    uint32_t count = run->e.qps[qp].num_recvs;
    struct verbs_recv *recvs = calloc(count + 1, sizeof(recvs[0]));

    m->qps[qp].recvs = recvs;
    if (!recvs)
        return perf_run_fail(run, -ENOMEM, "no memory for %u receives", count);
    for (uint32_t i = 0; i < count; i++) {
        struct perf_place place = perf_endpoint_recv(run, qp, i);
        recvs[i].sge = (struct ibv_sge){(uintptr_t)place.at, place.bytes, m->rx_mr->lkey};
        recvs[i].wr = (struct ibv_recv_wr){
            .wr_id = verbs_wr_id(VERBS_RECV, qp, i),
            .sg_list = &recvs[i].sge,
            .num_sge = place.bytes ? 1 : 0,
            .next = &recvs[i + 1].wr,
        };
    }
    return 0;
}

static int open_qp(struct perf_run *run, uint32_t i, enum ibv_qp_type type)
{
    struct verbs_run *m = run->state;
    struct verbs_qp *q = &m->qps[i];
    uint32_t recvs = run->e.qps[i].num_recvs;
    struct ibv_qp_init_attr attr = {
        .send_cq = m->send_cq,
        .recv_cq = m->cq,
        .qp_type = type,
        .cap = {.max_send_wr = m->send_depth,
                .max_recv_wr = recvs ? recvs : 1,
                .max_inline_data = m->inline_bytes},
    };

    q->qp = verbs_qp_create(&m->v, &attr, run->error);
    if (!q->qp)
        return -EIO;
    m->inline_bytes = attr.cap.max_inline_data;
    q->here = (struct verbs_end){q->qp->qp_num, (uint32_t)random() & 0xffffff};
    return open_recvs(run, i);
}

int verbs_open_qps(struct perf_run *run, enum ibv_qp_type type)
{
    struct verbs_run *m = run->state;
    int rc = 0;

    m->inline_bytes = (uint32_t)run->params.inline_bytes;
    srandom((unsigned)clock_now_ns());
    for (uint32_t i = 0; i < run->e.num_qps && rc == 0; i++)
        rc = open_qp(run, i, type);
    return rc;
}

void verbs_get_info(struct perf_run *run, struct json_object *info)
{
    struct verbs_run *m = run->state;
    struct json_object *qpns = json_object_new_array(), *psns = json_object_new_array();

    perf_ibv_tell(&m->v, info);
    json_add_u64(info, "addr", (uintptr_t)run->e.rx_buf);
    json_add_u64(info, "rkey", m->rx_mr->rkey);
    for (uint32_t i = 0; i < run->e.num_qps; i++) {
        json_object_array_add(qpns, json_object_new_uint64(m->qps[i].here.qpn));
        json_object_array_add(psns, json_object_new_uint64(m->qps[i].here.psn));
    }
    json_object_object_add(info, "qpns", qpns);
    json_object_object_add(info, "psns", psns);
}

int verbs_take_qps(struct perf_run *run, struct json_object *info)
{
    struct verbs_run *m = run->state;
    struct json_object *qpns = json_get_array(info, "qpns", run->e.num_qps);
    struct json_object *psns = json_get_array(info, "psns", run->e.num_qps);
    uint64_t rkey;
    int rc = perf_ibv_hear(run, &m->v, info);

    if (rc)
        return rc;
    if (json_get_u64(info, "addr", &run->e.remote_addr) || json_get_u64(info, "rkey", &rkey))
        return perf_run_fail(run, -EPROTO, "the other end does not tell its memory");
    if (!qpns || !psns)
        return perf_run_fail(run, -EPROTO, "the other end does not tell its queue pairs");
    run->e.remote_rkey = (uint32_t)rkey;
    for (uint32_t i = 0; i < run->e.num_qps; i++)
        m->qps[i].there = (struct verbs_end){json_u32_at(qpns, i), json_u32_at(psns, i)};
    return 0;
}

int verbs_post_recv(struct perf_run *run, uint32_t qp, uint32_t first, uint32_t count)
{
    struct verbs_run *m = run->state;
    struct verbs_qp *q = &m->qps[qp];
    struct ibv_recv_wr *last = &q->recvs[first + count - 1].wr, *next = last->next, *bad;

    last->next = NULL;
    int rc = ibv_post_recv(q->qp, &q->recvs[first].wr, &bad);
    last->next = next;
    return rc ? verbs_failed(run, rc, "ibv_post_recv") : 0;
}

/* A failed completion has no opcode: wr_id says what it is of. */
static int wc_failed(struct perf_run *run, const struct ibv_wc *wc)
{
    struct verbs_run *m = run->state;
    bool recv = verbs_kind_of(wc->wr_id) == VERBS_RECV;
    bool silent = wc->status == IBV_WC_RETRY_EXC_ERR;
    char name[64];

    perf_ibv_format(&m->v.there, name, sizeof(name));
    return perf_run_fail(
        run, -EIO, "%s %s %s (%s, QPN 0x%x) failed: %s (status %d)%s",
        run->ops->raw ? "a datagram" : "an RC message", recv ? "from" : "to", run->control->peer,
        name, m->qps[verbs_qp_of(wc->wr_id)].there.qpn, ibv_wc_status_str(wc->status), wc->status,
        silent ? "; the peer does not answer: is its port up, is there a route?" : "");
}

int verbs_poll(struct perf_run *run, struct ibv_cq *cq, int max, struct ibv_wc *wcs)
{
    int n = ibv_poll_cq(cq, max, wcs);

    if (n < 0)
        return perf_run_fail(run, -EIO, "ibv_poll_cq failed");
    for (int i = 0; i < n; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS)
            return wc_failed(run, &wcs[i]);
    }
    return n;
}

void verbs_stats(const struct perf_run *run, struct json_object *report)
{
    const struct verbs_run *m = run->state;

    json_add_string(report, "device", m->v.port.device);
    json_add_u64(report, "packet_bytes", m->v.mtu);
    json_add_u64(report, "paths", run->params.qps * run->params.threads);
}

void verbs_close(struct perf_run *run)
{
    struct verbs_run *m = run->state;

    for (uint32_t i = 0; i < run->e.num_qps; i++) {
        if (m->qps[i].qp)
            ibv_destroy_qp(m->qps[i].qp);
        free(m->qps[i].recvs);
    }
    if (m->ah)
        ibv_destroy_ah(m->ah);
    if (m->send_cq && m->send_cq != m->cq)
        ibv_destroy_cq(m->send_cq);
    if (m->cq)
        ibv_destroy_cq(m->cq);
    if (m->channel)
        ibv_destroy_comp_channel(m->channel);
    if (m->rx_mr)
        ibv_dereg_mr(m->rx_mr);
    if (m->tx_mr)
        ibv_dereg_mr(m->tx_mr);
    if (!run->thread.main)
        perf_ibv_close(&m->v);
    perf_endpoint_close(run);
}
