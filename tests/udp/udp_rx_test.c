/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: straight, staged, looked at or not; what is told of a packet; what is left for the
 * next burst. */
#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp_addr.h"

#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

static struct mrd_udp_rx *rx_of(struct mrd_backend *b)
{
    return &mrd_udp_of(b)->rx;
}

/* One long datagram makes the receiver look at the next. */
static void make_it_peek(struct movers *f)
{
    fixture_send_equal(f, f->a, &f->to_b, 0, 4160, 1);
    fixture_receive(f, f->b, f->num_sent, true);
    assert_true(rx_of(f->b)->peeking);
    f->num_sent = f->num_received = 0;
}

/* -------------------------------------------------------------------- straight receive */

static const struct {
    const char *name;
    unsigned n, len, last_len; /* packets of a superpacket */
    unsigned segments_max, pieces;
    int wrong_segment;
    unsigned placed; /* of them */
} plans[] = {
    {"all", 15, 4160, 4160, 64, 1, -1, 15},
    {"all, the last is short", 15, 4160, 100, 64, 1, -1, 15},
    {"the last is but a header", 15, 4160, FIXTURE_HEAD_BYTES, 64, 1, -1, 15},
    {"a prefix", 15, 4160, 4160, 6, 1, -1, 6},
    {"all but a short last", 15, 4160, 100, 14, 1, -1, 14},
    {"one", 15, 4160, 100, 1, 1, -1, 1},
    {"none", 15, 4160, 4160, 0, 1, -1, 0},
    {"pieces", 15, 4160, 4000, 64, 2, -1, 15},
    {"more segments than a plan has", 64, 900, 900, 64, 2, -1, 64},
    {"a single datagram", 1, 4160, 4160, 64, 2, -1, 1},
    {"a wrong length cuts the plan off", 15, 4160, 4160, 64, 1, 4, 4},
    {"a wrong length at once", 15, 4160, 4160, 64, 1, 0, 0},
    {"a wrong length of the last", 15, 4160, 90, 64, 1, 14, 14},
};

TEST_F(movers, mrd_udp_rx_burst__plan)
{
    for (size_t r = 0; r < sizeof(plans) / sizeof(plans[0]); r++) {
        uint32_t lens[64];

        make_it_peek(self);
        uint64_t straight = rx_of(self->b)->count.straight;
        for (unsigned i = 0; i < plans[r].n; i++)
            lens[i] = i + 1 < plans[r].n ? plans[r].len : plans[r].last_len;
        self->plan.segments_max = plans[r].segments_max;
        self->plan.pieces = plans[r].pieces;
        self->plan.wrong_segment = plans[r].wrong_segment;
        self->plan.calls = 0;
        fixture_send(self, self->a, &self->to_b, 0, lens, plans[r].n);
        fixture_arrive(self, self->b, plans[r].n, true);
        for (unsigned i = 0; i < plans[r].n; i++) {
            if (self->received[i].placed != (i < plans[r].placed))
                fail_msg("%s: segment %u", plans[r].name, i);
        }
        /* What the plan was told. */
        assert_int_equal(self->plan.calls, 1);
        assert_int_equal(self->plan.segments, plans[r].n);
        assert_int_equal(self->plan.segment_len, plans[r].len);
        assert_int_equal(self->plan.total_len, plans[r].len * (plans[r].n - 1) + plans[r].last_len);
        assert_int_equal(self->plan.head_len, MRD_HEAD_PEEK_BYTES);
        assert_memory_equal(self->plan.head, self->received[0].bytes, FIXTURE_HEAD_BYTES);
        assert_memory_equal(&self->plan.from, &self->received[0].from, sizeof(self->plan.from));
        assert_int_equal(rx_of(self->b)->count.straight - straight, plans[r].placed > 0);
    }
}

/* A superpacket of more segments than a plan can have, as other senders make them: a plan of the
 * first 64. */
TEST_F(movers, mrd_udp_rx_burst__plan_of_a_part)
{
    static uint8_t bytes[100 * 600];
    int segment = 600, fd = mrd_udp_of(self->a)->tx.paths[3].fd;
    union mrd_udp_sockaddr sa;
    socklen_t len = mrd_udp_to_sockaddr(AF_INET6, &self->to_b, &sa);

    make_it_peek(self);
    for (unsigned i = 0; i < 100; i++) {
        struct mrd_tx_packet p = fixture_packet(i, 600, &self->to_b);

        memcpy(bytes + i * 600, p.head, 600); /* head and iov lie in one */
    }
    assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
    assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, &sa.sa, len), sizeof(bytes));
    self->plan.segments_max = 64;
    fixture_arrive(self, self->b, 100, true);
    assert_int_equal(self->plan.segments, 64);
    assert_int_equal(self->plan.total_len, 64 * 600);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(self->received[i].placed, i < 64);
}

/* A plan must know all that came before: it is made only when nothing unjudged is reported with it.
 */
TEST_F(movers, mrd_udp_rx_burst__plan_waits)
{
    bool more;

    make_it_peek(self);
    self->plan.segments_max = 64;
    self->plan.calls = 0;
    fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
    fixture_send_equal(self, self->a, &self->to_b, 0, 200, 1);
    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
    rx_of(self->b)->quiet = false;

    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 2);
    assert_true(more);
    assert_int_equal(self->plan.calls, 0);
    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 15);
    assert_true(more);
    assert_int_equal(self->plan.calls, 1);
    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 15);
    assert_int_equal(self->plan.calls, 2);
    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 0);
    assert_false(more);
    fixture_check(self, 32);
    assert_true(self->received[31].placed);
}

/* -------------------------------------------------------------------- bursts */

/* No room for all segments: the rest comes with the next calls, staged or placed, and stays valid.
 */
TEST_F(movers, mrd_udp_rx_burst__remainder)
{
    for (unsigned planned = 0; planned < 2; planned++) {
        for (unsigned max = 1; max <= 17; max++) {
            bool more = true;

            make_it_peek(self);
            self->plan.segments_max = 9;
            for (unsigned i = 0; i < 4; i++)
                fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
            for (unsigned turns = 0; more; turns++) {
                fixture_burst(self, self->b, max, planned, &more);
                assert_in_range(turns, 0, 100);
            }
            fixture_check(self, 60);
            for (unsigned i = 0; i < 60; i++)
                assert_int_equal(self->received[i].placed, planned && i % 15 < 9);
        }
    }
}

/* A full buffer of datagrams is given in turns, in order, whatever fits into staging at once. */
TEST_F(movers, mrd_udp_rx_burst__more)
{
    unsigned bursts = 0;
    bool more = true;

    for (unsigned i = 0; i < 5; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
    for (; more; bursts++)
        fixture_burst(self, self->b, 64, false, &more);
    fixture_check(self, 75);
    assert_in_range(bursts, 2, 8);
}

/* Whoever waits for a short message need not wait for a look behind it; a row of them comes as a
 * row. */
TEST_F(movers, mrd_udp_rx_burst__latency)
{
    bool more;

    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 0);
    assert_false(more);
    for (unsigned i = 0; i < 5; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 64, 1);
    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 1);
    assert_true(more);
    assert_int_equal(fixture_burst(self, self->b, 64, true, &more), 4);
    assert_false(more);
    fixture_check(self, 5);
}

/* Long datagrams switch looking on, a row of short ones switches it off, a few do not. */
TEST_F(movers, mrd_udp_rx_burst__adapts)
{
    struct mrd_udp_rx *rx = rx_of(self->b);

    for (unsigned i = 0; i < 5; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 64, 1);
    fixture_receive(self, self->b, 5, true);
    assert_int_equal(rx->count.peeks, 0);
    assert_int_equal(rx->count.plain, 5);

    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
    fixture_receive(self, self->b, 20, true); /* staged, for nobody looked */
    assert_int_equal(rx->count.peeks, 0);
    assert_int_equal(rx->count.plain, 6);

    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
    fixture_receive(self, self->b, 35, true);
    assert_int_equal(rx->count.peeks, 1);

    for (unsigned i = 0; i < 7; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 64, 1);
    fixture_receive(self, self->b, 42, true);
    assert_true(rx->peeking);
    fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 1);
    fixture_receive(self, self->b, 43, true);
    assert_int_equal(rx->count.peeks, 9);

    for (unsigned i = 0; i < 8; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 64, 1);
    fixture_receive(self, self->b, 51, true);
    assert_int_equal(rx->count.peeks, 17);
    for (unsigned i = 0; i < 3; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 64, 1);
    fixture_receive(self, self->b, 54, true);
    assert_int_equal(rx->count.peeks, 17);
    assert_int_equal(rx->count.plain, 9);
    fixture_check(self, 54);
}

enum { FLOOD = 200, BURST_MAX = 64 };

static void send_shorts(struct movers *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fixture_send_equal(f, f->a, &f->to_b, 0, 64 + i % 2, 1);
}

/* Fewer calls than datagrams. */
static void make_it_take_many(struct movers *f)
{
    struct mrd_udp_rx *rx = rx_of(f->b);

    f->num_sent = f->num_received = 0;
    send_shorts(f, FLOOD);
    fixture_arrive(f, f->b, FLOOD, true);
    assert_true(rx->takes_many);
    assert_in_range(rx->count.many, 1, FLOOD / 4);
    f->num_sent = f->num_received = 0;
}

/* A flood of short datagrams with long ones among them: all as they were sent, at any size of a burst. */
TEST_F(movers, mrd_udp_rx_burst__many_by_a_call)
{
    make_it_take_many(self);
    for (unsigned max = 1; max <= BURST_MAX; max += max < 18 ? 1 : 23) {
        bool more = true;

        self->num_sent = self->num_received = 0;
        for (unsigned i = 0; i < 4; i++) {
            send_shorts(self, 1 + 2 * i);
            fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
            fixture_send_equal(self, self->a, &self->to_b, 0, 8000, 1);
            send_shorts(self, 9);
        }
        for (unsigned turns = 0; more; turns++) {
            fixture_burst(self, self->b, max, true, &more);
            assert_in_range(turns, 0, 400);
        }
        fixture_check(self, self->num_sent);
    }
    assert_true(rx_of(self->b)->takes_many);
}

/* Long ones alone: each has its place again. */
TEST_F(movers, mrd_udp_rx_burst__many_no_more)
{
    struct mrd_udp_rx *rx = rx_of(self->b);

    make_it_take_many(self);
    self->plan.segments_max = 64;
    for (unsigned i = 0; i < 50; i++) {
        self->num_sent = self->num_received = 0;
        fixture_send_equal(self, self->a, &self->to_b, 0, 4160, 15);
        fixture_arrive(self, self->b, 15, true);
    }
    assert_false(rx->takes_many);
    assert_true(self->received[14].placed);
    uint64_t many = rx->count.many;
    send_shorts(self, 20);
    fixture_arrive(self, self->b, 35, true);
    assert_int_equal(rx->count.many, many);
}

/* Nothing but headers: an empty datagram is nothing, and stops nothing. */
TEST_F(movers, mrd_udp_rx_burst__empty_datagram)
{
    struct mrd_tx_packet empty = {.to = self->to_b};

    for (unsigned how = 0; how < 3; how++) {
        if (how == 1)
            make_it_peek(self);
        if (how == 2)
            make_it_take_many(self);
        self->num_sent = self->num_received = 0;
        for (unsigned i = 0; i < 3; i++) {
            empty.head = (uint8_t[1]){0};
            assert_int_equal(self->a->ops->tx_burst(self->a, &empty, 1), 1);
            fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
        }
        fixture_arrive(self, self->b, 3, true);
    }
}

/* -------------------------------------------------------------------- what is told */

/* The mark that a switch leaves, for both families, looked at or not. */
TEST_F(movers, mrd_udp_rx_burst__ecn)
{
    static const char *const ips[] = {"127.0.0.1", "::1"};

    for (int ecn = MRD_ECN_NOT_ECT; ecn <= MRD_ECN_CE; ecn++) {
        const struct mrd_udp_path *path = &mrd_udp_of(self->a)->tx.paths[1];

        assert_int_equal(setsockopt(path->fd, IPPROTO_IP, IP_TOS, &ecn, sizeof(ecn)), 0);
        assert_int_equal(setsockopt(path->fd, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof(ecn)), 0);
        for (unsigned i = 0; i < 4; i++) {
            struct mrd_addr to = fixture_addr(ips[i % 2], self->b);

            if (i / 2)
                make_it_peek(self);
            self->num_sent = self->num_received = 0;
            fixture_send_equal(self, self->a, &to, 1, 4160, 2);
            fixture_arrive(self, self->b, 2, true);
            assert_int_equal(self->received[0].ecn, ecn);
            assert_int_equal(self->received[1].ecn, ecn);
        }
    }
}

/* What overflows the receive buffer is counted, once a datagram gets through again. */
TEST_F(movers, mrd_udp_rx_burst__overflow)
{
    struct mrd_udp_rx *rx = rx_of(self->b);
    int small = 1;
    bool more;

    assert_int_equal(setsockopt(rx->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    for (unsigned i = 0; i < 20; i++)
        fixture_send_equal(self, self->a, &self->to_b, 0, 1000, 1);
    while (fixture_burst(self, self->b, 64, true, &more) || more)
        ;
    assert_in_range(self->num_received, 1, 19);
    fixture_send_equal(self, self->a, &self->to_b, 0, 1000, 1);
    while (fixture_burst(self, self->b, 64, true, &more) || more)
        ;
    assert_int_equal(self->num_received + rx->overflow, 21);
}

/* -------------------------------------------------------------------- drops on purpose */

static unsigned count_drops(struct movers *f, uint64_t seed, uint32_t ppm, bool planned,
                            uint64_t *mask)
{
    struct mrd_context_attr attr = {.paths = 1, .rx_drop_ppm = ppm, .seed = seed};
    struct mrd_backend *b = fixture_open(&attr, 0);
    struct mrd_addr to = fixture_addr("127.0.0.1", b);
    unsigned dropped = 0;

    f->plan.segments_max = 10;
    *mask = 0;
    for (unsigned round = 0; round < 10; round++) {
        f->num_sent = f->num_received = 0;
        for (unsigned i = 0; i < 20; i++) {
            bool more = true;

            fixture_send_equal(f, f->a, &to, 0, 3000, 20);
            for (unsigned turns = 0; more; turns++) {
                fixture_burst(f, b, 64, planned, &more);
                assert_in_range(turns, 0, 10);
            }
        }
        dropped += 400 - f->num_received;
        for (unsigned i = 0; i < f->num_received; i++) {
            assert_true(fixture_bytes_right(&f->received[i]));
            assert_true(i == 0 || f->received[i].number > f->received[i - 1].number);
            if (round == 0 && f->received[i].number < 64)
                *mask |= 1ull << f->received[i].number;
        }
    }
    fixture_close(b);
    return dropped;
}

/* The share is met, each packet judged on its own: of 4,000 packets 10% +- 5 standard deviations.
 */
TEST_F(movers, mrd_udp_rx_burst__drop_share)
{
    uint64_t a, b, c;

    for (unsigned planned = 0; planned < 2; planned++) {
        assert_in_range(count_drops(self, 1, 100000, planned, &a), 305, 495);
        assert_in_range(count_drops(self, 1, 100000, planned, &b), 305, 495);
        assert_in_range(count_drops(self, 2, 100000, planned, &c), 305, 495);
        assert_true(a == b); /* by seed */
        assert_true(a != c);
        assert_int_equal(count_drops(self, 1, 0, planned, &a), 0);
        assert_int_equal(count_drops(self, 1, 1000000, planned, &a), 4000);
    }
}
