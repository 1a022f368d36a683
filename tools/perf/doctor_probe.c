/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/doctor_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/control.h"

enum {
    MAGIC = 0x6d726470,
    ECT0 = 2, /* RFC 3168 */
    SMALL_BYTES = 64,
    GAP_US = 200,         /* between two datagrams: paths that differ by it let one overtake */
    ROUND_US = 20 * 1000, /* between two rounds of the ports: 0.9 Mb/s, slow enough for any cap */
    SIZE_GAP_US = 2000,   /* between two sizes, and as long as they take at that rate: */
    SIZES_BITS_A_US = 3,
    WAIT_MS = 500,
    UDP_HEADERS = 28,
    UDP_HEADERS_IPV6 = 48,
    DATAGRAM_MAX = 65507,
};

const uint32_t perf_probe_mtus[PERF_PROBE_SIZES] = {1280, 1400, 1460, 1500, 4000, 8500, 8900, 9000};

struct probe {
    uint32_t magic, number;
};

static bool is_ipv6(const struct perf_address *address)
{
    return address->ss.ss_family == AF_INET6;
}

static void set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* A socket at that port of `from`; 0: an ephemeral one. Returns it, or -errno. */
static int bind_socket(const char *from, uint16_t port, struct perf_address *at)
{
    int rc = perf_find_address(from, port, at);
    int fd = rc == 0 ? socket(at->ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

    if (rc != 0)
        return rc;
    if (fd < 0 || bind(fd, (struct sockaddr *)&at->ss, at->len) == 0)
        return fd < 0 ? -errno : fd;
    rc = -errno;
    close(fd);
    return rc;
}

int perf_probe_open(const char *address, uint16_t port)
{
    struct perf_address at;
    int fd = bind_socket(address, port, &at);

    if (fd < 0)
        return fd;
    set_option(fd, is_ipv6(&at) ? IPPROTO_IPV6 : IPPROTO_IP,
               is_ipv6(&at) ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, 4 << 20);
    return fd;
}

static int ecn_of(struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        int value = 0;

        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            return *(uint8_t *)CMSG_DATA(c) & 3;
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&value, CMSG_DATA(c), sizeof(value));
            return value & 3;
        }
    }
    return 0;
}

void perf_probe_take(int fd, struct json_object *arrivals)
{
    static char bytes[DATAGRAM_MAX];
    char control[128];
    struct probe probe;

    for (;;) {
        struct iovec iov = {bytes, sizeof(bytes)};
        struct msghdr msg = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(fd, &msg, 0);

        if (n < 0)
            return;
        memcpy(&probe, bytes, sizeof(probe));
        if (n < (ssize_t)sizeof(probe) || ntohl(probe.magic) != MAGIC ||
            json_object_array_length(arrivals) >= 2 * PERF_PROBE_MAX)
            continue;
        json_object_array_add(arrivals, json_object_new_int64(ntohl(probe.number)));
        json_object_array_add(arrivals, json_object_new_int(ecn_of(&msg)));
    }
}

static void pause_us(long us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

/* The same, connected. */
static int connect_socket(const char *from, uint16_t port, const struct perf_address *to)
{
    struct perf_address local;
    int fd = bind_socket(from, port, &local);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to->ss, to->len) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

/* 0, or -errno: EMSGSIZE is the only one that tells something. */
static int send_probe(int fd, uint32_t number, uint32_t bytes)
{
    static char payload[DATAGRAM_MAX];
    struct probe probe = {htonl(MAGIC), htonl(number)};

    memcpy(payload, &probe, sizeof(probe));
    for (int tries = 0; tries < 3; tries++) { /* what ICMP said of an earlier one is told once */
        if (send(fd, payload, bytes, 0) >= 0)
            return 0;
    }
    return -errno;
}

/* `num` datagrams, numbered from `first` on, from each port in turn. */
static void send_from_ports(const int *fds, uint32_t first, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++) {
        if (fds[i % PERF_PROBE_PORTS] >= 0)
            (void)send_probe(fds[i % PERF_PROBE_PORTS], first + i, SMALL_BYTES);
        pause_us(i % PERF_PROBE_PORTS == PERF_PROBE_PORTS - 1 ? ROUND_US : GAP_US);
    }
}

int perf_probe_ports(const char *from, const char *to, uint16_t port, struct perf_probe_sent *sent)
{
    int fds[PERF_PROBE_PORTS], num = 0, rc;
    struct perf_address there;

    rc = perf_find_address(to, port, &there);
    for (; rc == 0 && num < PERF_PROBE_PORTS; num++) {
        fds[num] = connect_socket(from, 0, &there);
        if (fds[num] < 0) {
            rc = fds[num];
            break;
        }
        sent->ports[num] = perf_control_port(fds[num]);
        set_option(fds[num], is_ipv6(&there) ? IPPROTO_IPV6 : IPPROTO_IP,
                   is_ipv6(&there) ? IPV6_TCLASS : IP_TOS, ECT0);
    }
    if (rc == 0)
        send_from_ports(fds, 0, PERF_PROBE_SIZE_BASE);
    while (num > 0)
        close(fds[--num]);
    return rc;
}

int perf_probe_plain(const char *from, const char *to, uint16_t port,
                     const struct perf_probe_sent *sent)
{
    int fds[PERF_PROBE_PORTS];
    struct perf_address there;
    int rc = perf_find_address(to, port, &there);

    if (rc)
        return rc;
    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++)
        fds[i] = sent->ports[i] ? connect_socket(from, sent->ports[i], &there) : -1;
    send_from_ports(fds, PERF_PROBE_PLAIN_BASE, PERF_PROBE_PORTS * PERF_PROBE_PLAIN_ROUNDS);
    for (uint32_t i = 0; i < PERF_PROBE_PORTS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return 0;
}

/* The MTU that a router told, into sent->icmp_mtu. */
static void take_icmp(int fd, struct perf_probe_sent *sent)
{
    char control[512];
    struct msghdr msg = {.msg_control = control, .msg_controllen = sizeof(control)};

    for (; recvmsg(fd, &msg, MSG_ERRQUEUE) >= 0; msg.msg_controllen = sizeof(control)) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
            struct sock_extended_err error;

            memcpy(&error, CMSG_DATA(c), sizeof(error));
            if (error.ee_errno == EMSGSIZE && error.ee_info &&
                (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6))
                sent->icmp_mtu = error.ee_info;
        }
    }
}

static int connect_for_sizes(const char *from, uint16_t port, const struct perf_address *to)
{
    int fd = connect_socket(from, port, to);

    if (fd < 0) /* somebody has it by now */
        fd = connect_socket(from, 0, to);
    if (fd < 0)
        return fd;
    set_option(fd, is_ipv6(to) ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6(to) ? IPV6_RECVERR : IP_RECVERR,
               1);
    /* The interface's MTU bounds it, what was learnt of the path does not (ip(7)). */
    set_option(fd, is_ipv6(to) ? IPPROTO_IPV6 : IPPROTO_IP,
               is_ipv6(to) ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    return fd;
}

/* One of each size. In turn: what fills a queue for a while hits all sizes. */
static void send_sizes(int fd, bool ipv6, uint32_t repeat, struct perf_probe_sent *sent)
{
    for (uint32_t size = 0; size < PERF_PROBE_SIZES; size++) {
        uint32_t mtu = perf_probe_mtus[size];
        uint32_t bytes = mtu - (ipv6 ? UDP_HEADERS_IPV6 : UDP_HEADERS);
        uint32_t number = PERF_PROBE_SIZE_BASE + size * PERF_PROBE_REPEATS + repeat;
        int error = send_probe(fd, number, bytes);

        if (error == -EMSGSIZE && (!sent->local_mtu || mtu < sent->local_mtu))
            sent->local_mtu = mtu;
        pause_us(SIZE_GAP_US + (error ? 0L : 8L * mtu / SIZES_BITS_A_US));
        take_icmp(fd, sent);
    }
}

int perf_probe_sizes(const char *from, const char *to, uint16_t port, struct perf_probe_sent *sent)
{
    int fds[PERF_PROBE_REPEATS];
    uint32_t num = 0;
    struct perf_address there;
    int rc = perf_find_address(to, port, &there);

    for (; rc == 0 && num < PERF_PROBE_REPEATS; num++) {
        fds[num] = connect_for_sizes(from, sent->ports[perf_probe_size_port(num)], &there);
        if (fds[num] < 0) {
            rc = fds[num];
            break;
        }
        send_sizes(fds[num], is_ipv6(&there), num, sent);
    }
    if (rc == 0)
        pause_us(1000L * WAIT_MS);
    while (num > 0) {
        take_icmp(fds[--num], sent);
        close(fds[num]);
    }
    return rc;
}
