/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of a measurement do alike: open, read memory and counters, name peers.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/counters.h"
#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

#define SPIN_NS       (20 * 1000ull)
#define SLEEP_MOST_NS PERF_MSEC_NS /* then it is looked whether it is over */

enum {
    DEPTH_DEFAULT = 128,
    FLOWS_SPARE = 8192, /* send queues with work, of idle peers that are being made, too */
};

uint32_t scale_depth(const struct perf_options *o)
{
    return o->params.tx_depth ? o->params.tx_depth : DEPTH_DEFAULT;
}

int scale_fail(const struct scale_end *end, int rc, const char *what)
{
    return perf_mrd_fail(end->error, rc, what);
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
    if (attr.max_peers == 0)
        attr.max_peers = end->run->peers;
    attr.max_flows =
        FLOWS_SPARE + scale_depth(end->run->options) + (p->ordered ? attr.max_peers : 0);
    attr.threading = MRD_THREADING_SINGLE;
    attr.rx_drop_ppm = p->drop_ppm;
    rc = perf_mrd_open_device(end->run->options, p, NULL, &attr, &end->ctx, end->error);
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
        .qkey = PERF_MRD_QKEY,
    };
    end->qp = end->cq ? mrd_create_qp(end->pd, &init) : NULL;
    return end->qp ? 0 : scale_fail(end, -errno, "mrd_create_qp");
}

void scale_wait(struct scale_end *const *ends, unsigned count, bool busy)
{
    struct pollfd fds[PERF_SCALE_CONTEXTS_MAX];
    uint64_t now_ns = clock_now_ns(), most_ns = SLEEP_MOST_NS;

    if (busy || ends[0]->busy_ns == 0)
        ends[0]->busy_ns = now_ns;
    if (now_ns - ends[0]->busy_ns < SPIN_NS)
        return;
    for (unsigned i = 0; i < count; i++) {
        uint64_t due_ns = mrd_next_timeout_ns(ends[i]->ctx);
        most_ns = due_ns < most_ns ? due_ns : most_ns;
        fds[i] = (struct pollfd){.fd = mrd_context_fd(ends[i]->ctx), .events = POLLIN};
    }
    ppoll(fds, count, &(struct timespec){.tv_nsec = (long)most_ns}, NULL);
}

uint32_t scale_contexts(const struct scale_run *run)
{
    return run->options->scale_contexts ? run->peers : 1;
}

uint64_t scale_counter(const struct scale_end *end, const char *name)
{
    struct counters counters;

    counters_read(&counters, end->ctx);
    return counters_value(&counters, name);
}

void scale_address(char address[SCALE_ADDRESS_BYTES], uint32_t peer)
{
    snprintf(address, SCALE_ADDRESS_BYTES, "10.%u.%u.%u",
             (SCALE_ADDRESS_FIRST + (peer >> 16)) & 0xff, peer >> 8 & 0xff, peer & 0xff);
}

/* A handle for the peer of that number, on `port`; NULL with a sentence. */
static struct mrd_ah *make_handle(const struct scale_end *end, uint32_t peer, uint16_t port)
{
    char host[SCALE_ADDRESS_BYTES], address[MRD_ADDRESS_MAX];

    scale_address(host, peer);
    snprintf(address, sizeof(address), "%s:%u", host, port);
    struct mrd_ah *ah = mrd_create_ah(end->pd, address);
    if (!ah)
        scale_fail(end, -errno, "mrd_create_ah");
    return ah;
}

int scale_alloc_handles(struct scale_end *end)
{
    size_t bytes = end->run->peers * sizeof(struct mrd_ah *);

    end->ahs = malloc(bytes);
    if (!end->ahs)
        return perf_fail(end->error, -ENOMEM, "no memory for %u handles", end->run->peers);
    memset(end->ahs, 1, bytes); /* so that it does not count */
    return 0;
}

int scale_make_handles(struct scale_end *end, const struct scale_place *places, uint32_t num_places)
{
    struct scale_run *run = end->run;
    int64_t bytes = run->empty_bytes;

    for (uint32_t i = 0; i < run->peers; i++) {
        end->ahs[i] = make_handle(end, i, places[i % num_places].port);
        if (!end->ahs[i])
            return -EIO;
    }
    int rc = scale_memory(end, &bytes);
    run->handle_bytes = bytes - run->empty_bytes;
    return rc;
}

int scale_check_peers(const struct scale_end *end)
{
    uint64_t peers = scale_counter(end, "peers");

    return peers == end->run->peers
               ? 0
               : perf_fail(end->error, -EPROTO, "the context knows %llu peers, and not %u",
                           (unsigned long long)peers, end->run->peers);
}
