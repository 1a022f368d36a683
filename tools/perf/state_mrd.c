/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of one context: addresses of this host at which nobody listens.
 *
 * An idle peer is an entry and an address handle. To make some, a few peers at a time are sent a
 * message each, which fails when they do not answer. A peer with a message under way has send
 * state, too. For that all are sent a message at once, and memory is read before the first fails.
 */
#include <errno.h>
#include <string.h>

#include "tools/perf/mrd.h"
#include "tools/perf/state.h"

enum {
    AT_ONCE_MAX = 64,
    SILENT_MS = 500,      /* until a peer is given up */
    ACTIVE_MS = 50,       /* for the first packets of all to leave */
    DISCARD_PORT = 9,     /* nobody listens */
    QPN_FIRST = 0xe00000, /* far above what is in use */
    MESSAGE_BYTES = 64,
};

struct peers {
    struct perf_state *s;
    struct mrd_context *ctx;
    struct mrd_pd *pd;
    struct mrd_mr *mr;
    struct mrd_ah **ahs;
    char gid[MRD_ADDRESS_MAX]; /* of an RDMA device */
    char message[MESSAGE_BYTES];
};

static int open_context(struct peers *p)
{
    struct perf_state *s = p->s;
    const struct perf_params *params = &s->options->params;
    struct perf_ibv_port port;
    struct mrd_context_attr attr = {
        .paths = params->paths,
        .mtu = s->ops->rdma ? 0 : params->mtu,
        .max_peers = s->peers,
        .max_flows = s->peers + AT_ONCE_MAX,
        .peer_timeout_ns = SILENT_MS * PERF_MSEC_NS,
        .progress = MRD_PROGRESS_MANUAL,
        .threading = MRD_THREADING_SINGLE,
    };
    int rc = s->ops->rdma ? perf_ibv_find_port(s->options, &port, s->error) : 0;

    if (rc == 0)
        rc = perf_mrd_open_device(s->options, params, s->ops->rdma ? &port : NULL, &attr, &p->ctx,
                                  s->error);
    if (rc)
        return rc;
    rc = mrd_query_address(p->ctx, p->gid, sizeof(p->gid));
    if (rc)
        return perf_mrd_fail(p->s->error, rc, "mrd_query_address");
    p->gid[strcspn(p->gid, "/")] = '\0';
    p->pd = mrd_alloc_pd(p->ctx);
    p->mr = p->pd ? mrd_reg_mr(p->pd, p->message, sizeof(p->message), 0) : NULL;
    return p->mr ? 0 : perf_mrd_fail(p->s->error, -errno, "mrd_reg_mr");
}

static int make_ah(struct peers *p, uint32_t i)
{
    char address[2 * MRD_ADDRESS_MAX];

    if (p->s->ops->rdma)
        snprintf(address, sizeof(address), "%s/%u", p->gid, QPN_FIRST + i);
    else
        snprintf(address, sizeof(address), "127.%u.%u.%u:%u", 1 + (i >> 16), i >> 8 & 0xff,
                 i & 0xff, DISCARD_PORT);
    p->ahs[i] = mrd_create_ah(p->pd, address);
    return p->ahs[i] ? 0 : perf_mrd_fail(p->s->error, -errno, "mrd_create_ah");
}

/* A queue pair and its completion queue for so many messages; they live till the process ends. */
static struct mrd_qp *make_qp(struct peers *p, uint32_t messages)
{
    struct mrd_cq *cq = mrd_create_cq(p->ctx, (int)messages + 1, NULL);
    struct mrd_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = messages, .max_recv_wr = 1},
    };

    return cq ? mrd_create_qp(p->pd, &attr) : NULL;
}

static int send_one(struct peers *p, struct mrd_qp *qp, uint32_t i)
{
    return perf_mrd_send_silent(qp, p->mr, p->ahs[i], p->s->error);
}

static int make_some_peers(struct peers *p, struct mrd_qp *qp, uint32_t first, uint32_t count)
{
    int rc = 0;

    for (uint32_t i = first; i < first + count && rc == 0; i++) {
        rc = i == p->s->fewer ? perf_state_mark(p->s) : 0;
        if (rc == 0)
            rc = make_ah(p, i);
        if (rc == 0)
            rc = send_one(p, qp, i);
    }
    return rc ? rc : perf_mrd_wait_failures(qp, count, NULL, NULL, p->s->error);
}

/* The same number at once for any number of peers, because they share send states. */
static int make_idle_peers(struct peers *p)
{
    const struct perf_state *s = p->s;
    uint32_t at_once = s->fewer < AT_ONCE_MAX ? s->fewer : AT_ONCE_MAX;
    struct mrd_qp *qp = make_qp(p, at_once);
    int rc = qp ? 0 : perf_mrd_fail(p->s->error, -errno, "mrd_create_qp");

    for (uint32_t i = 0; i < s->peers && rc == 0; i += at_once)
        rc = make_some_peers(p, qp, i, s->peers - i < at_once ? s->peers - i : at_once);
    return rc;
}

static int make_active_peers(struct peers *p)
{
    struct mrd_qp *qp = make_qp(p, p->s->peers);
    int rc = qp ? 0 : perf_mrd_fail(p->s->error, -errno, "mrd_create_qp");

    for (uint32_t i = 0; i < p->s->peers && rc == 0; i++)
        rc = send_one(p, qp, i);
    for (uint64_t until_ns = clock_now_ns() + ACTIVE_MS * PERF_MSEC_NS;
         rc == 0 && clock_now_ns() < until_ns;) {
        int n = mrd_progress(p->ctx);
        rc = n < 0 ? perf_mrd_fail(p->s->error, n, "mrd_progress") : 0;
    }
    return rc;
}

int perf_state_mrd(struct perf_state *s)
{
    static struct peers p;
    static struct mrd_ah *ahs[PERF_PEERS_MAX];

    p = (struct peers){.s = s, .ahs = ahs};
    int rc = open_context(&p);
    if (rc == 0)
        rc = make_idle_peers(&p);
    if (rc == 0)
        rc = perf_memory_read(&s->idle, s->error);
    s->has_idle = rc == 0;
    return rc ? rc : make_active_peers(&p);
}
