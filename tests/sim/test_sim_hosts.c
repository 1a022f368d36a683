/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator by itself: hosts, their clocks and timers, and their packet mover. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "tests/kit/kit.h"
#include "tests/support/check.h"
#include "tests/support/recorder.h"
#include "transport/movers/sim/sim_stack.h"
#include "transport/movers/sim/sim_world.h"

/* ---------------------------------------------------------------------------------------- hosts */

/* A stopped host takes nothing and keeps no time; what came meanwhile is there when it goes on. */
TEST(mrd_sim_stop_host__queues)
{
    struct recorder_pair *f =
        recorder_pair_create(&(struct mrd_sim_attr){.link = {.delay_ns = 100}});
    struct recorder *r = &f->host[1];

    r->deadline_ns = 5000;
    mrd_sim_run_until(f->sim, 10);
    mrd_sim_stop_host(f->sim, 1, 1);
    recorder_send(f, 0, 5);
    mrd_sim_run_until(f->sim, 20000);
    assert_int_equal(r->turns, 0);
    assert_int_equal(r->b->ops->now_ns(r->b), 10);
    mrd_sim_stop_host(f->sim, 1, 0);
    mrd_sim_run_until(f->sim, 20000);
    assert_int_equal(r->turns, 1);
    assert_int_equal(r->num_arrivals, 5);
    assert_int_equal(r->arrivals[0].at_ns, 20000);
    assert_int_equal(r->b->ops->now_ns(r->b), 20000);
}

/* Packets for a host without a context are dropped and counted; it has one context at a time. */
TEST(mrd_sim_open__one_context)
{
    struct recorder_pair *f = recorder_pair_create(NULL);
    int error = 0;

    assert_null(mrd_sim_ops.open(mrd_sim_device(f->sim, 1), NULL, &error));
    assert_int_equal(error, -EBUSY);
    f->host[1].b->ops->close(f->host[1].b);
    recorder_send(f, 0, 3);
    mrd_sim_run_until(f->sim, 1000000);
    assert_int_equal(mrd_sim_get_host_stats(f->sim, 1).dead_drops, 3);
    recorder_open(&f->host[1], f->sim, 1);
    recorder_send(f, 0, 2);
    recorder_expect(f, 2000000, 2);
}

/* The latest deadline counts, and it counts by the host's own clock. */
TEST(mrd_sim_run_until__deadline)
{
    struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){.clock_skew_ppm = 1000, .seed = 5});
    static struct recorder r;

    mrd_sim_set_clock_offset(sim, 0, 1ull << 40);
    recorder_open(&r, sim, 0);
    r.deadline_ns = (1ull << 40) + 1000000000;
    mrd_sim_run_until(sim, 0);
    r.deadline_ns += 1000000000; /* later: the timer that is set looks again */
    r.b->ops->now_ns(r.b);       /* as any call on the context does */
    mrd_sim_run_until(sim, 3000000000);
    assert_int_equal(r.turns, 1);
    assert_in_range(r.turn_at_ns, 1998000000, 2002000000);
    assert_true(r.turn_at_ns != 2000000000);

    r.deadline_ns = (1ull << 40) + 9000000000;
    r.b->ops->now_ns(r.b);
    mrd_sim_run_until(sim, 3500000000);
    r.deadline_ns = (1ull << 40) + 4000000000; /* earlier: the timer that was set is stale */
    r.b->ops->now_ns(r.b);
    mrd_sim_run_until(sim, 20000000000);
    assert_int_equal(r.turns, 2);
    assert_in_range(r.turn_at_ns, 3996000000, 4004000000);
    r.b->ops->close(r.b);
}

/* Clocks run off by at most the skew, each by its own. */
TEST(mrd_sim_create__skew)
{
    struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){.hosts = 8, .clock_skew_ppm = 50});
    static struct recorder r[8];
    uint64_t now_ns[8];

    for (uint32_t i = 0; i < 8; i++)
        recorder_open(&r[i], sim, i);
    mrd_sim_run_until(sim, 1000000000);
    for (unsigned i = 0; i < 8; i++) {
        now_ns[i] = r[i].b->ops->now_ns(r[i].b);
        assert_in_range(now_ns[i], 999950000, 1000050000);
        assert_true(i == 0 || now_ns[i] != now_ns[i - 1]);
    }
    for (unsigned i = 0; i < 8; i++)
        r[i].b->ops->close(r[i].b);
}

/* Buffers are read until tx_done_delay_ns later; a change before that is noticed. */
TEST(mrd_sim_tx_reap__delay)
{
    struct recorder_pair *f =
        recorder_pair_create(&(struct mrd_sim_attr){.tx_done_delay_ns = 3000});
    struct recorder *r = &f->host[0];
    uint8_t payload[2][64] = {{1}, {2}};

    mrd_sim_set_read_check(f->sim, true);
    assert_false(r->b->mover.copies);
    for (unsigned i = 0; i < 2; i++) {
        struct mrd_tx_packet packet = packet_to_1(0, payload[i], 64);

        packet.cookie = 70 + i;
        assert_int_equal(r->b->ops->tx_burst(r->b, &packet, 1), 1);
    }
    payload[1][63] ^= 1;
    mrd_sim_run_until(f->sim, 2999);
    assert_int_equal(r->num_cookies, 0);
    mrd_sim_run_until(f->sim, 3000);
    assert_int_equal(r->num_cookies, 2);
    assert_int_equal(r->cookies[0], 70);
    assert_int_equal(r->cookies[1], 71);
    assert_int_equal(mrd_sim_get_host_stats(f->sim, 0).changed_early, 1);
}

/* A partial burst: a prefix is taken, and the host gets a turn when there is room again. */
TEST(mrd_sim_tx_burst__partial)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){.tx_burst_max = 3});
    struct mrd_tx_packet packets[5];
    uint8_t payload[64] = {0};

    for (unsigned i = 0; i < 5; i++)
        packets[i] = packet_to_1(0, payload, 64);
    assert_int_equal(f->host[0].b->ops->tx_burst(f->host[0].b, packets, 5), 3);
    mrd_sim_run_until(f->sim, 1000);
    assert_int_equal(f->host[0].turns, 1);
    assert_int_equal(f->host[0].b->ops->tx_burst(f->host[0].b, packets + 3, 2), 2);
    mrd_sim_run_until(f->sim, 1000000);
    assert_int_equal(f->host[0].turns, 1);
    assert_int_equal(f->host[1].num_arrivals, 5);
}

/* Too big for the fabric: taken and lost, and told once a destination. */
TEST(mrd_sim_tx_burst__too_big)
{
    struct recorder_pair *f = recorder_pair_create(NULL);
    struct mrd_backend *b = f->host[0].b;
    uint8_t payload[2000] = {0};
    struct mrd_tx_packet packet = packet_to_1(0, payload, sizeof(payload));
    struct mrd_addr to;
    uint32_t payload_bytes;

    mrd_sim_set_datagram_max(f->sim, 1472);
    assert_int_equal(b->ops->tx_burst(b, &packet, 1), 1);
    assert_int_equal(b->ops->tx_burst(b, &packet, 1), 1);
    assert_true(b->ops->too_big(b, &to, &payload_bytes));
    assert_int_equal(to.port, 2);
    assert_int_equal(payload_bytes, 1344);
    assert_false(b->ops->too_big(b, &to, &payload_bytes));
    recorder_expect(f, 1000000, 0);
}

TEST(mrd_sim_parse_address__table)
{
    static const struct {
        const char *text;
        int ret;
        uint32_t port;
    } rows[] = {
        {"sim:0", 0, 1},
        {"sim:1", 0, 2},
        {"sim:2", -EHOSTUNREACH, 0},
        {"sim:", -EINVAL, 0},
        {"sim:-1", -EINVAL, 0},
        {"sim: 1", -EINVAL, 0},
        {"sim:1x", -EINVAL, 0},
        {"127.0.0.1", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"sim:+1", -EINVAL, 0},
        {"sim:4294967296", -EINVAL, 0},
        {"sim:99999999", -EHOSTUNREACH, 0},
    };
    struct recorder_pair *f = recorder_pair_create(NULL);
    struct mrd_backend *b = f->host[0].b;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_addr addr = {0};
        char text[16];

        assert_int_equal(b->ops->parse_address(b, rows[i].text, &addr), rows[i].ret);
        assert_int_equal(addr.port, rows[i].port);
        if (rows[i].ret != 0)
            continue;
        assert_int_equal(b->ops->format_address(b, &addr, text, sizeof(text)), 0);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(b->ops->format_address(b, &addr, text, 5), -ENOSPC);
        assert_int_equal(b->ops->payload_bytes(b, &addr), 4096);
    }
}

/* ----------------------------------------------------------------------------- straight receive */

struct plan_case {
    uint8_t target[4][PACKET_BYTES];
    unsigned segments, segment_len, total_len, calls;
};

/* Plan the first three segments behind 16 bytes of header. */
static unsigned plan_three(void *arg, const uint8_t *head, unsigned head_len, unsigned segments,
                           unsigned segment_len, unsigned total_len, const struct mrd_addr *from,
                           struct mrd_rx_plan *plan)
{
    struct plan_case *c = arg;

    assert_non_null(head);
    assert_int_equal(head_len, MRD_HEAD_PEEK_BYTES);
    assert_int_equal(from->port, 1);
    c->segments = segments;
    c->segment_len = segment_len;
    c->total_len = total_len;
    c->calls++;
    plan->head_len = 16;
    plan->num_segments = 3;
    for (unsigned i = 0; i < 3; i++) {
        plan->first[i] = (uint16_t)(2 * i);
        plan->iov[2 * i] = (struct iovec){c->target[i], 100};
        plan->iov[2 * i + 1] = (struct iovec){c->target[i] + 100, segment_len - 116};
    }
    plan->first[3] = 6;
    return 3;
}

/* Waiting packets of a path are one burst, over those of others; the unplanned are staged. */
static void check_plan(int payload_by_reference)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){
        .link = {.delay_ns = 100}, .payload_by_reference = payload_by_reference});
    uint8_t payload[7][PACKET_BYTES];
    static const struct {
        uint16_t path;
        uint32_t len;
    } sent[] = {{1, 600}, {1, 600}, {2, 700}, {1, 600}, {1, 600}, {1, 300}, {1, 600}};
    struct plan_case c = {0};

    mrd_sim_set_gro(f->sim, true);
    mrd_sim_set_rx_delay(f->sim, 50);
    f->host[1].plan = plan_three;
    f->host[1].plan_arg = &c;
    for (unsigned i = 0; i < 7; i++) {
        struct mrd_tx_packet packet = packet_to_1(sent[i].path, payload[i], sent[i].len);

        memset(payload[i], (int)i + 1, sizeof(payload[i]));
        assert_int_equal(f->host[0].b->ops->tx_burst(f->host[0].b, &packet, 1), 1);
    }
    mrd_sim_run_until(f->sim, 149);
    assert_int_equal(f->host[1].turns, 0);
    mrd_sim_run_until(f->sim, 150);

    static const uint8_t order[] = {1, 2, 4, 5, 6, 3, 7};

    assert_int_equal(f->host[1].turns, 1);
    assert_int_equal(f->host[1].num_arrivals, 7);
    for (unsigned i = 0; i < 7; i++) {
        const struct arrival *arrival = &f->host[1].arrivals[i];

        assert_int_equal(arrival->data[0], order[i]);
        assert_int_equal(arrival->len, sent[order[i] - 1].len);
        assert_int_equal(arrival->placed, i < 3);
    }
    assert_int_equal(c.calls, 1);
    assert_int_equal(c.segments, 5);
    assert_int_equal(c.segment_len, 600);
    assert_int_equal(c.total_len, 4 * 600 + 300);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned at = 0; at < PACKET_BYTES; at++)
            assert_int_equal(c.target[i][at], at < 584 ? order[i] : 0);
    }
    assert_int_equal(mrd_sim_get_host_stats(f->sim, 1).planned_segments, 3);
}

TEST(mrd_sim_rx_burst__plan)
{
    check_plan(false);
    check_plan(true);
}

/* A stack that is woken soon and late by turns, as if it sent while a timeout is far off. */
struct waker {
    struct mrd_sim *sim;
    uint64_t fired_ns[64];
    unsigned num_fired, soon;
};

enum { WAKER_SOON_NS = 100, WAKER_LATE_NS = 1000000 };

static void waker_timer(void *arg)
{
    struct waker *w = arg;

    w->fired_ns[w->num_fired++ % 64] = mrd_sim_now(w->sim);
    if (mrd_sim_now(w->sim) < WAKER_LATE_NS)
        mrd_sim_stack_wake(w->sim, 0, WAKER_LATE_NS);
    if (mrd_sim_now(w->sim) < WAKER_LATE_NS && w->soon) {
        w->soon--;
        mrd_sim_stack_wake(w->sim, 0, mrd_sim_now(w->sim) + WAKER_SOON_NS);
    }
}

/* The far timer keeps its one event however often a nearer one comes first, and fires once. */
TEST(mrd_sim_stack_wake__far_one_stays)
{
    static const struct mrd_sim_stack_ops ops = {.timer = waker_timer};
    struct waker w = {.soon = 40};

    w.sim = test_sim(NULL);
    assert_int_equal(mrd_sim_stack_attach(w.sim, 0, &ops, &w), 0);
    assert_int_equal(mrd_sim_stack_attach(w.sim, 0, &ops, &w), -EBUSY);
    mrd_sim_stack_wake(w.sim, 0, 0);
    mrd_sim_run_until(w.sim, WAKER_LATE_NS - 1);
    assert_int_equal(w.num_fired, 41);
    assert_int_equal(w.fired_ns[40], 40 * WAKER_SOON_NS);
    assert_int_equal(w.sim->parts[0].events.num_far, 1);
    mrd_sim_run_until(w.sim, 2 * WAKER_LATE_NS);
    assert_int_equal(w.num_fired, 42);
    assert_int_equal(w.fired_ns[41], WAKER_LATE_NS);
    assert_true(mrd_sim_next_event_ns(w.sim) == UINT64_MAX);
    mrd_sim_stack_detach(w.sim, 0);
}
