/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_tx.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_icmp.h"
#include "transport/movers/udp/udp_lacks.h"
#include "transport/movers/udp/udp_route.h"
#include "transport/movers/udp/udp_socket.h"
#include "transport/movers/udp/udp_source.h"

enum {
    STREAK_TO_CONNECT = 256,
    SOURCE_CHECK_NS =
        200 * 1000 * 1000, /* a connected path's messages name their source so often */
};

/* -------------------------------------------------------------------- groups */

static bool same_way(const struct mrd_tx_packet *a, const struct mrd_tx_packet *b)
{
    return a->path == b->path && a->dscp == b->dscp && !((a->flags ^ b->flags) & MRD_TX_NOT_ECT) &&
           memcmp(&a->to, &b->to, sizeof(a->to)) == 0 &&
           memcmp(&a->from, &b->from, sizeof(a->from)) == 0;
}

static bool gso_refused(const struct mrd_udp_tx *tx, const struct mrd_addr *to)
{
    for (unsigned i = 0; i < tx->num_no_gso; i++) {
        if (mrd_udp_addr_same_ip(&tx->no_gso[i], to))
            return true;
    }
    return false;
}

static void refuse_gso(struct mrd_udp *udp, const struct mrd_addr *to, int error)
{
    struct mrd_udp_tx *tx = &udp->tx;
    char text[MRD_ADDRESS_MAX];

    if (mrd_udp_format_address(&udp->base, to, text, sizeof(text)))
        text[0] = '\0';
    mrd_log(MRD_LOG_INFO,
            "the route to %s takes no UDP_SEGMENT (%s): one packet a call from now on", text,
            strerror(error));
    if (tx->num_no_gso == MRD_UDP_NO_GSO_MAX)
        tx->gso = false; /* so many routes that all may be like that */
    else
        tx->no_gso[tx->num_no_gso++] = *to;
}

/*
 * How many packets from the front make one superpacket: of equal lengths, the last may be shorter.
 */
static unsigned group_size(const struct mrd_udp_tx *tx, const struct mrd_tx_packet *packets,
                           unsigned n)
{
    unsigned size = 1, iov = 1u + packets[0].num_iov;
    uint32_t bytes = packets[0].len;

    if (n == 1 || !tx->gso || (packets[0].flags & MRD_TX_ALONE) || packets[0].len == 0 ||
        !same_way(&packets[0], &packets[1]) || gso_refused(tx, &packets[0].to))
        return 1;
    while (size < n && size < MRD_UDP_SEGMENTS_MAX) {
        const struct mrd_tx_packet *p = &packets[size];

        if (p->len == 0 || p->len > packets[0].len || bytes + p->len > MRD_UDP_SUPERPACKET_BYTES ||
            iov + 1 + p->num_iov > MRD_UDP_TX_IOV || !same_way(&packets[0], p))
            break;
        bytes += p->len;
        iov += 1u + p->num_iov;
        size++;
        if (p->len < packets[0].len)
            break;
    }
    return size;
}

/* -------------------------------------------------------------------- messages */

/*
 * Is the path's socket connected to the packet's peer, and does the connection serve it: so that the
 * message need name neither destination nor source? That saves the kernel a route look-up a message
 * (0.2 us). A path is connected after a streak of messages to one peer alone.
 *
 * A connection keeps the source that it began with, so it serves only packets with that source.
 * Where routes are several the kernel may have chosen another for it; then it serves none. When the
 * source of the peer's packets changes, it is made anew, after another streak. Other messages by a
 * connected socket name their destination and source.
 *
 * IPv6 goes on to send from an address that is gone, IPv4 does not: so from time to time a message
 * names its source all the same, which has the kernel look.
 */
static bool connection_serves(struct mrd_udp *udp, const struct mrd_tx_packet *p,
                              const struct mrd_addr *source)
{
    struct mrd_udp_path *path = &udp->tx.paths[p->path];

    if (memcmp(&path->peer, &p->to, sizeof(p->to)) != 0) {
        if (!path->connected) {
            path->peer = p->to;
            path->streak = 0;
        }
        return false;
    }
    if (path->connected && mrd_udp_addr_same_ip(&path->local, source)) {
        path->streak = 0;
        if (udp->tx.now_ns - path->checked_ns < SOURCE_CHECK_NS ||
            !mrd_udp_addr_is_any(&udp->bound))
            return true;
        path->checked_ns = udp->tx.now_ns;
        return false;
    }
    if (path->connected && mrd_udp_addr_same_ip(&path->wanted, source))
        return false;
    /* A connection to a link-local peer would bind the socket to the peer's link. */
    if (++path->streak < STREAK_TO_CONNECT || mrd_udp_addr_is_link_local(&p->to))
        return false;
    path->streak = 0;
    path->wanted = *source;
    path->checked_ns = udp->tx.now_ns;
    mrd_udp_connect_path(udp, path, &p->to);
    return path->connected && mrd_udp_addr_same_ip(&path->local, source);
}

static void *put_control(struct msghdr *msg, int level, int type, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)((char *)msg->msg_control + msg->msg_controllen);

    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    msg->msg_controllen += CMSG_SPACE(len);
    return CMSG_DATA(c);
}

static void put_source(const struct mrd_udp *udp, struct msghdr *msg, const struct mrd_addr *from)
{
    if (udp->family == AF_INET) {
        struct in_pktinfo info = {.ipi_ifindex = 0};

        memcpy(&info.ipi_spec_dst, from->ip + 12, 4);
        memcpy(put_control(msg, IPPROTO_IP, IP_PKTINFO, sizeof(info)), &info, sizeof(info));
    } else { /* IPv4 takes a v4-mapped address */
        struct in6_pktinfo info = {.ipi6_ifindex = from->scope};

        memcpy(&info.ipi6_addr, from->ip, 16);
        memcpy(put_control(msg, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info)), &info, sizeof(info));
    }
}

/* Else a message that asks for it would be refused. */
static bool can_mark(const struct mrd_udp *udp, const struct mrd_addr *to)
{
    return mrd_udp_can(udp, mrd_udp_addr_is_v4(to) ? MRD_UDP_LACKS_TOS : MRD_UDP_LACKS_TCLASS);
}

static uint8_t tos_of(const struct mrd_udp *udp, const struct mrd_tx_packet *p)
{
    return mrd_udp_tos(p->dscp, !udp->no_ect && !(p->flags & MRD_TX_NOT_ECT));
}

/* A packet whose DSCP or ECT is not the socket's says so itself. */
static void put_tos(struct msghdr *msg, const struct mrd_tx_packet *p, int tos)
{
    bool v4 = mrd_udp_addr_is_v4(&p->to);

    memcpy(put_control(msg, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, sizeof(tos)),
           &tos, sizeof(tos));
}

static void put_iov(struct mrd_udp_tx_batch *batch, const struct mrd_tx_packet *p)
{
    batch->iov[batch->num_iov++] = (struct iovec){p->head, p->head_len};
    for (unsigned i = 0; i < p->num_iov; i++)
        batch->iov[batch->num_iov++] = p->iov[i];
}

/* Appends packets[0..n) to the batch as one message. The batch must have room. */
static void put_message(struct mrd_udp *udp, const struct mrd_tx_packet *packets, unsigned n)
{
    struct mrd_udp_tx_batch *batch = &udp->tx.batch;
    unsigned i = batch->num_messages++;
    struct msghdr *msg = &batch->messages[i].msg_hdr;
    unsigned first_iov = batch->num_iov;
    struct mrd_addr source;
    bool named;

    batch->packets[i] = n;
    msg->msg_name = NULL;
    msg->msg_namelen = 0;
    msg->msg_control = batch->control[i].bytes;
    msg->msg_controllen = 0;
    msg->msg_flags = 0;
    named = mrd_udp_source_for(udp, &packets[0].to, &packets[0].from, &source);
    if (!connection_serves(udp, &packets[0], named ? &source : &udp->bound)) {
        msg->msg_name = &batch->names[i];
        msg->msg_namelen = mrd_udp_to_sockaddr(udp->family, &packets[0].to, &batch->names[i]);
        if (named)
            put_source(udp, msg, &source);
    }
    if (tos_of(udp, &packets[0]) != udp->tos && can_mark(udp, &packets[0].to))
        put_tos(msg, &packets[0], tos_of(udp, &packets[0]));
    if (n > 1) {
        uint16_t segment = (uint16_t)packets[0].len;

        memcpy(put_control(msg, IPPROTO_UDP, UDP_SEGMENT, sizeof(segment)), &segment,
               sizeof(segment));
    }
    if (msg->msg_controllen == 0)
        msg->msg_control = NULL;
    for (unsigned p = 0; p < n; p++)
        put_iov(batch, &packets[p]);
    msg->msg_iov = &batch->iov[first_iov];
    msg->msg_iovlen = batch->num_iov - first_iov;
}

static bool sendable(const struct mrd_udp *udp, const struct mrd_tx_packet *p)
{
    assert(p->path < udp->tx.num_paths);
    return udp->family == AF_INET6 || mrd_udp_addr_is_v4(&p->to);
}

/* Fills the batch with messages for one socket, from the front of packets[0..n): at least one. */
static void fill_batch(struct mrd_udp *udp, const struct mrd_tx_packet *packets, unsigned n)
{
    struct mrd_udp_tx_batch *batch = &udp->tx.batch;
    unsigned done = 0;

    batch->num_messages = batch->num_iov = 0;
    while (done < n && batch->num_messages < MRD_UDP_TX_MESSAGES) {
        const struct mrd_tx_packet *p = &packets[done];
        unsigned size, iov = 0;

        if (done > 0 && (p->path != packets[0].path || !sendable(udp, p)))
            break;
        size = group_size(&udp->tx, p, n - done);
        for (unsigned i = 0; i < size; i++)
            iov += 1u + p[i].num_iov;
        if (batch->num_iov + iov > MRD_UDP_TX_IOV)
            break;
        put_message(udp, p, size);
        done += size;
    }
}

/* -------------------------------------------------------------------- sending */

static bool would_block(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

/* Returns 0 or the errno, not negative. */
static int try_message(int fd, const struct msghdr *msg)
{
    ssize_t n;

    do {
        if (msg->msg_iovlen == 1 && !msg->msg_control)
            n = sendto(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, MSG_DONTWAIT,
                       msg->msg_name, msg->msg_namelen);
        else
            n = sendmsg(fd, msg, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}

/*
 * sendmmsg() failed with `error`: a sandbox may refuse the call itself, by any error and at any time.
 * Then it fails also with nothing to send.
 */
static bool lacks_sendmmsg(struct mrd_udp *udp, int fd, int error)
{
    if (would_block(error) || !sendmmsg(fd, udp->tx.batch.messages, 0, MSG_DONTWAIT))
        return false;
    mrd_udp_lacks(udp, MRD_UDP_LACKS_SENDMMSG, errno);
    return true;
}

/* Returns the number of messages sent, or -errno of the first one. */
static int try_batch(struct mrd_udp *udp, int fd)
{
    struct mrd_udp_tx_batch *batch = &udp->tx.batch;
    int error = 0, n = 0;

    if (batch->num_messages > 1 && mrd_udp_can(udp, MRD_UDP_LACKS_SENDMMSG)) {
        do
            n = sendmmsg(fd, batch->messages, batch->num_messages, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
            return n;
        error = errno;
        if (!lacks_sendmmsg(udp, fd, error))
            return -error;
    }
    for (n = 0; n < (int)batch->num_messages; n++) {
        error = try_message(fd, &batch->messages[n].msg_hdr);
        if (error)
            break;
    }
    return n ? n : -error;
}

/*
 * Sends the batch. Returns the number of messages sent, or -errno of the first one. A call fails,
 * too, for what ICMP said of an earlier packet, perhaps to another peer: then once more.
 */
static int send_batch(struct mrd_udp *udp, int fd)
{
    int sent = try_batch(udp, fd);

    if (sent >= 0 || would_block(-sent) || !mrd_udp_icmp_read(udp, fd))
        return sent;
    return try_batch(udp, fd);
}

/*
 * Gives up packets that the kernel refuses: they count as sent and lost. The sender's loss
 * detection retransmits them.
 */
static void give_up(struct mrd_udp *udp, const struct mrd_tx_packet *p, unsigned n, int error)
{
    char text[MRD_ADDRESS_MAX];

    udp->tx.lost += n;
    if (error == EMSGSIZE) {
        mrd_udp_too_big_add(udp, &p->to);
        return;
    }
    if (error == udp->tx.logged_error)
        return;
    udp->tx.logged_error = error;
    if (mrd_udp_format_address(&udp->base, &p->to, text, sizeof(text)))
        text[0] = '\0';
    mrd_log(MRD_LOG_WARN, "packets to %s cannot be sent: %s", text, strerror(error));
}

/* Sends one packet by itself. Returns 0 or the errno, not negative. */
static int send_single(struct mrd_udp *udp, const struct mrd_tx_packet *p)
{
    int fd = udp->tx.paths[p->path].fd;
    int sent;

    udp->tx.batch.num_messages = udp->tx.batch.num_iov = 0;
    put_message(udp, p, 1);
    sent = send_batch(udp, fd);
    return sent < 0 ? -sent : 0;
}

/*
 * Sends the packets of a superpacket, which the kernel refused with `refusal`, one by one. That
 * shows what the kernel refuses: a packet that is too big, or superpackets on this route. Returns
 * the number of packets taken.
 */
static unsigned send_apart(struct mrd_udp *udp, const struct mrd_tx_packet *packets, unsigned n,
                           int refusal)
{
    bool any_sent = false;
    unsigned i;

    for (i = 0; i < n; i++) {
        int error = send_single(udp, &packets[i]);

        if (would_block(error))
            break;
        if (error)
            give_up(udp, &packets[i], 1, error);
        /* A shorter last packet proves nothing: it may fit where the others do not. */
        else if (packets[i].len == packets[0].len)
            any_sent = true;
    }
    if (any_sent)
        refuse_gso(udp, &packets[0].to, refusal);
    return i;
}

/*
 * Deals with `error` of the batch's first message, packets[0..n). Returns the number of
 * packets taken.
 */
static unsigned handle_error(struct mrd_udp *udp, const struct mrd_tx_packet *packets, unsigned n,
                             int error)
{
    if (would_block(error))
        return 0;
    if (n > 1) {
        switch (error) {
        case EINVAL:
        case EIO:
        case ENOPROTOOPT:
        case EOPNOTSUPP:
        case EMSGSIZE: /* segments do not fit the MTU; EINVAL in older kernels */
            return send_apart(udp, packets, n, error);
        }
    }
    give_up(udp, packets, n, error);
    return n;
}

/*
 * A sandbox may refuse to let a message name its source. The first message that does is sent without:
 * if it leaves now, all do from then on, from the address that the kernel chooses. Returns the number
 * of messages sent, or -errno of the first one.
 */
static int send_nameless(struct mrd_udp *udp, const struct mrd_tx_packet *p, unsigned n,
                         int refusal)
{
    struct mrd_udp_tx *tx = &udp->tx;
    const struct msghdr *msg = &tx->batch.messages[0].msg_hdr;
    int sent;

    if (tx->naming_works || tx->nameless || !msg->msg_control || tx->batch.packets[0] > 1)
        return refusal;
    tx->nameless = true;
    fill_batch(udp, p, n);
    sent = send_batch(udp, tx->paths[p->path].fd);
    tx->nameless = sent >= 0;
    if (tx->nameless)
        mrd_log(MRD_LOG_WARN,
                "the system refuses IP_PKTINFO in messages (%s): they leave from the "
                "address that the kernel chooses",
                strerror(-refusal));
    return sent;
}

/* Sends packets from the front, as one call takes them: the number of messages, or -errno. */
static int send_some(struct mrd_udp *udp, const struct mrd_tx_packet *p, unsigned n)
{
    struct mrd_udp_tx *tx = &udp->tx;
    int sent;

    fill_batch(udp, p, n);
    sent = send_batch(udp, tx->paths[p->path].fd);
    if (sent < 0 && mrd_udp_source_refused(udp, &p->to, &p->from, -sent)) {
        fill_batch(udp, p, n); /* from another source */
        sent = send_batch(udp, tx->paths[p->path].fd);
    }
    if (sent == -EINVAL || sent == -ENOPROTOOPT || sent == -EOPNOTSUPP)
        return send_nameless(udp, p, n, sent);
    tx->naming_works |= sent >= 0 && tx->batch.messages[0].msg_hdr.msg_control;
    return sent;
}

unsigned mrd_udp_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n)
{
    struct mrd_udp *udp = mrd_udp_of(b);
    struct mrd_udp_tx_batch *batch = &udp->tx.batch;
    bool asked = false;
    unsigned taken = 0;

    udp->tx.now_ns = mrd_udp_coarse_ns();
    while (taken < n) {
        const struct mrd_tx_packet *p = &packets[taken];
        unsigned before = taken;
        int sent;

        if (!sendable(udp, p)) {
            give_up(udp, p, 1, EAFNOSUPPORT);
            taken++;
            continue;
        }
        if (p->flags & MRD_TX_UNHEARD && !asked) {
            mrd_udp_icmp_ask(udp, p->path);
            asked = true;
        }
        sent = send_some(udp, p, n - taken);
        if (sent < 0)
            taken += handle_error(udp, p, batch->packets[0], -sent);
        for (int i = 0; i < sent; i++)
            taken += batch->packets[i];
        if (taken == before)
            break; /* the socket's buffer is full */
    }
    return taken;
}
