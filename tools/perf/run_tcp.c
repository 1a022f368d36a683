/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp: one well-made socket. Bandwidth: large writes from, and reads into, one hot buffer. Latency: both ends poll.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/json.h"
#include "tools/perf/net.h"
#include "tools/perf/report.h"
#include "tools/perf/transport.h"

enum {
    IO_BYTES = 1 << 20,
    ACCEPT_TIMEOUT_MS = 10 * 1000,
    TICK_EVERY = 256, /* polls that found nothing between two looks at the clock */
};

struct tcp {
    int listener, fd; /* -1: none */
    uint8_t *buf;
    size_t buf_bytes;
};

static int tcp_open(struct perf_run *run)
{
    struct tcp *t = run->state;
    bool lat = perf_test_is_lat(run->params.test);

    t->listener = t->fd = -1;
    t->buf_bytes = lat ? (size_t)run->params.size_bytes : IO_BYTES;
    t->buf = calloc(1, t->buf_bytes);
    if (!t->buf)
        return perf_run_fail(run, -ENOMEM, "no memory for a message");
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
        json_object_object_add(info, "port", json_object_new_int(perf_net_port(t->listener)));
}

static int tcp_connect(struct perf_run *run, struct json_object *info)
{
    struct tcp *t = run->state;
    struct perf_address to;
    uint16_t from = run->options->num_source_ports ? run->options->source_ports[0] : 0;
    uint64_t port;

    if (perf_json_get_u64(info, "port", &port) || port > UINT16_MAX)
        return perf_run_fail(run, -EPROTO, "the server did not tell its port");
    int rc = perf_net_address(run, run->control->peer, (uint16_t)port, &to);
    if (rc)
        return rc;
    t->fd = perf_net_bind(run, SOCK_STREAM, from);
    if (t->fd < 0)
        return t->fd;
    if (connect(t->fd, (struct sockaddr *)&to.ss, to.len))
        return perf_run_fail(run, -errno, "cannot connect to TCP port %u of %s: %s", (unsigned)port,
                             run->control->peer, strerror(errno));
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

static int lost_peer(struct perf_run *run, int error)
{
    return perf_run_fail(run, -ECONNRESET, "the data socket to %s broke: %s", run->control->peer,
                         error ? strerror(error) : "closed by the other end");
}

/* 0: would block; -1: broken. */
static ssize_t checked(struct perf_run *run, ssize_t n)
{
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    lost_peer(run, n < 0 ? errno : 0);
    return -1;
}

static int tcp_bw_client(struct perf_run *run)
{
    struct tcp *t = run->state;
    uint64_t size = run->params.size_bytes, bytes = 0, total = run->params.iterations * size;

    for (;;) {
        uint64_t now_ns = perf_now_ns();
        run->sent = bytes / size;
        int rc = perf_run_tick(run, now_ns, run->sent);
        if (rc)
            return rc;
        if (perf_run_over(run, run->sent, now_ns))
            break;
        size_t part = IO_BYTES;
        if (total && total - bytes < part)
            part = (size_t)(total - bytes);
        ssize_t n = checked(run, send(t->fd, t->buf, part, MSG_NOSIGNAL));
        if (n < 0)
            return -ECONNRESET;
        bytes += (uint64_t)n;
    }
    run->sent = bytes / size;
    shutdown(t->fd, SHUT_WR); /* the receiver's end of data */
    return 0;
}

static int tcp_bw_server(struct perf_run *run)
{
    struct tcp *t = run->state;
    uint64_t bytes = 0;

    for (;;) {
        ssize_t n = recv(t->fd, t->buf, IO_BYTES, 0);
        if (n == 0)
            break;
        n = checked(run, n);
        if (n < 0)
            return -ECONNRESET;
        bytes += (uint64_t)n;
        uint64_t now_ns = perf_now_ns();
        perf_meter_update(&run->meter, now_ns, bytes);
        int rc = perf_run_tick(run, now_ns, bytes);
        if (rc)
            return rc;
    }
    run->received = bytes / run->params.size_bytes;
    while (!run->peer_done) {
        int rc = perf_run_watch(run, perf_now_ns(), 0);
        if (rc)
            return rc;
        usleep(100);
    }
    return 0;
}

static int put_message(struct perf_run *run, uint64_t done)
{
    struct tcp *t = run->state;

    for (size_t put = 0; put < t->buf_bytes;) {
        ssize_t n = checked(
            run, send(t->fd, t->buf + put, t->buf_bytes - put, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (n < 0)
            return -ECONNRESET;
        put += (size_t)n;
        int rc = n == 0 ? perf_run_tick(run, perf_now_ns(), done) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* -ENODATA: the client has said that it is done. */
static int get_message(struct perf_run *run, uint64_t done)
{
    struct tcp *t = run->state;
    unsigned idle = 0;

    for (size_t got = 0; got < t->buf_bytes;) {
        ssize_t n = recv(t->fd, t->buf + got, t->buf_bytes - got, MSG_DONTWAIT);
        if (n == 0 && run->server && got == 0) {
            int rc = perf_run_watch(run, perf_now_ns(), done);
            if (rc || run->peer_done)
                return rc ? rc : -ENODATA;
            continue;
        }
        n = checked(run, n);
        if (n < 0)
            return -ECONNRESET;
        got += (size_t)n;
        if (n == 0 && ++idle % TICK_EVERY == 0) {
            int rc = perf_run_tick(run, perf_now_ns(), done);
            if (rc || run->peer_done)
                return rc ? rc : -ENODATA;
        }
    }
    return 0;
}

static int tcp_lat_client(struct perf_run *run)
{
    const struct perf_params *p = &run->params;
    struct tcp *t = run->state;

    for (uint64_t i = 0;; i++) {
        uint64_t begin_ns = perf_now_ns();
        if (i == p->warmup)
            run->start_ns = begin_ns;
        if (i >= p->warmup && perf_run_over(run, i - p->warmup, begin_ns))
            break;
        int rc = put_message(run, run->sent);
        if (rc == 0)
            rc = get_message(run, run->sent);
        if (rc)
            return rc;
        uint64_t end_ns = perf_now_ns();
        if (i >= p->warmup) {
            perf_latency_add(&run->latency, end_ns - begin_ns);
            run->sent++;
        }
        rc = perf_run_tick(run, end_ns, run->sent);
        if (rc)
            return rc;
    }
    shutdown(t->fd, SHUT_WR);
    return 0;
}

static int tcp_lat_server(struct perf_run *run)
{
    for (;;) {
        int rc = get_message(run, 0);
        if (rc == -ENODATA)
            return 0;
        if (rc == 0)
            rc = put_message(run, 0);
        if (rc)
            return rc;
    }
}

static int tcp_client(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? tcp_lat_client(run) : tcp_bw_client(run);
}

static int tcp_server(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? tcp_lat_server(run) : tcp_bw_server(run);
}

static void tcp_stats(const struct perf_run *run, struct json_object *report)
{
    const struct tcp *t = run->state;
    struct json_object *paths = json_object_new_array(), *path = json_object_new_object();
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    bool known = getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0;

    json_object_object_add(report, "paths", json_object_new_int(1));
    json_object_object_add(path, "port", json_object_new_int(perf_net_port(t->fd)));
    json_object_object_add(path, "packets",
                           known ? json_object_new_uint64(info.tcpi_segs_out) : NULL);
    json_object_object_add(path, "lost", NULL);
    json_object_object_add(path, "srtt_us", known ? perf_json_number(info.tcpi_rtt) : NULL);
    json_object_object_add(path, "rtt_min_us", known ? perf_json_number(info.tcpi_min_rtt) : NULL);
    json_object_object_add(path, "state", NULL);
    json_object_array_add(paths, path);
    json_object_object_add(report, "paths_used", paths);
    if (!known)
        return;
    json_object_object_add(report, "packets_sent", json_object_new_uint64(info.tcpi_segs_out));
    json_object_object_add(report, "packets_retransmitted",
                           json_object_new_uint64(info.tcpi_total_retrans));
    json_object_object_add(report, "bytes_sent", json_object_new_uint64(info.tcpi_bytes_sent));
}

static void tcp_close(struct perf_run *run)
{
    struct tcp *t = run->state;

    if (t->listener >= 0)
        close(t->listener);
    if (t->fd >= 0)
        close(t->fd);
    free(t->buf);
}

const struct perf_transport_ops perf_tcp_ops = {
    .name = "tcp",
    .raw = true,
    .state_bytes = sizeof(struct tcp),
    .open = tcp_open,
    .get_info = tcp_get_info,
    .set_peer = tcp_set_peer,
    .client = tcp_client,
    .server = tcp_server,
    .stats = tcp_stats,
    .close = tcp_close,
    .peer_state = perf_state_tcp,
};
