/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/ibv_mtu.h"
#include "tools/perf/json.h"
#include "tools/perf/mrd_device.h"
#include "tools/perf/net.h"
#include "tools/perf/report.h"
#include "tools/perf/transport.h"

uint64_t mrd_counter_value(struct mrd_run *m, int index)
{
    return mrd_query_counters(m->ctx, m->counters, m->num_counters) > index
               ? m->counters[index].value
               : 0;
}

static int find_counters(struct perf_run *run)
{
    struct mrd_run *m = run->state;

    m->rx_bytes_index = m->retx_index = -1;
    m->num_counters = mrd_query_counters(m->ctx, NULL, 0);
    if (m->num_counters < 0)
        return mrd_call_failed(run, m->num_counters, "mrd_query_counters");
    m->counters = calloc((size_t)m->num_counters + 1, sizeof(m->counters[0]));
    if (!m->counters)
        return perf_run_fail(run, -ENOMEM, "out of memory");
    mrd_query_counters(m->ctx, m->counters, m->num_counters);
    for (int i = 0; i < m->num_counters; i++) {
        if (strcmp(m->counters[i].name, "rx_bytes") == 0)
            m->rx_bytes_index = i;
        if (strcmp(m->counters[i].name, "retx_packets") == 0)
            m->retx_index = i;
    }
    return 0;
}

static struct mrd_context_attr context_attr(const struct perf_run *run,
                                            const struct perf_mrd_device *device)
{
    const struct perf_params *p = &run->params;
    const struct perf_options *o = run->options;
    bool own_ports =
        o->num_source_ports && !(o->local && run->server); /* two ends here cannot share them */
    struct mrd_context_attr attr = {
        .paths = p->paths,
        .spray = p->spray[0] ? p->spray : NULL,
        .cc = p->cc[0] ? p->cc : NULL,
        .threading = MRD_THREADING_SINGLE, /* one thread, which polls all the time */
        .rx_drop_ppm = p->drop_ppm,
    };

    if (run->ops->rdma) {
        perf_mrd_rdma_attr(o, device, p->mtu, p->entropy, &attr);
        return attr;
    }
    attr.address = run->control->local;
    attr.port = run->server && !o->local ? o->port : 0;
    attr.mtu = p->mtu;
    if (own_ports) {
        attr.source_ports = o->source_ports;
        attr.num_source_ports = attr.paths = o->num_source_ports;
    }
    return attr;
}

static int open_context(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    struct perf_mrd_device device;
    int rc =
        perf_mrd_find_device(run->options, run->ops->rdma, &device, run->error, sizeof(run->error));

    if (rc)
        return rc;
    m->port = device.port;
    if (run->ops->rdma)
        rc = perf_ibv_mtu_check(run->params.mtu, &device.port, run->error, sizeof(run->error));
    if (rc)
        return rc;
    struct mrd_context_attr attr = context_attr(run, &device);
    m->ctx = mrd_open_device(&device.device, &attr);
    if (!m->ctx)
        return mrd_call_failed(run, -errno, "cannot open the device");
    rc = mrd_query_context(m->ctx, &m->info, sizeof(m->info));
    if (rc)
        return mrd_call_failed(run, rc, "mrd_query_context");
    m->packet_bytes =
        run->ops->rdma ? m->info.mtu : perf_net_payload(run->control->fd, m->info.mtu);
    m->pd = mrd_alloc_pd(m->ctx);
    return m->pd ? find_counters(run) : mrd_call_failed(run, -errno, "mrd_alloc_pd");
}

/* How many receives a QP of this end posts; QP 0 of a verifying client takes the credits. */
static uint32_t recvs_of(const struct perf_run *run, uint32_t qp)
{
    const struct perf_params *p = &run->params;

    if (!run->server && !perf_test_is_lat(p->test))
        return p->verify && qp == 0 ? MRD_RUN_CREDITS : 0;
    return mrd_recvs_per_qp(run);
}

static int open_qp(struct perf_run *run, uint32_t i)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    struct mrd_run_qp *q = &m->qps[i];

    q->num_recvs = recvs_of(run, i);
    q->recvs = calloc(q->num_recvs + 1, sizeof(q->recvs[0]));
    q->recv_sges = calloc(q->num_recvs + 1, sizeof(q->recv_sges[0]));
    if (!q->recvs || !q->recv_sges)
        return perf_run_fail(run, -ENOMEM, "no memory for %u receives", q->num_recvs);
    struct mrd_qp_init_attr attr = {
        .send_cq = m->cq,
        .recv_cq = m->cq,
        .cap =
            {
                .max_send_wr = p->tx_depth > MRD_RUN_BATCH ? p->tx_depth : MRD_RUN_BATCH,
                .max_recv_wr = q->num_recvs ? q->num_recvs : 1,
                .max_inline_data =
                    (uint32_t)(p->inline_bytes > MRD_RUN_CREDIT_BYTES ? p->inline_bytes
                                                                      : MRD_RUN_CREDIT_BYTES),
            },
        .order = p->ordered ? MRD_ORDER_MSG : MRD_ORDER_NONE,
        .qkey = MRD_RUN_QKEY,
    };
    q->qp = mrd_create_qp(m->pd, &attr);
    return q->qp ? 0 : mrd_call_failed(run, -errno, "mrd_create_qp");
}

static int open_queues(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    uint32_t depth = p->tx_depth > MRD_RUN_BATCH ? p->tx_depth : MRD_RUN_BATCH;
    uint32_t most =
        mrd_recvs_per_qp(run) > MRD_RUN_CREDITS ? mrd_recvs_per_qp(run) : MRD_RUN_CREDITS;

    m->cq = mrd_create_cq(m->ctx, (int)(p->qps * (depth + most)), NULL);
    if (!m->cq)
        return mrd_call_failed(run, -errno, "mrd_create_cq");
    m->qps = calloc(p->qps, sizeof(m->qps[0]));
    if (!m->qps)
        return perf_run_fail(run, -ENOMEM, "no memory for %u QPs", p->qps);
    m->num_qps = p->qps;
    for (uint32_t i = 0; i < p->qps; i++) {
        int rc = open_qp(run, i);
        if (rc)
            return rc;
    }
    return 0;
}

static int run_mrd_open(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    int rc = open_context(run);

    if (rc == 0)
        rc = mrd_bufs_open(run);
    if (rc == 0)
        rc = open_queues(run);
    if (rc == 0 && p->verify) {
        uint64_t seed = p->seed + (perf_test_is_lat(p->test) && !run->server ? 1 : 0);
        rc = perf_verifier_init(&m->verifier, seed, p->size_bytes, p->slots,
                                p->ordered ? p->qps : 0);
        m->verifier_ready = rc == 0;
        if (rc)
            perf_run_fail(run, rc, "out of memory");
    }
    return rc;
}

static void run_mrd_get_info(struct perf_run *run, struct json_object *info)
{
    struct mrd_run *m = run->state;
    struct json_object *qpns = json_object_new_array();
    char address[MRD_ADDRESS_MAX] = "";

    if (mrd_query_address(m->ctx, address, sizeof(address)))
        address[0] = '\0'; /* the other end says what it misses */
    json_object_object_add(info, "address", json_object_new_string(address));
    if (run->ops->rdma)
        perf_ibv_mtu_tell(&m->port, info);
    json_object_object_add(info, "mover", json_object_new_string(m->ctx->device->transport));
    json_object_object_add(info, "udp_port", json_object_new_int(m->info.port));
    json_object_object_add(info, "packet_bytes", json_object_new_uint64(m->packet_bytes));
    json_object_object_add(info, "addr", json_object_new_uint64((uintptr_t)m->rx_buf));
    json_object_object_add(info, "rkey", json_object_new_uint64(m->rx_mr->rkey));
    for (uint32_t i = 0; i < m->num_qps; i++)
        json_object_array_add(qpns, json_object_new_uint64(m->qps[i].qp->qp_num));
    json_object_object_add(info, "qpns", qpns);
}

static int take_qpns(struct perf_run *run, struct json_object *info)
{
    struct mrd_run *m = run->state;
    struct json_object *qpns;

    if (!json_object_object_get_ex(info, "qpns", &qpns) ||
        !json_object_is_type(qpns, json_type_array) || json_object_array_length(qpns) != m->num_qps)
        return -EPROTO;
    for (uint32_t i = 0; i < m->num_qps; i++)
        m->qps[i].remote_qpn = (uint32_t)json_object_get_uint64(json_object_array_get_idx(qpns, i));
    return 0;
}

/*
 * Over UDP the other end is where the control connection leads, at the port that it told: a context that is bound
 * to no address cannot know which of its addresses is meant.
 */
static int take_address(struct perf_run *run, struct json_object *info)
{
    struct mrd_run *m = run->state;
    const char *address = perf_json_get_string(info, "address"),
               *mover = perf_json_get_string(info, "mover");
    uint64_t port;

    if (!address || !mover || perf_json_get_u64(info, "udp_port", &port))
        return -EPROTO;
    if (strcmp(mover, "udp") == 0)
        perf_format_endpoint(m->peer_address, sizeof(m->peer_address), run->control->peer,
                             (unsigned)port);
    else
        snprintf(m->peer_address, sizeof(m->peer_address), "%s", address);
    m->ah = mrd_create_ah(m->pd, m->peer_address);
    return m->ah ? 0 : mrd_call_failed(run, -errno, "mrd_create_ah");
}

static int run_mrd_set_peer(struct perf_run *run, struct json_object *info)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    uint64_t packet_bytes, rkey;
    uint32_t mtu;
    int rc = run->ops->rdma ? perf_ibv_mtu_hear(run, &m->port, info, &mtu) : 0;

    if (rc)
        return rc;
    rc = take_address(run, info);
    if (rc == 0)
        rc = take_qpns(run, info);
    if (rc == 0 && (perf_json_get_u64(info, "packet_bytes", &packet_bytes) ||
                    perf_json_get_u64(info, "addr", &m->remote_addr) ||
                    perf_json_get_u64(info, "rkey", &rkey)))
        rc = -EPROTO;
    if (rc)
        return perf_run_fail(run, rc, "the other end does not say how it is reached");
    m->remote_rkey = (uint32_t)rkey;
    if (packet_bytes < m->packet_bytes)
        m->packet_bytes = (uint32_t)packet_bytes;
    /* A message of no byte has no last byte to poll and no byte to count. */
    m->with_imm = perf_test_is_write(p->test) &&
                  (p->verify || p->size_bytes > m->packet_bytes || p->size_bytes == 0);
    m->takes_recvs = m->with_imm || !perf_test_is_write(p->test);
    mrd_post_prepare(run);
    return mrd_post_recvs(run);
}

static int run_mrd_client(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? mrd_lat_client(run) : mrd_bw_client(run);
}

static int run_mrd_server(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? mrd_lat_server(run) : mrd_bw_server(run);
}

static const char *path_state_name(enum mrd_path_state state)
{
    switch (state) {
    case MRD_PATH_GOOD:
        return "good";
    case MRD_PATH_SUSPENDED:
        return "suspended";
    case MRD_PATH_DEAD:
        return "dead";
    }
    return "unknown";
}

static struct json_object *paths_used(struct mrd_run *m, uint32_t count)
{
    struct json_object *paths = json_object_new_array();

    for (uint32_t i = 0; i < count; i++) {
        struct mrd_path_attr attr;
        if (mrd_query_path(m->ah, i, &attr, sizeof(attr)))
            break;
        struct json_object *path = json_object_new_object();
        json_object_object_add(path, "port", json_object_new_int((int)attr.port));
        json_object_object_add(path, "packets", json_object_new_uint64(attr.packets));
        json_object_object_add(path, "lost", json_object_new_uint64(attr.lost));
        json_object_object_add(path, "srtt_us",
                               attr.srtt_ns ? perf_json_number((double)attr.srtt_ns / 1e3) : NULL);
        json_object_object_add(path, "rtt_min_us",
                               attr.min_rtt_ns ? perf_json_number((double)attr.min_rtt_ns / 1e3)
                                               : NULL);
        json_object_object_add(path, "state", json_object_new_string(path_state_name(attr.state)));
        json_object_array_add(paths, path);
    }
    return paths;
}

static void run_mrd_stats(const struct perf_run *run, struct json_object *report)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;
    struct mrd_peer_attr peer;

    json_object_object_add(report, "device",
                           json_object_new_string(mrd_get_device_name(m->ctx->device)));
    json_object_object_add(report, "packet_bytes", json_object_new_uint64(m->packet_bytes));
    json_object_object_add(report, "paths", json_object_new_int((int)m->info.paths));
    json_object_object_add(report, "spray", json_object_new_string(m->info.spray));
    json_object_object_add(report, "cc", json_object_new_string(m->info.cc));
    json_object_object_add(report, "order", json_object_new_string(p->ordered ? "msg" : "none"));
    json_object_object_add(report, "drop", perf_json_number(p->drop_ppm / 1e6));
    if (mrd_query_peer(m->ah, &peer, sizeof(peer)))
        return; /* the peer is forgotten: what it would have told is null */
    json_object_object_add(report, "packets_sent", json_object_new_uint64(peer.packets_sent));
    json_object_object_add(report, "packets_retransmitted",
                           json_object_new_uint64(peer.packets_retransmitted));
    json_object_object_add(report, "packets_spurious",
                           json_object_new_uint64(peer.packets_spurious));
    json_object_object_add(report, "bytes_sent", json_object_new_uint64(peer.bytes_sent));
    json_object_object_add(report, "paths_used", paths_used(m, peer.paths));
}

static void run_mrd_close(struct perf_run *run)
{
    struct mrd_run *m = run->state;

    for (uint32_t i = 0; i < m->num_qps; i++) {
        if (m->qps[i].qp)
            mrd_destroy_qp(m->qps[i].qp);
        free(m->qps[i].recvs);
        free(m->qps[i].recv_sges);
    }
    free(m->qps);
    if (m->cq)
        mrd_destroy_cq(m->cq);
    if (m->ah)
        mrd_destroy_ah(m->ah);
    mrd_bufs_close(run);
    if (m->pd)
        mrd_dealloc_pd(m->pd);
    if (m->ctx)
        mrd_close_device(m->ctx);
    if (m->verifier_ready)
        perf_verifier_fini(&m->verifier);
    free(m->counters);
}

/* What both share; the device makes the difference. */
#define RUN_MRD_OPS                                                                                \
    .state_bytes = sizeof(struct mrd_run), .open = run_mrd_open, .get_info = run_mrd_get_info,     \
    .set_peer = run_mrd_set_peer, .meet = mrd_meet, .client = run_mrd_client,                      \
    .server = run_mrd_server, .idle = mrd_bw_idle, .stats = run_mrd_stats, .close = run_mrd_close, \
    .peer_state = perf_state_mrd

const struct perf_transport_ops perf_mrd_udp_ops = {.name = "mrd-udp", RUN_MRD_OPS};
const struct perf_transport_ops perf_mrd_ibv_ops = {.name = "mrd-ibv", .rdma = true, RUN_MRD_OPS};
