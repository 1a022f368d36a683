/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/raw_udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/json.h"
#include "tools/perf/transport.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static int add_socket(struct perf_run *run, uint16_t port)
{
    struct raw_udp *r = run->state;
    int fd = perf_net_bind(run, SOCK_DGRAM, port);

    if (fd < 0)
        return fd;
    r->fds[r->num_fds++] = fd;
    return 0;
}

static int open_server(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    int one = 1;
    int rc = add_socket(run, run->options->local ? 0 : run->options->port);

    if (rc)
        return rc;
    perf_net_buffer(r->fds[0], SO_RCVBUF, RAW_RECEIVE_BUFFER_BYTES);
    setsockopt(r->fds[0], SOL_UDP, UDP_GRO, &one,
               sizeof(one)); /* an old kernel gives single packets instead */
    return 0;
}

static int open_client(struct perf_run *run)
{
    struct raw_udp *r = run->state;
    const struct perf_options *o = run->options;
    unsigned paths = run->params.paths ? run->params.paths : PERF_PATHS_DEFAULT;

    if (perf_test_is_lat(run->params.test))
        paths = 1; /* one message in flight, one socket to poll */
    for (unsigned i = 0; i < paths; i++) {
        int rc = add_socket(run, i < o->num_source_ports ? o->source_ports[i] : 0);
        if (rc)
            return rc;
        perf_net_buffer(r->fds[i], SO_SNDBUF, RAW_SEND_BUFFER_BYTES);
    }
    return 0;
}

static int raw_open(struct perf_run *run)
{
    struct raw_udp *r = run->state;

    r->payload_bytes = run->params.mtu ? run->params.mtu : PERF_PAYLOAD_DEFAULT;
    r->buf = calloc(1, RAW_BUFFER_BYTES);
    if (!r->buf)
        return perf_run_fail(run, -ENOMEM, "no memory for a buffer");
    return run->server ? open_server(run) : open_client(run);
}

static void raw_get_info(struct perf_run *run, struct json_object *info)
{
    const struct raw_udp *r = run->state;

    json_object_object_add(info, "port", json_object_new_int(perf_net_port(r->fds[0])));
    json_object_object_add(info, "payload", json_object_new_int((int)r->payload_bytes));
}

static int raw_set_peer(struct perf_run *run, struct json_object *info)
{
    struct raw_udp *r = run->state;
    struct perf_address to;
    uint64_t port, payload;

    if (perf_json_get_u64(info, "port", &port) || port > UINT16_MAX ||
        perf_json_get_u64(info, "payload", &payload) || payload == 0 || payload > PERF_MTU_MAX)
        return perf_run_fail(run, -EPROTO, "the other end did not tell its port");
    int rc = perf_net_address(run, run->control->peer, (uint16_t)port, &to);
    if (rc)
        return rc;
    if (run->server && !perf_test_is_lat(run->params.test))
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

static ssize_t send_burst(const struct raw_udp *r, unsigned i, size_t len, size_t segment)
{
    char control[CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(8))) = {0};
    struct iovec iov = {.iov_base = r->buf, .iov_len = len};
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
    return sendmsg(r->fds[i], &msg, MSG_NOSIGNAL);
}

static int send_singly(struct raw_udp *r, unsigned i, size_t len, size_t segment)
{
    for (size_t at = 0; at < len; at += segment) {
        size_t part = len - at < segment ? len - at : segment;
        if (send(r->fds[i], r->buf + at, part, MSG_NOSIGNAL) < 0)
            return -errno;
    }
    return 0;
}

/* A full queue or a refusal is loss, which is what unreliable means; what can never work is an error. */
static int judge(struct perf_run *run, int error)
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

int raw_udp_send(struct perf_run *run, unsigned i, size_t len, size_t segment)
{
    struct raw_udp *r = run->state;
    int error = 0;

    r->packets[i] += (len + segment - 1) / segment;
    r->bytes_sent += len;
    if (r->gso && len > segment) {
        if (send_burst(r, i, len, segment) >= 0)
            return 0;
        error = errno;
        if (error != EIO && error != EINVAL && error != EOPNOTSUPP)
            return judge(run, error);
        r->gso = false; /* the device or the kernel refuses it */
    }
    return judge(run, -send_singly(r, i, len, segment));
}

static int raw_client(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? raw_lat_client(run) : raw_bw_client(run);
}

static int raw_server(struct perf_run *run)
{
    return perf_test_is_lat(run->params.test) ? raw_lat_server(run) : raw_bw_server(run);
}

static void raw_stats(const struct perf_run *run, struct json_object *report)
{
    const struct raw_udp *r = run->state;
    struct json_object *paths = json_object_new_array();
    uint64_t packets = 0;

    for (unsigned i = 0; i < r->num_fds; i++) {
        struct json_object *path = json_object_new_object();
        json_object_object_add(path, "port", json_object_new_int(perf_net_port(r->fds[i])));
        json_object_object_add(path, "packets", json_object_new_uint64(r->packets[i]));
        json_object_object_add(path, "lost", NULL);
        json_object_object_add(path, "srtt_us", NULL);
        json_object_object_add(path, "rtt_min_us", NULL);
        json_object_object_add(path, "state", NULL);
        json_object_array_add(paths, path);
        packets += r->packets[i];
    }
    json_object_object_add(report, "packet_bytes", json_object_new_uint64(r->payload_bytes));
    json_object_object_add(report, "paths", json_object_new_int((int)r->num_fds));
    json_object_object_add(report, "packets_sent", json_object_new_uint64(packets));
    json_object_object_add(report, "bytes_sent", json_object_new_uint64(r->bytes_sent));
    json_object_object_add(report, "paths_used", paths);
}

static void raw_close(struct perf_run *run)
{
    struct raw_udp *r = run->state;

    for (unsigned i = 0; i < r->num_fds; i++)
        close(r->fds[i]);
    free(r->buf);
}

const struct perf_transport_ops perf_raw_udp_ops = {
    .name = "raw-udp",
    .raw = true,
    .state_bytes = sizeof(struct raw_udp),
    .open = raw_open,
    .get_info = raw_get_info,
    .set_peer = raw_set_peer,
    .client = raw_client,
    .server = raw_server,
    .stats = raw_stats,
    .close = raw_close,
};
