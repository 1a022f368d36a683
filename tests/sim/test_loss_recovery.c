/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Budgets of loss recovery, in virtual time: measured, and set a third above. A slower algorithm
 * fails them. Unless said otherwise a message is sent over 4 links of 100 Gb/s and 5 us each way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/wiretap.h"

enum {
    PACKET = 4096,
    PACKETS = 64,
    MEAN_SEEDS = 4,
    RTT_NS = 10700, /* of a full packet and its ack */
};

/* What is done to a transfer. */
struct trial {
    struct sim_options options;
    uint32_t len;      /* [64 packets] */
    uint64_t mask;     /* of data packets lost */
    uint64_t ack_mask; /* of acks lost */
    wiretap_rule *rule;
    void *arg;
    void (*prepare)(struct sim_world *w);
    uint64_t budget_ns;
};

struct result {
    uint64_t time_ns; /* until the sender knows that it is done */
    uint64_t packets, retx, spurious, timeouts, duplicates;
};

/* One ordered or unordered SEND, between hosts that know each other. */
static struct result run(const struct trial *t, enum mrd_order order)
{
    struct sim_options options = t->options;
    struct result r;

    options.order = order;
    options.recv_bytes = 64 << 20;
    struct sim_world *w = sim_fabric_world(&options);
    if (t->prepare)
        t->prepare(w);
    for (uint32_t i = 0; i < 8; i++)
        sim_write_complete(w, HOST_0, HOST_1, 64, 50 * MSEC_NS);
    sim_run(w, 50 * USEC_NS);
    struct wiretap *tap = t->rule ? wiretap_open(w) : NULL;
    if (tap) {
        tap->rule = t->rule;
        tap->arg = t->arg;
    }
    assert_int_equal(mrd_sim_set_loss_mask(w->sim, HOST_0, HOST_1, t->mask), 0);
    assert_int_equal(mrd_sim_set_loss_mask(w->sim, HOST_1, HOST_0, t->ack_mask), 0);
    r.packets = sim_counter(w, HOST_0, "tx_packets");
    r.retx = sim_counter(w, HOST_0, "retx_packets");
    r.spurious = sim_counter(w, HOST_0, "retx_spurious");
    r.timeouts = sim_counter(w, HOST_0, "retx_timeout");
    r.duplicates = sim_counter(w, HOST_1, "rx_duplicates");
    sim_send(w, HOST_0, HOST_1, t->len ? t->len : PACKETS * PACKET);
    r.time_ns = sim_run_until_complete(w, t->budget_ns ? t->budget_ns : 50 * MSEC_NS);
    assert_true(sim_payload_equal(w, HOST_1));
    r.packets = sim_counter(w, HOST_0, "tx_packets") - r.packets;
    r.retx = sim_counter(w, HOST_0, "retx_packets") - r.retx;
    r.spurious = sim_counter(w, HOST_0, "retx_spurious") - r.spurious;
    r.timeouts = sim_counter(w, HOST_0, "retx_timeout") - r.timeouts;
    r.duplicates = sim_counter(w, HOST_1, "rx_duplicates") - r.duplicates;
    if (tap)
        wiretap_close(tap);
    sim_world_destroy(w);
    return r;
}

static void show(const char *what, enum mrd_order order, const struct result *r)
{
    if (getenv("MRD_TEST_VERBOSE"))
        print_message("%-24s %s: %8.1f us, %llu packets, %llu resent, %llu needlessly, "
                      "%llu timeouts, %llu duplicates\n",
                      what, order ? "ordered  " : "unordered", (double)r->time_ns / 1000,
                      (unsigned long long)r->packets, (unsigned long long)r->retx,
                      (unsigned long long)r->spurious, (unsigned long long)r->timeouts,
                      (unsigned long long)r->duplicates);
}

/* In both order modes; the slower. */
static struct result run_both(const char *what, const struct trial *t)
{
    struct result worst = {0};

    for (enum mrd_order order = MRD_ORDER_NONE; order <= MRD_ORDER_MSG; order++) {
        struct result r = run(t, order);

        show(what, order, &r);
        if (r.time_ns > worst.time_ns)
            worst = r;
    }
    return worst;
}

/* The mean of eight seeds and both order modes, for trials in which chance has a part. */
static struct result mean(const char *what, const struct trial *t)
{
    struct result sum = {0};
    struct trial seeded = *t;

    for (uint32_t i = 0; i < 2 * MEAN_SEEDS; i++) {
        enum mrd_order order = i % 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE;

        seeded.options.seed = test_seed() + i / 2;
        struct result r = run(&seeded, order);
        show(what, order, &r);
        sum.time_ns += r.time_ns / (2 * MEAN_SEEDS);
        sum.retx += r.retx;
        sum.packets += r.packets;
        sum.timeouts += r.timeouts;
    }
    sum.retx = (sum.retx + MEAN_SEEDS) / (2 * MEAN_SEEDS);
    sum.packets /= 2 * MEAN_SEEDS;
    show("mean", MRD_ORDER_NONE, &sum);
    return sum;
}

/* ------------------------------------------------------------------------------ exact packets */

/* Loses the nth packet of the message, and so many copies of it. */
struct drop_psn {
    uint32_t nth, psn, seen;
    uint32_t times;
};

static bool drops_psn(void *arg, const struct wire_packet *p)
{
    struct drop_psn *d = arg;

    if (p->from != HOST_0 || p->kind != WIRE_MESSAGE)
        return false;
    if (d->seen++ == 0)
        d->psn = p->head.psn + d->nth;
    if (p->head.psn != d->psn || !d->times)
        return false;
    d->times--;
    return true;
}

/* The last packet, and the only one: found by a tail probe, in less than two round trips more. */
TEST(sim_tail_loss__recovered_by_a_probe)
{
    struct result clean = run_both("clean", &(struct trial){0});
    struct result lost = run_both("last lost", &(struct trial){.mask = 1ull << (PACKETS - 1)});
    struct result one = run_both("one clean", &(struct trial){.len = 100});
    struct result only = run_both("only lost", &(struct trial){.len = 100, .mask = 1});

    assert_int_equal(clean.retx, 0);
    assert_true(lost.time_ns < clean.time_ns + 18 * USEC_NS);
    assert_true(only.time_ns < one.time_ns + 18 * USEC_NS);
    assert_int_equal(lost.timeouts + only.timeouts, 0);
}

/* Each packet of a message in turn. */
TEST(sim_single_loss__every_position)
{
    uint64_t clean_ns = run_both("clean", &(struct trial){0}).time_ns, worst_ns = 0, sum_ns = 0;

    for (uint32_t i = 0; i < PACKETS; i++) {
        struct result r = run_both("one lost", &(struct trial){.mask = 1ull << i});

        worst_ns = r.time_ns > worst_ns ? r.time_ns : worst_ns;
        sum_ns += r.time_ns;
        assert_in_range(r.retx, 1, 2); /* it, and a second copy at the end of the message */
        assert_int_equal(r.timeouts, 0);
    }
    assert_true(worst_ns < clean_ns + 18 * USEC_NS);
    assert_true(sum_ns / PACKETS < clean_ns + 14 * USEC_NS);
}

/*
 * Retransmissions may be lost too: the first, whose second copy on another path then saves the
 * message; both copies; or the probe.
 */
TEST(sim_loss__of_the_retransmission)
{
    uint64_t clean_ns = run_both("clean", &(struct trial){0}).time_ns;
    struct trial t = {.mask = 7ull << (PACKETS - 3)}; /* the last one and what follows */

    for (uint32_t i = 0; i < 2 * PACKETS; i += 7) {
        bool copy_arrives = i >= PACKETS;
        struct drop_psn drop = {.nth = i % PACKETS, .times = copy_arrives ? 2 : 3};
        struct trial again = {.rule = drops_psn, .arg = &drop};
        struct result r = run(&again, MRD_ORDER_NONE);

        show(copy_arrives ? "one lost twice" : "one lost thrice", MRD_ORDER_NONE, &r);
        assert_int_equal(drop.times, 0);
        assert_true(r.time_ns < clean_ns + (copy_arrives ? 19 : 38) * USEC_NS);
        assert_int_equal(r.timeouts, 0);
    }
    assert_true(run_both("the last three lost", &t).time_ns < clean_ns + 34 * USEC_NS);
}

TEST(sim_loss__bursts)
{
    uint64_t clean_ns = run_both("clean", &(struct trial){0}).time_ns;
    struct trial t = {.mask = 0xffffull << 20};

    assert_true(run_both("16 in the middle", &t).time_ns < clean_ns + 17 * USEC_NS);
    t.mask = 0xffffffffull << 32;
    assert_true(run_both("the last 32", &t).time_ns < clean_ns + 40 * USEC_NS);
    t.mask = (1ull << 40) - 1;
    assert_true(run_both("the first 40", &t).time_ns < clean_ns + 60 * USEC_NS);
}

/* ------------------------------------------------------------------------------ acks only */

static bool loses_half_the_acks(void *arg, const struct wire_packet *p)
{
    uint32_t *dice = arg;

    if (p->kind != WIRE_ACK)
        return false;
    *dice = *dice * 1664525 + 1013904223;
    return *dice >> 31;
}

/* Acks tell all that counts again and again: losing half of them costs a little time, no data. */
TEST(sim_ack_loss__half_of_them)
{
    uint32_t dice = 1;
    struct trial t = {.len = 4 << 20};
    struct result clean = mean("4 MiB", &t), lost;

    t.rule = loses_half_the_acks;
    t.arg = &dice;
    lost = mean("half of the acks lost", &t);
    assert_true(lost.time_ns < clean.time_ns + 48 * USEC_NS);
    assert_true(lost.retx < 6);
}

struct blackout {
    uint64_t from_ns, until_ns; /* after the first packet that is seen */
    uint64_t start_ns;
};

static bool loses_acks_for_a_while(void *arg, const struct wire_packet *p)
{
    struct blackout *b = arg;

    b->start_ns = b->start_ns ? b->start_ns : p->at_ns;
    return p->kind == WIRE_ACK && p->at_ns >= b->start_ns + b->from_ns &&
           p->at_ns < b->start_ns + b->until_ns;
}

/* No ack for 50 us: probes go on, and soon after all is as before. */
TEST(sim_ack_loss__blackout)
{
    struct trial t = {.len = 4 << 20};
    struct result clean = run(&t, MRD_ORDER_NONE), r;
    struct blackout blackout = {.from_ns = 30 * USEC_NS, .until_ns = 80 * USEC_NS};

    t.rule = loses_acks_for_a_while;
    t.arg = &blackout;
    r = run(&t, MRD_ORDER_NONE);
    show("no acks for 50 us", MRD_ORDER_NONE, &r);
    assert_true(r.time_ns < clean.time_ns + 85 * USEC_NS);
    assert_true(r.retx < 16);
}

/* ------------------------------------------------------------------------------ random loss */

TEST(sim_random_loss__goodput)
{
    struct trial t = {.len = 16 << 20};
    uint64_t clean_ns = mean("16 MiB", &t).time_ns;

    t.options.loss_ppm = 10000;
    struct result r = mean("1% lost", &t);
    assert_true(r.time_ns < clean_ns * 110 / 100);
    assert_true(r.retx < r.packets * 20 / 1000);
    assert_int_equal(r.timeouts, 0);
    t.options.loss_ppm = 50000;
    r = mean("5% lost", &t);
    assert_true(r.time_ns < clean_ns * 130 / 100);
    assert_true(r.retx < r.packets * 70 / 1000);
    assert_int_equal(r.timeouts, 0);
}

/* ------------------------------------------------------------------------------ no loss at all */

/* One-way delays of 5 to 15 us: paths differ by the base round trip time. */
static void skew_paths(struct sim_world *w)
{
    char links[32];

    for (int i = 0; i < 64; i++) {
        snprintf(links, sizeof(links), "host0-host1.%d", i);
        sim_links(w, links, "delay", "%.3f", (5000 + 10000 * (i * 37 % 64) / 63) / 1e3);
    }
}

/* Reordering is not loss: spraying over unequal paths sends nothing again, or next to nothing. */
TEST(sim_spraying__unequal_paths)
{
    static const char *const sprays[] = {"adaptive", "random", "rr", "reps"};

    for (unsigned i = 0; i < sizeof(sprays) / sizeof(sprays[0]); i++) {
        struct trial t = {.len = 16 << 20,
                          .prepare = skew_paths,
                          .options = {.paths = 64, .links = 64, .spray = sprays[i]}};

        for (enum mrd_order order = MRD_ORDER_NONE; order <= MRD_ORDER_MSG; order++) {
            struct result r = run(&t, order);

            show(sprays[i], order, &r);
            assert_true(r.retx * 1000 <= r.packets);
            assert_true(r.time_ns < 1000 * USEC_NS);
        }
    }
}

/* Each packet is late by up to a round trip time of its own. */
TEST(sim_reordering__within_paths)
{
    struct trial t = {.len = 16 << 20, .options = {.jitter_ns = RTT_NS}};
    struct result r = mean("jitter of an RTT", &t);

    assert_true(r.retx * 1000 <= r.packets);
    assert_true(r.time_ns < 1000 * USEC_NS);
}

static void duplicate_acks(struct sim_world *w)
{
    sim_links(w, "host1>host0*", "duplicate", "0.5");
}

/* Copies made by the network, of data and of acks, cost nothing and are no sign of anything. */
TEST(sim_duplication)
{
    struct trial t = {.len = 16 << 20};
    uint64_t clean_ns = run_both("16 MiB", &t).time_ns;

    t.prepare = duplicate_acks;
    struct result r = run_both("half of the acks twice", &t);
    assert_true(r.time_ns < clean_ns * 103 / 100);
    assert_int_equal(r.retx, 0);
    t.prepare = NULL;
    t.options.duplicate_ppm = 100000;
    r = run_both("10% of all twice", &t);
    assert_true(r.time_ns < clean_ns * 103 / 100);
    assert_int_equal(r.retx, 0);
    assert_int_equal(r.spurious, 0);
    assert_in_range(r.duplicates, 300, 500);
}

/* ------------------------------------------------------------------------------ a dead path */

enum { STEP_NS = 2000, DEATH_NS = 300 * 1000 };

/* The longest time without a new byte at the target, once the path is dead. */
static uint64_t longest_gap_ns(struct sim_world *w, uint32_t message)
{
    uint64_t bytes = 0, since_ns = 0, gap_ns = 0;

    while (!w->messages[message].sent) {
        sim_run(w, STEP_NS);
        uint64_t now_ns = mrd_sim_now(w->sim);
        uint64_t now_bytes = sim_counter(w, HOST_1, "rx_bytes");
        assert_true(now_ns < 50 * MSEC_NS);
        if (now_bytes == bytes && now_ns - since_ns > gap_ns && now_ns > DEATH_NS)
            gap_ns = now_ns - since_ns;
        if (now_bytes != bytes)
            since_ns = now_ns;
        bytes = now_bytes;
    }
    return gap_ns;
}

/* One write over 8 paths, of which one may die meanwhile. */
static struct result with_dead_path(uint64_t seed, enum mrd_order order, bool dies,
                                    uint64_t *gap_ns)
{
    struct sim_world *w = sim_fabric_world(
        &(struct sim_options){.seed = seed,
                              .order = order,
                              .paths = 8,
                              .rate_bps = 10000000000,
                              .blackhole = {.path = 2, .at_ns = dies ? DEATH_NS : 0}});
    uint32_t message = sim_send(w, HOST_0, HOST_1, 4 << 20);
    struct result r = {0};

    *gap_ns = longest_gap_ns(w, message);
    r.time_ns = w->messages[message].sent_ns;
    r.retx = sim_counter(w, HOST_0, "retx_packets");
    assert_true(sim_payload_equal(w, HOST_1));
    sim_world_destroy(w);
    return r;
}

/*
 * A path of eight swallows all from the middle of a message on: others carry it, without a pause.
 */
TEST(sim_dead_path__mid_message)
{
    uint64_t clean_ns = 0, dead_ns = 0, worst_gap_ns = 0, retx = 0;

    for (uint32_t i = 0; i < 2 * MEAN_SEEDS; i++) {
        enum mrd_order order = i % 2 ? MRD_ORDER_MSG : MRD_ORDER_NONE;
        uint64_t gap_ns;

        clean_ns += with_dead_path(test_seed() + i / 2, order, false, &gap_ns).time_ns;

        struct result r = with_dead_path(test_seed() + i / 2, order, true, &gap_ns);

        show("a path dies", order, &r);
        dead_ns += r.time_ns;
        retx += r.retx;
        worst_gap_ns = gap_ns > worst_gap_ns ? gap_ns : worst_gap_ns;
    }
    assert_true(dead_ns < clean_ns + 2 * MEAN_SEEDS * 110 * USEC_NS);
    assert_true(worst_gap_ns <= 86 * USEC_NS);
    assert_true(retx < 2 * MEAN_SEEDS * 15 / 2);
}
