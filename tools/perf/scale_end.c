/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of a measurement do alike: open, read memory and counters, name peers.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

#define SPIN_NS       (20 * 1000ull)
#define SLEEP_MOST_NS PERF_MSEC_NS /* then it is looked whether it is over */

enum {
    DEPTH_DEFAULT = 128,
    COUNTERS_MAX = 256, /* more than there are */
    FLOWS_SPARE = 8192, /* send queues with work, of idle peers that are being made, too */
};

uint32_t scale_depth(const struct perf_options *o)
{
    return o->params.tx_depth ? o->params.tx_depth : DEPTH_DEFAULT;
}

int scale_fail(const struct scale_end *end, int rc, const char *what)
{
    const char *why = mrd_last_error();

    return perf_fail(end->error, rc ? rc : -EIO, "%s: %s", what,
                     why[0] ? why : strerror(rc ? -rc : EIO));
}

int scale_memory(const struct scale_end *end, int64_t *bytes)
{
    struct perf_memory memory;
    int rc = perf_memory_read(&memory, end->error);

    if (rc == 0)
        *bytes = memory.user_bytes - end->before_bytes;
    return rc;
}

int scale_open(struct scale_end *end, const struct mrd_context_attr *more,
               const struct mrd_qp_cap *cap, void *at, size_t bytes)
{
    const int access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE;
    const struct perf_params *p = &end->run->options->params;
    struct mrd_context_attr attr = *more;
    int rc = scale_memory(end, &end->before_bytes);

    if (rc)
        return rc;
    attr.paths = end->run->paths;
    attr.mtu = p->mtu;
    attr.spray = p->spray[0] ? p->spray : NULL;
    attr.cc = p->cc[0] ? p->cc : NULL;
    attr.max_peers = end->run->peers;
    attr.max_flows =
        FLOWS_SPARE + scale_depth(end->run->options) + (p->ordered ? attr.max_peers : 0);
    attr.threading = MRD_THREADING_SINGLE;
    attr.rx_drop_ppm = p->drop_ppm;
    rc = perf_mrd_open(end->run->options, p, NULL, &attr, &end->ctx, end->error);
    if (rc)
        return rc;
    end->pd = mrd_alloc_pd(end->ctx);
    end->mr = end->pd ? mrd_reg_mr(end->pd, at, bytes, access) : NULL;
    if (!end->mr)
        return scale_fail(end, -errno, "mrd_reg_mr");
    end->cq = mrd_create_cq(end->ctx, (int)(cap->max_send_wr + cap->max_recv_wr), NULL);
    struct mrd_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .cap = *cap,
        .sq_sig_all = 1,
        .order = p->ordered ? MRD_ORDER_MSG : MRD_ORDER_NONE,
        .qkey = MRD_RUN_QKEY,
    };
    end->qp = end->cq ? mrd_create_qp(end->pd, &init) : NULL;
    return end->qp ? 0 : scale_fail(end, -errno, "mrd_create_qp");
}

void scale_wait(struct scale_end *end, bool busy)
{
    struct pollfd fd = {.fd = mrd_context_fd(end->ctx), .events = POLLIN};
    uint64_t now_ns = perf_now_ns(), most_ns;

    if (busy || end->busy_ns == 0)
        end->busy_ns = now_ns;
    if (now_ns - end->busy_ns < SPIN_NS)
        return;
    most_ns = mrd_next_timeout_ns(end->ctx);
    if (most_ns > SLEEP_MOST_NS)
        most_ns = SLEEP_MOST_NS;
    ppoll(&fd, 1, &(struct timespec){.tv_nsec = (long)most_ns}, NULL);
}

uint64_t scale_counter(const struct scale_end *end, const char *name)
{
    struct mrd_counter counters[COUNTERS_MAX];
    int count = mrd_query_counters(end->ctx, counters, COUNTERS_MAX);

    for (int i = 0; i < count && i < COUNTERS_MAX; i++) {
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    }
    return 0;
}

struct mrd_ah *scale_handle(const struct scale_end *end, uint32_t peer, uint16_t port)
{
    char address[MRD_ADDRESS_MAX];

    snprintf(address, sizeof(address), "10.%u.%u.%u:%u", SCALE_ADDRESS_FIRST + (peer >> 16),
             peer >> 8 & 0xff, peer & 0xff, port);
    struct mrd_ah *ah = mrd_create_ah(end->pd, address);
    if (!ah)
        scale_fail(end, -errno, "mrd_create_ah");
    return ah;
}
