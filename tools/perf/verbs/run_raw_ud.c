/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/verbs/raw_ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/json.h"
#include "tools/perf/transport.h"

enum { LINE_BYTES = 64 };

static uint32_t at_most(uint64_t value, uint64_t most)
{
    return (uint32_t)(value < most ? value : most);
}

/* -t and -r count messages; the queues hold their datagrams, but no more than pays. */
static uint32_t depth_of(const struct raw_ud *r, uint64_t messages, uint64_t size)
{
    uint64_t datagrams = messages * ((size + r->v.port.mtu - 1) / r->v.port.mtu);
    uint32_t most =
        at_most(messages > UD_DEPTH ? messages : UD_DEPTH, (uint32_t)r->v.limits.max_qp_wr);

    return datagrams > UD_BATCH ? at_most(datagrams, most) : UD_BATCH;
}

static int open_bufs(struct perf_run *run)
{
    struct raw_ud *r = run->state;
    size_t slot = (UD_GRH + r->v.port.mtu + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

    r->tx_mr =
        perf_ibv_map(&r->v, r->v.port.mtu, IBV_ACCESS_LOCAL_WRITE, run->error, sizeof(run->error));
    r->rx_mr = r->tx_mr ? perf_ibv_map(&r->v, UD_SLOTS * slot, IBV_ACCESS_LOCAL_WRITE, run->error,
                                       sizeof(run->error))
                        : NULL;
    if (!r->rx_mr)
        return -ENOMEM;
    for (unsigned i = 0; i < UD_SLOTS; i++)
        r->slots[i] = (struct ibv_sge){
            .addr = (uintptr_t)r->rx_mr->addr + i * slot,
            .length = UD_GRH + r->v.port.mtu,
            .lkey = r->rx_mr->lkey,
        };
    return 0;
}

static struct ibv_qp *create_qp(struct raw_ud *r)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = r->send_cq,
        .recv_cq = r->recv_cq,
        .qp_type = IBV_QPT_UD,
        .cap =
            {
                .max_send_wr = r->send_depth,
                .max_recv_wr = r->recv_depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = r->inline_bytes,
            },
    };
    struct ibv_qp *qp = ibv_create_qp(r->v.pd, &attr);

    if (qp || errno != EINVAL || r->inline_bytes == 0)
        return qp;
    r->inline_bytes = attr.cap.max_inline_data = 0; /* more than the device has */
    return ibv_create_qp(r->v.pd, &attr);
}

static int to_rts(struct raw_ud *r, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = r->v.port.number, .qkey = UD_QKEY};
    int rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return -rc;
}

static int open_qp(struct perf_run *run, struct ud_qp *q)
{
    struct raw_ud *r = run->state;

    q->recvs = calloc(r->recv_depth, sizeof(q->recvs[0]));
    if (!q->recvs)
        return perf_run_fail(run, -ENOMEM, "no memory for %u receives", r->recv_depth);
    q->qp = create_qp(r);
    if (!q->qp)
        return perf_ibv_failed(-errno, "cannot create a UD queue pair", run->error,
                               sizeof(run->error));
    int rc = to_rts(r, q->qp);
    return rc ? perf_ibv_failed(rc, "cannot bring a queue pair to RTS", run->error,
                                sizeof(run->error))
              : 0;
}

static int open_queues(struct perf_run *run)
{
    struct raw_ud *r = run->state;
    const struct perf_params *p = &run->params;

    r->send_depth = depth_of(r, p->tx_depth, p->size_bytes);
    r->recv_depth = depth_of(r, p->rx_depth, p->size_bytes);
    r->signal_every = r->send_depth / 4;
    r->inline_bytes = (uint32_t)p->inline_bytes;
    r->send_cq = ibv_create_cq(r->v.ctx, (int)(p->qps * r->send_depth), NULL, NULL, 0);
    r->recv_cq =
        r->send_cq ? ibv_create_cq(r->v.ctx, (int)(p->qps * r->recv_depth), NULL, NULL, 0) : NULL;
    if (!r->recv_cq)
        return perf_ibv_failed(-errno, "cannot create a completion queue", run->error,
                               sizeof(run->error));
    r->qps = calloc(p->qps, sizeof(r->qps[0]));
    if (!r->qps)
        return perf_run_fail(run, -ENOMEM, "no memory for %u QPs", p->qps);
    r->num_qps = p->qps;
    for (uint32_t i = 0; i < p->qps; i++) {
        int rc = open_qp(run, &r->qps[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static int run_raw_ud_open(struct perf_run *run)
{
    struct raw_ud *r = run->state;
    int rc = perf_ibv_open(&r->v, run->options, run->params.mtu, run->error, sizeof(run->error));

    if (rc == 0)
        rc = open_bufs(run);
    return rc ? rc : open_queues(run);
}

static void run_raw_ud_get_info(struct perf_run *run, struct json_object *info)
{
    const struct raw_ud *r = run->state;
    struct json_object *qpns = json_object_new_array();

    perf_ibv_tell(&r->v, info);
    for (uint32_t i = 0; i < r->num_qps; i++)
        json_object_array_add(qpns, json_object_new_uint64(r->qps[i].qp->qp_num));
    json_object_object_add(info, "qpns", qpns);
}

static int run_raw_ud_set_peer(struct perf_run *run, struct json_object *info)
{
    struct raw_ud *r = run->state;
    struct json_object *qpns;
    int rc = perf_ibv_hear(run, &r->v, info);

    if (rc)
        return rc;
    if (!json_object_object_get_ex(info, "qpns", &qpns) ||
        !json_object_is_type(qpns, json_type_array) || json_object_array_length(qpns) != r->num_qps)
        return perf_run_fail(run, -EPROTO, "the other end does not tell its queue pairs");
    for (uint32_t i = 0; i < r->num_qps; i++)
        r->qps[i].remote_qpn = (uint32_t)json_object_get_uint64(json_object_array_get_idx(qpns, i));
    struct ibv_ah_attr attr = perf_ibv_ah(&r->v, &r->v.there);
    r->ah = ibv_create_ah(r->v.pd, &attr);
    if (!r->ah)
        return perf_run_fail(run, -errno, "cannot reach %s: %s", run->control->peer,
                             strerror(errno));
    return ud_post_recvs(run);
}

static int run_raw_ud_client(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? ud_lat_client(run) : ud_bw_client(run);
}

static int run_raw_ud_server(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? ud_lat_server(run) : ud_bw_server(run);
}

static void run_raw_ud_stats(const struct perf_run *run, struct json_object *report)
{
    const struct raw_ud *r = run->state;

    json_object_object_add(report, "device", json_object_new_string(r->v.port.device));
    json_object_object_add(report, "packet_bytes", json_object_new_uint64(r->v.mtu));
    json_object_object_add(report, "paths", json_object_new_uint64(r->num_qps));
    json_object_object_add(report, "packets_sent", json_object_new_uint64(r->packets));
    json_object_object_add(report, "bytes_sent", json_object_new_uint64(r->bytes_sent));
}

static void run_raw_ud_close(struct perf_run *run)
{
    struct raw_ud *r = run->state;

    for (uint32_t i = 0; i < r->num_qps; i++) {
        if (r->qps[i].qp)
            ibv_destroy_qp(r->qps[i].qp);
        free(r->qps[i].recvs);
    }
    free(r->qps);
    if (r->ah)
        ibv_destroy_ah(r->ah);
    if (r->recv_cq)
        ibv_destroy_cq(r->recv_cq);
    if (r->send_cq)
        ibv_destroy_cq(r->send_cq);
    if (r->rx_mr)
        perf_ibv_unmap(r->rx_mr);
    if (r->tx_mr)
        perf_ibv_unmap(r->tx_mr);
    perf_ibv_close(&r->v);
}

const struct perf_transport_ops perf_raw_ud_ops = {
    .name = "raw-ud",
    .raw = true,
    .rdma = true,
    .state_bytes = sizeof(struct raw_ud),
    .open = run_raw_ud_open,
    .get_info = run_raw_ud_get_info,
    .set_peer = run_raw_ud_set_peer,
    .client = run_raw_ud_client,
    .server = run_raw_ud_server,
    .stats = run_raw_ud_stats,
    .close = run_raw_ud_close,
};
