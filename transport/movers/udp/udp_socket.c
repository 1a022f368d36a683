/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_icmp.h"
#include "transport/movers/udp/udp_lacks.h"

static int set_int(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int error_no_descriptor(const struct mrd_udp *udp, int error)
{
    struct rlimit limit = {.rlim_cur = 0};

    if (error == -EMFILE) {
        getrlimit(RLIMIT_NOFILE, &limit);
        mrd_error_set("out of file descriptors after %u source sockets: the limit is %llu "
                      "(RLIMIT_NOFILE); open fewer paths or raise it with ulimit -n",
                      udp->tx.num_paths, (unsigned long long)limit.rlim_cur);
    } else {
        mrd_error_set("cannot make a UDP socket after %u source sockets: %s", udp->tx.num_paths,
                      strerror(-error));
    }
    return error;
}

static int error_no_bind(const struct mrd_udp *udp, uint16_t port, int error)
{
    char ip[INET6_ADDRSTRLEN] = "any address";

    if (mrd_udp_addr_is_v4(&udp->bound))
        inet_ntop(AF_INET, udp->bound.ip + 12, ip, sizeof(ip));
    else if (!mrd_udp_addr_is_any(&udp->bound))
        inet_ntop(AF_INET6, udp->bound.ip, ip, sizeof(ip));
    switch (error) {
    case -EADDRINUSE:
        if (port)
            mrd_error_set("UDP port %u of %s is in use", port, ip);
        else
            mrd_error_set("no free UDP port on %s: all of net.ipv4.ip_local_port_range are in use",
                          ip);
        break;
    case -EADDRNOTAVAIL:
        mrd_error_set("%s is not an address of this machine", ip);
        break;
    case -EACCES:
        mrd_error_set("UDP port %u of %s needs a privilege (net.ipv4.ip_unprivileged_port_start)",
                      port, ip);
        break;
    default:
        mrd_error_set("cannot bind UDP port %u of %s: %s", port, ip, strerror(-error));
    }
    return error;
}

/* Any other error is a refusal of IPv6, as by a sandbox. */
static bool is_shortage(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

int mrd_udp_family_choose(struct mrd_udp *udp)
{
    int fd, error;

    if (mrd_udp_addr_is_v4(&udp->bound)) {
        static const uint8_t any[4];

        udp->family = AF_INET;
        if (memcmp(udp->bound.ip + 12, any, sizeof(any)) == 0)
            udp->bound = (struct mrd_addr){.scope = 0};
        return 0;
    }
    udp->family = AF_INET6;
    fd = udp->without & MRD_UDP_WITHOUT_IPV6 ? -1 : socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_V6ONLY, 0);
        close(fd);
        if (mrd_udp_addr_is_any(&udp->bound) && !mrd_udp_can(udp, MRD_UDP_LACKS_V6ONLY))
            udp->family = AF_INET;
        return 0;
    }
    error = udp->without & MRD_UDP_WITHOUT_IPV6 ? -EAFNOSUPPORT : -errno;
    if (is_shortage(error))
        return error_no_descriptor(udp, error);
    if (!mrd_udp_addr_is_any(&udp->bound)) {
        mrd_error_set("this machine has no IPv6, which the address to bind needs");
        return error;
    }
    udp->family = AF_INET;
    return 0;
}

/*
 * Opens a socket bound to *port (0: any), and writes its port to *port. Returns the descriptor, or
 * -errno with mrd_error_set().
 */
static int open_bound(const struct mrd_udp *udp, uint16_t *port)
{
    struct mrd_addr local = udp->bound;
    union mrd_udp_sockaddr sa;
    socklen_t len;
    int error;
    int fd = socket(udp->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return error_no_descriptor(udp, -errno);
    /*
     * Bound to any address it takes IPv4 too; bound to an IPv6 address it takes IPv6 only
     * by itself.
     */
    error = udp->family == AF_INET6 && mrd_udp_can(udp, MRD_UDP_LACKS_V6ONLY)
                ? set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)
                : 0;
    local.port = *port;
    len = mrd_udp_to_sockaddr(udp->family, &local, &sa);
    if (!error && bind(fd, &sa.sa, len))
        error = -errno;
    if (!error && getsockname(fd, &sa.sa, &len))
        error = -errno;
    if (error) {
        close(fd);
        return error_no_bind(udp, *port, error);
    }
    mrd_udp_from_sockaddr(&sa, &local);
    *port = (uint16_t)local.port;
    return fd;
}

/*
 * Asks for a receive buffer of MRD_UDP_RCVBUF_BYTES. Returns what the kernel granted by its own
 * count, which includes its bookkeeping ("truesize"): twice what was asked for.
 */
static uint32_t grow_receive_buffer(int fd)
{
    int granted = 0;
    socklen_t len = sizeof(granted);

    if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, MRD_UDP_RCVBUF_BYTES))
        set_int(fd, SOL_SOCKET, SO_RCVBUF, MRD_UDP_RCVBUF_BYTES);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len) || granted <= 0)
        granted = 2 * 212992; /* Linux' default; getsockopt() cannot fail here */
    if (granted < MRD_UDP_RCVBUF_BYTES)
        mrd_log(MRD_LOG_WARN,
                "the UDP receive buffer is %d bytes, which a few fast senders overflow: "
                "raise net.core.rmem_max to %d (sysctl -w net.core.rmem_max=%d)",
                granted / 2, MRD_UDP_RCVBUF_BYTES, MRD_UDP_RCVBUF_BYTES);
    return (uint32_t)granted;
}

/*
 * Asks for the control data that recvmsg() shall return with a datagram. Without an option its data
 * is not seen.
 */
static void ask_for_control(struct mrd_udp *udp, int fd)
{
    bool any = mrd_udp_addr_is_any(&udp->bound);

    mrd_udp_ask(udp, fd, MRD_UDP_LACKS_RXQ_OVFL, 1);
    if (udp->family == AF_INET || any)
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_RECVTOS, 1);
    if (udp->family == AF_INET6)
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_RECVTCLASS, 1);
    /*
     * That of IPv6 covers IPv4 packets too, by v4-mapped addresses. Not needed where the
     * destination is known anyway.
     */
    if (any)
        mrd_udp_ask(udp, fd,
                    udp->family == AF_INET6 ? MRD_UDP_LACKS_RECVPKTINFO : MRD_UDP_LACKS_PKTINFO, 1);
    if (!(udp->without & MRD_UDP_WITHOUT_GRO))
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_GRO, 1);
}

int mrd_udp_open_rx(struct mrd_udp *udp, uint16_t port)
{
    int fd = open_bound(udp, &port);

    if (fd < 0)
        return fd;
    udp->base.mover.rx_buffer_bytes = grow_receive_buffer(fd);
    ask_for_control(udp, fd);
    udp->rx.fd = fd;
    udp->rx.port = port;
    return 0;
}

/*
 * Nothing is ever fragmented. PROBE, not DO: both set the DF bit, but with DO the kernel believes
 * what ICMP says of the path, which may be forged or never come. The engine probes.
 *
 * ECT is set on all packets, acks included, but where the engine says that it must not be: a mark on
 * an ack does no harm, and an option for each packet would cost time.
 */
static void prepare_source(struct mrd_udp *udp, int fd)
{
    if (udp->family == AF_INET || mrd_udp_addr_is_any(&udp->bound)) {
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_DF, IP_PMTUDISC_PROBE);
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_TOS, udp->tos);
    }
    if (udp->family == AF_INET6) {
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_DF6, IPV6_PMTUDISC_PROBE);
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_TCLASS, udp->tos);
    }
}

int mrd_udp_open_path(struct mrd_udp *udp, uint16_t port)
{
    struct mrd_udp_tx *tx = &udp->tx;
    int fd = open_bound(udp, &port);

    assert(tx->num_paths < tx->max_paths);
    if (fd < 0)
        return fd;
    prepare_source(udp, fd);
    set_int(fd, SOL_SOCKET, SO_SNDBUF, MRD_UDP_SNDBUF_BYTES);
    mrd_udp_icmp_watch(udp, fd);
    /* Only its errors are read: strangers shall not fill memory. */
    set_int(fd, SOL_SOCKET, SO_RCVBUF, 0);
    tx->paths[tx->num_paths++] = (struct mrd_udp_path){.fd = fd, .port = port};
    return 0;
}

int mrd_udp_open_ask(struct mrd_udp *udp)
{
    uint16_t port = 0;
    int fd, device = 0;
    socklen_t len = sizeof(device);

    if (!mrd_udp_addr_is_any(&udp->bound)) {
        fd = open_bound(udp, &port);
    } else {
        fd = socket(udp->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            fd = error_no_descriptor(udp, -errno);
        else if (udp->family == AF_INET6)
            set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    if (fd < 0)
        return fd;
    /* Nobody reads it. */
    set_int(fd, SOL_SOCKET, SO_RCVBUF, 0);
    /* "ip vrf exec" binds each socket as it is made. An older kernel does not tell. */
    if (!getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &len) && device > 0)
        udp->bound_device = (uint32_t)device;
    udp->ask_fd = fd;
    return 0;
}

/* The port of a socket; 0: it has none. */
static uint16_t port_of(int fd)
{
    union mrd_udp_sockaddr sa;
    struct mrd_addr local;
    socklen_t len = sizeof(sa);

    if (getsockname(fd, &sa.sa, &len))
        return 0;
    mrd_udp_from_sockaddr(&sa, &local);
    return (uint16_t)local.port;
}

/*
 * Ends a path's connection. The path keeps its port, which is free for a moment; should another
 * process have been given it by then, any port will do.
 */
static void disconnect_path(const struct mrd_udp *udp, struct mrd_udp_path *path)
{
    struct mrd_addr any = {.port = path->port};
    union mrd_udp_sockaddr sa;
    socklen_t len;

    path->connected = false;
    mrd_udp_disconnect(udp, path->fd);
    if (port_of(path->fd) == path->port)
        return;
    len = mrd_udp_to_sockaddr(udp->family, &any, &sa);
    if (!bind(path->fd, &sa.sa, len))
        return;
    any.port = 0;
    len = mrd_udp_to_sockaddr(udp->family, &any, &sa);
    if (!bind(path->fd, &sa.sa, len))
        path->port = port_of(path->fd);
}

void mrd_udp_connect_path(const struct mrd_udp *udp, struct mrd_udp_path *path,
                          const struct mrd_addr *to)
{
    union mrd_udp_sockaddr sa;
    socklen_t len;

    if (path->connected)
        disconnect_path(udp, path);
    len = mrd_udp_to_sockaddr(udp->family, to, &sa);
    if (connect(path->fd, &sa.sa, len))
        return;
    path->connected = true;
    path->local = (struct mrd_addr){.scope = 0};
    len = sizeof(sa);
    if (!getsockname(path->fd, &sa.sa, &len))
        mrd_udp_from_sockaddr(&sa, &path->local);
    path->local.port = 0;
}
