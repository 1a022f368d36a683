/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/net.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_ROOM_BYTES = 100 }; /* about what a protocol needs in front of its payload */

int perf_net_address(struct perf_run *run, const char *host, uint16_t port,
                     struct perf_address *address)
{
    int rc = perf_find_address(host, port, address);

    return rc ? perf_run_fail(run, rc, "'%s' is not a numeric address", host) : 0;
}

int perf_net_bind(struct perf_run *run, int type, uint16_t port)
{
    const char *host = run->control->local;
    struct perf_address address;
    int one = 1;
    int rc = perf_net_address(run, host, port, &address);

    if (rc)
        return rc;
    int fd = socket(address.ss.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return perf_run_fail(run, -errno, "cannot create a socket: %s", strerror(errno));
    if (type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address.ss, address.len) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return perf_run_fail(run, rc, "cannot bind port %u of %s: %s", port, host, strerror(-rc));
}

uint32_t perf_net_payload(int fd, uint32_t most)
{
    struct sockaddr_storage ss;
    socklen_t ss_len = sizeof(ss), len = sizeof(int);
    int mtu = 0;

    if (getsockname(fd, (struct sockaddr *)&ss, &ss_len))
        return most;
    bool ipv6 = ss.ss_family == AF_INET6;
    if (getsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu, &len))
        return most;
    int room = (mtu - (ipv6 ? 48 : 28) - HEADER_ROOM_BYTES) / 64 * 64;
    return room > 0 && (uint32_t)room < most ? (uint32_t)room : most;
}

void perf_net_buffer(int fd, int option, int bytes)
{
    int forced = option == SO_RCVBUF ? SO_RCVBUFFORCE : SO_SNDBUFFORCE;

    /* Beyond rmem_max where we may; else the kernel cuts it down to what is allowed. */
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)))
        setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}
