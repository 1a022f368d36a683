/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_route.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_port.h"
#include "transport/movers/udp/udp_socket.h"

enum { LOOPBACK_MTU = 65536 };

static int route_query(const struct mrd_udp *udp, const struct mrd_addr *to,
                       struct mrd_udp_route *route)
{
    union mrd_udp_sockaddr sa;
    socklen_t len = mrd_udp_to_sockaddr(udp->family, to, &sa);
    int mtu, error, fd = udp->ask_fd;

    if (connect(fd, &sa.sa, len))
        return -errno;
    len = sizeof(sa);
    if (getsockname(fd, &sa.sa, &len))
        return -errno;
    mrd_udp_from_sockaddr(&sa, &route->source);
    route->source.port = 0;
    len = sizeof(mtu);
    if (mrd_udp_addr_is_v4(to))
        error = getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len);
    else
        error = getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
    route->mtu = error ? mrd_udp_interface_mtu(&route->source) : (uint32_t)mtu;
    route->local = route->mtu >= LOOPBACK_MTU || mrd_udp_addr_is_loopback(to) ||
                   mrd_udp_addr_same_ip(to, &route->source);
    return 0;
}

int mrd_udp_route(const struct mrd_udp *udp, const struct mrd_addr *to, struct mrd_udp_route *route)
{
    struct mrd_udp_route answer;
    int error;

    if (!mrd_udp_addr_is_v4(to) && udp->family == AF_INET)
        return -EAFNOSUPPORT;
    error = route_query(udp, to, &answer);
    /* A connection that is left would keep its source for the next question. */
    mrd_udp_disconnect(udp, udp->ask_fd);
    if (error == 0)
        *route = answer;
    return error;
}

int mrd_udp_route_from(const struct mrd_udp *udp, const struct mrd_addr *from,
                       const struct mrd_addr *to)
{
    union mrd_udp_sockaddr sa;
    struct mrd_addr local = *from;
    socklen_t len;
    int error = 0, off = 0, fd = socket(udp->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    local.port = 0;
    len = mrd_udp_to_sockaddr(udp->family, &local, &sa);
    if (udp->family == AF_INET6)
        error = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (!error)
        error = bind(fd, &sa.sa, len);
    len = mrd_udp_to_sockaddr(udp->family, to, &sa);
    if (!error)
        error = connect(fd, &sa.sa, len);
    if (error)
        error = -errno;
    close(fd);
    return error;
}

uint32_t mrd_udp_payload_fit(const struct mrd_udp_route *route, bool v4, uint32_t wanted)
{
    uint32_t overhead = (v4 ? 20 : 40) + 8 + MRD_UDP_HEADER_ROOM;
    uint32_t fit = route->mtu > overhead ? (route->mtu - overhead) / 64 * 64 : 0;

    if (wanted)
        return fit < wanted ? fit : wanted;
    if (route->local)
        return fit < MRD_UDP_PAYLOAD_LOCAL ? fit : MRD_UDP_PAYLOAD_LOCAL;
    if (fit >= MRD_UDP_PAYLOAD_JUMBO)
        return MRD_UDP_PAYLOAD_JUMBO;
    return fit < MRD_UDP_PAYLOAD_DEFAULT ? fit : MRD_UDP_PAYLOAD_DEFAULT;
}

int mrd_udp_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to)
{
    const struct mrd_udp *udp = mrd_udp_of(b);
    struct mrd_udp_route route;
    char text[MRD_ADDRESS_MAX];
    uint32_t payload;
    int error = mrd_udp_route(udp, to, &route);

    if (mrd_udp_format_address(b, to, text, sizeof(text)))
        text[0] = '\0';
    if (error) {
        mrd_error_set("no route to %s: %s", text, strerror(-error));
        return -EHOSTUNREACH;
    }
    payload = mrd_udp_payload_fit(&route, mrd_udp_addr_is_v4(to), udp->mtu);
    if (payload == 0) {
        mrd_error_set("the route to %s has an MTU of %u bytes, too small for any packet", text,
                      route.mtu);
        return -EHOSTUNREACH;
    }
    return (int)payload;
}

bool mrd_udp_one_way(struct mrd_backend *b, const struct mrd_addr *to)
{
    struct mrd_udp_route route;

    return !mrd_udp_route(mrd_udp_of(b), to, &route) && route.local;
}

void mrd_udp_too_big_add(struct mrd_udp *udp, const struct mrd_addr *to)
{
    struct mrd_udp_tx *tx = &udp->tx;
    struct mrd_udp_route route;
    uint32_t payload;

    for (unsigned i = 0; i < tx->num_too_big; i++) {
        if (memcmp(&tx->too_big[i].to, to, sizeof(*to)) == 0)
            return;
    }
    /* If the list is full the report is dropped: the packet's retransmission makes it again. */
    if (tx->num_too_big == MRD_UDP_TOO_BIG_MAX || mrd_udp_route(udp, to, &route))
        return;
    payload = mrd_udp_payload_fit(&route, mrd_udp_addr_is_v4(to), udp->mtu);
    if (payload == 0)
        return;
    tx->too_big[tx->num_too_big++] = (struct mrd_udp_too_big){*to, payload};
}

bool mrd_udp_too_big(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes)
{
    struct mrd_udp_tx *tx = &mrd_udp_of(b)->tx;

    if (tx->num_too_big == 0)
        return false;
    tx->num_too_big--;
    *to = tx->too_big[tx->num_too_big].to;
    *payload_bytes = tx->too_big[tx->num_too_big].payload_bytes;
    return true;
}
