/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives: what a request leaves behind, whether it is taken or not. */
#include <errno.h>

#include "core/engine/want.h"
#include "tests/unit/engine_hand.h"

enum { BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

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
TEST(mrd_engine_post_recv__memory_must_be_writable)
{
    struct pair *p = &pair;
    struct hand_holdings before;
    struct mrd_sge sge;
    struct mrd_mr *mr;
    int error;

    pair_begin(p);
    mr = mrd_engine_reg_mr(p->end[0].e, p->end[0].pd, p->end[0].memory, BYTES, 0,
                           &(struct mrd_mover_mr){0}, &error);
    before = hand_holdings(p, 0);
    sge = memory_of(p);
    sge.lkey = mr->lkey;
    assert_int_equal(post_recv(p, &(struct mrd_recv_wr){.sg_list = &sge, .num_sge = 1}), -EINVAL);
    hand_expect_refused(p, 0, &before, "MRD_ACCESS_LOCAL_WRITE");
    assert_int_equal(post_recv(p, &(struct mrd_recv_wr){.num_sge = 0}), 0); /* of no bytes */
    assert_int_equal(mrd_engine_dereg_mr(p->end[0].e, mr, p->now), 0);
    pair_end(p);
}

TEST(mrd_engine_post_recv__completion_queue_full)
{
    struct pair *p = &pair;
    struct hand_holdings before;
    struct mrd_sge sge;

    pair_begin(p);
    hand_fill_cq(mrd_cq_impl(p->end[0].cq));
    before = hand_holdings(p, 0);
    sge = memory_of(p);
    assert_int_equal(post_recv(p, &(struct mrd_recv_wr){.sg_list = &sge, .num_sge = 1}), -ENOMEM);
    hand_expect_refused(p, 0, &before, "receive completion queue is full");
    hand_empty_cq(mrd_cq_impl(p->end[0].cq));
    pair_end(p);
}

/* Room for a completion was reserved, and goes back. */
TEST(mrd_engine_post_recv__gives_back_the_completion)
{
    struct pair *p = &pair;
    struct hand_holdings before;
    struct mrd_sge sge[5];

    pair_begin(p);
    for (unsigned i = 0; i < 5; i++)
        sge[i] = memory_of(p);
    before = hand_holdings(p, 0);
    assert_int_equal(post_recv(p, &(struct mrd_recv_wr){.sg_list = sge, .num_sge = 5}), -EINVAL);
    hand_expect_refused(p, 0, &before, "cannot hold");
    for (unsigned i = 0; i < 16; i++)
        pair_post_recv(p, 0, 0, BYTES);
    before = hand_holdings(p, 0);
    assert_int_equal(before.reserved, 16);
    assert_int_equal(post_recv(p, &(struct mrd_recv_wr){.sg_list = sge, .num_sge = 1}), -ENOMEM);
    hand_expect_refused(p, 0, &before, "receive queue is full");
    pair_end(p);
}

/* Those before the bad one of a list are posted. */
TEST(mrd_engine_post_recv__list_up_to_the_bad_one)
{
    struct pair *p = &pair;
    struct mrd_recv_wr wr[3], *bad = NULL;
    struct mrd_sge sge[3];

    pair_begin(p);
    for (unsigned i = 0; i < 3; i++) {
        sge[i] = memory_of(p);
        wr[i] = (struct mrd_recv_wr){
            .sg_list = &sge[i], .num_sge = 1, .next = i < 2 ? &wr[i + 1] : NULL};
    }
    sge[1].lkey ^= 1;
    assert_int_equal(mrd_engine_post_recv(p->end[0].e, p->end[0].qp, wr, &bad), -EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    assert_int_equal(hand_qp(p, 0)->recvq->num_posted, 1);
    pair_end(p);
}

/* In error a queue pair gives receives back at once. */
TEST(mrd_engine_post_recv__in_error)
{
    struct pair *p = &pair;
    struct mrd_recv_wr wr[2] = {{.wr_id = 5, .next = &wr[1]}, {.wr_id = 6}};
    struct mrd_wc wc;

    pair_begin(p);
    assert_int_equal(mrd_engine_modify_qp(p->end[0].e, p->end[0].qp,
                                          &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                          MRD_QP_STATE, p->now),
                     0);
    assert_int_equal(post_recv(p, wr), 0);
    for (uint64_t id = 5; id <= 6; id++) {
        assert_int_equal(pair_poll(p, 0, &wc), 1);
        assert_int_equal(wc.wr_id, id);
        assert_int_equal(wc.status, MRD_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.opcode, MRD_WC_RECV);
    }
    assert_int_equal(hand_qp(p, 0)->recvq->num_posted, 0);
    pair_end(p);
}

/* Peers that were refused are to be told, and the caller learns that this should be soon. */
TEST(mrd_engine_post_recv__tells_who_was_refused)
{
    struct pair *p = &pair;
    struct mrd_peer *peer;

    pair_begin(p);
    peer = hand_rx_peer(p, 0);
    pair_post_recv(p, 0, 0, BYTES);
    assert_false(mrd_engine_says_ready(p->end[0].e));
    mrd_want_add(p->end[0].e, peer, hand_qp(p, 0));
    pair_post_recv(p, 0, 0, BYTES);
    assert_true(mrd_engine_says_ready(p->end[0].e));
    assert_int_equal(hand_length(&peer->readies), 1);
    pair_end(p);
}
