/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. On loopback a superpacket arrives as it left, so the receiver's count of received
 * messages is the sender's count of groups.
 */
#include "tests/udp/udp_fail.h"
#include "tests/udp/udp_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void mrd_udp_tx_burst__groups(void **state)
{
    struct fixture *f = *state;

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        uint64_t before = groups(f->b);

        f->num_sent = f->num_received = 0;
        if (rows[r].repeat)
            fixture_send_equal(f, f->a, &f->to_b, 1, rows[r].lens[0], rows[r].n);
        else
            fixture_send(f, f->a, &f->to_b, 1, rows[r].lens, rows[r].n);
        fixture_receive(f, f->b, rows[r].n, false);
        fixture_check(f, rows[r].n);
        if (groups(f->b) - before != rows[r].groups)
            fail_msg("%s: %llu groups", rows[r].name, (unsigned long long)(groups(f->b) - before));
    }
}

/* A run on one path is one system call, however many groups it has, and one packet is the plain
 * call. */
static void mrd_udp_tx_burst__few_calls(void **state)
{
    struct fixture *f = *state;

    fixture_send_equal(f, f->a, &f->to_b, 0, 4160, 60);
    assert_int_equal(fail.calls, 1);
    assert_int_equal(fail.messages, 4);
    fixture_send_equal(f, f->a, &f->to_b, 0, 40, 1);
    assert_int_equal(fail.calls, 2);
    fixture_receive(f, f->b, 61, false);
    fixture_check(f, 61);
}

/* Packets of one path leave by its socket, in order, whatever their sizes and however they are cut
 * up. */
static void mrd_udp_tx_burst__order_on_a_path(void **state)
{
    struct fixture *f = *state;
    unsigned seed = 1;

    while (f->num_sent < 400) {
        uint32_t lens[20];
        unsigned n = 1 + (unsigned)rand_r(&seed) % 20;

        for (unsigned i = 0; i < n; i++)
            lens[i] = rand_r(&seed) % 2 ? 4160 : 8 + (uint32_t)rand_r(&seed) % 4152;
        fixture_send(f, f->a, &f->to_b, 2, lens, n);
        fixture_receive(f, f->b, f->num_sent, rand_r(&seed) % 2);
    }
    fixture_check(f, f->num_sent);
    for (unsigned i = 0; i < f->num_received; i++)
        assert_int_equal(f->received[i].from.port, f->a->ops->path_port(f->a, 2));
}

/* Runs of two paths and two peers in one burst: each to its place, by its port. */
static void mrd_udp_tx_burst__paths_and_peers(void **state)
{
    struct fixture *f = *state;
    struct mrd_tx_packet packets[24];
    struct mrd_addr to[2] = {f->to_b, f->to_a};

    for (unsigned i = 0; i < 24; i++) {
        packets[i] = fixture_packet(i, 1000, &to[i / 3 % 2]);
        packets[i].path = (uint16_t)(i / 6 % 2);
    }
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, 24), 24);
    fixture_receive(f, f->b, 12, false);
    fixture_receive(f, f->a, 24, false);
    assert_int_equal(f->num_received, 24);
    for (unsigned i = 0; i < 24; i++) {
        const struct fixture_packet *p = &f->received[i];
        unsigned at_b = i % 12;

        assert_int_equal(p->number, at_b / 3 * 6 + at_b % 3 + (i < 12 ? 0 : 3));
        assert_true(fixture_bytes_right(p));
        assert_int_equal(p->from.port, f->a->ops->path_port(f->a, p->number / 6 % 2));
    }
}

/* A long gather list: groups end before the kernel's limit of 1,024 pieces. */
static void mrd_udp_tx_burst__many_pieces(void **state)
{
    struct fixture *f = *state;
    struct mrd_tx_packet packets[64];

    for (unsigned i = 0; i < 64; i++) {
        struct mrd_tx_packet *p = &packets[i];
        uint8_t *at;
        uint32_t left;

        *p = fixture_packet(i, 800, &f->to_b);
        at = p->head + p->head_len;
        left = p->len - p->head_len;
        for (p->num_iov = 0; p->num_iov < MRD_SEGMENT_PIECES_MAX; p->num_iov++) {
            uint32_t part = p->num_iov + 1 < MRD_SEGMENT_PIECES_MAX ? 20u + p->num_iov : left;

            p->iov[p->num_iov] = (struct iovec){at, part};
            at += part;
            left -= part;
        }
    }
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, 64), 64);
    fixture_receive(f, f->b, 64, false);
    fixture_check(f, 64);
    assert_int_equal(groups(f->b), 2);
}

/* -------------------------------------------------------------------- errors */

/* What the socket does not take is a suffix, and is offered again; nothing is sent twice. */
static void mrd_udp_tx_burst__partial(void **state)
{
    static const int errors[] = {EAGAIN, ENOBUFS, ENOMEM};
    struct fixture *f = *state;
    struct mrd_tx_packet packets[60];

    for (unsigned i = 0; i < 60; i++)
        packets[i] = fixture_packet(i, 4160, &f->to_b);
    for (unsigned e = 0; e < 3; e++) {
        for (unsigned passes = 0; passes < 4; passes++) {
            f->num_received = 0;
            fail.error = errors[e];
            fail.passes = passes;
            assert_int_equal(f->a->ops->tx_burst(f->a, packets, 60), 15 * passes);
            fail.error = 0;
            assert_int_equal(f->a->ops->tx_burst(f->a, packets + 15 * passes, 60 - 15 * passes),
                             60 - 15 * passes);
            fixture_receive(f, f->b, 60, false);
            fixture_check(f, 60);
        }
    }
    assert_int_equal(mrd_udp_of(f->a)->tx.lost, 0);
}

/* The socket fills up while a refused superpacket is sent in single packets. */
static void mrd_udp_tx_burst__partial_apart(void **state)
{
    struct fixture *f = *state;
    struct mrd_udp *udp = mrd_udp_of(f->a);
    struct mrd_tx_packet packets[10];
    int on = 1;

    assert_int_equal(setsockopt(udp->tx.paths[0].fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
    for (unsigned i = 0; i < 10; i++)
        packets[i] = fixture_packet(i, 2000, &f->to_b);
    fail.error = EAGAIN;
    fail.passes =
        1 + 4; /* the superpacket reaches the kernel, which refuses it; then four packets go */
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, 10), 4);
    fail.error = 0;
    assert_int_equal(f->a->ops->tx_burst(f->a, packets + 4, 6), 6);
    fixture_receive(f, f->b, 10, false);
    fixture_check(f, 10);
}

/* A destination that cannot be sent to is loss, for its own packets only. */
static void mrd_udp_tx_burst__lost(void **state)
{
    static const int errors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EPERM, EACCES};
    struct fixture *f = *state;
    struct mrd_tx_packet packets[45];

    for (unsigned i = 0; i < 45; i++)
        packets[i] = fixture_packet(i, 4160, &f->to_b);
    for (unsigned e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        f->num_received = 0;
        fail.error = errors[e];
        fail.passes = 1;
        fail.once = true;
        assert_int_equal(f->a->ops->tx_burst(f->a, packets, 45), 45);
        fixture_receive(f, f->b, 30, false);
        assert_int_equal(f->num_received, 30);
        assert_int_equal(f->received[14].number, 14);
        assert_int_equal(f->received[15].number, 30);
        assert_int_equal(mrd_udp_of(f->a)->tx.lost, 15 * (e + 1));
    }
}

static void mrd_udp_tx_burst__interrupted(void **state)
{
    struct fixture *f = *state;

    fail.error = EINTR;
    fail.once = true;
    fixture_send_equal(f, f->a, &f->to_b, 0, 4160, 3);
    fixture_receive(f, f->b, 3, false);
    fixture_check(f, 3);
}

/* An IPv6 destination in the middle of an IPv4-only context's burst is lost, its neighbours are
 * not. */
static void mrd_udp_tx_burst__wrong_family(void **state)
{
    struct fixture *f = *state;
    struct mrd_backend *v4 = fixture_open(NULL, MRD_UDP_WITHOUT_IPV6);
    struct mrd_addr v6 = fixture_addr("::1", f->b);
    struct mrd_tx_packet packets[3];

    packets[0] = fixture_packet(0, 600, &f->to_b);
    packets[1] = fixture_packet(7, 600, &v6);
    packets[2] = fixture_packet(1, 600, &f->to_b);
    assert_int_equal(v4->ops->tx_burst(v4, packets, 3), 3);
    fixture_receive(f, f->b, 2, false);
    fixture_check(f, 2);
    assert_int_equal(mrd_udp_of(v4)->tx.lost, 1);
    fixture_close(v4);
}

/* A datagram that IP cannot carry is too big, told once, with what the route carries. */
static void mrd_udp_tx_burst__too_big(void **state)
{
    static uint8_t bytes[66000];
    struct fixture *f = *state;
    struct mrd_tx_packet packets[3];
    struct mrd_addr to;
    uint32_t payload;

    assert_false(f->a->ops->too_big(f->a, &to, &payload));
    for (unsigned i = 0; i < 3; i++) {
        packets[i] = fixture_packet(i / 2, 1000, &f->to_b);
        packets[i].flags = MRD_TX_ECT;
    }
    packets[1].num_iov = 1;
    packets[1].iov[0] = (struct iovec){bytes, sizeof(bytes)};
    packets[1].len = packets[1].head_len + (uint32_t)sizeof(bytes);
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, 3), 3);
    assert_int_equal(f->a->ops->tx_burst(f->a, packets + 1, 1), 1);
    assert_true(f->a->ops->too_big(f->a, &to, &payload));
    assert_memory_equal(&to, &f->to_b, sizeof(to));
    assert_int_equal(payload, 16128);
    assert_false(f->a->ops->too_big(f->a, &to, &payload));
    fixture_receive(f, f->b, 2, false);
    fixture_check(f, 2);
}

/* -------------------------------------------------------------------- addresses */

static void mrd_udp_tx_burst__ect(void **state)
{
    struct fixture *f = *state;
    struct mrd_addr v6 = fixture_addr("::1", f->b);

    fixture_send_equal(f, f->a, &f->to_b, 0, 4160, 4);
    fixture_send_equal(f, f->a, &v6, 0, 64, 1);
    fixture_receive(f, f->b, 5, false);
    fixture_check(f, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(f->received[i].ecn, MRD_ECN_ECT0);
}

/* One packet of a row that must not have ECT leaves without, and the others with it. */
static void mrd_udp_tx_burst__not_ect(void **state)
{
    struct fixture *f = *state;
    struct mrd_addr to[2] = {f->to_b, fixture_addr("::1", f->b)};
    struct mrd_tx_packet packets[10];

    for (unsigned i = 0; i < 10; i++) {
        packets[i] = fixture_packet(i, 1000, &to[i / 5]);
        packets[i].flags = i % 5 == 2 ? MRD_TX_NOT_ECT : MRD_TX_ECT;
    }
    assert_int_equal(f->a->ops->tx_burst(f->a, packets, 10), 10);
    fixture_receive(f, f->b, 10, false);
    fixture_check(f, 10);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(f->received[i].ecn, i % 5 == 2 ? MRD_ECN_NOT_ECT : MRD_ECN_ECT0);
}

/* A context that uses no ECT sets it on no packet. */
static void mrd_udp_tx_burst__ect_is_off(void **state)
{
    struct fixture *f = *state;
    struct mrd_context_attr attr = {.paths = 1, .ecn = MRD_ECN_OFF, .dscp = 10};
    struct mrd_backend *b = fixture_open(&attr, 0);

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_tx_packet p = fixture_packet(i, 40, &f->to_b);

        p.flags = i == 0 ? MRD_TX_ECT : i == 1 ? MRD_TX_NOT_ECT : 0;
        p.dscp = 10;
        assert_int_equal(b->ops->tx_burst(b, &p, 1), 1);
    }
    fixture_receive(f, f->b, 3, false);
    fixture_check(f, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f->received[i].ecn, MRD_ECN_NOT_ECT);
    fixture_close(b);
}

/* An answer leaves from the address that was addressed, in superpackets and alone. */
static void mrd_udp_tx_burst__from(void **state)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.2", "127.9.8.7", "::1"};
    struct fixture *f = *state;

    for (unsigned without = 0; without <= MRD_UDP_WITHOUT_IPV6; without++) {
        struct mrd_backend *server = fixture_open(NULL, without);

        for (unsigned i = 0; i < 4 - without; i++) {
            struct mrd_addr to = fixture_addr(ips[i], server);
            struct mrd_tx_packet answers[5];

            f->num_sent = f->num_received = 0;
            fixture_send_equal(f, f->a, &to, 0, 100, 1);
            fixture_receive(f, server, 1, false);
            fixture_check(f, 1);
            assert_memory_equal(&f->received[0].to, &to, sizeof(to));

            for (unsigned p = 0; p < 5; p++) {
                answers[p] = fixture_packet(p, p < 4 ? 1000 : 2000, &f->received[0].from);
                answers[p].to.port = f->to_a.port;
                answers[p].from = f->received[0].to;
            }
            f->num_received = 0;
            assert_int_equal(server->ops->tx_burst(server, answers, 5), 5);
            fixture_receive(f, f->a, 5, false);
            fixture_check(f, 5);
            for (unsigned p = 0; p < 5; p++)
                assert_memory_equal(f->received[p].from.ip, to.ip, sizeof(to.ip));
        }
        fixture_close(server);
    }
}

/* Where messages may not name their source they leave without, from the first one on. */
static void mrd_udp_tx_burst__no_naming(void **state)
{
    static const int errors[] = {EINVAL, ENOPROTOOPT, EOPNOTSUPP};

    for (unsigned e = 0; e < 3; e++) {
        struct fixture *f = *state;

        fail.error = errors[e];
        fail.named = true;
        for (unsigned i = 0; i < 3; i++)
            fixture_send_equal(f, f->a, &f->to_b, 0, 100, 1);
        assert_int_equal(fail.calls, 4);
        fixture_send_equal(f, f->a, &f->to_b, 0, 4160, 8);
        fixture_receive(f, f->b, 11, false);
        fixture_check(f, 11);
        assert_int_equal(mrd_udp_of(f->a)->tx.lost, 0);
        fixture_teardown(state);
        fail_setup(state);
    }
}

/* One that is refused later, or that is refused without a name, too, says nothing of naming. */
static void mrd_udp_tx_burst__naming_works(void **state)
{
    struct fixture *f = *state;

    fail.error = EINVAL;
    fixture_send_equal(f, f->a, &f->to_b, 0, 100, 1);
    assert_int_equal(mrd_udp_of(f->a)->tx.lost, 1);
    assert_false(mrd_udp_of(f->a)->tx.nameless);
    fail.error = 0;
    fixture_send_equal(f, f->a, &f->to_b, 0, 100, 1);
    fail.error = EINVAL;
    fail.named = true;
    fixture_send_equal(f, f->a, &f->to_b, 0, 100, 1);
    assert_int_equal(mrd_udp_of(f->a)->tx.lost, 2);
    assert_false(mrd_udp_of(f->a)->tx.nameless);
}

/* A context bound to an address sends from it and hears by it. */
static void mrd_udp_tx_burst__bound(void **state)
{
    static const char *const ips[] = {"127.0.0.1", "127.0.0.5", "::1"};
    struct fixture *f = *state;

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_context_attr attr = {.address = ips[i], .paths = 2};
        struct mrd_backend *b = fixture_open(&attr, 0);
        struct mrd_addr to = fixture_addr(ips[i], b), a = f->to_a;

        if (i == 2)
            a = fixture_addr("::1", f->a);
        f->num_sent = f->num_received = 0;
        fixture_send_equal(f, b, &a, 1, 3000, 5);
        fixture_receive(f, f->a, 5, false);
        fixture_check(f, 5);
        assert_memory_equal(f->received[4].from.ip, to.ip, sizeof(to.ip));
        assert_int_equal(f->received[4].from.port, b->ops->path_port(b, 1));

        f->num_sent = f->num_received = 0;
        fixture_send_equal(f, f->a, &to, 1, 3000, 5);
        fixture_receive(f, b, 5, false);
        fixture_check(f, 5);
        assert_memory_equal(&f->received[4].to, &to, sizeof(to));
        fixture_close(b);
    }
}

#define TX_TEST(name) cmocka_unit_test_setup_teardown(name, fail_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(mrd_udp_tx_burst__groups),
        TX_TEST(mrd_udp_tx_burst__few_calls),
        TX_TEST(mrd_udp_tx_burst__order_on_a_path),
        TX_TEST(mrd_udp_tx_burst__paths_and_peers),
        TX_TEST(mrd_udp_tx_burst__many_pieces),
        TX_TEST(mrd_udp_tx_burst__partial),
        TX_TEST(mrd_udp_tx_burst__partial_apart),
        TX_TEST(mrd_udp_tx_burst__lost),
        TX_TEST(mrd_udp_tx_burst__interrupted),
        TX_TEST(mrd_udp_tx_burst__wrong_family),
        TX_TEST(mrd_udp_tx_burst__too_big),
        TX_TEST(mrd_udp_tx_burst__ect),
        TX_TEST(mrd_udp_tx_burst__not_ect),
        TX_TEST(mrd_udp_tx_burst__ect_is_off),
        TX_TEST(mrd_udp_tx_burst__from),
        TX_TEST(mrd_udp_tx_burst__no_naming),
        TX_TEST(mrd_udp_tx_burst__naming_works),
        TX_TEST(mrd_udp_tx_burst__bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
