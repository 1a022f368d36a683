/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. On loopback a superpacket arrives as it left, so the receiver's count of received
 * messages is the sender's count of groups.
 */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fail.h"
#include "tests/udp/udp_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t groups(const struct mrd_backend *b)
{
    return ((const struct mrd_udp *)b)->rx.count.plain;
}

/* -------------------------------------------------------------------- groups */

static const struct {
    const char *name;
    unsigned groups;
    unsigned n;
    uint32_t lens[8];
    uint32_t repeat; /* of lens[0], instead of the list */
} rows[] = {
    {"one", 1, 1, {4160}, 0},
    {"equal", 1, 4, {4160, 4160, 4160, 4160}, 0},
    {"short last", 1, 3, {4160, 4160, 100}, 0},
    {"short in the middle ends a group", 2, 5, {4160, 100, 4160, 4160, 4160}, 0},
    {"growing", 3, 3, {100, 200, 300}, 0},
    {"shrinking", 2, 4, {400, 300, 200, 100}, 0},
    {"equal short ones", 1, 5, {64, 64, 64, 64, 64}, 0},
    {"short, then longer", 3, 6, {1000, 1000, 64, 1000, 64, 2000}, 0},
    {"15 x 4160 is a superpacket", 1, 15, {4160}, 15},
    {"16 x 4160 exceeds 65,000 bytes", 2, 16, {4160}, 16},
    {"64 segments", 1, 64, {100}, 64},
    {"65 segments", 2, 65, {100}, 65},
    {"7 x 8 KiB", 1, 7, {8288}, 7},
    {"8 x 8 KiB", 2, 8, {8288}, 8},
    {"40 groups need several calls", 3, 33, {4160}, 33},
};

TEST_F(movers, mrd_udp_tx_burst__groups)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        uint64_t before = groups(self->b);

        self->num_sent = self->num_received = 0;
        if (rows[r].repeat)
            fixture_send_equal(self, self->a, &self->to_b, 1, rows[r].lens[0], rows[r].n);
        else
            fixture_send(self, self->a, &self->to_b, 1, rows[r].lens, rows[r].n);
        fixture_arrive(self, self->b, rows[r].n, false);
        if (groups(self->b) - before != rows[r].groups)
            fail_msg("%s: %llu groups", rows[r].name,
                     (unsigned long long)(groups(self->b) - before));
    }
}

/* A run on one path is one system call, however many groups it has, and one packet is the plain
 * call. */
TEST_F(movers, mrd_udp_tx_burst__few_calls)
{
    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 60);
    assert_int_equal(fail.calls, 1);
    assert_int_equal(fail.messages, 4);
    fixture_send_equal(self, self->a, &self->to_b, 0, 40, 1);
    assert_int_equal(fail.calls, 2);
    fixture_arrive(self, self->b, 61, false);
}

/* Packets of one path leave by its socket, in order, whatever their sizes and however they are cut
 * up. */
TEST_F(movers, mrd_udp_tx_burst__order_on_a_path)
{
    unsigned seed = 1;

    while (self->num_sent < 400) {
        uint32_t lens[20];
        unsigned n = 1 + (unsigned)rand_r(&seed) % 20;

        for (unsigned i = 0; i < n; i++)
            lens[i] = rand_r(&seed) % 2 ? 4160 : 8 + (uint32_t)rand_r(&seed) % 4152;
        fixture_send(self, self->a, &self->to_b, 2, lens, n);
        fixture_receive(self, self->b, self->num_sent, rand_r(&seed) % 2);
    }
    fixture_check(self, self->num_sent);
    for (unsigned i = 0; i < self->num_received; i++)
        assert_int_equal(self->received[i].from.port, self->a->ops->path_port(self->a, 2));
}

/* Runs of two paths and two peers in one burst: each to its place, by its port. */
TEST_F(movers, mrd_udp_tx_burst__paths_and_peers)
{
    struct mrd_tx_packet packets[24];
    struct mrd_addr to[2] = {self->to_b, self->to_a};

    for (unsigned i = 0; i < 24; i++) {
        packets[i] = fixture_packet(i, 1000, &to[i / 3 % 2]);
        packets[i].path = (uint16_t)(i / 6 % 2);
    }
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 24), 24);
    fixture_receive(self, self->b, 12, false);
    fixture_receive(self, self->a, 24, false);
    assert_int_equal(self->num_received, 24);
    for (unsigned i = 0; i < 24; i++) {
        const struct fixture_packet *p = &self->received[i];
        unsigned at_b = i % 12;

        assert_int_equal(p->number, at_b / 3 * 6 + at_b % 3 + (i < 12 ? 0 : 3));
        assert_true(fixture_bytes_right(p));
        assert_int_equal(p->from.port, self->a->ops->path_port(self->a, p->number / 6 % 2));
    }
}

/* A long gather list: groups end before the kernel's limit of 1,024 pieces. */
TEST_F(movers, mrd_udp_tx_burst__many_pieces)
{
    struct mrd_tx_packet packets[64];

    for (unsigned i = 0; i < 64; i++) {
        struct mrd_tx_packet *p = &packets[i];

        *p = fixture_packet(i, 800, &self->to_b);
        uint8_t *at = p->head + p->head_len;
        uint32_t left = p->len - p->head_len;
        for (p->num_iov = 0; p->num_iov < MRD_SEGMENT_PIECES_MAX; p->num_iov++) {
            uint32_t part = p->num_iov + 1 < MRD_SEGMENT_PIECES_MAX ? 20u + p->num_iov : left;

            p->iov[p->num_iov] = (struct iovec){at, part};
            at += part;
            left -= part;
        }
    }
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 64), 64);
    fixture_arrive(self, self->b, 64, false);
    assert_int_equal(groups(self->b), 2);
}

/* -------------------------------------------------------------------- errors */

/* What the socket does not take is a suffix, and is offered again; nothing is sent twice. */
TEST_F(movers, mrd_udp_tx_burst__partial)
{
    static const int errors[] = {EAGAIN, ENOBUFS, ENOMEM};
    struct mrd_tx_packet packets[60];

    for (unsigned i = 0; i < 60; i++)
        packets[i] = fixture_packet(i, 4160, &self->to_b);
    for (unsigned e = 0; e < 3; e++) {
        for (unsigned passes = 0; passes < 4; passes++) {
            self->num_received = 0;
            fail.error = errors[e];
            fail.passes = passes;
            assert_int_equal(self->a->ops->tx_burst(self->a, packets, 60), 15 * passes);
            fail.error = 0;
            assert_int_equal(
                self->a->ops->tx_burst(self->a, packets + 15 * passes, 60 - 15 * passes),
                60 - 15 * passes);
            fixture_arrive(self, self->b, 60, false);
        }
    }
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 0);
}

/* The socket fills up while a refused superpacket is sent in single packets. */
TEST_F(movers, mrd_udp_tx_burst__partial_apart)
{
    struct mrd_udp *udp = mrd_udp_of(self->a);
    struct mrd_tx_packet packets[10];
    int on = 1;

    assert_int_equal(setsockopt(udp->tx.paths[0].fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
    for (unsigned i = 0; i < 10; i++)
        packets[i] = fixture_packet(i, 2000, &self->to_b);
    fail.error = EAGAIN;
    fail.passes =
        1 + 4; /* the superpacket reaches the kernel, which refuses it; then four packets go */
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 10), 4);
    fail.error = 0;
    assert_int_equal(self->a->ops->tx_burst(self->a, packets + 4, 6), 6);
    fixture_arrive(self, self->b, 10, false);
}

/* A destination that cannot be sent to is loss, for its own packets only. */
TEST_F(movers, mrd_udp_tx_burst__lost)
{
    static const int errors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EPERM, EACCES};
    struct mrd_tx_packet packets[45];

    for (unsigned i = 0; i < 45; i++)
        packets[i] = fixture_packet(i, 4160, &self->to_b);
    for (unsigned e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        self->num_received = 0;
        fail.error = errors[e];
        fail.passes = 1;
        fail.once = true;
        assert_int_equal(self->a->ops->tx_burst(self->a, packets, 45), 45);
        fixture_receive(self, self->b, 30, false);
        assert_int_equal(self->num_received, 30);
        assert_int_equal(self->received[14].number, 14);
        assert_int_equal(self->received[15].number, 30);
        assert_int_equal(mrd_udp_of(self->a)->tx.lost, 15 * (e + 1));
    }
}

TEST_F(movers, mrd_udp_tx_burst__interrupted)
{
    fail.error = EINTR;
    fail.once = true;
    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 3);
    fixture_arrive(self, self->b, 3, false);
}

/* An IPv6 destination in the middle of an IPv4-only context's burst is lost, its neighbours are
 * not. */
TEST_F(movers, mrd_udp_tx_burst__wrong_family)
{
    struct mrd_backend *v4 = fixture_open(NULL, MRD_UDP_WITHOUT_IPV6);
    struct mrd_addr v6 = fixture_addr("::1", self->b);
    struct mrd_tx_packet packets[3];

    packets[0] = fixture_packet(0, 600, &self->to_b);
    packets[1] = fixture_packet(7, 600, &v6);
    packets[2] = fixture_packet(1, 600, &self->to_b);
    assert_int_equal(v4->ops->tx_burst(v4, packets, 3), 3);
    fixture_arrive(self, self->b, 2, false);
    assert_int_equal(mrd_udp_of(v4)->tx.lost, 1);
    fixture_close(v4);
}

/* A datagram that IP cannot carry is too big, told once, with what the route carries. */
TEST_F(movers, mrd_udp_tx_burst__too_big)
{
    static uint8_t bytes[66000];
    struct mrd_tx_packet packets[3];
    struct mrd_addr to;
    uint32_t payload;

    assert_false(self->a->ops->too_big(self->a, &to, &payload));
    for (unsigned i = 0; i < 3; i++) {
        packets[i] = fixture_packet(i / 2, 1000, &self->to_b);
        packets[i].flags = MRD_TX_ECT;
    }
    packets[1].num_iov = 1;
    packets[1].iov[0] = (struct iovec){bytes, sizeof(bytes)};
    packets[1].len = packets[1].head_len + (uint32_t)sizeof(bytes);
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 3), 3);
    assert_int_equal(self->a->ops->tx_burst(self->a, packets + 1, 1), 1);
    assert_true(self->a->ops->too_big(self->a, &to, &payload));
    assert_memory_equal(&to, &self->to_b, sizeof(to));
    assert_int_equal(payload, 16128);
    assert_false(self->a->ops->too_big(self->a, &to, &payload));
    fixture_arrive(self, self->b, 2, false);
}

/* -------------------------------------------------------------------- addresses */

TEST_F(movers, mrd_udp_tx_burst__ect)
{
    struct mrd_addr v6 = fixture_addr("::1", self->b);

    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 4);
    fixture_send_equal(self, self->a, &v6, 0, 64, 1);
    fixture_arrive(self, self->b, 5, false);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(self->received[i].ecn, MRD_ECN_ECT0);
}

/* One packet of a row that must not have ECT leaves without, and the others with it. */
TEST_F(movers, mrd_udp_tx_burst__not_ect)
{
    struct mrd_addr to[2] = {self->to_b, fixture_addr("::1", self->b)};
    struct mrd_tx_packet packets[10];

    for (unsigned i = 0; i < 10; i++) {
        packets[i] = fixture_packet(i, 1000, &to[i / 5]);
        packets[i].flags = i % 5 == 2 ? MRD_TX_NOT_ECT : MRD_TX_ECT;
    }
    assert_int_equal(self->a->ops->tx_burst(self->a, packets, 10), 10);
    fixture_arrive(self, self->b, 10, false);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(self->received[i].ecn, i % 5 == 2 ? MRD_ECN_NOT_ECT : MRD_ECN_ECT0);
}

/* A context that uses no ECT sets it on no packet. */
TEST_F(movers, mrd_udp_tx_burst__ect_is_off)
{
    struct mrd_context_attr attr = {.paths = 1, .ecn = MRD_ECN_OFF, .dscp = 10};
    struct mrd_backend *b = fixture_open(&attr, 0);

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_tx_packet p = fixture_packet(i, 40, &self->to_b);

        p.flags = i == 0 ? MRD_TX_ECT : i == 1 ? MRD_TX_NOT_ECT : 0;
        p.dscp = 10;
        assert_int_equal(b->ops->tx_burst(b, &p, 1), 1);
    }
    fixture_arrive(self, self->b, 3, false);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(self->received[i].ecn, MRD_ECN_NOT_ECT);
    fixture_close(b);
}

/* An answer leaves from the address that was addressed, in superpackets and alone. */
TEST_F(movers, mrd_udp_tx_burst__from)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.2", "127.9.8.7", "::1"};

    for (unsigned without = 0; without <= MRD_UDP_WITHOUT_IPV6; without++) {
        struct mrd_backend *server = fixture_open(NULL, without);

        for (unsigned i = 0; i < 4 - without; i++) {
            struct mrd_addr to = fixture_addr(ips[i], server);
            struct mrd_tx_packet answers[5];

            self->num_sent = self->num_received = 0;
            fixture_send_equal(self, self->a, &to, 0, 100, 1);
            fixture_arrive(self, server, 1, false);
            assert_memory_equal(&self->received[0].to, &to, sizeof(to));

            for (unsigned p = 0; p < 5; p++) {
                answers[p] = fixture_packet(p, p < 4 ? 1000 : 2000, &self->received[0].from);
                answers[p].to.port = self->to_a.port;
                answers[p].from = self->received[0].to;
            }
            self->num_received = 0;
            assert_int_equal(server->ops->tx_burst(server, answers, 5), 5);
            fixture_arrive(self, self->a, 5, false);
            for (unsigned p = 0; p < 5; p++)
                assert_memory_equal(self->received[p].from.ip, to.ip, sizeof(to.ip));
        }
        fixture_close(server);
    }
}

/* Where messages may not name their source they leave without, from the first one on. */
TEST_F(movers, mrd_udp_tx_burst__no_naming)
{
    static const int errors[] = {EINVAL, ENOPROTOOPT, EOPNOTSUPP};

    for (unsigned e = 0; e < 3; e++) {
        fail.error = errors[e];
        fail.named = true;
        for (unsigned i = 0; i < 3; i++)
            fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
        assert_int_equal(fail.calls, 4);
        fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 8);
        fixture_arrive(self, self->b, 11, false);
        assert_int_equal(mrd_udp_of(self->a)->tx.lost, 0);
        fixture_close_both(self);
        memset(self, 0, sizeof(*self));
        memset(&fail, 0, sizeof(fail));
        fixture_open_both(self);
    }
}

/* One that is refused later, or that is refused without a name, too, says nothing of naming. */
TEST_F(movers, mrd_udp_tx_burst__naming_works)
{
    fail.error = EINVAL;
    fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 1);
    assert_false(mrd_udp_of(self->a)->tx.nameless);
    fail.error = 0;
    fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
    fail.error = EINVAL;
    fail.named = true;
    fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
    assert_int_equal(mrd_udp_of(self->a)->tx.lost, 2);
    assert_false(mrd_udp_of(self->a)->tx.nameless);
}

/* A context bound to an address sends from it and hears by it. */
TEST_F(movers, mrd_udp_tx_burst__bound)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.5", "::1"};

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_context_attr attr = {.address = ips[i], .paths = 2};
        struct mrd_backend *b = fixture_open(&attr, 0);
        struct mrd_addr to = fixture_addr(ips[i], b), a = self->to_a;

        if (i == 2)
            a = fixture_addr("::1", self->a);
        self->num_sent = self->num_received = 0;
        fixture_send_equal(self, b, &a, 1, 3000, 5);
        fixture_arrive(self, self->a, 5, false);
        assert_memory_equal(self->received[4].from.ip, to.ip, sizeof(to.ip));
        assert_int_equal(self->received[4].from.port, b->ops->path_port(b, 1));

        self->num_sent = self->num_received = 0;
        fixture_send_equal(self, self->a, &to, 1, 3000, 5);
        fixture_arrive(self, b, 5, false);
        assert_memory_equal(&self->received[4].to, &to, sizeof(to));
        fixture_close(b);
    }
}
