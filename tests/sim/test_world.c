/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole contexts in a simulated world: each way to move a message, clean and under each fault. */
#include <stdlib.h>

#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"

enum { MESSAGE_BYTES = 1 << 20 };

/* One of each opcode and many sizes in each direction, on a fabric without faults. */
TEST(sim_clean__every_opcode_and_size)
{
    static const uint32_t lens[] = {0, 1, 7, 64, 4095, 4096, 4097, 65536, 1000001};
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (uint32_t from = HOST_0; from <= HOST_1; from++) {
            uint32_t to = from ^ 1;

            sim_send(w, from, to, lens[i]);
            sim_write(w, from, to, lens[i]);
            sim_write_imm(w, from, to, lens[i]);
            sim_post(w, &(struct sim_post){.from = from,
                                           .to = to,
                                           .len = lens[i],
                                           .opcode = MRD_WR_SEND_WITH_IMM,
                                           .unsignaled = true});
        }
    }
    sim_all_arrive(w, 2 * MSEC_NS);
}

/* Ordered messages of all sizes stay in order under loss, duplication, corruption and jitter. */
TEST(sim_ordered__under_faults)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.order = MRD_ORDER_MSG,
                                                                 .jitter_ns = 10000,
                                                                 .loss_ppm = 50000,
                                                                 .duplicate_ppm = 50000,
                                                                 .corrupt_ppm = 20000});

    for (uint32_t i = 0; i < 200; i++)
        sim_post_on(w, HOST_0, HOST_1, 0, i * i, MRD_WR_SEND_WITH_IMM);
    sim_all_arrive(w, 200 * MSEC_NS);

    assert_true(sim_in_order(w, HOST_0, HOST_1, 0));
}

/* Payloads straight to their place: clean, and where a burst is not what its first predicts. */
static void straight_receive(uint32_t faults_ppm)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.paths = 2,
                                                                 .straight = true,
                                                                 .loss_ppm = faults_ppm,
                                                                 .duplicate_ppm = faults_ppm,
                                                                 .corrupt_ppm = faults_ppm});

    for (uint32_t i = 0; i < 4; i++) {
        sim_write_imm(w, HOST_0, HOST_1, MESSAGE_BYTES + i);
        sim_send(w, HOST_0, HOST_1, MESSAGE_BYTES / 3 + i);
        sim_send(w, HOST_0, HOST_1, 5000 * i);
    }
    sim_all_arrive(w, 100 * MSEC_NS);

    assert_true(mrd_sim_get_host_stats(w->sim, HOST_1).planned_segments > 100);
}

TEST(sim_straight_receive__clean)
{
    straight_receive(0);
}

TEST(sim_straight_receive__faults)
{
    straight_receive(50000);
}

/* The device reads the buffers long after the packets were acked, and takes few packets at once. */
TEST(sim_slow_device)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .loss_ppm = 50000, .tx_done_delay_ns = 300 * USEC_NS, .tx_burst_max = 3});

    for (uint32_t i = 0; i < 8; i++)
        sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES / 8);
    sim_all_arrive(w, 100 * MSEC_NS);

    assert_true(mrd_sim_get_host_stats(w->sim, HOST_0).partial_bursts > 0);
}
