/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/message.h"
#include "tools/perf/net.h"

enum { COUNTERS_MAX = 256 }; /* more than there are */

/* Read the counter of that name, which was found at *place the last time. 0: there is none. */
static uint64_t read_counter(struct perf_mrd *m, const char *name, int *place)
{
    struct mrd_counter counters[COUNTERS_MAX];
    int count = mrd_query_counters(m->ctx, counters, COUNTERS_MAX);

    for (; *place < count && *place < COUNTERS_MAX; ++*place) {
        if (strcmp(counters[*place].name, name) == 0)
            return counters[*place].value;
    }
    return 0;
}

static uint64_t count_received_bytes(struct perf_run *run)
{
    struct perf_mrd *m = run->state;

    return read_counter(m, "rx_bytes", &m->rx_bytes_place);
}

static uint64_t count_retransmissions(struct perf_run *run)
{
    struct perf_mrd *m = run->state;

    return read_counter(m, "retx_packets", &m->retx_place);
}

static struct mrd_context_attr context_attr(const struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    const struct perf_options *o = run->options;
    bool own_ports = o->num_source_ports &&
                     !(o->local && run->server); /* two ends on one host cannot share them */
    struct mrd_context_attr attr = {
        .paths = p->paths,
        .spray = p->spray[0] ? p->spray : NULL,
        .cc = p->cc[0] ? p->cc : NULL,
        /* Whoever is there polls all the time. */
        .threading = p->threads > 1 ? MRD_THREADING_MULTI : MRD_THREADING_SINGLE,
        .progress = MRD_PROGRESS_MANUAL,
        .rx_drop_ppm = p->drop_ppm,
    };

    if (run->ops->rdma)
        return attr;
    attr.address = run->control->local;
    attr.port = run->server && !o->local ? o->port : 0;
    attr.mtu = p->mtu;
    if (own_ports) {
        attr.source_ports = o->source_ports;
        attr.num_source_ports = attr.paths = o->num_source_ports;
    }
    return attr;
}

/* All threads have one context. */
static int share_context(struct perf_run *run)
{
    struct perf_mrd *m = run->state, *main = run->thread.main->state;

    m->ctx = main->ctx;
    m->pd = main->pd;
    m->info = main->info;
    m->port = main->port;
    m->packet_bytes = main->packet_bytes;
    return 0;
}

static int open_context(struct perf_run *run)
{
    struct perf_mrd *m = run->state;
    bool rdma = run->ops->rdma;
    struct mrd_context_attr attr = context_attr(run);
    int rc = rdma ? perf_ibv_find_port(run->options, &m->port, run->error) : 0;

    if (rdma && rc == 0)
        rc = perf_ibv_mtu_check(run->params.mtu, &m->port, run->error);
    if (rc == 0)
        rc = perf_mrd_open_device(run->options, &run->params, rdma ? &m->port : NULL, &attr,
                                  &m->ctx, run->error);
    if (rc)
        return rc;
    rc = mrd_query_context(m->ctx, &m->info, sizeof(m->info));
    if (rc)
        return perf_mrd_call_failed(run, rc, "mrd_query_context");
    m->packet_bytes =
        run->ops->rdma ? m->info.mtu : perf_net_payload(run->control->fd, m->info.mtu);
    m->pd = mrd_alloc_pd(m->ctx);
    return m->pd ? 0 : perf_mrd_call_failed(run, -errno, "mrd_alloc_pd");
}

static int register_memory(struct perf_run *run)
{
    struct perf_mrd *m = run->state;

    int rx_access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |
                    MRD_ACCESS_REMOTE_ATOMIC;

    m->tx_mr = mrd_reg_mr(m->pd, run->e.tx_buf, run->e.tx_bytes,
                          perf_test_is_request(run->params.test) ? MRD_ACCESS_LOCAL_WRITE : 0);
    m->rx_mr = mrd_reg_mr(m->pd, run->e.rx_buf, run->e.rx_bytes, rx_access);
    return m->tx_mr && m->rx_mr ? 0 : perf_mrd_call_failed(run, -errno, "mrd_reg_mr");
}

/* Messages that a QP may have outstanding. */
static uint32_t send_depth(const struct perf_params *p)
{
    return p->tx_depth > PERF_BATCH ? p->tx_depth : PERF_BATCH;
}

static int open_qp(struct perf_run *run, uint32_t i)
{
    struct perf_mrd *m = run->state;
    const struct perf_params *p = &run->params;
    uint32_t recvs = run->e.qps[i].num_recvs;
    struct mrd_qp_init_attr attr = {
        .send_cq = m->cq,
        .recv_cq = m->cq,
        .cap =
            {
                .max_send_wr = send_depth(p),
                .max_recv_wr = recvs ? recvs : 1,
                .max_inline_data = (uint32_t)p->inline_bytes,
            },
        .max_rd_atomic = p->outs ? p->outs : p->tx_depth,
        .order = p->ordered ? MRD_ORDER_MSG : MRD_ORDER_NONE,
        .qkey = PERF_MRD_QKEY,
    };

    m->qps[i].qp = mrd_create_qp(m->pd, &attr);
    return m->qps[i].qp ? perf_mrd_open_recvs(run, i)
                        : perf_mrd_call_failed(run, -errno, "mrd_create_qp");
}

static int open_queues(struct perf_run *run)
{
    int rc = perf_mrd_open_cq(run, perf_endpoint_cqes(run, send_depth(&run->params)));

    for (uint32_t i = 0; i < run->e.num_qps && rc == 0; i++)
        rc = open_qp(run, i);
    return rc;
}

static int open_end(struct perf_run *run)
{
    int rc = run->thread.main ? share_context(run) : open_context(run);

    if (rc == 0)
        rc = perf_endpoint_open(run);
    if (rc == 0)
        rc = register_memory(run);
    return rc ? rc : open_queues(run);
}

static void get_info(struct perf_run *run, struct json_object *info)
{
    struct perf_mrd *m = run->state;
    struct json_object *qpns = json_object_new_array();
    char address[MRD_ADDRESS_MAX] = "";

    if (mrd_query_address(m->ctx, address, sizeof(address)))
        address[0] = '\0'; /* the other end says what it misses */
    json_add_string(info, "address", address);
    if (run->ops->rdma)
        perf_ibv_mtu_tell(&m->port, info);
    json_add_string(info, "mover", m->ctx->device->transport);
    json_add_string(info, "cipher", m->info.cipher);
    json_add_u64(info, "udp_port", m->info.port);
    json_add_u64(info, "packet_bytes", m->packet_bytes);
    json_add_u64(info, "addr", (uintptr_t)run->e.rx_buf);
    json_add_u64(info, "rkey", m->rx_mr->rkey);
    for (uint32_t i = 0; i < run->e.num_qps; i++)
        json_object_array_add(qpns, json_object_new_uint64(m->qps[i].qp->qp_num));
    json_object_object_add(info, "qpns", qpns);
}

static int take_qpns(struct perf_run *run, struct json_object *info)
{
    struct perf_mrd *m = run->state;
    struct json_object *qpns = json_get_array(info, "qpns", run->e.num_qps);

    for (uint32_t i = 0; qpns && i < run->e.num_qps; i++)
        m->qps[i].remote_qpn = json_u32_at(qpns, i);
    return qpns ? 0 : -EPROTO;
}

/*
 * Over UDP the other end has the control connection's address and the port that it told. Its
 * context may be bound to no address, and then does not know its own.
 */
static int take_address(struct perf_run *run, struct json_object *info)
{
    struct perf_mrd *m = run->state;
    const char *address = json_get_string(info, "address"), *mover = json_get_string(info, "mover");
    uint64_t port;

    if (!address || !mover || json_get_u64(info, "udp_port", &port))
        return -EPROTO;
    if (strcmp(mover, "udp") == 0)
        perf_format_endpoint(m->peer_address, sizeof(m->peer_address), run->control->peer,
                             (unsigned)port);
    else
        snprintf(m->peer_address, sizeof(m->peer_address), "%s", address);
    m->ah = mrd_create_ah(m->pd, m->peer_address);
    return m->ah ? 0 : perf_mrd_call_failed(run, -errno, "mrd_create_ah");
}

/* "AES-128-GCM by libcrypto": the libraries of the ends may differ. */
static bool is_same_cipher(const char *a, const char *b)
{
    size_t len = strcspn(a, " ");

    return len == strcspn(b, " ") && strncmp(a, b, len) == 0;
}

/* Ends that do not open each other's packets would wait in vain. */
static int check_cipher(struct perf_run *run, struct json_object *info)
{
    const char *there = json_get_string(info, "cipher"), *here;
    const char *this_end = run->server ? "server" : "client";
    const char *other_end = run->server ? "client" : "server";

    here = ((struct perf_mrd *)run->state)->info.cipher;
    there = there ? there : "";
    if (is_same_cipher(here, there))
        return 0;
    if (here[0] && there[0])
        return perf_run_fail(run, -EPROTO,
                             "the %s is sealed by %s, the %s by %s: give both the same --key-file",
                             this_end, here, other_end, there);
    return perf_run_fail(run, -EPROTO, "the %s is sealed, the %s is not: --key-file",
                         here[0] ? this_end : other_end, here[0] ? other_end : this_end);
}

static int set_peer(struct perf_run *run, struct json_object *info)
{
    struct perf_mrd *m = run->state;
    uint64_t packet_bytes, rkey;
    uint32_t mtu;
    int rc = run->ops->rdma ? perf_ibv_mtu_hear(run, &m->port, info, &mtu) : 0;

    if (rc == 0)
        rc = check_cipher(run, info);
    if (rc)
        return rc;
    rc = take_address(run, info);
    if (rc == 0)
        rc = take_qpns(run, info);
    if (rc == 0 &&
        (json_get_u64(info, "packet_bytes", &packet_bytes) ||
         json_get_u64(info, "addr", &run->e.remote_addr) || json_get_u64(info, "rkey", &rkey)))
        rc = -EPROTO;
    if (rc)
        return perf_run_fail(run, rc, "the other end does not say how it is reached");
    run->e.remote_rkey = (uint32_t)rkey;
    if (packet_bytes < m->packet_bytes)
        m->packet_bytes = (uint32_t)packet_bytes;
    perf_endpoint_choose_imm(run, run->params.size_bytes > m->packet_bytes);
    perf_mrd_prepare_sends(run);
    return perf_endpoint_post_recvs(run);
}

static double known_us(uint64_t ns)
{
    return ns ? (double)ns / 1e3 : NAN;
}

static struct json_object *paths_used(struct perf_mrd *m, uint32_t count)
{
    static const char *const states[] = {
        [MRD_PATH_GOOD] = "good", [MRD_PATH_SUSPENDED] = "suspended", [MRD_PATH_DEAD] = "dead"};
    struct json_object *paths = json_object_new_array();

    for (uint32_t i = 0; i < count; i++) {
        struct mrd_path_attr attr;
        if (mrd_query_path(m->ah, i, &attr, sizeof(attr)))
            break;
        struct json_object *path = perf_add_path(paths, attr.port, attr.packets);
        json_add_u64(path, "lost", attr.lost);
        json_add_rounded(path, "srtt_us", known_us(attr.srtt_ns));
        json_add_rounded(path, "rtt_min_us", known_us(attr.min_rtt_ns));
        json_add_string(path, "state", states[attr.state]);
    }
    return paths;
}

static void add_stats(const struct perf_run *run, struct json_object *report)
{
    struct perf_mrd *m = run->state;
    const struct perf_params *p = &run->params;
    struct mrd_peer_attr peer;

    json_add_string(report, "device", mrd_get_device_name(m->ctx->device));
    json_add_u64(report, "packet_bytes", m->packet_bytes);
    json_add_u64(report, "paths", (int)m->info.paths);
    json_add_string(report, "spray", m->info.spray);
    json_add_string(report, "cc", m->info.cc);
    json_add_string(report, "order", p->ordered ? "msg" : "none");
    json_add_rounded(report, "drop", p->drop_ppm / 1e6);
    if (m->info.cipher[0])
        json_add_string(report, "cipher", m->info.cipher);
    if (mrd_query_peer(m->ah, &peer, sizeof(peer)))
        return; /* the peer is forgotten: what it would have told is null */
    json_add_u64(report, "packets_sent", peer.packets_sent);
    json_add_u64(report, "packets_retransmitted", peer.packets_retransmitted);
    json_add_u64(report, "packets_spurious", peer.packets_spurious);
    json_add_u64(report, "bytes_sent", peer.bytes_sent);
    json_object_object_add(report, "paths_used", paths_used(m, peer.paths));
}

static void close_end(struct perf_run *run)
{
    struct perf_mrd *m = run->state;

    for (uint32_t i = 0; i < run->e.num_qps; i++) {
        if (m->qps[i].qp)
            mrd_destroy_qp(m->qps[i].qp);
        free(m->qps[i].recvs);
    }
    if (m->cq)
        mrd_destroy_cq(m->cq);
    if (m->channel)
        mrd_destroy_comp_channel(m->channel);
    if (m->ah)
        mrd_destroy_ah(m->ah);
    if (m->tx_mr)
        mrd_dereg_mr(m->tx_mr);
    if (m->rx_mr)
        mrd_dereg_mr(m->rx_mr);
    if (m->pd && !run->thread.main)
        mrd_dealloc_pd(m->pd);
    if (m->ctx && !run->thread.main)
        mrd_close_device(m->ctx);
    perf_endpoint_close(run);
}

/* What both share; the device makes the difference. */
#define PERF_MRD_OPS                                                                               \
    .manual_progress = true, .requests = true, .mutual = true,                                     \
    .state_bytes = sizeof(struct perf_mrd), .open = open_end, .get_info = get_info,                \
    .set_peer = set_peer, .connect_qps = perf_mrd_connect_qps, .post_send = perf_mrd_post_send,    \
    .post_recv = perf_mrd_post_recv, .poll_cq = perf_mrd_poll_cq,                                  \
    .post_credit = perf_mrd_post_credit, .wait = perf_mrd_wait,                                    \
    .count_received_bytes = count_received_bytes, .count_retransmissions = count_retransmissions,  \
    .stats = add_stats, .close = close_end, .peer_state = perf_state_mrd

const struct perf_transport_ops perf_mrd_udp_ops = {.name = "mrd-udp", PERF_MRD_OPS};
const struct perf_transport_ops perf_mrd_ibv_ops = {.name = "mrd-ibv", .rdma = true, PERF_MRD_OPS};
