/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp: one socket. Bandwidth: large writes from, and reads into, one hot buffer. Latency: both ends
 * poll.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/message.h"
#include "tools/perf/net.h"
#include "tools/perf/transport.h"

enum {
    IO_BYTES = 1 << 20,
    CONNECT_TIMEOUT_MS = 10 * 1000, /* the kernel would try for two minutes */
    ACCEPT_TIMEOUT_MS = 10 * 1000,
};

struct tcp {
    int listener, fd; /* -1: none */
    int flags;        /* of send() and recv() */
};

static int tcp_open(struct perf_run *run)
{
    struct tcp *t = run->state;
    uint64_t size = run->params.size_bytes;
    bool lat = perf_test_is_lat(run->params.test);
    size_t bytes = lat ? (size_t)size : IO_BYTES;

    t->listener = t->fd = -1;
    t->flags = MSG_NOSIGNAL | (lat ? MSG_DONTWAIT : 0);
    run->e.batch = size < IO_BYTES ? (uint32_t)(IO_BYTES / size) : 1;
    int rc = perf_endpoint_map(run, bytes, bytes);
    if (rc)
        return rc;
    if (!run->server)
        return 0;
    t->listener = perf_net_bind(run, SOCK_STREAM, 0);
    if (t->listener < 0)
        return t->listener;
    if (listen(t->listener, 1))
        return perf_run_fail(run, -errno, "cannot listen: %s", strerror(errno));
    return 0;
}

static void tcp_get_info(struct perf_run *run, struct json_object *info)
{
    const struct tcp *t = run->state;

    if (run->server)
        json_add_u64(info, "port", perf_control_port(t->listener));
}

static int tcp_connect(struct perf_run *run, struct json_object *info)
{
    struct tcp *t = run->state;
    struct perf_address to;
    uint16_t from = run->options->num_source_ports ? run->options->source_ports[0] : 0;
    uint64_t port;

    if (json_get_u64(info, "port", &port) || port > UINT16_MAX)
        return perf_run_fail(run, -EPROTO, "the server did not tell its port");
    int rc = perf_net_address(run, run->control->peer, (uint16_t)port, &to);
    if (rc)
        return rc;
    t->fd = perf_net_bind(run, SOCK_STREAM, from);
    if (t->fd < 0)
        return t->fd;
    int ms = perf_run_patience_ms(run, CONNECT_TIMEOUT_MS);
    struct timeval patience = {ms / 1000, ms % 1000 * 1000};
    setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)); /* of connect(), too */
    if (connect(t->fd, (struct sockaddr *)&to.ss, to.len)) {
        rc = errno == EINPROGRESS ? ETIMEDOUT : errno;
        return perf_run_fail(run, -rc, "cannot connect to TCP port %u of %s: %s", (unsigned)port,
                             run->control->peer, strerror(rc));
    }
    return 0;
}

static int tcp_set_peer(struct perf_run *run, struct json_object *info)
{
    struct tcp *t = run->state;
    struct timeval patience = {.tv_usec = 5000};
    int one = 1;

    if (run->server) {
        struct pollfd pfd = {.fd = t->listener, .events = POLLIN};
        if (poll(&pfd, 1, ACCEPT_TIMEOUT_MS) != 1)
            return perf_run_fail(run, -ETIMEDOUT, "the client did not connect its data socket");
        t->fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (t->fd < 0)
            return perf_run_fail(run, -errno, "cannot accept the data socket: %s", strerror(errno));
    } else {
        int rc = tcp_connect(run, info);
        if (rc)
            return rc;
    }
    if (perf_test_is_lat(run->params.test))
        setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    /* Bandwidth blocks, but not for ever: the control connection must be watched. */
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return 0;
}

/* A number of bytes, 0 if it would block, or -errno. */
static ssize_t check_bytes(struct perf_run *run, ssize_t n)
{
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    return perf_run_fail(run, -ECONNRESET, "the data socket to %s broke: %s", run->control->peer,
                         strerror(errno));
}

static int tcp_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct tcp *t = run->state;
    uint64_t left = count * run->params.size_bytes;

    (void)qp;
    (void)n;
    while (left) {
        size_t part = left < run->e.tx_bytes ? (size_t)left : run->e.tx_bytes;
        ssize_t sent = check_bytes(run, send(t->fd, run->e.tx_buf, part, t->flags));
        if (sent < 0)
            return (int)sent;
        left -= (uint64_t)sent;
        int rc = sent == 0 ? perf_run_tick(run, clock_now_ns(), run->sent) : 0;
        if (rc)
            return rc;
    }
    return (int)count;
}

/* After the end of the stream nothing comes: the control connection tells why. */
static int tcp_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max)
{
    struct tcp *t = run->state;
    ssize_t n = check_bytes(run, recv(t->fd, run->e.rx_buf, run->e.rx_bytes, t->flags));

    (void)max;
    if (n <= 0)
        return (int)n;
    wcs[0] = (struct perf_wc){.bytes = (uint64_t)n};
    return 1;
}

static void tcp_stats(const struct perf_run *run, struct json_object *report)
{
    const struct tcp *t = run->state;
    struct json_object *paths = json_object_new_array();
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    bool known = getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0;
    struct json_object *path = perf_add_path(paths, perf_control_port(t->fd), info.tcpi_segs_out);

    json_add_u64(report, "paths", 1);
    json_object_object_add(report, "paths_used", paths);
    if (!known)
        return;
    json_add_rounded(path, "srtt_us", info.tcpi_rtt);
    json_add_rounded(path, "rtt_min_us", info.tcpi_min_rtt);
    json_add_u64(report, "packets_sent", info.tcpi_segs_out);
    json_add_u64(report, "packets_retransmitted", info.tcpi_total_retrans);
    json_add_u64(report, "bytes_sent", info.tcpi_bytes_sent);
}

static void tcp_close(struct perf_run *run)
{
    struct tcp *t = run->state;

    if (t->listener >= 0)
        close(t->listener);
    if (t->fd >= 0)
        close(t->fd);
    perf_endpoint_close(run);
}

/*
 * Connections over the loopback, both ends here: sockets and their descriptors, without data.
 */

enum { DESCRIPTORS_SPARE = 64 };

static int fail_state(struct perf_state *s, const char *what)
{
    return perf_fail(s->error, -errno, "%s: %s", what, strerror(errno));
}

static int allow_descriptors(struct perf_state *s)
{
    struct rlimit limit;
    rlim_t wanted = 2 * (rlim_t)s->peers + DESCRIPTORS_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return fail_state(s, "cannot read the limit of descriptors");
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
        return fail_state(s, "cannot create a socket");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
        return fail_state(s, "cannot connect over the loopback");
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return fail_state(s, "cannot accept a connection");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return 0;
}

static int make_peers(struct perf_state *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int rc = allow_descriptors(s);

    if (rc)
        return rc;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return fail_state(s, "cannot listen on the loopback");
    for (uint32_t i = 0; i < s->peers && rc == 0; i++) {
        rc = i == s->fewer ? perf_state_mark(s) : 0;
        if (rc == 0)
            rc = connect_one(s, listener, &address);
    }
    s->ends = 2;
    return rc;
}

const struct perf_transport_ops perf_tcp_ops = {
    .name = "tcp",
    .raw = true,
    .state_bytes = sizeof(struct tcp),
    .open = tcp_open,
    .get_info = tcp_get_info,
    .set_peer = tcp_set_peer,
    .post_send = tcp_post_send,
    .poll_cq = tcp_poll_cq,
    .stats = tcp_stats,
    .close = tcp_close,
    .peer_state = make_peers,
};
