/* SPDX-License-Identifier: BSD-2-Clause */
/* A link by itself: bursts of loss, flapping, other rates while packets are queued, priority. */
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/recorder.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_stack.h"
#include "transport/movers/sim/sim_world.h"

#define GBPS UINT64_C(1000000000)

static struct mrd_sim_wire wire_of(const struct mrd_sim_link *link)
{
    struct mrd_sim_wire wire;

    assert_int_equal(mrd_sim_link_validate(link), 0);
    mrd_sim_wire_init(&wire, link, 1);
    return wire;
}

/* ------------------------------------------------------------------------------- loss in bursts */

static bool is_near(double value, double expected, double share)
{
    return value > expected * (1 - share) && value < expected * (1 + share);
}

/*
 * The chain is bad for enter / (enter + leave) of all packets, for 1 / leave of them at a time.
 * Where every packet is lost while it is bad, the losses show both. Otherwise the share is as much
 * less, and a run of losses goes on with probability (1 - leave) * loss.
 */
TEST(mrd_sim_wire_pass__burst_loss)
{
    enum { PACKETS = 2000000 };
    static const struct {
        double enter, leave, loss;
    } rows[] = {{0.02, 0.25, 1}, {0.001, 0.1, 1}, {0.5, 0.5, 1}, {0.01, 0.05, 0.5}, {0.3, 1, 1}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_sim_wire wire =
            wire_of(&(struct mrd_sim_link){.burst_enter_ppm = (uint32_t)(rows[i].enter * 1e6),
                                           .burst_leave_ppm = (uint32_t)(rows[i].leave * 1e6),
                                           .burst_loss_ppm = (uint32_t)(rows[i].loss * 1e6)});
        double share = rows[i].enter / (rows[i].enter + rows[i].leave) * rows[i].loss;
        double length = 1 / (1 - (1 - rows[i].leave) * rows[i].loss);
        unsigned lost = 0, bursts = 0;
        bool was_lost = false;

        for (unsigned packet = 0; packet < PACKETS; packet++) {
            bool is_lost = mrd_sim_wire_pass(&wire, 100, false, packet).copies == 0;

            lost += is_lost;
            bursts += is_lost && !was_lost;
            was_lost = is_lost;
        }
        assert_int_equal(wire.stats.lost, lost);
        assert_true(is_near((double)lost / PACKETS, share, 0.05));
        assert_true(is_near((double)lost / bursts, length, 0.05));
    }
}

/*
 * Bursts come on top of the loss that each packet has by itself, and end when they are taken away.
 */
TEST(mrd_sim_wire_pass__burst_ends)
{
    struct mrd_sim_link link = {
        .burst_enter_ppm = 1000000, .burst_leave_ppm = 0, .burst_loss_ppm = 1000000};
    struct mrd_sim_wire wire = wire_of(&link);

    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mrd_sim_wire_pass(&wire, 100, false, i).copies, 0);
    assert_true(wire.in_burst);
    link.burst_enter_ppm = 0;
    mrd_sim_wire_set(&wire, &link, 100);
    assert_false(wire.in_burst);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mrd_sim_wire_pass(&wire, 100, false, 100 + i).copies, 1);
}

/* ------------------------------------------------------------------------------------- flapping */

/* Down for the first part of each period, counted from when it began to flap. */
TEST(mrd_sim_wire_is_down__flapping)
{
    enum { PERIOD_NS = 100, DOWN_NS = 30, FROM_NS = 12345 };
    struct mrd_sim_link link = {.loss_ppm = 1};
    struct mrd_sim_wire wire = wire_of(&link);

    link.flap_period_ns = PERIOD_NS;
    link.flap_down_ns = DOWN_NS;
    assert_false(mrd_sim_wire_is_down(&wire, FROM_NS));
    mrd_sim_wire_set(&wire, &link, FROM_NS);
    for (uint64_t ns = 0; ns < 5 * PERIOD_NS; ns++)
        assert_int_equal(mrd_sim_wire_is_down(&wire, FROM_NS + ns), ns % PERIOD_NS < DOWN_NS);

    /* Another change leaves the periods where they are; another period begins anew. */
    link.loss_ppm = 0;
    mrd_sim_wire_set(&wire, &link, FROM_NS + 550);
    assert_false(mrd_sim_wire_is_down(&wire, FROM_NS + 550));
    assert_true(mrd_sim_wire_is_down(&wire, FROM_NS + 629));
    link.flap_period_ns = 2 * PERIOD_NS;
    mrd_sim_wire_set(&wire, &link, FROM_NS + 650);
    for (uint64_t ns = 0; ns < 5 * PERIOD_NS; ns++)
        assert_int_equal(mrd_sim_wire_is_down(&wire, FROM_NS + 650 + ns),
                         ns % (2 * PERIOD_NS) < DOWN_NS);

    link.flap_period_ns = link.flap_down_ns = 0;
    mrd_sim_wire_set(&wire, &link, 20000);
    assert_false(mrd_sim_wire_is_down(&wire, 20000));
}

static const struct mrd_sim_topology leaf_spine = {
    4, 2, 0, {{2, 2, 0, 100000000000, 500, 0}, {2, 0, 0, 100000000000, 500, 0}}};

/* Switches see a flapping link come and go, also one that flapped from the start. */
TEST(mrd_sim_fabric_forward__around_flapping)
{
    enum { PERIOD_NS = 100000 };
    struct recorder_fabric *f = recorder_fabric_create(&(struct mrd_sim_attr){
        .topology = &leaf_spine,
        .link = {.flap_period_ns = PERIOD_NS, .flap_down_ns = PERIOD_NS / 2}});

    /* One link in the other phase: it is down while all others are up. */
    mrd_sim_run_until(f->sim, PERIOD_NS / 2);
    assert_int_equal(mrd_sim_schedule(f->sim, 0, "leaf0>spine0", "flap", "0,0"), 0);
    assert_int_equal(mrd_sim_schedule(f->sim, 0, "leaf0>spine0", "flap", "100,50"), 0);
    for (unsigned period = 0; period < 3; period++) {
        for (uint16_t path = 0; path < 64; path++)
            recorder_fabric_send(f, 0, 3, path, 1);
        mrd_sim_run_until(f->sim, (period + 1) * PERIOD_NS + PERIOD_NS / 2);
    }
    assert_int_equal(f->host[3].num_arrivals, 3 * 64);
    assert_int_equal(recorder_link_stats(f->sim, "leaf0>spine0").packets, 0);

    /* It alone is up, and of no use: the packets do not even come so far. */
    mrd_sim_run_until(f->sim, 4 * PERIOD_NS);
    recorder_fabric_send(f, 0, 3, 0, 10);
    mrd_sim_run_until(f->sim, 4 * PERIOD_NS + PERIOD_NS / 2);
    assert_int_equal(f->host[3].num_arrivals, 3 * 64);
}

/* ------------------------------------------------------------------------------ changes of rate */

/*
 * What is queued leaves as it would have left, what comes later behind it, and the queue holds as
 * many bytes as before: a link that is healed must not drop what it has room for, nor a degraded
 * one take what it has none for.
 */
TEST(mrd_sim_wire_set__queue_at_other_rate)
{
    enum { PACKETS = 100, WIRE = 1250, QUEUE_BYTES = 150000 };
    static const uint64_t rates[][2] = {{GBPS, 100 * GBPS}, {100 * GBPS, GBPS}, {GBPS, GBPS}};

    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct mrd_sim_link link = {.rate_bps = rates[i][0], .queue_bytes = QUEUE_BYTES};
        struct mrd_sim_wire wire = wire_of(&link);
        uint64_t old_ns = 8 * GBPS * WIRE / rates[i][0], new_ns = 8 * GBPS * WIRE / rates[i][1];
        uint64_t last_ns = 0;

        for (unsigned packet = 0; packet < PACKETS; packet++)
            last_ns = mrd_sim_wire_pass(&wire, WIRE, false, 0).arrive_ns[0];
        assert_int_equal(last_ns, PACKETS * old_ns);
        link.rate_bps = rates[i][1];
        mrd_sim_wire_set(&wire, &link, last_ns / 5);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns / 5), PACKETS * WIRE / 5 * 4);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns / 2), PACKETS * WIRE / 2);
        /* Room for 40 more. */
        for (unsigned packet = 0; packet < 40; packet++)
            assert_int_equal(mrd_sim_wire_pass(&wire, WIRE, false, last_ns / 5).arrive_ns[0],
                             last_ns + (packet + 1) * new_ns);
        assert_int_equal(mrd_sim_wire_pass(&wire, WIRE, false, last_ns / 5).copies, 0);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns), 40 * WIRE);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns + 20 * new_ns), 20 * WIRE);
        /* And once more while both are queued. */
        mrd_sim_wire_set(&wire, &link, last_ns / 2);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns / 2), (PACKETS / 2 + 40) * WIRE);
        assert_int_equal(mrd_sim_wire_backlog(&wire, last_ns + 40 * new_ns), 0);
    }
}

/* ------------------------------------------------------------------------------------- priority */

enum { DATA = 1250, ACK = 125, DATA_NS = 10000, ACK_NS = 1000 }; /* at 1 Gb/s */

static uint64_t send_ack(struct mrd_sim_wire *wire, uint64_t now_ns)
{
    struct mrd_sim_passage passage = mrd_sim_wire_offer(wire, ACK, true, DATA, now_ns);

    assert_int_equal(passage.copies, 1);
    return passage.arrive_ns[0];
}

/* Behind a full queue an ack waits for one packet at most; data gives it its time. */
TEST(mrd_sim_wire_offer__urgent_full_queue)
{
    struct mrd_sim_wire wire = wire_of(
        &(struct mrd_sim_link){.rate_bps = GBPS, .queue_bytes = 100 * DATA, .ecn_max_bytes = 1});

    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mrd_sim_wire_pass(&wire, DATA, true, 0).copies, 1);
    assert_int_equal(mrd_sim_wire_pass(&wire, DATA, true, 0).copies, 0);
    assert_int_equal(wire.stats.ce, 99);
    assert_int_equal(send_ack(&wire, 0), DATA_NS + ACK_NS);
    assert_int_equal(send_ack(&wire, 500), DATA_NS + 2 * ACK_NS); /* behind the other ack only */
    assert_int_equal(send_ack(&wire, DATA_NS), DATA_NS + 3 * ACK_NS);
    assert_int_equal(wire.stats.ce, 101); /* the second and third found an ack before them */
    assert_int_equal(send_ack(&wire, 50 * DATA_NS), 51 * DATA_NS + ACK_NS);
    /* Never later than behind everything: 4 us of backlog are left. */
    assert_int_equal(send_ack(&wire, 100 * DATA_NS), 100 * DATA_NS + 5 * ACK_NS);
    assert_int_equal(mrd_sim_wire_pass(&wire, DATA, true, 100 * DATA_NS).arrive_ns[0],
                     101 * DATA_NS + 5 * ACK_NS);
}

/* On an idle link both kinds are alike. */
TEST(mrd_sim_wire_offer__urgent_idle)
{
    struct mrd_sim_link link = {.rate_bps = 3 * GBPS + 7, .delay_ns = 50};
    struct mrd_sim_wire plain = wire_of(&link), urgent = wire_of(&link);

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t now_ns = i * 7919ull;

        assert_int_equal(mrd_sim_wire_offer(&urgent, 100 + i, false, DATA, now_ns).arrive_ns[0],
                         mrd_sim_wire_pass(&plain, 100 + i, false, now_ns).arrive_ns[0]);
    }
}

/* The rate holds for both together, and for acks alone, down to fractions of a nanosecond. */
TEST(mrd_sim_wire_offer__urgent_rate_conserved)
{
    enum { PACKETS = 30000 };
    struct mrd_sim_wire wire = wire_of(&(struct mrd_sim_link){.rate_bps = 100 * GBPS});
    uint64_t bytes = 0, last_ns = 0, acks_ns = 0;
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    for (unsigned i = 0; i < PACKETS; i++) {
        uint32_t len = 64 + mrd_rng_below(&rng, 4000);
        uint64_t now_ns = i * 20ull; /* ten times what the link takes */

        if (mrd_rng_below(&rng, 3) == 0) {
            acks_ns = mrd_sim_wire_offer(&wire, 71, false, 4064, now_ns).arrive_ns[0];
            len = 71;
        } else {
            last_ns = mrd_sim_wire_pass(&wire, len, false, now_ns).arrive_ns[0];
        }
        bytes += len;
        /* No ack waits for more than a packet and for acks, of which few come. */
        assert_true(acks_ns < now_ns + 4064 * 8 / 100 + 10 * 71 * 8 / 100 + 2);
    }
    last_ns = last_ns > acks_ns ? last_ns : acks_ns;
    assert_int_equal(wire.idle_at_ns, bytes * 8 / 100);
    assert_in_range(last_ns, wire.idle_at_ns - 10, wire.idle_at_ns + 1);

    wire = wire_of(&(struct mrd_sim_link){.rate_bps = 100 * GBPS});
    for (unsigned i = 0; i < PACKETS; i++)
        last_ns = mrd_sim_wire_offer(&wire, 71, false, 71, 0).arrive_ns[0];
    assert_int_equal(last_ns, PACKETS * 71 * 8 / 100);
}

/* Acks fill no more than the queue either. */
TEST(mrd_sim_wire_offer__urgent_own_limit)
{
    struct mrd_sim_wire wire =
        wire_of(&(struct mrd_sim_link){.rate_bps = GBPS, .queue_bytes = 10 * ACK});

    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(mrd_sim_wire_offer(&wire, ACK, false, ACK, 0).copies, i < 10);
    assert_int_equal(wire.stats.queue_drops, 10);
}

/* Three senders of data, and now and then an ack, to one host of four; when the acks came. */
static struct recorder_fabric *incast(bool acks_first, bool mark_acks)
{
    struct recorder_fabric *f = recorder_fabric_create(
        &(struct mrd_sim_attr){.topology = &leaf_spine,
                               .link = {.queue_bytes = 1 << 20, .jitter_ns = 10},
                               .ack_priority = acks_first});

    for (unsigned i = 0; i < 600; i++) {
        struct mrd_sim_packet *packet = mrd_sim_packet_alloc(&f->sim->parts[0].packets, 16);

        assert_non_null(packet);
        memset(packet->data, i % 10 == 9, 16); /* an ack is a 1 */
        packet->to = 0;
        packet->path = (uint16_t)(i % 7);
        packet->ecn = MRD_ECN_ECT0;
        packet->wire_bytes = i % 10 == 9 ? ACK : DATA;
        packet->urgent = mark_acks && i % 10 == 9;
        mrd_sim_stack_send(f->sim, 1 + i % 3, packet);
    }
    mrd_sim_run_until(f->sim, MSEC_NS);
    return f;
}

static uint64_t last_ack_ns(const struct recorder *r)
{
    uint64_t ns = 0;

    for (unsigned i = 0; i < r->num_arrivals; i++) {
        if (r->arrivals[i].data[0] == 1)
            ns = r->arrivals[i].at_ns;
    }
    return ns;
}

static bool is_same(const struct recorder *a, const struct recorder *b)
{
    return a->num_arrivals == b->num_arrivals &&
           memcmp(a->arrivals, b->arrivals, a->num_arrivals * sizeof(a->arrivals[0])) == 0;
}

/* Without the option the mark means nothing, and without a mark the option. */
TEST(mrd_sim_fabric_send__ack_priority)
{
    struct recorder_fabric *plain = incast(false, false), *marked = incast(false, true);
    struct recorder_fabric *on = incast(true, false), *first = incast(true, true);

    assert_int_equal(plain->host[0].num_arrivals, 600);
    assert_true(is_same(&plain->host[0], &marked->host[0]));
    assert_true(is_same(&plain->host[0], &on->host[0]));
    /* 540 packets of data take 54 us; acks overtake them in the senders' queues already. */
    assert_int_equal(first->host[0].num_arrivals, 600);
    assert_in_range(last_ack_ns(&plain->host[0]), 50000, 60000);
    assert_true(last_ack_ns(&first->host[0]) < 5000);
    assert_in_range(first->host[0].arrivals[599].at_ns, 50000, 60000);
}

/*
 * Send host 0 twice what its link takes, until then; its context drops it, as no packet of its own.
 */
static void crowd(struct sim_world *w, uint64_t end_ns)
{
    for (; mrd_sim_now(w->sim) < end_ns; sim_run(w, 10 * USEC_NS)) {
        for (unsigned i = 0; i < 200; i++) {
            struct mrd_sim_packet *packet = mrd_sim_packet_alloc(&w->sim->parts[0].packets, 16);

            assert_non_null(packet);
            memset(packet->data, 0, 16);
            packet->to = 0;
            packet->path = 0;
            packet->ecn = MRD_ECN_NOT_ECT;
            packet->wire_bytes = DATA;
            mrd_sim_stack_send(w->sim, i % 2 ? 1 : 3, packet);
        }
    }
}

/* A context's acks are urgent: a write whose acks come by a crowded link takes as long as alone. */
TEST(mrd_sim_tx_burst__ack_priority)
{
    uint64_t ns[2];

    for (int first = 0; first < 2; first++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.no_challenge = true,
                                                                     .seed = 1,
                                                                     .topology = &leaf_spine,
                                                                     .queue_bytes = 500000,
                                                                     .ack_priority = first});

        crowd(w, 200 * USEC_NS);
        sim_write(w, HOST_0, HOST_2, 1 << 20);
        crowd(w, 600 * USEC_NS);
        sim_all_arrive(w, 100 * MSEC_NS);
        ns[first] = w->messages[0].sent_ns - 200 * USEC_NS;
    }
    assert_true(ns[0] > 150 * USEC_NS); /* half of its acks were dropped */
    assert_true(ns[1] < 110 * USEC_NS); /* 1 MiB takes 86 us, the round trip some more */
}
