/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator by itself: event queue, links and their faults, tap and injection. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/support/recorder.h"
#include "transport/movers/sim/sim_event.h"
#include "transport/movers/sim/sim_wire.h"

/* ---------------------------------------------------------------------------------- event queue */

/*
 * Events leave by time, and those of one time in the order in which they came, whether they were
 * near or far when they came, and also if more come meanwhile.
 */
TEST(mrd_sim_events_pop__ordered)
{
    enum { EVENTS = 20000, SPREAD_NS = 3 * MRD_SIM_CALENDAR_NS };
    struct mrd_sim_event *queued = calloc(EVENTS, sizeof(queued[0]));
    struct mrd_sim_events events;
    uint64_t last_ns = 0;
    uint32_t last_tag = 0, pushed = 0;
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    assert_int_equal(mrd_sim_events_init(&events), 0);
    for (unsigned popped = 0; popped < EVENTS; popped++) {
        while (pushed < EVENTS && pushed < 1000 + popped + mrd_rng_below(&rng, 3)) {
            queued[pushed].tag = pushed;
            /* Few different times, so that many events share one. */
            uint64_t at_ns = (last_ns + mrd_rng_below(&rng, SPREAD_NS)) / 1000 * 1000 + 1000;

            assert_int_equal(mrd_sim_events_push(&events, &queued[pushed++], at_ns), 0);
        }

        uint64_t next_ns = mrd_sim_events_next_ns(&events);
        struct mrd_sim_event *event = mrd_sim_events_pop(&events);

        assert_int_equal(event->at_ns, next_ns);
        assert_true(event->at_ns >= last_ns);
        assert_true(popped == 0 || event->at_ns > last_ns || event->tag > last_tag);
        last_ns = event->at_ns;
        last_tag = event->tag;
    }
    assert_true(mrd_sim_events_next_ns(&events) == MRD_SIM_NEVER);
    mrd_sim_events_fini(&events);
    free(queued);
}

/* What was due before the last event popped is due now. */
TEST(mrd_sim_events_push__past)
{
    struct mrd_sim_event late = {.tag = 1}, early = {.tag = 2};
    struct mrd_sim_events events;

    assert_int_equal(mrd_sim_events_init(&events), 0);
    assert_int_equal(mrd_sim_events_push(&events, &late, 5000), 0);
    assert_ptr_equal(mrd_sim_events_pop(&events), &late);
    assert_int_equal(mrd_sim_events_push(&events, &early, 10), 0);
    assert_int_equal(mrd_sim_events_next_ns(&events), 5000);
    assert_ptr_equal(mrd_sim_events_pop(&events), &early);
    mrd_sim_events_fini(&events);
}

/* ---------------------------------------------------------------------------------------- links */

/* A packet takes its wire bytes at the link's rate, then the delay; those before it add theirs. */
TEST(mrd_sim_wire_pass__rate_and_delay)
{
    struct recorder_pair *f = recorder_pair_create(
        &(struct mrd_sim_attr){.link = {.rate_bps = 1000000000, .delay_ns = 5000}});

    recorder_send(f, 0, 3);
    recorder_expect(f, 1000000, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(f->host[1].arrivals[i].at_ns, (i + 1) * WIRE_BYTES * GBPS_NS + 5000);
        assert_int_equal(f->host[1].arrivals[i].data[0], i);
        assert_int_equal(f->host[1].arrivals[i].from, 0);
        assert_int_equal(f->host[1].arrivals[i].len, PACKET_BYTES);
    }
    assert_int_equal(recorder_stats(f, 0).bytes, 3 * WIRE_BYTES);
}

/* Serialisation times that are no whole nanoseconds do not add up to a wrong rate. */
TEST(mrd_sim_wire_pass__fractions_carried)
{
    struct mrd_sim_link attr = {.rate_bps = 3000000007};
    struct mrd_sim_wire wire;
    uint64_t last_ns = 0;

    mrd_sim_wire_init(&wire, &attr, 1);
    for (unsigned i = 0; i < 1000; i++)
        last_ns = mrd_sim_wire_pass(&wire, 101, false, 0).arrive_ns[0];
    assert_int_equal(last_ns, 101ull * 1000 * 8 * 1000000000 / 3000000007);
}

/* A rate of 0 is infinite: nothing queues. */
TEST(mrd_sim_wire_pass__no_rate)
{
    struct recorder_pair *f =
        recorder_pair_create(&(struct mrd_sim_attr){.link = {.delay_ns = 10, .queue_bytes = 1}});

    recorder_send(f, 0, 50);
    recorder_expect(f, 10, 50);
}

/* Path p takes link p mod links. */
TEST(mrd_sim_fabric_send__path_chooses_link)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){.links = 3});

    recorder_send(f, 4, 5);
    recorder_send(f, 2, 2);
    mrd_sim_run_until(f->sim, 1000000);
    assert_int_equal(recorder_stats(f, 0).packets, 0);
    assert_int_equal(recorder_stats(f, 1).packets, 5);
    assert_int_equal(recorder_stats(f, 2).packets, 2);
    assert_int_equal(recorder_stats(f, -1).packets, 7);
}

/* The backlog, the packet in service included, never exceeds the limit. */
TEST(mrd_sim_wire_pass__tail_drop)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){
        .link = {.rate_bps = 1000000000, .queue_bytes = 4 * WIRE_BYTES + 10}});

    recorder_send(f, 0, 10);
    mrd_sim_run_until(f->sim, 2 * WIRE_BYTES * GBPS_NS);
    recorder_send(f, 0, 10); /* two have left: room for two */
    recorder_expect(f, 1000000, 6);
    assert_int_equal(recorder_stats(f, 0).queue_drops, 14);
}

/* No mark below ecn_min, all marked from ecn_max on, a share between, and none without ECT. */
TEST(mrd_sim_wire_pass__ecn)
{
    struct mrd_sim_link attr = {
        .rate_bps = 1000000000, .ecn_min_bytes = 10000, .ecn_max_bytes = 30000};
    struct mrd_sim_wire wire;
    unsigned between = 0, marked = 0;

    mrd_sim_wire_init(&wire, &attr, 7);
    for (unsigned i = 0; i < 5000; i++) {
        /* Draining a little less than is sent: the backlog goes up and stays at 20,000 or so. */
        uint64_t backlog = mrd_sim_wire_backlog(&wire, i * 100ull * 8);
        bool ce = mrd_sim_wire_pass(&wire, backlog < 20000 ? 150 : 50, true, i * 100ull * 8).ce;

        assert_false(ce && backlog < 10000);
        between += backlog >= 10000;
        marked += ce;
    }
    assert_in_range(marked * 100 / between, 40, 60);
    for (unsigned i = 0; i < 1000; i++)
        mrd_sim_wire_pass(&wire, 100, false, 5000 * 800);
    assert_true(mrd_sim_wire_backlog(&wire, 5000 * 800) >= 30000);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(mrd_sim_wire_pass(&wire, 100, true, 5000 * 800).ce);
        assert_false(mrd_sim_wire_pass(&wire, 100, false, 5000 * 800).ce);
    }
}

/* Exactly the packets of the mask are lost, whatever link they take. */
TEST(mrd_sim_set_loss_mask__exact)
{
    struct recorder_pair *f = recorder_pair_create(NULL);

    assert_int_equal(mrd_sim_set_loss_mask(f->sim, 0, 1, 0x15), 0);
    recorder_send(f, 0, 8);
    mrd_sim_run_until(f->sim, 1000000);

    static const uint8_t through[] = {1, 3, 5, 6, 7};

    assert_int_equal(f->host[1].num_arrivals, sizeof(through));
    for (unsigned i = 0; i < sizeof(through); i++)
        assert_int_equal(f->host[1].arrivals[i].data[0], through[i]);
}

TEST(mrd_sim_wire_pass__faults_by_share)
{
    struct mrd_sim_link attr = {.loss_ppm = 200000, .duplicate_ppm = 100000, .corrupt_ppm = 50000};
    struct mrd_sim_wire wire;

    mrd_sim_wire_init(&wire, &attr, 3);
    for (unsigned i = 0; i < 100000; i++)
        mrd_sim_wire_pass(&wire, 100, false, i);
    assert_in_range(wire.stats.lost, 19400, 20600);
    assert_in_range(wire.stats.duplicated, 7700, 8300);
    assert_in_range(wire.stats.corrupted, 4200, 4600);
}

/* Both copies arrive, and each corrupt one differs in exactly one bit. */
TEST(mrd_sim_fabric_send__duplicate_and_corrupt)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){
        .link = {.delay_ns = 1, .duplicate_ppm = 1000000, .corrupt_ppm = 1000000}});
    uint8_t payload[64] = {0};
    struct mrd_tx_packet packet = packet_to_1(0, payload, sizeof(payload));

    assert_int_equal(f->host[0].b->ops->tx_burst(f->host[0].b, &packet, 1), 1);
    recorder_expect(f, 100, 2);
    for (unsigned i = 0; i < 2; i++) {
        int bits = 0;

        for (unsigned at = 0; at < sizeof(payload); at++)
            bits += __builtin_popcount(f->host[1].arrivals[i].data[at]);
        assert_int_equal(bits, 1);
    }
}

TEST(mrd_sim_set_link__blackhole_and_heal)
{
    struct recorder_pair *f = recorder_pair_create(&(struct mrd_sim_attr){.links = 2});
    struct mrd_sim_link attr;

    assert_int_equal(mrd_sim_get_link(f->sim, 0, 1, 1, &attr), 0);
    assert_int_equal(attr.rate_bps, 100000000000);
    attr.blackhole = 1;
    assert_int_equal(mrd_sim_set_link(f->sim, -1, -1, 1, &attr), 0);
    recorder_send(f, 0, 2);
    recorder_send(f, 1, 2);
    recorder_expect(f, 1000000, 2);
    assert_int_equal(recorder_stats(f, 1).blackholed, 2);
    attr.blackhole = 0;
    assert_int_equal(mrd_sim_set_link(f->sim, 0, 1, -1, &attr), 0);
    recorder_send(f, 1, 2);
    recorder_expect(f, 2000000, 4);
}

TEST(mrd_sim_set_link__no_such)
{
    struct recorder_pair *f = recorder_pair_create(NULL);
    struct mrd_sim_link attr = {0};
    struct mrd_sim_stats stats;

    assert_int_equal(mrd_sim_set_link(f->sim, 2, 0, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_set_link(f->sim, 0, -2, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_set_link(f->sim, 0, 1, 4, &attr), -EINVAL);
    assert_int_equal(mrd_sim_get_link(f->sim, 0, 2, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_link_stats(f->sim, 0, 1, 4, &stats), -EINVAL);
    assert_int_equal(mrd_sim_set_loss_mask(f->sim, 0, 2, 1), -EINVAL);
    attr.loss_ppm = 1000001;
    assert_int_equal(mrd_sim_set_link(f->sim, 0, 1, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_inject(f->sim, 0, 2, "x", 1, 0), -EINVAL);
    assert_null(mrd_sim_device(f->sim, 2));
}

/* Jitter reorders within a link; without it a link keeps order. */
TEST(mrd_sim_wire_pass__jitter)
{
    struct recorder_pair *f =
        recorder_pair_create(&(struct mrd_sim_attr){.link = {.delay_ns = 1000, .jitter_ns = 500}});
    unsigned reordered = 0;

    recorder_send(f, 0, 100);
    recorder_expect(f, 1000000, 100);
    for (unsigned i = 0; i < 100; i++) {
        assert_in_range(f->host[1].arrivals[i].at_ns, 1000, 1500);
        reordered += i > 0 && f->host[1].arrivals[i].data[0] < f->host[1].arrivals[i - 1].data[0];
    }
    assert_true(reordered > 10);
}

/* ---------------------------------------------------------------------------------- tap, inject */

static enum mrd_sim_verdict odd_dropped(void *arg, struct mrd_sim_datagram *datagram)
{
    unsigned *seen = arg;

    assert_int_equal(datagram->from, 0);
    assert_int_equal(datagram->to, 1);
    assert_int_equal(datagram->path, 9);
    assert_int_equal(datagram->len, PACKET_BYTES);
    ++*seen;
    if (datagram->data[0] % 2 == 1)
        return MRD_SIM_DROP;
    datagram->data[1] = 0xee;
    datagram->len = 500;
    return MRD_SIM_PASS;
}

TEST(mrd_sim_set_tap__sees_changes_drops)
{
    struct recorder_pair *f = recorder_pair_create(NULL);
    unsigned seen = 0;

    mrd_sim_set_tap(f->sim, odd_dropped, &seen);
    recorder_send(f, 9, 4);
    mrd_sim_run_until(f->sim, 1000000);
    assert_int_equal(seen, 4);
    assert_int_equal(f->host[1].num_arrivals, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(f->host[1].arrivals[i].data[0], 2 * i);
        assert_int_equal(f->host[1].arrivals[i].data[1], 0xee);
        assert_int_equal(f->host[1].arrivals[i].len, 500);
    }
}

TEST(mrd_sim_inject__delivers_at_its_time)
{
    struct recorder_pair *f = recorder_pair_create(NULL);

    assert_int_equal(mrd_sim_inject(f->sim, 1, 0, "forged", 6, 777), 0);
    mrd_sim_run_until(f->sim, 776);
    assert_int_equal(f->host[0].num_arrivals, 0);
    mrd_sim_run_until(f->sim, 1000);
    assert_int_equal(f->host[0].num_arrivals, 1);
    assert_int_equal(f->host[0].arrivals[0].at_ns, 777);
    assert_int_equal(f->host[0].arrivals[0].from, 1);
    assert_int_equal(f->host[0].arrivals[0].len, 6);
    assert_memory_equal(f->host[0].arrivals[0].data, "forged", 6);
}

/* ------------------------------------------------------------------------------------ the whole */

static struct recorder_pair *noisy_run(uint64_t seed)
{
    struct recorder_pair *f =
        recorder_pair_create(&(struct mrd_sim_attr){.seed = seed,
                                                    .link = {.rate_bps = 1000000000,
                                                             .delay_ns = 1000,
                                                             .jitter_ns = 3000,
                                                             .loss_ppm = 100000,
                                                             .duplicate_ppm = 100000,
                                                             .corrupt_ppm = 100000}});

    for (uint16_t path = 0; path < 16; path++)
        recorder_send(f, path, 16);
    mrd_sim_run_until(f->sim, 10000000);
    return f;
}

/* Same seed, same bytes at the same times; another seed, others. */
TEST(mrd_sim_create__seeded)
{
    struct recorder_pair *a = noisy_run(11), *b = noisy_run(11), *c = noisy_run(12);
    size_t bytes = a->host[1].num_arrivals * sizeof(struct arrival);

    assert_int_equal(a->host[1].num_arrivals, b->host[1].num_arrivals);
    assert_memory_equal(a->host[1].arrivals, b->host[1].arrivals, bytes);
    assert_int_not_equal(memcmp(a->host[1].arrivals, c->host[1].arrivals, bytes), 0);
}

TEST(mrd_sim_create__bad_attributes)
{
    static const struct mrd_sim_attr rows[] = {
        {.comp_mask = 1},
        {.hosts = 100000},
        {.links = 100000},
        {.paths = 65536},
        {.clock_skew_ppm = 1000000},
        {.link = {.loss_ppm = 1000001}},
        {.link = {.duplicate_ppm = 1000001}},
        {.link = {.corrupt_ppm = 1000001}},
        {.link = {.ecn_min_bytes = 2, .ecn_max_bytes = 1}},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        assert_null(mrd_sim_create(&rows[i]));
        assert_int_equal(errno, EINVAL);
    }
}
