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
#include <string.h>
#include <sys/socket.h>

#include "tools/perf/mrd.h"
#include "tools/perf/scale.h"

enum {
    AT_ONCE_MIN = 32,
    AT_ONCE_MAX = 4096,
    AT_ONCE_SHARE = 128, /* of all peers, if that is between the two */
    SILENT_MS = 50,      /* until a peer is given up */
};

struct idle {
    struct scale_end end;
    struct scale_place place; /* of the silent socket */
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
    s->place.port = ntohs(any.sin_port);
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

static void wait_idle(void *arg, bool busy)
{
    scale_wait(&(struct scale_end *){arg}, 1, busy);
}

static int make_peers(struct idle *s)
{
    uint32_t peers = s->end.run->peers;
    int rc = 0;

    for (uint32_t first = 0; first < peers && rc == 0; first += s->end.run->at_once) {
        uint32_t count = peers - first < s->end.run->at_once ? peers - first : s->end.run->at_once;
        for (uint32_t i = 0; i < count && rc == 0; i++)
            rc = perf_mrd_send_silent(s->end.qp, s->end.mr, s->end.ahs[first + i], s->end.error);
        if (rc == 0)
            rc = perf_mrd_wait_failures(s->end.qp, count, wait_idle, &s->end, s->end.error);
        if (rc == 0 && first == 0)
            rc = scale_memory(&s->end, &s->end.run->first_bytes);
    }
    if (rc == 0)
        rc = scale_check_peers(&s->end);
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

    s = (struct idle){.end = {.run = run, .error = run->error}};
    run->at_once = at_once(run->peers);
    int rc = scale_alloc_handles(&s.end);
    if (rc == 0)
        rc = open_silence(&s);
    if (rc == 0)
        rc = open_idle(&s);
    if (rc == 0)
        rc = scale_make_handles(&s.end, &s.place, 1);
    return rc ? rc : make_peers(&s);
}
