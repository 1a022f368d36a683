/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_lacks.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "transport/movers/udp/udp_addr.h"

/* How to ask for an ability, and what is without it. */
static const struct {
    const char *name, *without;
    int level, option; /* of setsockopt(); 0, 0: another call */
} abilities[] = {
    [MRD_UDP_LACKS_V6ONLY] = {"IPV6_V6ONLY", "IPv4 only", IPPROTO_IPV6, IPV6_V6ONLY},
    [MRD_UDP_LACKS_RXQ_OVFL] = {"SO_RXQ_OVFL", "nobody is told if the receive buffer overflows",
                                SOL_SOCKET, SO_RXQ_OVFL},
    [MRD_UDP_LACKS_RECVTOS] = {"IP_RECVTOS", "congestion marks on IPv4 packets are not seen",
                               IPPROTO_IP, IP_RECVTOS},
    [MRD_UDP_LACKS_RECVTCLASS] = {"IPV6_RECVTCLASS",
                                  "congestion marks on IPv6 packets are not seen", IPPROTO_IPV6,
                                  IPV6_RECVTCLASS},
    [MRD_UDP_LACKS_PKTINFO] = {"IP_PKTINFO",
                               "answers leave from the address that the kernel chooses", IPPROTO_IP,
                               IP_PKTINFO},
    [MRD_UDP_LACKS_RECVPKTINFO] = {"IPV6_RECVPKTINFO",
                                   "answers leave from the address that the kernel chooses",
                                   IPPROTO_IPV6, IPV6_RECVPKTINFO},
    [MRD_UDP_LACKS_GRO] = {"UDP_GRO", "datagrams are received one by one", IPPROTO_UDP, UDP_GRO},
    [MRD_UDP_LACKS_GSO] = {"UDP_SEGMENT", "datagrams are sent one by one", IPPROTO_UDP,
                           UDP_SEGMENT},
    [MRD_UDP_LACKS_DF] =
        {"IP_MTU_DISCOVER",
         "IPv4 packets may be fragmented, and are as large as the route's first link takes",
         IPPROTO_IP, IP_MTU_DISCOVER},
    [MRD_UDP_LACKS_DF6] =
        {"IPV6_MTU_DISCOVER",
         "IPv6 packets may be fragmented, and are as large as the route's first link takes",
         IPPROTO_IPV6, IPV6_MTU_DISCOVER},
    [MRD_UDP_LACKS_TOS] = {"IP_TOS", "IPv4 packets have no DSCP and cannot be marked", IPPROTO_IP,
                           IP_TOS},
    [MRD_UDP_LACKS_TCLASS] = {"IPV6_TCLASS", "IPv6 packets have no DSCP and cannot be marked",
                              IPPROTO_IPV6, IPV6_TCLASS},
    [MRD_UDP_LACKS_RECVERR] = {"IP_RECVERR",
                               "closed ports of IPv4 addresses are not told from silent ones",
                               IPPROTO_IP, IP_RECVERR},
    [MRD_UDP_LACKS_RECVERR6] = {"IPV6_RECVERR",
                                "closed ports of IPv6 addresses are not told from silent ones",
                                IPPROTO_IPV6, IPV6_RECVERR},
    [MRD_UDP_LACKS_MTU] = {"IP_MTU", "routes have the MTU of their interface", 0, 0},
    [MRD_UDP_LACKS_MTU6] = {"IPV6_MTU", "routes have the MTU of their interface", 0, 0},
    [MRD_UDP_LACKS_SENDMMSG] = {"sendmmsg()", "one call a message", 0, 0},
};

void mrd_udp_lacks(struct mrd_udp *udp, enum mrd_udp_ability ability, int error)
{
    if (udp->lacks & 1u << ability)
        return;
    udp->lacks |= 1u << ability;
    mrd_log(MRD_LOG_WARN, "the system refused %s (%s): %s", abilities[ability].name,
            strerror(error < 0 ? -error : error), abilities[ability].without);
}

void mrd_udp_ask(struct mrd_udp *udp, int fd, enum mrd_udp_ability ability, int value)
{
    assert(abilities[ability].option);
    if (setsockopt(fd, abilities[ability].level, abilities[ability].option, &value, sizeof(value)))
        mrd_udp_lacks(udp, ability, errno);
}

/* The kernel knows the MTU of a connected socket's route only: ENOTCONN is the answer that it has. */
static void ask_for_mtu(struct mrd_udp *udp, int fd, enum mrd_udp_ability ability, int level,
                        int option)
{
    int mtu;
    socklen_t len = sizeof(mtu);

    if (getsockopt(fd, level, option, &mtu, &len) && errno != ENOTCONN)
        mrd_udp_lacks(udp, ability, errno);
}

void mrd_udp_ask_for_mtu(struct mrd_udp *udp, int fd)
{
    if (udp->family == AF_INET6)
        ask_for_mtu(udp, fd, MRD_UDP_LACKS_MTU6, IPPROTO_IPV6, IPV6_MTU);
    if (udp->family == AF_INET || mrd_udp_addr_is_any(&udp->bound))
        ask_for_mtu(udp, fd, MRD_UDP_LACKS_MTU, IPPROTO_IP, IP_MTU);
}
