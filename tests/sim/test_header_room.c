/* SPDX-License-Identifier: BSD-2-Clause */
/* Many small messages share a packet: its header must stay one that the receiver takes. */
#include "tests/support/world.h"

enum {
    MESSAGES = 200,
    MESSAGE_BYTES = 8,
    BUDGET_NS = 4 * 1000 * 1000,
};

/*
 * Post all at once: the first leaves alone, the others wait for it and then share packets, up to 64
 * a packet. Their parts are the largest that there are, so that the header is too.
 */
static void share_packets(enum mrd_wr_opcode opcode, enum mrd_order order, uint32_t len)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = 7, .order = order});

    for (uint32_t i = 0; i < MESSAGES; i++)
        sim_post_on(w, HOST_0, HOST_1, 0, len, opcode);
    sim_all_arrive(w, BUDGET_NS);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_length"), 0);
    assert_true(sim_counter(w, HOST_0, "tx_packets") < MESSAGES / 8); /* they did share */
}

TEST(sim_header_room__ordered_writes)
{
    share_packets(MRD_WR_RDMA_WRITE, MRD_ORDER_MSG, MESSAGE_BYTES);
}

TEST(sim_header_room__ordered_writes_with_imm)
{
    share_packets(MRD_WR_RDMA_WRITE_WITH_IMM, MRD_ORDER_MSG, 0);
}

TEST(sim_header_room__ordered_sends_with_imm)
{
    share_packets(MRD_WR_SEND_WITH_IMM, MRD_ORDER_MSG, 0);
}

TEST(sim_header_room__unordered_writes_with_imm)
{
    share_packets(MRD_WR_RDMA_WRITE_WITH_IMM, MRD_ORDER_NONE, MESSAGE_BYTES);
}
