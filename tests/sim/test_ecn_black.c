/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks that drop packets with ECT: from the first one on, later, one way, for a while. */
#include "core/engine/state.h"
#include "tests/support/wiretap.h"

enum { MESSAGE = 1 << 20, LINKS = 4 };

#define NETWORK "host0-host1*"

static struct sim_world *begin(const char *blackhole)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = 3,
                                                                 .links = LINKS,
                                                                 .paths = 2 * LINKS,
                                                                 .rate_bps = 1000000000,
                                                                 .queue_bytes = 1 << 20,
                                                                 .ecn_min_bytes = 4 << 10,
                                                                 .ecn_max_bytes = 32 << 10});

    sim_links(w, NETWORK, "blackhole", "%s", blackhole);
    return w;
}

static struct mrd_sim_stats stats_of(struct sim_world *w)
{
    struct mrd_sim_stats stats = {0};

    for (int i = 0; i < LINKS; i++) {
        struct mrd_sim_stats one;

        assert_int_equal(mrd_sim_link_stats(w->sim, HOST_0, HOST_1, i, &one), 0);
        stats.ce += one.ce;
        stats.blackholed += one.blackholed;
    }
    return stats;
}

static void send_one(struct sim_world *w, uint32_t bytes, uint64_t budget_ns)
{
    sim_send_complete(w, HOST_0, HOST_1, bytes, budget_ns);
}

/* Nothing with ECT ever came through: after a few packets all leave without. */
TEST(sim_ecn_black__from_the_first_packet)
{
    struct sim_world *w = begin("ect");

    send_one(w, MESSAGE, 100 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_on"), 0);
    assert_int_equal(sim_counter(w, HOST_0, "peers_unreachable"), 0);
    /* Two packets, perhaps twice each, and one that tests whether it was that. */
    assert_in_range(stats_of(w).blackholed, 2, 8);
}

/* Tests get rare: each costs a packet. */
TEST(sim_ecn_black__few_tests)
{
    struct sim_world *w = begin("ect");

    send_one(w, MESSAGE, 100 * MSEC_NS);
    uint64_t lost = stats_of(w).blackholed;
    uint64_t timeouts = sim_counter(w, HOST_0, "retx_timeout");
    for (unsigned i = 0; i < 700; i++) {
        sim_run(w, 100 * MSEC_NS);
        send_one(w, 16 << 10, 20 * MSEC_NS);
    }
    /* After 4, 16, 64, 256 ms, 1, 4 and 16 s; the next after 66 s. */
    assert_int_equal(stats_of(w).blackholed - lost, 7);
    assert_int_equal(sim_counter(w, HOST_0, "retx_timeout"), timeouts);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
    assert_true(sim_peer(w, HOST_0)->ect.off);
}

/* A peer that rested meanwhile is the one that it was. */
TEST(sim_ecn_black__is_remembered)
{
    struct sim_world *w = begin("ect");

    send_one(w, MESSAGE, 100 * MSEC_NS);
    uint64_t lost = stats_of(w).blackholed;
    for (unsigned i = 0; i < 150; i++) { /* the context is in use, for others */
        sim_run(w, 100 * MSEC_NS);
        sim_send_complete(w, HOST_0, HOST_2, 64, 20 * MSEC_NS);
    }
    assert_int_equal(sim_counter(w, HOST_0, "peers_rested"), 1);
    send_one(w, MESSAGE, 20 * MSEC_NS);
    assert_int_equal(stats_of(w).blackholed, lost);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
}

/* The route changes in the middle of a transfer; later it changes back. */
TEST(sim_ecn_black__later)
{
    struct sim_world *w = begin("off");

    for (unsigned i = 0; i < 16; i++)
        sim_send(w, HOST_0, HOST_1, MESSAGE);
    sim_run(w, 5 * MSEC_NS);
    assert_true(stats_of(w).ce > 0);
    assert_true(sim_peer(w, HOST_0)->tx->cc.ce_seen);
    sim_links(w, NETWORK, "blackhole", "ect");
    sim_all_arrive(w, 500 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
    assert_int_equal(sim_counter(w, HOST_0, "peers_unreachable"), 0);
    assert_true(sim_peer(w, HOST_0)->ect.off);
    assert_false(sim_peer(w, HOST_0)->tx->cc.ce_seen); /* congestion control expects no marks */

    sim_links(w, NETWORK, "blackhole", "off");
    uint64_t marks = stats_of(w).ce;
    for (unsigned i = 0; i < 100 && !sim_counter(w, HOST_0, "ecn_on"); i++) {
        send_one(w, MESSAGE, 100 * MSEC_NS);
        sim_run(w, 100 * MSEC_NS);
    }
    assert_int_equal(sim_counter(w, HOST_0, "ecn_on"), 1);
    for (unsigned i = 0; i < 16; i++)
        sim_send(w, HOST_0, HOST_1, MESSAGE);
    sim_run_until_complete(w, SEC_NS);
    assert_true(stats_of(w).ce > marks);
}

/* Silence that has another cause: as soon as the peer answers, marks are there again. */
TEST(sim_ecn_black__false_alarm)
{
    struct sim_world *w = begin("off");

    for (unsigned i = 0; i < 16; i++)
        sim_send(w, HOST_0, HOST_1, MESSAGE);
    sim_run(w, 5 * MSEC_NS);
    sim_links(w, NETWORK, "blackhole", "on");
    sim_run(w, 50 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
    sim_links(w, NETWORK, "blackhole", "off");
    sim_all_arrive(w, SEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_off"), 1);
    assert_int_equal(sim_counter(w, HOST_0, "ecn_on"), 1);
    assert_true(sim_peer(w, HOST_0)->tx->cc.ce_seen);
}

/* Both ends send: each finds out by itself. */
TEST(sim_ecn_black__both_ways)
{
    struct sim_world *w = begin("ect");

    for (unsigned i = 0; i < 4; i++) {
        sim_send(w, HOST_0, HOST_1, MESSAGE);
        sim_send(w, HOST_1, HOST_0, MESSAGE);
    }
    sim_run_until_complete(w, 100 * MSEC_NS);
    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        assert_true(sim_payload_equal(w, host));
        assert_int_equal(sim_counter(w, host, "ecn_off"), 1);
    }
}
