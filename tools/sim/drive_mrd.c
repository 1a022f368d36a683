/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows by mrd: a context with one queue pair on each host that has traffic, a flow one RDMA write,
 * or several in a row where it is longer than the buffers. All sources are one buffer, and so are
 * all sinks of a part of the simulation: a thousand hosts would need gigabytes otherwise, and the
 * caches would see each byte once.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cq.h"
#include "core/engine/state.h"
#include "core/list.h"
#include "tools/common/counters.h"
#include "tools/sim/drive.h"
#include "tools/sim/fail.h"
#include "tools/sim/run.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"

enum {
    BUFFER_BYTES = 4 << 20,
    PIECE_BYTES = 8 << 10,
    PEERS_SPARE = 4,
    WRS_MAX = 16384,
    POLL_MAX = 16,
};

struct host {
    struct mrd_context *context; /* NULL: no traffic */
    struct mrd_pd *pd;
    struct mrd_mr *source, *sink;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    uint32_t num_out, num_in; /* flows of the matrix */
    uint32_t num_notes;       /* of those in, whose arrival is to be told */
    uint32_t wrs_free;
    struct mrd_node waiting; /* list of flows that wait for a work request */
};

struct flow {
    struct mrd_ah *ah;
    uint64_t posted_bytes, done_bytes;
    struct mrd_node node; /* in the list of its host */
};

struct simx_drive {
    struct simx_drive_env env;
    struct host *hosts;
    struct flow *flows;
    uint8_t *source, *sinks[MRD_SIM_PARTS_MAX]; /* a sink for each part of the simulation */
    size_t buffer_bytes, mapped_bytes;          /* used of each; its whole pieces */
    uint32_t wrs_a_flow; /* in flight: next pieces of a long flow wait behind the first one */
};

/* -------------------------------------------------------------------------------------- buffers */

/* Bytes of a buffer that are memory of their own: whole pages. */
static size_t piece_bytes(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return page > PIECE_BYTES ? page : PIECE_BYTES;
}

/* Maps the file's pages repeatedly until they fill the buffer. */
static bool map_pieces(uint8_t *buffer, size_t bytes, int fd)
{
    const size_t piece = piece_bytes();

    for (size_t at = 0; at < bytes; at += piece) {
        if (mmap(buffer + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                 fd, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

/*
 * A buffer that maps the same few pages of memory again and again, or NULL; `bytes` are whole
 * pieces. Experiments move gigabytes that no code reads. If all of them are the same few KiB,
 * copying and hashing them does not evict the measured data from the caches.
 */
static uint8_t *alloc_alias(size_t bytes)
{
    uint8_t *buffer = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("mrd_sim", MFD_CLOEXEC);
    bool ok = buffer != MAP_FAILED && fd >= 0 && ftruncate(fd, (off_t)piece_bytes()) == 0 &&
              map_pieces(buffer, bytes, fd);

    if (fd >= 0)
        close(fd); /* the mappings keep it */
    if (!ok && buffer != MAP_FAILED)
        munmap(buffer, bytes);
    return ok ? buffer : NULL;
}

/* ------------------------------------------------------------------------------- open and close */

static void count_traffic(struct simx_drive *d)
{
    const struct simx_cm *cm = d->env.cm;

    /* Behind the piece that is waited for as much as a window may be, twice the BDP. */
    d->wrs_a_flow = 1 + (uint32_t)ceil(2 * d->env.net->bdp_bytes / BUFFER_BYTES);
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        const struct simx_flow *flow = &cm->flows[i];

        d->hosts[flow->src].num_out++;
        d->hosts[flow->dst].num_in++;
        d->hosts[flow->dst].num_notes += flow->recv_done >= 0;
        if (flow->bytes > d->buffer_bytes)
            d->buffer_bytes = flow->bytes < BUFFER_BYTES ? flow->bytes : BUFFER_BYTES;
    }
    d->mapped_bytes = (d->buffer_bytes + piece_bytes() - 1) / piece_bytes() * piece_bytes();
}

static uint8_t *sink_of(const struct simx_drive *d, uint32_t host)
{
    return d->sinks[mrd_sim_part_of(d->env.sim, host)];
}

static bool alloc_sinks(struct simx_drive *d)
{
    for (uint32_t i = 0; i < d->env.cm->nodes; i++) {
        uint8_t **sink = &d->sinks[mrd_sim_part_of(d->env.sim, i)];

        if (!*sink)
            *sink = alloc_alias(d->mapped_bytes);
        if (!*sink)
            return false;
    }
    return true;
}

/* Spare entries: a table that is seven eighths full makes new peers prove their address first. */
static uint32_t table_size(uint32_t peers)
{
    return peers + peers / 4 + PEERS_SPARE;
}

/*
 * Only faults of links corrupt packets. Without them the check of payloads finds nothing. It takes
 * no byte on the wire and no virtual time, but a fifth of the instructions of a run.
 */
static enum mrd_check check_of(const struct simx_config *config)
{
    return config->check || config->faults[0] ? MRD_CHECK_ON : MRD_CHECK_OFF;
}

static int open_host(struct simx_drive *d, uint32_t number)
{
    const struct simx_config *config = d->env.config;
    struct host *host = &d->hosts[number];
    uint64_t wanted = (uint64_t)host->num_out * d->wrs_a_flow;
    uint32_t wrs = wanted < WRS_MAX ? (uint32_t)wanted : WRS_MAX;
    uint32_t peers = host->num_out + host->num_in;

    mrd_list_init(&host->waiting);
    if (host->num_out + host->num_in == 0)
        return 0;
    host->context = mrd_open_device(
        mrd_sim_device(d->env.sim, number),
        &(struct mrd_context_attr){
            .comp_mask = MRD_CONTEXT_ATTR_SEED | MRD_CONTEXT_ATTR_CHALLENGE,
            .paths = config->paths,
            .mtu = config->payload_bytes,
            .spray = config->spray,
            .cc = config->cc,
            .check = check_of(config),
            .key_file = config->key_file[0] ? config->key_file : NULL,
            .max_peers = table_size(peers < d->env.cm->nodes ? peers : d->env.cm->nodes),
            .max_flows = host->num_out + PEERS_SPARE,
            .threading = MRD_THREADING_SINGLE,
            .seed = config->seed * 0x9e3779b97f4a7c15u + number,
        });
    if (!host->context)
        return -errno;
    host->pd = mrd_alloc_pd(host->context);
    if (!host->pd)
        return -errno;
    host->source = mrd_reg_mr(host->pd, d->source, d->buffer_bytes, 0);
    host->sink = mrd_reg_mr(host->pd, sink_of(d, number), d->buffer_bytes,
                            MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    host->cq = mrd_create_cq(host->context, (int)(wrs + host->num_notes + 1), NULL);
    if (!host->source || !host->sink || !host->cq)
        return -errno;
    host->qp = mrd_create_qp(
        host->pd, &(struct mrd_qp_init_attr){
                      .send_cq = host->cq,
                      .recv_cq = host->cq,
                      .cap = {.max_send_wr = wrs + 1, .max_recv_wr = host->num_notes + 1},
                  });
    if (!host->qp)
        return -errno;
    host->wrs_free = wrs;
    for (uint32_t i = 0; i < host->num_notes; i++) {
        struct mrd_recv_wr wr = {0}, *bad;
        int ret = mrd_post_recv(host->qp, &wr, &bad);

        if (ret != 0)
            return ret;
    }
    return 0;
}

static void close_host(struct host *host)
{
    if (host->qp)
        (void)mrd_destroy_qp(host->qp);
    if (host->cq)
        (void)mrd_destroy_cq(host->cq);
    if (host->sink)
        (void)mrd_dereg_mr(host->sink);
    if (host->source)
        (void)mrd_dereg_mr(host->source);
    if (host->pd)
        (void)mrd_dealloc_pd(host->pd);
    if (host->context)
        (void)mrd_close_device(host->context);
}

static void mrd_close(struct simx_drive *d)
{
    mrd_sim_set_turn_hook(d->env.sim, NULL, NULL);
    for (uint32_t i = 0; d->flows && i < d->env.cm->num_flows; i++) {
        if (d->flows[i].ah)
            (void)mrd_destroy_ah(d->flows[i].ah);
    }
    for (uint32_t i = 0; d->hosts && i < d->env.cm->nodes; i++)
        close_host(&d->hosts[i]);
    if (d->source)
        munmap(d->source, d->mapped_bytes);
    for (unsigned i = 0; i < MRD_SIM_PARTS_MAX; i++) {
        if (d->sinks[i])
            munmap(d->sinks[i], d->mapped_bytes);
    }
    free(d->flows);
    free(d->hosts);
    free(d);
}

/* ---------------------------------------------------------------------------------------- flows */

/* Post the next piece of a flow; false: it waits for a work request. */
static int post_piece(struct simx_drive *d, uint32_t number)
{
    const struct simx_flow *what = &d->env.cm->flows[number];
    struct host *from = &d->hosts[what->src], *to = &d->hosts[what->dst];
    struct flow *flow = &d->flows[number];
    uint64_t left = what->bytes - flow->posted_bytes;
    uint32_t bytes = (uint32_t)(left < d->buffer_bytes ? left : d->buffer_bytes);
    bool is_last = bytes == left;
    struct mrd_sge sge = {
        .addr = (uintptr_t)d->source, .length = bytes, .lkey = from->source->lkey};
    struct mrd_send_wr wr = {
        .wr_id = number,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = is_last && what->recv_done >= 0 ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_RDMA_WRITE,
        .send_flags = MRD_SEND_SIGNALED,
        .imm_data = number,
        .ud = {.ah = flow->ah, .remote_qpn = to->qp->qp_num},
        .wr.rdma = {.remote_addr = (uintptr_t)sink_of(d, what->dst), .rkey = to->sink->rkey},
    };
    struct mrd_send_wr *bad;

    if (from->wrs_free == 0) {
        mrd_list_append(&from->waiting, &flow->node);
        return 0;
    }

    int ret = mrd_post_send(from->qp, &wr, &bad);

    if (ret == 0) {
        from->wrs_free--;
        flow->posted_bytes += bytes;
    }
    return ret;
}

static int mrd_start(struct simx_drive *d, uint32_t number)
{
    const struct simx_flow *what = &d->env.cm->flows[number];
    struct flow *flow = &d->flows[number];
    char address[MRD_ADDRESS_MAX];

    snprintf(address, sizeof(address), "sim:%u", what->dst);
    flow->ah = mrd_create_ah(d->hosts[what->src].pd, address);
    if (!flow->ah)
        return -errno;
    mrd_list_init(&flow->node);
    for (unsigned i = 0;
         i < d->wrs_a_flow && flow->posted_bytes < what->bytes && mrd_list_empty(&flow->node);
         i++) {
        int ret = post_piece(d, number);

        if (ret != 0)
            return ret;
    }
    return 0;
}

static void tell(struct simx_drive *d, uint32_t flow, enum simx_flow_event event, const char *why)
{
    d->env.event(d->env.arg, flow, event, why);
}

static void send_completed(struct simx_drive *d, struct host *host, const struct mrd_wc *wc)
{
    uint32_t number = (uint32_t)wc->wr_id;
    const struct simx_flow *what = &d->env.cm->flows[number];
    struct flow *flow = &d->flows[number];
    int ret = 0;

    host->wrs_free++;
    if (wc->status != MRD_WC_SUCCESS) {
        tell(d, number, SIMX_FAILED, mrd_wc_status_str(wc->status));
        return;
    }
    flow->done_bytes += wc->byte_len;
    if (flow->posted_bytes < what->bytes && mrd_list_empty(&flow->node))
        ret = post_piece(d, number);
    while (ret == 0 && !mrd_list_empty(&host->waiting) && host->wrs_free > 0) {
        struct flow *next = mrd_container_of(mrd_list_pop(&host->waiting), struct flow, node);

        ret = post_piece(d, (uint32_t)(next - d->flows));
    }
    if (ret != 0)
        tell(d, number, SIMX_FAILED, "its next piece could not be posted");
    else if (flow->done_bytes == what->bytes)
        tell(d, number, SIMX_SENT, NULL);
}

/* After each turn of a host: a look into memory tells whether there is anything
 * to poll. */
static void turned(void *arg, uint32_t number)
{
    struct simx_drive *d = arg;
    struct host *host = &d->hosts[number];
    const struct mrd_cq_impl *cq = host->cq ? mrd_cq_impl(host->cq) : NULL;
    struct mrd_wc wc[POLL_MAX];

    while (cq && cq->head != cq->tail) {
        int n = mrd_poll_cq(host->cq, POLL_MAX, wc);

        for (int i = 0; i < n; i++) {
            if (wc[i].opcode == MRD_WC_RECV_RDMA_WITH_IMM)
                tell(d, wc[i].imm_data, SIMX_RECEIVED, NULL);
            else
                send_completed(d, host, &wc[i]);
        }
        if (n <= 0)
            return;
    }
}

/* ------------------------------------------------------------------------------------- the rest */

static struct simx_drive *mrd_open(const struct simx_drive_env *env)
{
    struct simx_drive *d = calloc(1, sizeof(*d));

    if (!d)
        goto no_memory;
    d->env = *env;
    d->hosts = calloc(env->cm->nodes, sizeof(*d->hosts));
    d->flows = calloc(env->cm->num_flows, sizeof(*d->flows));
    if (!d->hosts || !d->flows)
        goto no_memory;
    count_traffic(d);
    d->source = alloc_alias(d->mapped_bytes);
    if (!d->source || !alloc_sinks(d))
        goto no_memory;
    mrd_sim_set_tune(env->sim, &env->config->tune);
    mrd_sim_set_large_pages(env->sim, true);
    for (uint32_t i = 0; i < env->cm->nodes; i++) {
        if (open_host(d, i) == 0)
            continue;
        simx_error_set("host %u: %s", i, mrd_last_error());
        mrd_close(d);
        return NULL;
    }
    mrd_sim_set_turn_hook(env->sim, turned, d);
    return d;

no_memory:
    simx_error_set("no memory for %u hosts and %u flows", env->cm->nodes, env->cm->num_flows);
    if (d)
        mrd_close(d);
    return NULL;
}

/*
 * Of a peer that rests: its record, number and bucket. Of one that is active: its number, and its
 * entry with a share of the index by address, which has two buckets for each, and of the timers'
 * heap.
 */
enum {
    IDLE_PEER_BYTES = sizeof(struct mrd_idle_peer) + sizeof(void *) + sizeof(uint32_t),
    AWAKE_PEER_BYTES = sizeof(struct mrd_peer) + 4 * sizeof(void *),
};

/* To a peer with few packets in flight. */
static uint64_t tx_half_bytes(const struct simx_config *config)
{
    uint32_t paths = config->paths < MRD_PATHS_FIRST ? config->paths : MRD_PATHS_FIRST;

    return sizeof(struct mrd_send_state) +
           paths * (sizeof(struct mrd_path) + sizeof(struct mrd_path_load));
}

/* Entries, the send and receive states of active ones, and records of packets in flight. */
static uint64_t state_bytes(const struct host *host)
{
    if (!host->context)
        return 0;

    const struct mrd_peers *peers = &mrd_context_engine(host->context)->peers;
    uint64_t bytes = peers->num_idle * (uint64_t)IDLE_PEER_BYTES;

    for (const struct mrd_node *n = peers->active.next; n != &peers->active; n = n->next)
        bytes += AWAKE_PEER_BYTES +
                 mrd_peer_bytes(peers, mrd_container_of(n, const struct mrd_peer, node));
    return bytes;
}

static void mrd_totals(struct simx_drive *d, struct simx_totals *totals)
{
    struct counters counters;

    *totals =
        (struct simx_totals){.cuts = UINT64_MAX, /* not counted */
                             .idle_peer_bytes = IDLE_PEER_BYTES,
                             .active_peer_bytes = AWAKE_PEER_BYTES + tx_half_bytes(d->env.config) +
                                                  sizeof(struct mrd_recv_state)};
    for (uint32_t i = 0; i < d->env.cm->nodes; i++) {
        counters_read(&counters, d->hosts[i].context);
        totals->packets += counters_value(&counters, "tx_packets");
        totals->retransmitted += counters_value(&counters, "retx_packets");
        /*
         * As the models count: where it arrives. The sender's own counter leaves probes and copies
         * out.
         */
        totals->spurious += counters_value(&counters, "rx_duplicates");
        totals->acks += counters_value(&counters, "tx_acks");
        totals->timeouts += counters_value(&counters, "retx_timeout");
        totals->paths_suspended += counters_value(&counters, "paths_suspended");
        totals->paths_replaced += counters_value(&counters, "paths_replaced");
        totals->state_bytes += state_bytes(&d->hosts[i]);
    }
}

static uint64_t mrd_received(struct simx_drive *d, uint32_t host)
{
    struct counters counters;

    counters_read(&counters, d->hosts[host].context);
    return counters_value(&counters, "rx_bytes");
}

static uint64_t mrd_window(struct simx_drive *d, uint32_t flow)
{
    struct mrd_peer_attr attr = {0};

    /* Before the first packet there is no such peer, and no window. */
    if (d->flows[flow].ah)
        (void)mrd_query_peer(d->flows[flow].ah, &attr, sizeof(attr));
    return attr.cwnd_bytes;
}

const struct simx_drive_ops simx_drive_mrd = {
    .open = mrd_open,
    .start = mrd_start,
    .totals = mrd_totals,
    .received = mrd_received,
    .window = mrd_window,
    .close = mrd_close,
};
