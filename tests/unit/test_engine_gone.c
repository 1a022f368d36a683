/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and queue pairs that went away: nothing is written there, and nothing completes there. */
#include "tests/unit/engine_hand.h"

enum { BYTES = 64, AT = 16 * PAIR_PAYLOAD };

/*
 * A receive of memory that was deregistered: it takes no bytes and completes in error, and its
 * sender learns.
 */
static void receive_without_memory(struct pair *p, uint32_t len)
{
    struct pair_end *b = &p->end[1];

    pair_begin(p);
    struct mrd_mr *whole = b->mr;
    b->mr = pair_register(p, 1, MRD_ACCESS_LOCAL_WRITE);
    pair_post_recv(p, 1, AT, len);
    hand_dereg(p, 1);
    b->mr = whole;
    memset(b->memory + AT, 0x77, len);
    pair_post(p, 0, MRD_WR_SEND, 0, len);
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 1, MRD_WC_LOC_PROT_ERR);
    pair_expect(p, 0, MRD_WC_REM_OP_ERR);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(b->memory[AT + i], 0x77);
}

TEST_F(pair, mrd_rx_place__receive_without_memory)
{
    receive_without_memory(self, BYTES);
    receive_without_memory(self, 3 * PAIR_PAYLOAD);
}

/* Sends that wait, are half sent or in flight: with their queue pair goes their completion. */
TEST_F(pair, mrd_engine_destroy_qp__completes_nothing)
{
    for (unsigned sent = 0; sent < 2; sent++) {
        struct mrd_qp *kept = hand_swap_qp(self, 0, MRD_ORDER_NONE);

        for (unsigned i = 0; i < 8; i++)
            pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, i % 2 ? BYTES : 5 * PAIR_PAYLOAD);
        pair_post_recv(self, 0, 0, BYTES);
        if (sent)
            pair_tx(self, 0);
        hand_restore_qp(self, 0, kept);
        pair_expect_nothing(self, 0);
        pair_settle(self, self->now + MRD_SEC);
        pair_expect_nothing(self, 0);
    }
    pair_write(self, 0, 0, BYTES);
}
