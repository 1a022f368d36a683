/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and queue pairs that went away: nothing is written there, and nothing completes there. */
#include "tests/unit/engine_pair.h"

enum { BYTES = 64, AT = 16 * PAIR_PAYLOAD };

static struct pair pair; /* large, and begun anew by each test */

/*
 * A receive of memory that was deregistered: it takes no bytes and completes in error, and its
 * sender learns.
 */
static void receive_without_memory(uint32_t len)
{
    struct pair *p = &pair;
    struct pair_end *b = &p->end[1];
    struct mrd_mr *whole, *brief;
    int error;

    pair_begin(p);
    whole = b->mr;
    brief = mrd_engine_reg_mr(b->e, b->pd, b->memory, sizeof(b->memory), MRD_ACCESS_LOCAL_WRITE,
                              &(struct mrd_mover_mr){0}, &error);
    assert_non_null(brief);
    b->mr = brief;
    pair_post_recv(p, 1, AT, len);
    b->mr = whole;
    assert_int_equal(mrd_engine_dereg_mr(b->e, brief, p->now), 0);
    memset(b->memory + AT, 0x77, len);
    pair_post(p, 0, MRD_WR_SEND, 0, len);
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, 1, MRD_WC_LOC_PROT_ERR);
    pair_expect(p, 0, MRD_WC_REM_OP_ERR);
    for (uint32_t i = 0; i < len; i++)
        assert_int_equal(b->memory[AT + i], 0x77);
    pair_end(p);
}

TEST(mrd_rx_place__receive_without_memory)
{
    receive_without_memory(BYTES);
    receive_without_memory(3 * PAIR_PAYLOAD);
}

/*
 * Sends that wait, that are half sent and that are in flight: with their queue pair goes
 * their completion.
 */
TEST_F(pair, mrd_engine_destroy_qp__completes_nothing)
{
    int error;
    struct mrd_qp *kept = self->end[0].qp;

    for (unsigned sent = 0; sent < 2; sent++) {
        struct mrd_qp_init_attr attr = {.send_cq = self->end[0].cq,
                                        .recv_cq = self->end[0].cq,
                                        .cap = {.max_send_wr = 16, .max_recv_wr = 1}};

        self->end[0].qp = mrd_engine_create_qp(self->end[0].e, self->end[0].pd, &attr, &error);
        assert_non_null(self->end[0].qp);
        for (unsigned i = 0; i < 8; i++)
            pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, i % 2 ? BYTES : 5 * PAIR_PAYLOAD);
        pair_post_recv(self, 0, 0, BYTES);
        if (sent)
            pair_tx(self, 0);
        assert_int_equal(mrd_engine_destroy_qp(self->end[0].e, self->end[0].qp, self->now), 0);
        pair_expect_nothing(self, 0);
        pair_settle(self, self->now + MRD_SEC);
        pair_expect_nothing(self, 0);
    }
    self->end[0].qp = kept;
    pair_write(self, 0, 0, BYTES);
}
