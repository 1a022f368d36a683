/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of receives. */
#include "core/engine/complete.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64, MESSAGES = 4 };

/* A queue pair with receives. */
static struct mrd_qp_impl *begin(struct pair *p)
{
    pair_begin(p);
    for (unsigned i = 0; i < MESSAGES; i++)
        pair_post_recv(p, AT, i * BYTES, BYTES);
    return hand_qp(p, AT);
}

/* The completion names the receive and its queue pair; only successes count as messages. */
TEST_F(pair, mrd_rx_complete__names_the_receive)
{
    struct mrd_qp_impl *qp = begin(self);
    struct mrd_wc wc = {.status = MRD_WC_LOC_LEN_ERR};

    mrd_rx_complete(self->end[AT].e, qp, mrd_recvq_take(qp->recvq), &wc);
    assert_int_equal(self->end[AT].e->stats.rx_messages, 0);
    wc.status = MRD_WC_SUCCESS;
    mrd_rx_complete(self->end[AT].e, qp, mrd_recvq_take(qp->recvq), &wc);
    assert_int_equal(self->end[AT].e->stats.rx_messages, 1);
    assert_int_equal(pair_expect(self, AT, MRD_WC_LOC_LEN_ERR).wr_id, 900);
    wc = pair_expect(self, AT, MRD_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 900 + BYTES);
    assert_int_equal(wc.qp_num, qp->pub.qp_num);
    assert_int_equal(hand_length(&qp->recvq->free), 16 - 2);
}

/* Of a destroyed queue pair nothing is told, and the room in its completion queue is free. */
TEST_F(pair, mrd_rx_complete__of_a_destroyed_queue_pair)
{
    struct mrd_qp_impl *qp = begin(self);
    struct mrd_wc wc = {.status = MRD_WC_SUCCESS};

    qp->destroyed = true;
    mrd_rx_complete(self->end[AT].e, qp, mrd_recvq_take(qp->recvq), &wc);
    qp->destroyed = false;
    pair_expect_nothing(self, AT);
    assert_int_equal(mrd_cq_impl(self->end[AT].cq)->reserved, MESSAGES - 1);
}

/* What a completion tells of a message. */
TEST(mrd_rx_wc__table)
{
    static const struct {
        uint8_t op, flags;
        enum mrd_wc_opcode opcode;
        unsigned wc_flags;
    } rows[] = {
        {MRD_OP_SEND, MRD_PART_MULTI, MRD_WC_RECV, 0},
        {MRD_OP_SEND, MRD_PART_IMM, MRD_WC_RECV, MRD_WC_WITH_IMM},
        {MRD_OP_WRITE, MRD_PART_IMM | MRD_PART_ORDERED, MRD_WC_RECV_RDMA_WITH_IMM, MRD_WC_WITH_IMM},
    };
    static struct mrd_peer peer = {.id = 77};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_wc wc = mrd_rx_wc(&peer, rows[i].op, rows[i].flags, 5, 6, 7);

        assert_int_equal(wc.status, MRD_WC_SUCCESS);
        assert_int_equal(wc.opcode, rows[i].opcode);
        assert_int_equal(wc.wc_flags, rows[i].wc_flags);
        assert_int_equal(wc.byte_len, 5);
        assert_int_equal(wc.imm_data, 6);
        assert_int_equal(wc.src_qp, 7);
        assert_int_equal(wc.peer_id, 77);
    }
}
