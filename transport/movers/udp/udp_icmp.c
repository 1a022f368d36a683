/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_icmp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h> /* needs struct timespec */

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_lacks.h"

void mrd_udp_icmp_watch(struct mrd_udp *udp, int fd)
{
    if (udp->family == AF_INET || mrd_udp_addr_is_any(&udp->bound))
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_RECVERR, 1);
    if (udp->family == AF_INET6)
        mrd_udp_ask(udp, fd, MRD_UDP_LACKS_RECVERR6, 1);
}

/* A report of the network, not of this host, that the port is closed. */
static bool is_refusal(struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        struct sock_extended_err error;

        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
            !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        memcpy(&error, CMSG_DATA(c), sizeof(error));
        return error.ee_errno == ECONNREFUSED &&
               (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6);
    }
    return false;
}

/* If the list is full the report is dropped: the next packet makes it again. */
static void add(struct mrd_udp_tx *tx, const union mrd_udp_sockaddr *sa)
{
    struct mrd_addr to;

    mrd_udp_from_sockaddr(sa, &to);
    for (unsigned i = 0; i < tx->num_refused; i++)
        if (!memcmp(&tx->refused[i], &to, sizeof(to)))
            return;
    if (tx->num_refused < MRD_UDP_REFUSED_MAX)
        tx->refused[tx->num_refused++] = to;
}

bool mrd_udp_icmp_read(struct mrd_udp *udp, int fd)
{
    bool any = false;

    for (;;) {
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6)) +
                       CMSG_SPACE(sizeof(struct in6_pktinfo))];
        } control;
        union mrd_udp_sockaddr to;
        char start; /* of the packet: not wanted */
        struct iovec iov = {&start, sizeof(start)};
        struct msghdr msg = {.msg_name = &to,
                             .msg_namelen = sizeof(to),
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};

        if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return any;
        any = true;
        if (msg.msg_namelen && is_refusal(&msg))
            add(&udp->tx, &to);
    }
}

void mrd_udp_icmp_ask(struct mrd_udp *udp, uint16_t path)
{
    struct mrd_udp_tx *tx = &udp->tx;
    unsigned num = tx->num_asked < MRD_UDP_ASKED ? tx->num_asked : MRD_UDP_ASKED;
    bool known = false;

    for (unsigned i = 0; i < num; i++) {
        (void)mrd_udp_icmp_read(udp, tx->paths[tx->asked[i]].fd);
        known |= tx->asked[i] == path;
    }
    if (!known)
        tx->asked[tx->num_asked++ % MRD_UDP_ASKED] = path;
}

bool mrd_udp_refused(struct mrd_backend *b, struct mrd_addr *to)
{
    struct mrd_udp_tx *tx = &mrd_udp_of(b)->tx;

    if (!tx->num_refused)
        return false;
    *to = tx->refused[--tx->num_refused];
    return true;
}
