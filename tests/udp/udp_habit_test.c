/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the mover does for traffic that goes on alike: a path with one peer is connected to it, lone short datagrams
 * are received lean. Neither may be noticed when the traffic changes.
 */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp_addr.h"

#include <netinet/udp.h>
#include <string.h>

enum { PATH = 1, PATIENCE = 400 };

/* One packet there, and all that follows: silence. */
static void ping(struct movers *f, const struct mrd_addr *to)
{
    bool more = true;

    fixture_send_equal(f, f->a, to, PATH, 64, 1);
    fixture_receive(f, f->b, f->num_sent, true);
    while (more)
        fixture_burst(f, f->b, 64, true, &more);
}

static void connect_path(struct movers *f, const struct mrd_addr *to)
{
    const struct mrd_udp_path *path = &mrd_udp_of(f->a)->tx.paths[PATH];

    while (!path->connected && f->num_sent < PATIENCE)
        ping(f, to);
    assert_true(path->connected);
    assert_int_equal(memcmp(&path->peer, to, sizeof(*to)), 0);
}

static void send_from(struct movers *f, const struct mrd_addr *to, const struct mrd_addr *from)
{
    struct mrd_tx_packet p = fixture_packet(f->num_sent++, 64, to);

    p.path = PATH;
    p.from = *from;
    assert_int_equal(f->a->ops->tx_burst(f->a, &p, 1), 1);
    fixture_receive(f, f->b, f->num_sent, true);
}

static void expect_last_from(const struct movers *f, const char *ip)
{
    struct mrd_addr want = fixture_addr(ip, f->a);

    fixture_check(f, f->num_sent);
    assert_true(mrd_udp_addr_same_ip(&f->received[f->num_received - 1].from, &want));
}

/* Every packet on a connected path leaves from the address that it would leave from otherwise. */
static void check_sources(struct movers *f, const char *peer)
{
    struct mrd_addr none = {.scope = 0}, to_peer = fixture_addr(peer, f->b);
    struct mrd_addr v4 = fixture_addr("127.0.0.1", f->b), v6 = fixture_addr("::1", f->b);
    struct mrd_addr other = fixture_addr("127.0.0.2", f->a);

    connect_path(f, &to_peer);
    send_from(f, &v4, &none);
    expect_last_from(f, "127.0.0.1");
    send_from(f, &v6, &none);
    expect_last_from(f, "::1");
    send_from(f, &v4, &other);
    expect_last_from(f, "127.0.0.2");
    send_from(f, &v6, &other); /* of the other family: not a source to be had */
    expect_last_from(f, "::1");
    send_from(f, &v4, &v6);
    expect_last_from(f, "127.0.0.1");
    ping(f, &to_peer);
    expect_last_from(f, peer);
}

TEST_F(movers, mrd_udp_tx_burst__connected_to_v4)
{
    check_sources(self, "127.0.0.1");
}

TEST_F(movers, mrd_udp_tx_burst__connected_to_v6)
{
    check_sources(self, "::1");
}

/* Peers that take turns are no streak. */
TEST_F(movers, mrd_udp_tx_burst__not_connected_to_one_of_two)
{
    struct mrd_addr v6 = fixture_addr("::1", self->b);

    while (self->num_sent < PATIENCE)
        ping(self, self->num_sent % 100 ? &self->to_b : &v6);
    fixture_check(self, self->num_sent);
    assert_false(mrd_udp_of(self->a)->tx.paths[PATH].connected);
}

/* Only a socket that is bound to one address is received from lean. */
static void bind_b(struct movers *f)
{
    struct mrd_context_attr attr = {.paths = 4, .address = "127.0.0.1"};

    fixture_close(f->b);
    f->b = fixture_open(&attr, 0);
    f->to_b = fixture_addr("127.0.0.1", f->b);
}

static void become_lean(struct movers *f)
{
    const struct mrd_udp_rx *rx = &mrd_udp_of(f->b)->rx;

    while (!rx->lean && f->num_sent < PATIENCE)
        ping(f, &f->to_b);
    assert_true(rx->lean);
    fixture_check(f, f->num_sent);
}

/* Superpackets end it, and arrive whole; then it begins anew. */
TEST_F(movers, mrd_udp_rx_burst__lean_then_superpackets)
{
    bind_b(self);
    for (int again = 0; again < 2; again++) {
        become_lean(self);
        fixture_send_equal(self, self->a, &self->to_b, PATH, 4160, 12);
        fixture_arrive(self, self->b, self->num_sent, true);
        assert_false(mrd_udp_of(self->b)->rx.lean);
    }
}

/* Short ones that come together end it too, and coalesce again. */
TEST_F(movers, mrd_udp_rx_burst__lean_then_short_runs)
{
    bind_b(self);
    become_lean(self);
    fixture_send_equal(self, self->a, &self->to_b, PATH, 64, 8);
    fixture_receive(self, self->b, self->num_sent, true);
    assert_false(mrd_udp_of(self->b)->rx.lean);

    uint64_t before = mrd_udp_of(self->b)->rx.count.plain;
    fixture_send_equal(self, self->a, &self->to_b, PATH, 64, 8);
    fixture_receive(self, self->b, self->num_sent, true);
    assert_int_equal(mrd_udp_of(self->b)->rx.count.plain, before + 1);
    fixture_check(self, self->num_sent);
}

/* Packets that come just before the kernel is told not to coalesce. */
static struct movers *switching;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (switching && level == IPPROTO_UDP && name == UDP_GRO && !*(const int *)value) {
        fixture_send_equal(switching, switching->a, &switching->to_b, PATH, 64, 8);
        switching = NULL;
    }
    return __real_setsockopt(fd, level, name, value, len);
}

TEST_F(movers, mrd_udp_rx_burst__lean_loses_nothing)
{
    bind_b(self);
    switching = self;
    while (switching && self->num_sent < PATIENCE)
        ping(self, &self->to_b);
    assert_null(switching);
    fixture_arrive(self, self->b, self->num_sent, true);
    become_lean(self);
}

/* Whoever answers must know which of its addresses was asked, however uniform the traffic is. */
TEST_F(movers, mrd_udp_rx_burst__destination)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.2"};

    while (self->num_sent < PATIENCE) {
        struct mrd_addr to = fixture_addr(ips[self->num_sent / 100 % 2], self->b);

        ping(self, &to);
        assert_memory_equal(&self->received[self->num_received - 1].to, &to, sizeof(to));
    }
    fixture_check(self, self->num_sent);
}
