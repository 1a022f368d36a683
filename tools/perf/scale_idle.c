/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The context that is measured, with idle peers: an entry and an address handle each.
 *
 * Halves of a peer that was active live for seconds: made one after the other, a million would be
 * there at once. A peer that never answers is given up soon, and only its entry is left. So at each
 * address a socket takes packets and says nothing. Some peers at a time are sent a message, which
 * fails.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

enum {
    AT_ONCE_MIN = 32,
    AT_ONCE_MAX = 4096,
    AT_ONCE_SHARE = 128, /* of all peers, if that is between the two */
    SILENT_MS = 50,      /* until a peer is given up */
    PATIENCE_S = 60,     /* for those at once to fail */
};

struct idle {
    struct scale_end end;
    struct mrd_ah **ahs;
    uint16_t port; /* of the silent socket */
    char message[8];
};

/* A socket at all addresses that nobody reads. */
static int open_silence(struct idle *s)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t len = sizeof(any);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&any, len) ||
        getsockname(fd, (struct sockaddr *)&any, &len))
        return perf_fail(s->end.error, -errno, "cannot bind a silent socket: %s", strerror(errno));
    s->port = ntohs(any.sin_port);
    return 0;
}

static int open_idle(struct idle *s)
{
    struct mrd_context_attr attr = {
        .peer_timeout_ns = SILENT_MS * PERF_MSEC_NS,
    };
    struct mrd_qp_cap cap = {.max_send_wr = s->end.run->at_once, .max_recv_wr = 1};
    struct scale_run *run = s->end.run;
    int rc = scale_open(&s->end, &attr, &cap, s->message, sizeof(s->message));

    return rc ? rc : scale_memory(&s->end, &run->empty_bytes);
}

static int make_handles(struct idle *s)
{
    struct scale_run *run = s->end.run;
    int64_t bytes;

    for (uint32_t i = 0; i < run->peers; i++) {
        s->ahs[i] = scale_handle(&s->end, i, s->port);
        if (!s->ahs[i])
            return -EIO;
    }
    int rc = scale_memory(&s->end, &bytes);
    run->handle_bytes = bytes - run->empty_bytes;
    return rc;
}

static int send_one(struct idle *s, uint32_t i)
{
    struct mrd_sge sge = {(uintptr_t)s->message, sizeof(s->message), s->end.mr->lkey};
    struct mrd_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = MRD_WR_SEND,
                                 .ud = {.ah = s->ahs[i], .remote_qpn = 1},
                             };
    int rc = mrd_post_send(s->end.qp, &wr, &bad);

    return rc ? scale_fail(&s->end, rc, "mrd_post_send") : 0;
}

static int wait_failures(struct idle *s, uint32_t count)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * PERF_SEC_NS;
    struct mrd_wc wcs[SCALE_BATCH];

    while (count) {
        int n = mrd_poll_cq(s->end.cq, SCALE_BATCH, wcs);
        if (n < 0)
            return scale_fail(&s->end, n, "mrd_poll_cq");
        scale_wait(&(struct scale_end *){&s->end}, 1, n > 0);
        count -= (uint32_t)n;
        perf_mrd_forget_events(s->end.ctx);
        if (clock_now_ns() > until_ns)
            return perf_fail(s->end.error, -ETIMEDOUT,
                             "messages to silent peers did not fail within %d s", PATIENCE_S);
    }
    return 0;
}

static int make_peers(struct idle *s)
{
    uint32_t peers = s->end.run->peers;
    int rc = 0;

    for (uint32_t first = 0; first < peers && rc == 0; first += s->end.run->at_once) {
        uint32_t count = peers - first < s->end.run->at_once ? peers - first : s->end.run->at_once;
        for (uint32_t i = 0; i < count && rc == 0; i++)
            rc = send_one(s, first + i);
        if (rc == 0)
            rc = wait_failures(s, count);
        if (rc == 0 && first == 0)
            rc = scale_memory(&s->end, &s->end.run->first_bytes);
    }
    if (rc == 0 && scale_counter(&s->end, "peers") != peers)
        rc = perf_fail(s->end.error, -EPROTO, "the context knows %llu peers, and not %u",
                       (unsigned long long)scale_counter(&s->end, "peers"), peers);
    return rc ? rc : scale_memory(&s->end, &s->end.run->bytes);
}

static uint32_t at_once(uint32_t peers)
{
    uint32_t share = peers / AT_ONCE_SHARE;

    if (share < AT_ONCE_MIN)
        return peers < AT_ONCE_MIN ? peers : AT_ONCE_MIN;
    return share < AT_ONCE_MAX ? share : AT_ONCE_MAX;
}

int scale_idle(struct scale_run *run)
{
    static struct idle s;

    s = (struct idle){
        .end = {.run = run, .error = run->error},
        .ahs = malloc(run->peers * sizeof(struct mrd_ah *)),
    };
    if (!s.ahs)
        return perf_fail(run->error, -ENOMEM, "no memory for %u handles", run->peers);
    memset(s.ahs, 1, run->peers * sizeof(s.ahs[0])); /* so that it does not count */
    run->at_once = at_once(run->peers);
    int rc = open_silence(&s);
    if (rc == 0)
        rc = open_idle(&s);
    if (rc == 0)
        rc = make_handles(&s);
    return rc ? rc : make_peers(&s);
}
