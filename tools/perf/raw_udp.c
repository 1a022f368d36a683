/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw-udp: what the kernel's UDP gives with the same sizes, GSO, GRO and number of ports, and no
 * protocol at all. It is the ceiling that a protocol over UDP can be held against.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/message.h"
#include "tools/perf/net.h"
#include "tools/perf/transport.h"

enum {
    BURST_BYTES = 61440,            /* 15 x 4096: a superpacket that loopback does not split */
    SEGMENTS_MAX = 64,              /* what every kernel with UDP_SEGMENT takes */
    POST_BYTES = 256 * BURST_BYTES, /* so many messages are posted at once, or one... */
    TURN_BYTES = 4 * BURST_BYTES,   /* ...or with -b so many, as others wait to be received */
    POLL_MAX = 16,
    BUFFER_BYTES = 64 << 10,
    RECEIVE_BUFFER_BYTES = 8 << 20,
    SEND_BUFFER_BYTES = 4 << 20,
};

struct raw_udp {
    int fds[PERF_PORTS_MAX]; /* that the end sends on; of a server that only receives rx_fd */
    int rx_fd;               /* -1: the end receives on the one that it sends on, if at all */
    unsigned num_fds, turn;
    uint32_t payload_bytes; /* a packet, at most */
    bool gso;
    uint64_t packets[PERF_PORTS_MAX]; /* sent on each socket */
    uint64_t bytes_sent;
};

static int open_receiver(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    bool any_port = run->options->local || !run->server;
    int one = 1;

    r->rx_fd = perf_net_bind(run, SOCK_DGRAM, any_port ? 0 : run->options->port);
    if (r->rx_fd < 0)
        return r->rx_fd;
    perf_net_buffer(r->rx_fd, SO_RCVBUF, RECEIVE_BUFFER_BYTES);
    setsockopt(r->rx_fd, SOL_UDP, UDP_GRO, &one,
               sizeof(one)); /* an old kernel gives single packets instead */
    return 0;
}

static int open_senders(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    const struct perf_options *o = run->options;
    unsigned paths = run->params.paths ? run->params.paths : PERF_PATHS_DEFAULT;
    bool own_ports = !(o->local && run->server); /* two ends on one host cannot share them */

    if (perf_test_is_lat(run->params.test))
        paths = 1; /* one message in flight, one socket to poll */
    for (unsigned i = 0; i < paths; i++, r->num_fds++) {
        uint16_t port = own_ports && i < o->num_source_ports ? o->source_ports[i] : 0;
        r->fds[i] = perf_net_bind(run, SOCK_DGRAM, port);
        if (r->fds[i] < 0)
            return r->fds[i];
        perf_net_buffer(r->fds[i], SO_SNDBUF, SEND_BUFFER_BYTES);
    }
    return 0;
}

static int raw_open(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    uint64_t at_once = run->params.bidirectional ? TURN_BYTES : POST_BYTES;
    int rc = perf_endpoint_map(run, BUFFER_BYTES, BUFFER_BYTES);

    r->rx_fd = -1;
    r->payload_bytes = run->params.mtu ? run->params.mtu : PERF_PAYLOAD_DEFAULT;
    run->e.batch =
        run->params.size_bytes < at_once ? (uint32_t)(at_once / run->params.size_bytes) : 1;
    if (rc == 0 && (run->server || run->params.bidirectional))
        rc = open_receiver(run);
    if (rc == 0 && (!run->server || run->params.bidirectional))
        return open_senders(run);
    if (rc == 0)
        r->fds[r->num_fds++] = r->rx_fd;
    return rc;
}

static int receiver(const struct raw_udp *r)
{
    return r->rx_fd >= 0 ? r->rx_fd : r->fds[0];
}

static void raw_get_info(struct perf_run *run, struct json_object *info)
{
    const struct raw_udp *r = run->state;

    json_add_u64(info, "port", perf_control_port(receiver(r)));
    json_add_u64(info, "payload", (int)r->payload_bytes);
}

static int raw_set_peer(struct perf_run *run, struct json_object *info)
{
    struct raw_udp *r = run->state;
    struct perf_address to;
    uint64_t port, payload;

    if (json_get_u64(info, "port", &port) || port > UINT16_MAX ||
        json_get_u64(info, "payload", &payload) || payload == 0 || payload > PERF_MTU_MAX)
        return perf_run_fail(run, -EPROTO, "the other end did not tell its port");
    int rc = perf_net_address(run, run->control->peer, (uint16_t)port, &to);
    if (rc)
        return rc;
    if (run->server && !perf_test_is_lat(run->params.test) && !run->params.bidirectional)
        return 0; /* the client comes from many ports */
    for (unsigned i = 0; i < r->num_fds; i++) {
        if (connect(r->fds[i], (struct sockaddr *)&to.ss, to.len))
            return perf_run_fail(run, -errno, "cannot reach %s: %s", run->control->peer,
                                 strerror(errno));
    }
    if (run->server)
        r->payload_bytes = (uint32_t)payload;
    else if (run->params.mtu == 0)
        r->payload_bytes = perf_net_payload(r->fds[0], PERF_PAYLOAD_DEFAULT);
    r->gso = true;
    return 0;
}

/* In one call, `buf` in packets of `segment` bytes. */
static ssize_t send_burst(int fd, uint8_t *buf, size_t len, size_t segment)
{
    char control[CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(8))) = {0};
    struct iovec iov = {.iov_base = buf, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    uint16_t bytes = (uint16_t)segment;

    cmsg->cmsg_level = SOL_UDP;
    cmsg->cmsg_type = UDP_SEGMENT;
    cmsg->cmsg_len = CMSG_LEN(sizeof(bytes));
    memcpy(CMSG_DATA(cmsg), &bytes, sizeof(bytes));
    return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static int send_singly(int fd, const uint8_t *buf, size_t len, size_t segment)
{
    for (size_t at = 0; at < len; at += segment) {
        size_t part = len - at < segment ? len - at : segment;
        if (send(fd, buf + at, part, MSG_NOSIGNAL) < 0)
            return -errno;
    }
    return 0;
}

/* A full queue or a refusal counts as loss. What can never work is an error. */
static int check_send(struct perf_run *run, int error)
{
    switch (error) {
    case 0:
    case ENOBUFS:
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
        return 0;
    default:
        return perf_run_fail(run, -error, "cannot send to %s: %s%s", run->control->peer,
                             strerror(error), error == EMSGSIZE ? " (choose a smaller -m)" : "");
    }
}

/* In packets of `segment` bytes. What is lost counts as sent. */
static int send_bytes(struct perf_run *run, unsigned i, size_t len, size_t segment)
{
    struct raw_udp *r = run->state;
    int error = 0;

    r->packets[i] += (len + segment - 1) / segment;
    r->bytes_sent += len;
    if (r->gso && len > segment) {
        if (send_burst(r->fds[i], run->e.tx_buf, len, segment) >= 0)
            return 0;
        error = errno;
        if (error != EIO && error != EINVAL && error != EOPNOTSUPP)
            return check_send(run, error);
        r->gso = false; /* the device or the kernel refuses it */
    }
    return check_send(run, -send_singly(r->fds[i], run->e.tx_buf, len, segment));
}

/* In latency tests the first byte of each packet names the exchange. */
static void mark_packets(uint8_t *buf, uint64_t len, size_t segment, uint64_t n)
{
    for (size_t at = 0; at < len && at < BUFFER_BYTES; at += segment)
        buf[at] = (uint8_t)n;
}

/* Messages that are a whole number of packets need not end a burst: none of these is short. */
static int raw_post_send(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count)
{
    struct raw_udp *r = run->state;
    uint64_t size = run->params.size_bytes;
    size_t segment = size < r->payload_bytes ? (size_t)size : r->payload_bytes;
    size_t segments = BURST_BYTES / segment < SEGMENTS_MAX ? BURST_BYTES / segment : SEGMENTS_MAX;
    size_t burst = (segments ? segments : 1) * segment;
    uint64_t stream = size % segment == 0 ? count * size : size, total = count * size;
    int rc = 0;

    (void)qp;
    if (perf_test_is_lat(run->params.test))
        mark_packets(run->e.tx_buf, size, segment, n);
    for (uint64_t at = 0; at < total && rc == 0; at += stream) {
        for (uint64_t left = stream; left && rc == 0;) {
            size_t len = left < burst ? (size_t)left : burst;
            rc = send_bytes(run, r->turn++ % r->num_fds, len, segment);
            left -= len;
        }
    }
    return rc ? rc : (int)count;
}

static int raw_poll_cq(struct perf_run *run, struct perf_wc *wcs, int max)
{
    struct raw_udp *r = run->state;
    int n = 0;

    while (n < max && n < POLL_MAX) {
        ssize_t got = recv(receiver(r), run->e.rx_buf, BUFFER_BYTES, MSG_DONTWAIT);
        if (got <= 0)
            break;
        wcs[n++] = (struct perf_wc){.imm = run->e.rx_buf[0], .bytes = (uint64_t)got};
    }
    return n;
}

static void raw_stats(const struct perf_run *run, struct json_object *report)
{
    const struct raw_udp *r = run->state;
    struct json_object *paths = json_object_new_array();
    uint64_t packets = 0;

    for (unsigned i = 0; i < r->num_fds; i++) {
        perf_add_path(paths, perf_control_port(r->fds[i]), r->packets[i]);
        packets += r->packets[i];
    }
    json_add_u64(report, "packet_bytes", r->payload_bytes);
    json_add_u64(report, "paths", (int)r->num_fds);
    json_add_u64(report, "packets_sent", packets);
    json_add_u64(report, "bytes_sent", r->bytes_sent);
    json_object_object_add(report, "paths_used", paths);
}

static void raw_close(struct perf_run *run)
{
    struct raw_udp *r = run->state;

    for (unsigned i = 0; i < r->num_fds; i++)
        close(r->fds[i]);
    if (r->rx_fd >= 0 && (r->num_fds == 0 || r->rx_fd != r->fds[0]))
        close(r->rx_fd);
    perf_endpoint_close(run);
}

const struct perf_transport_ops perf_raw_udp_ops = {
    .name = "raw-udp",
    .raw = true,
    .lossy = true,
    .mutual = true,
    .state_bytes = sizeof(struct raw_udp),
    .open = raw_open,
    .get_info = raw_get_info,
    .set_peer = raw_set_peer,
    .post_send = raw_post_send,
    .poll_cq = raw_poll_cq,
    .stats = raw_stats,
    .close = raw_close,
};
