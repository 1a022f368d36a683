/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_rx.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "transport/movers/udp/udp_addr.h"

enum {
    LONG_BYTES = 2048, /* where straight receive begins to save more than its peek costs */
    /*
     * After so many short datagrams in a row that came alone, receiving becomes lean:
     * see set_lean().
     */
    SINGLE_RUN_MIN = 64,
    SMALL_RUN_MAX = 8, /* after so many short datagrams in a row, peeking stops */
    /*
     * Of several datagrams received by one call, what each short one saves, and how many bytes of a long
     * one cost a unit of that, as they are copied; how much it must be for that to begin, and at most.
     */
    SHORT_SAVES = 10,
    LONG_COSTS = 2048,
    MANY_BEGINS = 64 * SHORT_SAVES,
    MANY_MOST = 2 * MANY_BEGINS,
    STAGING_ALIGN = 64, /* a cache line */
};

/* Whether the socket had a datagram. */
enum got { GOT_NOTHING, GOT_DATAGRAM };

struct control {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 4 * CMSG_SPACE(sizeof(int))];
    };
};

/* -------------------------------------------------------------------- what recvmsg tells */

static void note_overflow(struct mrd_udp_rx *rx, uint32_t count)
{
    rx->overflow = count;
    /* The count is of the socket's whole life. Warn again only when it has doubled. */
    if (count / 2 < rx->overflow_logged)
        return;
    rx->overflow_logged = count;
    mrd_log(MRD_LOG_WARN,
            "the UDP receive buffer overflowed, %u datagrams lost so far: raise net.core.rmem_max",
            count);
}

static uint32_t control_u32(const struct cmsghdr *c)
{
    uint32_t value = 0;
    size_t len = c->cmsg_len - CMSG_LEN(0);

    /* IP_TOS comes as one byte, all others as an int. */
    if (len == 1)
        return *CMSG_DATA(c);
    memcpy(&value, CMSG_DATA(c), len < sizeof(value) ? len : sizeof(value));
    return value;
}

static void read_pktinfo(const struct cmsghdr *c, struct mrd_addr *to)
{
    if (c->cmsg_level == IPPROTO_IP) {
        struct in_pktinfo info;

        memcpy(&info, CMSG_DATA(c), sizeof(info));
        mrd_udp_from_v4(info.ipi_addr, to);
    } else {
        struct in6_pktinfo info;

        memcpy(&info, CMSG_DATA(c), sizeof(info));
        memcpy(to->ip, &info.ipi6_addr, 16);
        to->scope = mrd_udp_addr_is_link_local(to) ? (uint32_t)info.ipi6_ifindex : 0;
    }
}

/* Fills the arrival from a message of `bytes` bytes that was received or peeked at. */
static void read_arrival(struct mrd_udp *udp, struct msghdr *msg, uint32_t bytes)
{
    struct mrd_udp_arrival *a = &udp->rx.arrival;

    mrd_udp_from_sockaddr(msg->msg_name, &a->from);
    a->to = udp->bound;
    a->to.port = mrd_udp_addr_is_any(&udp->bound) ? 0 : udp->rx.port;
    a->ecn = MRD_ECN_UNKNOWN;
    a->segment_len = a->total_len = bytes;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            uint32_t segment = control_u32(c);

            if (segment > 0 && segment < bytes)
                a->segment_len = segment;
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
            a->ecn = control_u32(c) & 3;
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)) {
            read_pktinfo(c, &a->to);
            a->to.port = udp->rx.port;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t count = control_u32(c);

            if (count != udp->rx.overflow)
                note_overflow(&udp->rx, count);
        }
    }
    a->segments = bytes ? (bytes + a->segment_len - 1) / a->segment_len : 0;
    a->next = a->planned = 0;
    a->head_len = 0;
}

static uint32_t segment_bytes(const struct mrd_udp_arrival *a, unsigned i)
{
    return i + 1 < a->segments ? a->segment_len : a->total_len - i * a->segment_len;
}

/* -------------------------------------------------------------------- receiving */

static ssize_t receive(int fd, struct msghdr *msg, int flags)
{
    ssize_t n;

    do
        n = recvmsg(fd, msg, flags | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Reserves `bytes` of the staging buffer, and returns where they begin. */
static const uint8_t *stage(struct mrd_udp_rx *rx, uint32_t bytes)
{
    const uint8_t *at = rx->staging + rx->staged;

    rx->staged += (bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    return at;
}

/* Receives the next datagram into the staging buffer, without a peek. */
static enum got receive_plain(struct mrd_udp *udp)
{
    struct mrd_udp_rx *rx = &udp->rx;
    union mrd_udp_sockaddr name;
    struct control control;
    struct iovec iov = {rx->staging + rx->staged, MRD_UDP_DATAGRAM_ROOM};
    struct msghdr msg = {
        .msg_name = &name,
        .msg_namelen = sizeof(name),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n = receive(rx->fd, &msg, 0);

    if (n < 0)
        return GOT_NOTHING;
    rx->count.plain++;
    read_arrival(udp, &msg, (uint32_t)n);
    rx->arrival.bytes = stage(rx, (uint32_t)n);
    return GOT_DATAGRAM;
}

static bool has_more_of_many(const struct mrd_udp_rx *rx)
{
    return rx->many_next < rx->num_many;
}

/* Receives up to as many datagrams as the staging buffer has room for. */
static enum got receive_many(struct mrd_udp *udp)
{
    struct mrd_udp_rx *rx = &udp->rx;
    unsigned most = (MRD_UDP_STAGING_BYTES - rx->staged) / MRD_UDP_DATAGRAM_ROOM;
    union mrd_udp_sockaddr name[MRD_UDP_RX_MANY];
    struct control control[MRD_UDP_RX_MANY];
    struct iovec iov[MRD_UDP_RX_MANY];
    struct mmsghdr msg[MRD_UDP_RX_MANY];
    int n;

    if (rx->one_by_one || most < 2)
        return receive_plain(udp);
    for (unsigned i = 0; i < most; i++) {
        iov[i] = (struct iovec){rx->staging + rx->staged + i * MRD_UDP_DATAGRAM_ROOM,
                                MRD_UDP_DATAGRAM_ROOM};
        msg[i].msg_hdr = (struct msghdr){.msg_name = &name[i],
                                         .msg_namelen = sizeof(name[i]),
                                         .msg_iov = &iov[i],
                                         .msg_iovlen = 1,
                                         .msg_control = control[i].bytes,
                                         .msg_controllen = sizeof(control[i].bytes)};
    }
    do
        n = recvmmsg(rx->fd, msg, most, MSG_DONTWAIT, NULL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN) {
        rx->one_by_one = errno == ENOSYS || errno == EPERM || errno == EACCES;
        return receive_plain(udp);
    }
    if (n <= 0)
        return GOT_NOTHING;
    for (int i = 0; i < n; i++) {
        read_arrival(udp, &msg[i].msg_hdr, msg[i].msg_len);
        rx->arrival.bytes = iov[i].iov_base;
        rx->many[i] = rx->arrival;
    }
    rx->staged += (uint32_t)(n - 1) * MRD_UDP_DATAGRAM_ROOM;
    stage(rx, rx->arrival.total_len);
    rx->arrival = rx->many[0];
    rx->num_many = (unsigned)n;
    rx->many_next = 1;
    rx->count.plain += (unsigned)n;
    rx->count.many++;
    return GOT_DATAGRAM;
}

static bool set_gro(const struct mrd_udp *udp, bool on)
{
    int gro = on && !(udp->without & MRD_UDP_WITHOUT_GRO);

    return !setsockopt(udp->rx.fd, IPPROTO_UDP, UDP_GRO, &gro, sizeof(gro));
}

static bool is_empty(int fd)
{
    char start;
    ssize_t n;

    do
        n = recv(fd, &start, sizeof(start), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0;
}

/*
 * Turns lean receiving on or off: recvfrom() in place of recvmsg(), 0.15 us cheaper a call, for
 * traffic of the ping-pong kind. It tells only bytes and sender: ECN marks are not seen, and not the
 * destination address, which whoever answers must know. So it is for sockets that are bound to one.
 *
 * recvfrom() does not tell where one datagram ends, so the kernel must not coalesce meanwhile. A
 * superpacket that came after the receive that found nothing, and before the kernel was told, must be
 * received as such: then it is not the kind of traffic.
 */
static void set_lean(struct mrd_udp *udp, bool lean)
{
    udp->rx.single_run = 0;
    if (udp->rx.lean == lean || mrd_udp_addr_is_any(&udp->bound))
        return;
    if (!set_gro(udp, !lean))
        return;
    if (lean && !is_empty(udp->rx.fd))
        set_gro(udp, true);
    else
        udp->rx.lean = lean;
}

static enum got receive_lean(struct mrd_udp *udp)
{
    struct mrd_udp_rx *rx = &udp->rx;
    struct mrd_udp_arrival *a = &rx->arrival;
    union mrd_udp_sockaddr name;
    socklen_t len = sizeof(name);
    ssize_t n;

    do
        n = recvfrom(rx->fd, rx->staging + rx->staged, MRD_UDP_DATAGRAM_ROOM, MSG_DONTWAIT,
                     &name.sa, &len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return GOT_NOTHING;
    rx->count.plain++;
    *a = (struct mrd_udp_arrival){.to = udp->bound,
                                  .ecn = MRD_ECN_UNKNOWN,
                                  .segment_len = (uint32_t)n,
                                  .total_len = (uint32_t)n,
                                  .segments = n > 0,
                                  .bytes = stage(rx, (uint32_t)n)};
    a->to.port = rx->port;
    mrd_udp_from_sockaddr(&name, &a->from);
    return GOT_DATAGRAM;
}

/*
 * Peeks at the next datagram: reads its header and what recvmsg() tells; the datagram stays queued.
 */
static enum got peek_datagram(struct mrd_udp *udp)
{
    struct mrd_udp_rx *rx = &udp->rx;
    union mrd_udp_sockaddr name;
    struct control control;
    struct iovec iov = {rx->peek, sizeof(rx->peek)};
    struct msghdr msg = {
        .msg_name = &name,
        .msg_namelen = sizeof(name),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n = receive(rx->fd, &msg, MSG_PEEK | MSG_TRUNC);

    if (n < 0)
        return GOT_NOTHING;
    rx->count.peeks++;
    read_arrival(udp, &msg, (uint32_t)n);
    rx->peeked = true;
    return GOT_DATAGRAM;
}

/*
 * Builds the iovec for a planned receive: header, pieces, header, pieces, ..., then the staging
 * buffer for the segments that are not planned. Returns the number of its entries.
 */
static unsigned build_plan_iov(struct mrd_udp_rx *rx)
{
    struct mrd_udp_arrival *a = &rx->arrival;
    const struct mrd_rx_plan *plan = &rx->plan;
    unsigned n = 0;

    for (unsigned i = 0; i < a->planned; i++) {
        rx->iov[n++] = (struct iovec){rx->heads[i], a->head_len};
        for (unsigned p = plan->first[i]; p < plan->first[i + 1]; p++)
            rx->iov[n++] = plan->iov[p];
    }
    if (a->planned < a->segments)
        rx->iov[n++] = (struct iovec){rx->staging + rx->staged, MRD_UDP_DATAGRAM_ROOM};
    return n;
}

/*
 * Returns how many segments from the front have pieces of just their length. A wrong length would
 * shift the bytes of all segments behind it.
 */
static unsigned check_plan(const struct mrd_udp_arrival *a, const struct mrd_rx_plan *plan,
                           unsigned planned)
{
    unsigned i;

    if (plan->head_len == 0 || plan->head_len > MRD_HEAD_PEEK_BYTES)
        return 0;
    for (i = 0; i < planned; i++) {
        size_t bytes = plan->head_len;

        for (unsigned p = plan->first[i]; p < plan->first[i + 1]; p++)
            bytes += plan->iov[p].iov_len;
        if (bytes != segment_bytes(a, i))
            break;
    }
    return i;
}

/* Asks the engine where the datagram that was peeked at belongs. Sets `planned`; 0: staging. */
static void make_plan(struct mrd_udp_rx *rx, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_udp_arrival *a = &rx->arrival;
    unsigned segments = a->segments, planned;
    uint32_t bytes = a->total_len;
    unsigned head = bytes < MRD_HEAD_PEEK_BYTES ? bytes : MRD_HEAD_PEEK_BYTES;

    if (head > a->segment_len)
        head = a->segment_len;
    if (segments > MRD_PLAN_SEGMENTS_MAX) {
        segments = MRD_PLAN_SEGMENTS_MAX;
        bytes = segments * a->segment_len;
    }
    planned = plan(plan_arg, rx->peek, head, segments, a->segment_len, bytes, &a->from, &rx->plan);
    assert(planned <= segments);
    a->planned = check_plan(a, &rx->plan, planned);
    a->head_len = rx->plan.head_len;
}

/* Receives the datagram that was peeked at. */
static enum got receive_peeked(struct mrd_udp_rx *rx)
{
    struct mrd_udp_arrival *a = &rx->arrival;
    struct msghdr msg = {.msg_iov = rx->iov, .msg_iovlen = build_plan_iov(rx)};
    uint32_t straight = a->planned < a->segments ? a->planned * a->segment_len : a->total_len;
    ssize_t n = receive(rx->fd, &msg, MSG_TRUNC);

    rx->peeked = false;
    if (n != (ssize_t)a->total_len) {
        /*
         * Another datagram than the one that was peeked at, although there is only one reader.
         * Which bytes went where is unknown: drop it.
         */
        a->segments = 0;
        return n < 0 ? GOT_NOTHING : GOT_DATAGRAM;
    }
    if (a->planned)
        rx->count.straight++;
    a->bytes = stage(rx, a->total_len - straight);
    return GOT_DATAGRAM;
}

/* -------------------------------------------------------------------- reporting */

static bool drop_on_purpose(struct mrd_udp_rx *rx)
{
    return rx->drop_ppm && mrd_rng_below(&rx->rng, 1000000) < rx->drop_ppm;
}

/* Reports segments of the arrival to the engine while there is room. Returns how many. */
static unsigned report(struct mrd_udp_rx *rx, struct mrd_rx_packet *packets, unsigned room)
{
    struct mrd_udp_arrival *a = &rx->arrival;
    unsigned n = 0;

    for (; a->next < a->segments && n < room; a->next++) {
        uint32_t len = segment_bytes(a, a->next);
        struct mrd_rx_packet *p = &packets[n];

        if (drop_on_purpose(rx))
            continue;
        if (a->next < a->planned) {
            p->data = rx->heads[a->next];
            p->len = a->head_len;
            p->placed = 1;
            p->placed_len = (uint16_t)(len - a->head_len);
        } else {
            p->data = a->bytes + (a->next - a->planned) * a->segment_len;
            p->len = len;
            p->placed = 0;
            p->placed_len = 0;
        }
        p->plan_index = (uint16_t)a->next;
        p->ecn = a->ecn;
        p->from = a->from;
        p->to = a->to;
        n++;
    }
    return n;
}

/*
 * Peeking starts with a long datagram, and stops after a run of short ones: a peek at each would
 * cost more than it saves.
 */
static void count_short_runs(struct mrd_udp_rx *rx)
{
    if (rx->arrival.total_len >= LONG_BYTES) {
        rx->peeking = true;
        rx->small_run = 0;
    } else if (rx->peeking && ++rx->small_run >= SMALL_RUN_MAX) {
        rx->peeking = false;
    }
}

/* Does receiving several by each call save more, where several wait, than copying the long ones costs? */
static void count_savings(struct mrd_udp_rx *rx)
{
    unsigned costs = rx->arrival.total_len / LONG_COSTS;

    if (!costs)
        rx->short_score += rx->short_score < MANY_MOST ? SHORT_SAVES : 0;
    else
        rx->short_score -= costs < rx->short_score ? costs : rx->short_score;
    if (rx->short_score >= MANY_BEGINS)
        rx->takes_many = true;
    else if (!rx->short_score)
        rx->takes_many = false;
}

/*
 * Receives the next datagram, by a plan if `may_plan`. A long datagram that could be planned for
 * stays queued, `peeked`, while packets reported before it wait for the engine: a plan must know
 * all that was received before.
 */
static enum got next_datagram(struct mrd_udp *udp, bool may_plan, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_udp_rx *rx = &udp->rx;

    if (has_more_of_many(rx)) {
        rx->arrival = rx->many[rx->many_next++];
        return GOT_DATAGRAM;
    }
    if (!rx->peeked) {
        if (rx->lean)
            return receive_lean(udp);
        if (rx->takes_many)
            return receive_many(udp);
        if (!plan || !rx->peeking)
            return receive_plain(udp);
        if (peek_datagram(udp) == GOT_NOTHING)
            return GOT_NOTHING;
    }
    if (rx->arrival.total_len >= LONG_BYTES && plan) {
        if (!may_plan)
            return GOT_DATAGRAM;
        make_plan(rx, plan, plan_arg);
    }
    return receive_peeked(rx);
}

static unsigned rx_burst(struct mrd_udp *udp, struct mrd_rx_packet *packets, unsigned max,
                         bool *more, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_udp_rx *rx = &udp->rx;
    bool was_quiet = rx->quiet;
    unsigned n = 0;

    *more = true;
    rx->quiet = false;
    /*
     * At most as many datagrams as packets: many that are dropped or empty must not keep us here.
     */
    for (unsigned turn = 0; turn <= max; turn++) {
        if (rx->arrival.next < rx->arrival.segments && !rx->peeked)
            n += report(rx, packets + n, max - n);
        /* The engine must take the packets of one plan before the next plan is made. */
        if (n == max || (n > 0 && rx->arrival.planned))
            return n;
        /*
         * One short message after a silence: return it at once, its receiver need not wait for
         * another system call.
         */
        if (n == 1 && was_quiet && rx->arrival.total_len < LONG_BYTES) {
            rx->single_run++;
            return n;
        }
        /* Nothing was reported, as when all was dropped on purpose: staging is free again. */
        if (n == 0 && !rx->lent && !has_more_of_many(rx))
            rx->staged = 0;
        if (!has_more_of_many(rx) && rx->staged + MRD_UDP_DATAGRAM_ROOM > MRD_UDP_STAGING_BYTES)
            return n;
        if (next_datagram(udp, n == 0, plan, plan_arg) == GOT_NOTHING) {
            rx->quiet = true;
            *more = false;
            if (!rx->lean && rx->single_run >= SINGLE_RUN_MIN)
                set_lean(udp, true); /* not earlier: datagrams in the queue may be coalesced */
            return n;
        }
        if (!was_quiet || rx->arrival.total_len >= LONG_BYTES)
            set_lean(udp, false);
        if (rx->peeked)
            return n;
        count_short_runs(rx);
        count_savings(rx);
    }
    return n;
}

unsigned mrd_udp_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg)
{
    struct mrd_udp *udp = mrd_udp_of(b);
    unsigned n = rx_burst(udp, packets, max, more, plan, plan_arg);

    udp->rx.lent |= n > 0;
    return n;
}

void mrd_udp_rx_return(struct mrd_backend *b)
{
    struct mrd_udp_rx *rx = &mrd_udp_of(b)->rx;

    rx->lent = false;

    /* Staging stays in use while it holds segments that the last burst had no room for. */
    if (!has_more_of_many(rx) && (rx->peeked || rx->arrival.next == rx->arrival.segments))
        rx->staged = 0;
}
