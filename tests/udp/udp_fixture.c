/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/udp/udp_fixture.h"
#include "tests/kit/kit.h"
#include "transport/movers/udp/udp.h"
#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_port.h"

#include <stdlib.h>
#include <string.h>

#define SILENCE_NS 60000000000u /* until a test fails whose packets do not come */

/* The packets sent last; their memory is read until tx_burst() returns. */
static uint8_t sent_bytes[FIXTURE_PACKETS_MAX][FIXTURE_PACKET_BYTES];

static uint8_t byte_at(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

struct mrd_backend *fixture_open(const struct mrd_context_attr *attr, unsigned without)
{
    struct mrd_context_attr none = {.paths = 4};
    int error;
    struct mrd_backend *b = mrd_udp_open_without(MRD_UDP_ANY, attr ? attr : &none, without, &error);

    if (!b)
        print_error("open: %s\n", mrd_last_error());
    assert_non_null(b);
    assert_int_equal(error, 0);
    return b;
}

void fixture_close(struct mrd_backend *b)
{
    b->ops->close(b);
}

struct mrd_addr fixture_addr(const char *ip, const struct mrd_backend *b)
{
    struct mrd_addr addr;

    assert_int_equal(mrd_udp_parse_ip(ip, &addr), 0);
    addr.port = ((const struct mrd_udp *)b)->rx.port;
    return addr;
}

void fixture_open_both(struct movers *f)
{
    f->a = fixture_open(NULL, 0);
    f->b = fixture_open(NULL, 0);
    f->to_a = fixture_addr("127.0.0.1", f->a);
    f->to_b = fixture_addr("127.0.0.1", f->b);
    f->plan.wrong_segment = -1;
}

void fixture_close_both(struct movers *f)
{
    fixture_close(f->a);
    fixture_close(f->b);
}

FIXTURE_SETUP(movers)
{
    fixture_open_both(self);
}

FIXTURE_TEARDOWN(movers)
{
    fixture_close_both(self);
}

struct mrd_tx_packet fixture_packet(uint32_t number, uint32_t len, const struct mrd_addr *to)
{
    uint8_t *bytes = sent_bytes[number % FIXTURE_PACKETS_MAX];
    struct mrd_tx_packet p = {.to = *to, .len = len, .head = bytes};

    assert_in_range(len, 8, FIXTURE_PACKET_BYTES);
    for (uint32_t i = 8; i < len; i++)
        bytes[i] = byte_at(number, i);
    memcpy(bytes, &number, 4);
    memcpy(bytes + 4, &len, 4);
    p.head_len = (uint16_t)(len < FIXTURE_HEAD_BYTES ? len : FIXTURE_HEAD_BYTES);
    if (len > p.head_len) { /* two pieces of different lengths */
        uint32_t first = (len - p.head_len + 2) / 3;

        p.iov[p.num_iov++] = (struct iovec){bytes + p.head_len, first};
        if (len > p.head_len + first)
            p.iov[p.num_iov++] =
                (struct iovec){bytes + p.head_len + first, len - p.head_len - first};
    }
    return p;
}

void fixture_send(struct movers *f, struct mrd_backend *from, const struct mrd_addr *to,
                  unsigned path, const uint32_t *lens, unsigned n)
{
    static struct mrd_tx_packet packets[FIXTURE_PACKETS_MAX];

    assert_in_range(n, 0, FIXTURE_PACKETS_MAX);
    for (unsigned i = 0; i < n; i++) {
        packets[i] = fixture_packet(f->num_sent + i, lens[i], to);
        packets[i].path = (uint16_t)path;
    }
    f->num_sent += n;
    assert_int_equal(from->ops->tx_burst(from, packets, n), n);
}

void fixture_send_equal(struct movers *f, struct mrd_backend *from, const struct mrd_addr *to,
                        unsigned path, uint32_t len, unsigned n)
{
    uint32_t lens[FIXTURE_PACKETS_MAX];

    for (unsigned i = 0; i < n; i++)
        lens[i] = len;
    fixture_send(f, from, to, path, lens, n);
}

static unsigned fake_plan(void *arg, const uint8_t *head, unsigned head_len, unsigned segments,
                          unsigned segment_len, unsigned total_len, const struct mrd_addr *from,
                          struct mrd_rx_plan *plan)
{
    struct fixture_plan *fake = arg;
    unsigned pieces = fake->pieces ? fake->pieces : 1, n = 0;

    fake->calls++;
    fake->segments = segments;
    fake->segment_len = segment_len;
    fake->total_len = total_len;
    fake->from = *from;
    fake->head_len = head_len;
    memcpy(fake->head, head, head_len);
    fake->planned = segments < fake->segments_max ? segments : fake->segments_max;
    memset(fake->places, 0xee, sizeof(fake->places));
    plan->head_len = FIXTURE_HEAD_BYTES;
    for (unsigned i = 0; i < fake->planned; i++) {
        unsigned len = i + 1 < segments ? segment_len : total_len - i * segment_len;
        uint8_t *at = fake->places[i];

        len -= FIXTURE_HEAD_BYTES + (fake->wrong_segment == (int)i);
        plan->first[i] = (uint16_t)n;
        for (unsigned p = 0; p < pieces; p++) {
            unsigned part = p + 1 < pieces ? len / pieces : len - (pieces - 1) * (len / pieces);

            plan->iov[n++] = (struct iovec){at, part};
            at += part;
        }
    }
    plan->first[fake->planned] = (uint16_t)n;
    plan->num_segments = (uint16_t)fake->planned;
    return fake->planned;
}

static void record(struct movers *f, const struct mrd_rx_packet *p)
{
    struct fixture_packet *r = &f->received[f->num_received++];

    assert_true(f->num_received <= FIXTURE_PACKETS_MAX);
    r->placed = p->placed;
    r->from = p->from;
    r->to = p->to;
    r->ecn = p->ecn;
    r->len = p->len + (p->placed ? p->placed_len : 0);
    assert_true(r->len <= FIXTURE_PACKET_BYTES);
    memcpy(r->bytes, p->data, p->len);
    if (p->placed) {
        assert_int_equal(p->len, FIXTURE_HEAD_BYTES);
        assert_true(p->plan_index < f->plan.planned);
        memcpy(r->bytes + p->len, f->plan.places[p->plan_index], p->placed_len);
    }
    memcpy(&r->number, r->bytes, 4);
}

unsigned fixture_burst(struct movers *f, struct mrd_backend *b, unsigned max, bool planned,
                       bool *more)
{
    struct mrd_rx_packet packets[64];

    assert_in_range(max, 1, 64);
    unsigned n = b->ops->rx_burst(b, packets, max, more, planned ? fake_plan : NULL, &f->plan);
    assert_true(n <= max);
    for (unsigned i = 0; i < n; i++)
        record(f, &packets[i]);
    if (n > 0) /* as the library does: nothing was lent otherwise */
        b->ops->rx_return(b);
    return n;
}

void fixture_receive(struct movers *f, struct mrd_backend *b, unsigned want, bool planned)
{
    uint64_t silent_since = b->ops->now_ns(b);
    bool more;

    while (f->num_received < want && b->ops->now_ns(b) - silent_since < SILENCE_NS) {
        if (fixture_burst(f, b, 64, planned, &more))
            silent_since = b->ops->now_ns(b);
        else if (!more)
            b->ops->wait(b, -1, 10000000);
    }
}

bool fixture_bytes_right(const struct fixture_packet *p)
{
    uint32_t len;

    if (p->len < 8)
        return false;
    memcpy(&len, p->bytes + 4, 4);
    if (len != p->len)
        return false;
    for (uint32_t i = 8; i < p->len; i++) {
        if (p->bytes[i] != byte_at(p->number, i))
            return false;
    }
    return true;
}

void fixture_check(const struct movers *f, unsigned n)
{
    assert_int_equal(f->num_received, n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(f->received[i].number, i);
        assert_true(fixture_bytes_right(&f->received[i]));
    }
}

void fixture_arrive(struct movers *f, struct mrd_backend *b, unsigned n, bool planned)
{
    fixture_receive(f, b, n, planned);
    fixture_check(f, n);
}
