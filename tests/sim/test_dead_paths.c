/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that die when nothing else tells of it, and acks that must not wait behind data. */
#include <stdio.h>

#include "core/engine/state.h"
#include "tests/support/check.h"
#include "tests/support/world.h"

enum { WARM_UP = 64, WARM_UP_BYTES = 32 << 10, BULK_BYTES = 4 << 20, PATHS = 16 };

/*
 * The two paths that were the fastest are dead, and a short message is all there is: nothing else
 * is acked that would tell them from others. They may not be tried in turn for ever.
 */
TEST(sim_dead_paths__fastest_of_all)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.links = 8, .paths = 8, .delay_ns = 20000});

    sim_links(w, "host0>host1.[01]", "delay", "1");
    for (unsigned i = 0; i < WARM_UP; i++)
        sim_send(w, HOST_0, HOST_1, WARM_UP_BYTES);
    sim_run_until_complete(w, 10 * MSEC_NS);
    sim_links(w, "host0>host1.[01]", "blackhole", "on");
    sim_send_complete(w, HOST_0, HOST_1, 100, 5 * MSEC_NS);
}

/*
 * Many paths die, both ways: up to three quarters, more than may be out at a time. So few acks are
 * on their way, as movers in software have it, that often none gets through. What works must be
 * found all the same.
 */
TEST(sim_dead_paths__most_of_them)
{
    static const struct {
        uint32_t dead;
        uint64_t ms; /* the rest of 4 MiB takes 20 with half of the paths and no waiting */
    } table[] = {{7, 60}, {8, 60}, {9, 120}, {10, 400}, {11, 1000}, {12, 2000}};
    char links[32];

    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        for (uint64_t run = 0; run < 10; run++) {
            struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = test_seed() + run,
                                                                         .links = PATHS,
                                                                         .paths = PATHS,
                                                                         .rate_bps = 1000000000,
                                                                         .delay_ns = 100000});

            for (uint32_t host = HOST_0; host <= HOST_1; host++) {
                struct mrd_mover *mover = &sim_engine(w, host)->config.mover;

                mover->ack_every = mover->quantum = 32;
                mover->rto_floor_ns = MSEC_NS;
            }
            for (unsigned i = 0; i < 64; i++)
                sim_write(w, HOST_0, HOST_1, 64 << 10);
            sim_run(w, 3 * MSEC_NS);
            for (uint32_t i = 0; i < table[k].dead; i++) {
                snprintf(links, sizeof(links), "host0-host1.%u", i);
                sim_links(w, links, "blackhole", "on");
            }
            sim_all_arrive(w, table[k].ms * MSEC_NS);
            sim_world_destroy(w);
        }
    }
}

/* Two hosts below one leaf write to each other at their links' rate: none is lost or repeated. */
TEST(sim_acks__before_data)
{
    static const struct mrd_sim_topology topology = {
        4, 2, 0, {{2, 2, 0, 100000000000, 500, 300}, {2, 0, 0, 100000000000, 500, 300}}};
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.topology = &topology});

    sim_write(w, HOST_0, HOST_1, BULK_BYTES);
    sim_write(w, HOST_1, HOST_0, BULK_BYTES);
    sim_run_until_complete(w, 400 * USEC_NS); /* 345 us at the rate of the link */
    for (uint32_t host = 0; host < 2; host++) {
        test_check(w->options.seed, sim_counter(w, host, "retx_packets") == 0,
                   "host %u repeated %llu packets", host,
                   (unsigned long long)sim_counter(w, host, "retx_packets"));
        test_check(w->options.seed, sim_counter(w, host, "retx_tail") == 0,
                   "host %u probed for its tail", host);
    }
}
