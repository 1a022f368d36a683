/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives: what a request leaves behind, whether it is taken or not. */
#include <errno.h>

#include "core/engine/rnr.h"
#include "tests/unit/engine_hand.h"

enum { BYTES = 64 };

static int post_recv(struct pair *p, struct mrd_recv_wr *wr)
{
    struct mrd_recv_wr *bad = NULL;
    int error = mrd_engine_post_recv(p->end[0].e, p->end[0].qp, wr, &bad);

    assert_true((error != 0) == (bad != NULL)); /* it is set only by a failure */
    return error;
}

static struct mrd_sge memory_of(const struct pair *p)
{
    return (struct mrd_sge){
        .addr = (uint64_t)(uintptr_t)p->end[0].memory, .length = BYTES, .lkey = p->end[0].mr->lkey};
}

/* Its memory must be there, and writable; else nothing is taken. */
TEST_F(pair, mrd_engine_post_recv__memory_must_be_writable)
{
    struct mrd_mr *mr = pair_register(self, 0, 0);
    struct hand_holdings before = hand_holdings(self, 0);
    struct mrd_sge sge = memory_of(self);

    sge.lkey = mr->lkey;
    assert_int_equal(post_recv(self, &(struct mrd_recv_wr){.sg_list = &sge, .num_sge = 1}),
                     -EINVAL);
    hand_expect_refused(self, 0, &before, "MRD_ACCESS_LOCAL_WRITE");
    assert_int_equal(post_recv(self, &(struct mrd_recv_wr){.num_sge = 0}), 0); /* of no bytes */
    assert_int_equal(mrd_engine_dereg_mr(self->end[0].e, mr, self->now), 0);
}

TEST_F(pair, mrd_engine_post_recv__completion_queue_full)
{
    hand_fill_cq(mrd_cq_impl(self->end[0].cq));
    struct hand_holdings before = hand_holdings(self, 0);
    struct mrd_sge sge = memory_of(self);
    assert_int_equal(post_recv(self, &(struct mrd_recv_wr){.sg_list = &sge, .num_sge = 1}),
                     -ENOMEM);
    hand_expect_refused(self, 0, &before, "receive completion queue is full");
    hand_empty_cq(mrd_cq_impl(self->end[0].cq));
}

/* Room for a completion was reserved, and goes back. */
TEST_F(pair, mrd_engine_post_recv__gives_back_the_completion)
{
    struct mrd_sge sge[5];

    for (unsigned i = 0; i < 5; i++)
        sge[i] = memory_of(self);
    struct hand_holdings before = hand_holdings(self, 0);
    assert_int_equal(post_recv(self, &(struct mrd_recv_wr){.sg_list = sge, .num_sge = 5}), -EINVAL);
    hand_expect_refused(self, 0, &before, "cannot hold");
    for (unsigned i = 0; i < 16; i++)
        pair_post_recv(self, 0, 0, BYTES);
    before = hand_holdings(self, 0);
    assert_int_equal(before.reserved, 16);
    assert_int_equal(post_recv(self, &(struct mrd_recv_wr){.sg_list = sge, .num_sge = 1}), -ENOMEM);
    hand_expect_refused(self, 0, &before, "receive queue is full");
}

/* Those before the bad one of a list are posted. */
TEST_F(pair, mrd_engine_post_recv__list_up_to_the_bad_one)
{
    struct mrd_recv_wr wr[3], *bad = NULL;
    struct mrd_sge sge[3];

    for (unsigned i = 0; i < 3; i++) {
        sge[i] = memory_of(self);
        wr[i] = (struct mrd_recv_wr){
            .sg_list = &sge[i], .num_sge = 1, .next = i < 2 ? &wr[i + 1] : NULL};
    }
    sge[1].lkey ^= 1;
    assert_int_equal(mrd_engine_post_recv(self->end[0].e, self->end[0].qp, wr, &bad), -EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    assert_int_equal(hand_qp(self, 0)->recvq->num_posted, 1);
}

/* In error a queue pair gives receives back at once. */
TEST_F(pair, mrd_engine_post_recv__in_error)
{
    struct mrd_recv_wr wr[2] = {{.wr_id = 5, .next = &wr[1]}, {.wr_id = 6}};

    hand_flush(self, 0);
    assert_int_equal(post_recv(self, wr), 0);
    for (uint64_t id = 5; id <= 6; id++) {
        struct mrd_wc wc = pair_expect(self, 0, MRD_WC_WR_FLUSH_ERR);

        assert_int_equal(wc.wr_id, id);
        assert_int_equal(wc.opcode, MRD_WC_RECV);
    }
    assert_int_equal(hand_qp(self, 0)->recvq->num_posted, 0);
}

/* Peers that were refused are to be told, and the caller learns that this should be soon. */
TEST_F(pair, mrd_engine_post_recv__tells_who_was_refused)
{
    struct mrd_peer *peer = hand_rx_peer(self, 0);

    pair_post_recv(self, 0, 0, BYTES);
    assert_false(mrd_engine_says_ready(self->end[0].e));
    mrd_rnr_add(self->end[0].e, peer, hand_qp(self, 0));
    pair_post_recv(self, 0, 0, BYTES);
    assert_true(mrd_engine_says_ready(self->end[0].e));
    assert_int_equal(hand_length(&peer->readies), 1);
}
