/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "core/recvq.h"
#include "tests/kit/kit.h"

enum { WR = 2, SGE = 2 };

FIXTURE(recvq_fixture)
{
    struct mrd_recvq q;
    struct mrd_pd pd;
    void *slots;
    struct mrd_sge sge[4];
    char memory[64];
};

FIXTURE_SETUP(recvq_fixture)
{
    /* exactly as much, so that a sanitizer sees a slot that lies outside */
    self->slots = calloc(1, mrd_recvq_bytes(WR, SGE));
    assert_non_null(self->slots);
    mrd_recvq_init(&self->q, self->slots, WR, SGE, &self->pd);
    for (unsigned i = 0; i < 4; i++)
        self->sge[i] = (struct mrd_sge){
            .addr = (uint64_t)(uintptr_t)&self->memory[10 * i], .length = 8, .lkey = i};
}

FIXTURE_TEARDOWN(recvq_fixture)
{
    free(self->slots);
}

static void post(struct recvq_fixture *f, uint64_t wr_id)
{
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = f->sge, .num_sge = 1};

    assert_int_equal(mrd_recvq_post(&f->q, &wr), 0);
}

TEST_F(recvq_fixture, mrd_recvq_take__oldest_first)
{
    assert_null(mrd_recvq_take(&self->q));
    post(self, 1);
    post(self, 2);
    assert_int_equal(self->q.num_posted, 2);
    assert_int_equal(mrd_recvq_take(&self->q)->wr_id, 1);
    assert_int_equal(mrd_recvq_take(&self->q)->wr_id, 2);
    assert_null(mrd_recvq_take(&self->q));
    assert_int_equal(self->q.num_posted, 0);
}

TEST_F(recvq_fixture, mrd_recvq_return__is_next_again)
{
    post(self, 1);
    post(self, 2);
    struct mrd_recv *recv = mrd_recvq_take(&self->q);
    mrd_recvq_return(&self->q, recv);
    assert_int_equal(self->q.num_posted, 2);
    assert_ptr_equal(mrd_recvq_take(&self->q), recv);
}

TEST_F(recvq_fixture, mrd_recvq_free__makes_room_for_another)
{
    struct mrd_recv_wr wr = {.wr_id = 3};

    post(self, 1);
    post(self, 2);
    assert_int_equal(mrd_recvq_post(&self->q, &wr), -ENOMEM);
    mrd_recvq_free(&self->q, mrd_recvq_take(&self->q));
    assert_int_equal(mrd_recvq_post(&self->q, &wr), 0);
    assert_int_equal(mrd_recvq_post(&self->q, &wr), -ENOMEM);
}

TEST_F(recvq_fixture, mrd_recvq_post__rejects_bad_lists)
{
    struct mrd_recv_wr wr = (struct mrd_recv_wr){.sg_list = self->sge, .num_sge = SGE + 1};

    assert_int_equal(mrd_recvq_post(&self->q, &wr), -EINVAL);
    wr.num_sge = -1;
    assert_int_equal(mrd_recvq_post(&self->q, &wr), -EINVAL);
    wr.num_sge = 2;
    self->sge[0].length = UINT32_MAX;
    self->sge[1].length = 1;
    assert_int_equal(mrd_recvq_post(&self->q, &wr), -EINVAL); /* longer than a length can say */
    self->sge[1].length = 0;
    assert_int_equal(mrd_recvq_post(&self->q, &wr), 0);
    assert_int_equal(self->q.num_posted, 1);
}

TEST(mrd_srq_bytes__rejects_what_is_out_of_range)
{
    assert_int_equal(mrd_srq_bytes(0, 1), 0);
    assert_int_equal(mrd_srq_bytes((1 << 20) + 1, 1), 0);
    assert_int_equal(mrd_srq_bytes(1, MRD_SGE_MAX + 1), 0);
    assert_true(mrd_srq_bytes(1 << 20, MRD_SGE_MAX) > mrd_srq_bytes(1, 0));
    assert_int_equal(mrd_srq_bytes(1, 0), mrd_srq_bytes(1, 1));
}

TEST(mrd_srq_init__keeps_what_was_asked_for)
{
    struct mrd_srq_init_attr attr = {.srq_context = &attr,
                                     .attr = {.max_wr = 3, .max_sge = 2, .srq_limit = 1}};
    struct mrd_srq_impl *srq = calloc(1, mrd_srq_bytes(3, 2));
    struct mrd_context context;
    struct mrd_pd pd = {.context = &context};

    mrd_srq_init(srq, &pd, &attr);
    assert_ptr_equal(srq->pub.context, &context);
    assert_ptr_equal(srq->pub.srq_context, &attr);
    assert_ptr_equal(srq->pub.pd, &pd);
    assert_ptr_equal(srq->recvq.pd, &pd);
    assert_int_equal(srq->recvq.max_wr, 3);
    assert_int_equal(srq->recvq.max_sge, 2);
    assert_int_equal(srq->limit, 1);
    assert_int_equal(srq->bytes, mrd_srq_bytes(3, 2));
    free(srq);
}
