/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over the loopback, both ends here: sockets and their descriptors, without data.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tools/perf/state.h"

enum { DESCRIPTORS_SPARE = 64 };

static int fail(struct perf_state *s, const char *what)
{
    return perf_fail(s->error, -errno, "%s: %s", what, strerror(errno));
}

static int allow_descriptors(struct perf_state *s)
{
    struct rlimit limit;
    rlim_t wanted = 2 * (rlim_t)s->peers + DESCRIPTORS_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return fail(s, "cannot read the limit of descriptors");
    if (limit.rlim_cur >= wanted)
        return 0;
    limit.rlim_cur = wanted;
    if (wanted <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return perf_fail(s->error, -EMFILE,
                     "%u connections need %llu descriptors, and %llu are allowed: lower --peers, "
                     "or raise the limit with 'ulimit -Hn'",
                     s->peers, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
}

/* Ends with a reset: thousands of connections in TIME_WAIT would disturb what follows. */
static int connect_one(struct perf_state *s, int listener, const struct sockaddr_in *to)
{
    const struct linger reset = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return fail(s, "cannot create a socket");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
        return fail(s, "cannot connect over the loopback");
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return fail(s, "cannot accept a connection");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return 0;
}

int perf_state_tcp(struct perf_state *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int rc = allow_descriptors(s);

    if (rc)
        return rc;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return fail(s, "cannot listen on the loopback");
    for (uint32_t i = 0; i < s->peers && rc == 0; i++) {
        rc = i == s->fewer ? perf_state_mark(s) : 0;
        if (rc == 0)
            rc = connect_one(s, listener, &address);
    }
    s->ends = 2;
    return rc;
}
