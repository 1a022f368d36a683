/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address that packets leave from: chosen once, and left when it does not work any more.
 *
 * The process moves into a network namespace of its own, where lo is the only interface: its
 * addresses come and go.
 */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/ipv6.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PATH = 1, STREAK = 300, LO_INDEX = 1 };

/* Addresses of lo. */
static const struct family {
    const char *peer, *first, *second;
} families[] = {
    {"10.9.0.9", "10.9.0.1", "10.9.0.2"},
    {"2001:db8::9", "2001:db8::1", "2001:db8::2"},
};

static unsigned connects;   /* that ask for a route or make a connection */
static bool ports_are_gone; /* a port that is given up is given to somebody else */

int __real_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __real_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
    connects += sa->sa_family != AF_UNSPEC;
    return __real_connect(fd, sa, len);
}

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
    const struct sockaddr_in6 *in6 = (const void *)sa;

    if (ports_are_gone && in6->sin6_port) {
        errno = EADDRINUSE;
        return -1;
    }
    return __real_bind(fd, sa, len);
}

/* -------------------------------------------------------------------- addresses of lo */

/* An IPv4 address has a name of its own, of its last byte. */
static void change_v4(const char *ip, bool add)
{
    struct ifreq request = {0};
    struct sockaddr_in *in = (void *)&request.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    in->sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:%u", ntohl(in->sin_addr.s_addr) & 255);
    if (add) {
        assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
        in->sin_addr.s_addr = INADDR_BROADCAST; /* of this host alone */
        assert_int_equal(ioctl(fd, SIOCSIFNETMASK, &request), 0);
    } else if (!ioctl(fd, SIOCGIFFLAGS, &request)) {
        request.ifr_flags = 0; /* of the name: the address goes */
        assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    }
    close(fd);
}

/* The kernel takes a new IPv6 address for tentative, also on lo, until a work queue had its turn. */
static void await_v6(int fd, const struct in6_addr *ip)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = *ip};
    unsigned tries = 0;

    while (__real_bind(fd, (const struct sockaddr *)&in6, sizeof(in6)) != 0) {
        assert_int_equal(errno, EADDRNOTAVAIL);
        assert_true(++tries < 10000);
        usleep(1000);
    }
}

static void change_v6(const char *ip, bool add)
{
    struct in6_ifreq request = {.ifr6_prefixlen = 128, .ifr6_ifindex = LO_INDEX};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(inet_pton(AF_INET6, ip, &request.ifr6_addr), 1);
    int error = ioctl(fd, add ? SIOCSIFADDR : SIOCDIFADDR, &request) ? errno : 0;
    if (error != EEXIST && error != EADDRNOTAVAIL)
        assert_int_equal(error, 0);
    if (add)
        await_v6(fd, &request.ifr6_addr);
    close(fd);
}

static void change(const char *ip, bool add)
{
    if (strchr(ip, ':'))
        change_v6(ip, add);
    else
        change_v4(ip, add);
}

void kit_before_each(void)
{
    for (unsigned i = 0; i < 2; i++) {
        change(families[i].peer, true);
        change(families[i].first, true);
        change(families[i].second, true);
    }
    ports_are_gone = false;
}

/* -------------------------------------------------------------------- packets */

/* `n` packets to b's address `to`, from a's `from`; NULL: from any. All come from `expected`. */
static void expect(struct movers *f, const char *to, const char *from, unsigned n, uint32_t len,
                   const char *expected)
{
    struct mrd_addr there = fixture_addr(to, f->b), want = fixture_addr(expected, f->a);
    struct mrd_tx_packet packets[8];

    assert_in_range(n, 1, 8);
    for (unsigned i = 0; i < n; i++) {
        packets[i] = fixture_packet(i, len, &there);
        packets[i].path = PATH;
        if (from) {
            packets[i].from = fixture_addr(from, f->a);
            packets[i].from.port = 0;
        }
    }
    f->num_received = 0;
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, n), n);
    fixture_arrive(f, f->b, n, false);
    for (unsigned i = 0; i < n; i++) {
        if (!mrd_udp_addr_same_ip(&f->received[i].from, &want))
            fail_msg("not from %s", expected);
        assert_int_equal(f->received[i].from.port, f->a->ops->path_port(f->a, PATH));
    }
}

/* Many destinations: the kernel is asked once for each. */
TEST_F(movers, mrd_udp_source_for__asks_once)
{
    enum { DESTINATIONS = 3000 };
    struct mrd_udp *udp = mrd_udp_of(self->a);
    const struct mrd_addr none = {.scope = 0};

    for (int again = 0; again < 2; again++) {
        connects = 0;
        for (unsigned i = 0; i < DESTINATIONS; i++) {
            struct mrd_addr to = fixture_addr("127.1.0.0", self->b), source;

            to.ip[14] = (uint8_t)(i >> 8);
            to.ip[15] = (uint8_t)i;
            assert_true(mrd_udp_source_for(udp, &to, &none, &source));
            assert_int_equal(source.ip[12], 127);
        }
        assert_int_equal(connects, again ? 0 : DESTINATIONS);
    }
}

/* Bound to an address there is nothing to choose. */
TEST_F(movers, mrd_udp_source_for__bound)
{
    struct mrd_context_attr attr = {.address = "127.0.0.2", .paths = 1};
    struct mrd_backend *b = fixture_open(&attr, 0);
    const struct mrd_addr none = {.scope = 0}, other = fixture_addr("127.0.0.3", self->b);
    struct mrd_addr source;

    assert_false(mrd_udp_source_for(mrd_udp_of(b), &self->to_b, &none, &source));
    assert_false(mrd_udp_source_for(mrd_udp_of(b), &self->to_b, &other, &source));
    b->ops->other_source(b, &self->to_b);
    assert_false(mrd_udp_source_for(mrd_udp_of(b), &self->to_b, &none, &source));
    fixture_close(b);
}

/* A packet whose source is gone leaves from another, and so do those after it: none is lost. */
TEST_F(movers, mrd_udp_tx_burst__source_gone)
{
    const struct mrd_udp_tx *tx = &mrd_udp_of(self->a)->tx;

    for (unsigned i = 0; i < 2; i++) {
        const struct family *ip = &families[i];

        expect(self, ip->peer, ip->first, 1, 64, ip->first);
        change(ip->first, false);
        expect(self, ip->peer, ip->first, 1, 64, ip->peer);
        connects = 0;
        expect(self, ip->peer, ip->first, 5, 1000, ip->peer);
        expect(self, ip->peer, NULL, 1, 64, ip->peer);
        expect(self, ip->peer, ip->second, 1, 64, ip->second);
        assert_in_range(connects, 0, 3); /* again after a while: less than for each packet */
    }
    assert_int_equal(tx->lost, 0);
}

/* Also a superpacket's, which the kernel may have refused for another reason. */
TEST_F(movers, mrd_udp_tx_burst__source_of_superpacket_gone)
{
    for (unsigned i = 0; i < 2; i++) {
        change(families[i].first, false);
        expect(self, families[i].peer, families[i].first, 8, 4160, families[i].peer);
    }
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 0);
    assert_true(mrd_udp_of(self->a)->tx.gso);
    assert_int_equal(mrd_udp_of(self->a)->tx.num_no_gso, 0);
}

/* A source that is back is used again, once its time is over. */
TEST_F(movers, mrd_udp_tx_burst__source_back)
{
    const struct family *ip = &families[0];

    change(ip->first, false);
    expect(self, ip->peer, ip->first, 1, 64, ip->peer);
    change(ip->first, true);
    mrd_udp_of(self->a)->tx.sources.dead_until_ns = 0;
    expect(self, ip->peer, ip->first, 1, 64, ip->first);
}

/* Nowhere to send from: loss, and the kernel is not asked for each packet. */
TEST_F(movers, mrd_udp_tx_burst__no_source)
{
    struct mrd_addr to = fixture_addr("192.0.2.1", self->b);
    struct mrd_tx_packet packets[8];

    connects = 0;
    for (unsigned i = 0; i < 8; i++) {
        packets[i] = fixture_packet(i, 64 + i, &to); /* growing: each is a message */
        packets[i].from = fixture_addr("10.9.0.1", self->a);
    }
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 8), 8);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 8);
    assert_in_range(connects, 1, 20);
}

/* Of a destination that nothing was sent to for long, the kernel is asked anew. */
TEST_F(movers, mrd_udp_source_for__idle)
{
    struct mrd_udp *udp = mrd_udp_of(self->a);
    const struct mrd_addr none = {.scope = 0};
    struct mrd_addr source;

    connects = 0;
    assert_true(mrd_udp_source_for(udp, &self->to_b, &none, &source));
    udp->tx.now_ns += 20000000000u;
    assert_true(mrd_udp_source_for(udp, &self->to_b, &none, &source));
    udp->tx.now_ns += 20000000000u;
    assert_true(mrd_udp_source_for(udp, &self->to_b, &none, &source));
    assert_int_equal(connects, 1);
    udp->tx.now_ns += 40000000000u;
    assert_true(mrd_udp_source_for(udp, &self->to_b, &none, &source));
    assert_int_equal(connects, 2);
}

/* -------------------------------------------------------------------- other sources */

/* One after the other: what the kernel says, then this machine's other addresses. */
TEST_F(movers, mrd_udp_other_source__in_turn)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct family *ip = &families[i];
        struct mrd_addr to = fixture_addr(ip->peer, self->b);
        const struct mrd_addr none = {.scope = 0};
        bool seen[3] = {false};

        expect(self, ip->peer, NULL, 1, 64, ip->peer);
        for (unsigned turn = 0; turn < 6; turn++) {
            struct mrd_addr source, before;

            assert_true(mrd_udp_source_for(mrd_udp_of(self->a), &to, &none, &before));
            mrd_udp_of(self->a)->tx.now_ns -= 10000000; /* the last burst is a while ago */
            self->a->ops->other_source(self->a, &to);
            assert_true(mrd_udp_source_for(mrd_udp_of(self->a), &to, &none, &source));
            assert_false(mrd_udp_addr_same_ip(&source, &before));
            seen[0] |= source.ip[15] == 9;
            seen[1] |= source.ip[15] == 1;
            seen[2] |= source.ip[15] == 2;
        }
        assert_true(seen[0] && seen[1] && seen[2]);
    }
    /* A packet that brings one is not concerned. */
    expect(self, families[0].peer, families[0].second, 1, 64, families[0].second);
}

/* Where there is only one it stays. */
TEST_F(movers, mrd_udp_other_source__only_one)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        expect(self, "127.0.0.1", NULL, 1, 64, "127.0.0.1");
        expect(self, "::1", NULL, 1, 64, "::1");
        self->a->ops->other_source(self->a, &self->to_b);
    }
}

/* -------------------------------------------------------------------- connected paths */

static void stream(struct movers *f, const char *to, const char *from, const char *expected)
{
    for (unsigned i = 0; i < STREAK; i++)
        expect(f, to, from, 1, 64, expected);
}

/* A connection whose source is not that of the packets serves none, and costs no port. */
static void check_other_source(struct movers *f, const struct family *ip)
{
    uint32_t port = f->a->ops->path_port(f->a, PATH);

    stream(f, ip->peer, ip->first, ip->first);
    stream(f, ip->peer, ip->peer, ip->peer);
    stream(f, ip->peer, ip->second, ip->second);
    assert_int_equal(f->a->ops->path_port(f->a, PATH), port);
}

TEST_F(movers, mrd_udp_tx_burst__connection_of_other_v4)
{
    check_other_source(self, &families[0]);
}

TEST_F(movers, mrd_udp_tx_burst__connection_of_other_v6)
{
    check_other_source(self, &families[1]);
}

/* The connection's address is gone: the next packets leave from another, then it is made anew. */
static void check_move(struct movers *f, const struct family *ip)
{
    struct mrd_udp_path *path = &mrd_udp_of(f->a)->tx.paths[PATH];
    uint32_t port = f->a->ops->path_port(f->a, PATH);
    struct mrd_addr gone = fixture_addr(ip->first, f->a);

    stream(f, ip->peer, ip->peer, ip->peer);
    assert_true(path->connected);
    /* As if the connection had been made when this address was there. */
    path->local = path->wanted = gone;
    path->checked_ns = 0;
    change(ip->first, false);
    expect(f, ip->peer, ip->first, 1, 64, ip->peer);
    stream(f, ip->peer, ip->peer, ip->peer);
    assert_true(path->connected);
    assert_false(mrd_udp_addr_same_ip(&path->local, &gone));
    assert_int_equal(f->a->ops->path_port(f->a, PATH), port);
    assert_int_equal(mrd_udp_of(f->a)->tx.lost, 0);
}

TEST_F(movers, mrd_udp_tx_burst__connection_moves_v4)
{
    check_move(self, &families[0]);
}

TEST_F(movers, mrd_udp_tx_burst__connection_moves_v6)
{
    check_move(self, &families[1]);
}

/* The port was given to another process in between: the path has another one. */
TEST_F(movers, mrd_udp_tx_burst__connection_loses_port)
{
    const struct family *ip = &families[0];
    uint32_t port = self->a->ops->path_port(self->a, PATH);

    stream(self, ip->peer, ip->first, ip->first);
    ports_are_gone = true;
    stream(self, ip->peer, ip->second, ip->second);
    ports_are_gone = false;
    assert_int_not_equal(self->a->ops->path_port(self->a, PATH), port);
}

int kit_before_all(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        fprintf(stderr, "skipped: no network namespace to be had: %s\n", strerror(errno));
        return KIT_SKIPPED;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request)) {
        perror("lo cannot be set up");
        return 1;
    }
    close(fd);
    return 0;
}
