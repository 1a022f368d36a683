/* SPDX-License-Identifier: BSD-2-Clause */
/* A link by itself: bursts of loss, flapping, and changes of its rate while packets are queued. */
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/recorder.h"
#include "transport/sim/sim_world.h"

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
 * The chain is bad for enter / (enter + leave) of all packets, for 1 / leave of them at a time. Where every packet is
 * lost while it is bad, the losses show both. Otherwise the share is as much less, and a run of losses goes on with
 * probability (1 - leave) * loss.
 */
static void mrd_sim_wire_pass__burst_loss(void **state)
{
    enum { PACKETS = 2000000 };
    static const struct {
        double enter, leave, loss;
    } rows[] = {{0.02, 0.25, 1}, {0.001, 0.1, 1}, {0.5, 0.5, 1}, {0.01, 0.05, 0.5}, {0.3, 1, 1}};
    (void)state;

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

/* Bursts come on top of the loss that each packet has by itself, and end when they are taken away. */
static void mrd_sim_wire_pass__burst_ends(void **state)
{
    struct mrd_sim_link link = {
        .burst_enter_ppm = 1000000, .burst_leave_ppm = 0, .burst_loss_ppm = 1000000};
    struct mrd_sim_wire wire = wire_of(&link);
    (void)state;

    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mrd_sim_wire_pass(&wire, 100, false, i).copies, 0);
    assert_true(wire.in_burst);
    link.burst_enter_ppm = 0;
    mrd_sim_wire_set(&wire, &link, 100);
    assert_false(wire.in_burst);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mrd_sim_wire_pass(&wire, 100, false, 100 + i).copies, 1);
}

/* -------------------------------------------------------------------------------------- flapping */

/* Down for the first part of each period, counted from when it began to flap. */
static void mrd_sim_wire_is_down__flapping(void **state)
{
    enum { PERIOD_NS = 100, DOWN_NS = 30, FROM_NS = 12345 };
    struct mrd_sim_link link = {.loss_ppm = 1};
    struct mrd_sim_wire wire = wire_of(&link);
    (void)state;

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
static void mrd_sim_fabric_forward__around_flapping(void **state)
{
    enum { PERIOD_NS = 100000 };
    struct recorder_fabric *f = recorder_fabric_create(&(struct mrd_sim_attr){
        .topology = &leaf_spine,
        .link = {.flap_period_ns = PERIOD_NS, .flap_down_ns = PERIOD_NS / 2}});
    (void)state;

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
    recorder_fabric_destroy(f);
}

/* -------------------------------------------------------------------------------- changes of rate */

/*
 * What is queued leaves as it would have left, what comes later behind it, and the queue holds as many bytes as before:
 * a link that is healed must not drop what it has room for, nor a degraded one take what it has none for.
 */
static void mrd_sim_wire_set__queue_at_other_rate(void **state)
{
    enum { PACKETS = 100, WIRE = 1250, QUEUE_BYTES = 150000 };
    static const uint64_t rates[][2] = {{GBPS, 100 * GBPS}, {100 * GBPS, GBPS}, {GBPS, GBPS}};
    (void)state;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_sim_wire_pass__burst_loss),
        cmocka_unit_test(mrd_sim_wire_pass__burst_ends),
        cmocka_unit_test(mrd_sim_wire_is_down__flapping),
        cmocka_unit_test(mrd_sim_fabric_forward__around_flapping),
        cmocka_unit_test(mrd_sim_wire_set__queue_at_other_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
