/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts over a fabric of switches, where a host sends one packet at a time, when its link is
 * idle: the loop is called when that is, not before, and data of one direction does not hold up the
 * acks of the other.
 */
#include "tests/support/wiretap.h"
#include "transport/movers/sim/sim_host.h"

enum { MESSAGE_BYTES = 1 << 20, PACKETS = MESSAGE_BYTES / 4096 };

static const struct mrd_sim_topology slow = {
    .hosts = 2,
    .tiers = 2,
    .tier = {{.radix_down = 2, .radix_up = 1, .rate_bps = 1000000000, .delay_ns = 1000},
             {.radix_down = 1, .rate_bps = 1000000000, .delay_ns = 1000}}};

static const struct mrd_sim_topology fast = {
    .hosts = 4,
    .tiers = 2,
    .tier = {{.radix_down = 2, .radix_up = 2, .rate_bps = 100000000000, .delay_ns = 1000},
             {.radix_down = 2, .rate_bps = 100000000000, .delay_ns = 1000}}};

static void count_turn(void *arg, uint32_t host)
{
    uint64_t *turns = arg;

    turns[host]++;
}

TEST(sim_tree_host__is_not_asked_before_its_link_is_idle)
{
    struct sim_options options = {.seed = test_seed(), .topology = &slow};
    struct sim_world *w = sim_fabric_world(&options);
    uint64_t turns[2] = {0}, time_ns, bound;

    mrd_sim_set_turn_hook(w->sim, count_turn, turns);
    sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    sim_write(w, HOST_1, HOST_0, MESSAGE_BYTES);
    time_ns = sim_run_until_complete(w, 20 * MSEC_NS);
    mrd_sim_set_turn_hook(w->sim, NULL, NULL);
    /* A packet in, one out, an ack in, one out; and a look each 10 us that the link is busy. */
    bound = 4 * PACKETS + time_ns / (10 * USEC_NS);
    for (uint32_t host = 0; host < 2; host++)
        test_check(options.seed, turns[host] <= bound, "host %u: %llu turns, at most %llu", host,
                   (unsigned long long)turns[host], (unsigned long long)bound);
}

static uint64_t exchange_ns(uint64_t seed, bool both_ways, uint64_t *retx)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed, .topology = &fast});

    sim_write(w, HOST_0, HOST_3, 4 * MESSAGE_BYTES);
    if (both_ways)
        sim_write(w, HOST_3, HOST_0, 4 * MESSAGE_BYTES);
    uint64_t time_ns = sim_run_until_complete(w, 20 * MSEC_NS);
    *retx = sim_counter(w, HOST_0, "retx_packets") + sim_counter(w, HOST_3, "retx_packets");
    sim_world_destroy(w);
    return time_ns;
}

/* Two hosts that send to each other are as fast as one: acks take little, and are in time. */
TEST(sim_tree_host__both_ways_at_once)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t seed = test_seed() + i, retx;
        uint64_t one_ns = exchange_ns(seed, false, &retx), two_ns = exchange_ns(seed, true, &retx);

        test_check(seed, retx == 0, "%llu packets sent again", (unsigned long long)retx);
        test_check(seed, two_ns < one_ns * 106 / 100, "%llu ns, one way alone %llu",
                   (unsigned long long)two_ns, (unsigned long long)one_ns);
    }
}
