/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/cq.h"
#include "tests/kit/kit.h"

enum { CQE = 5, RING = 8 };

FIXTURE(cq_fixture)
{
    struct mrd_cq_impl cq;
    struct mrd_wc ring[RING];
};

static void begin(struct cq_fixture *f)
{
    f->cq.pub.cqe = CQE;
    f->cq.ring = f->ring;
    f->cq.mask = RING - 1;
}

FIXTURE_FROM(cq_fixture, begin, kit_nothing);

static void push(struct cq_fixture *f, uint64_t wr_id)
{
    struct mrd_wc wc = {.wr_id = wr_id};

    mrd_cq_push(&f->cq, &wc);
}

/* A completion keeps its room until it is polled: work posted meanwhile cannot overflow it. */
TEST_F(cq_fixture, mrd_cq_reserve__counts_completions_not_polled)
{
    struct mrd_wc wc;

    for (uint64_t i = 0; i < CQE; i++) {
        assert_true(mrd_cq_reserve(&self->cq));
        push(self, i);
    }
    assert_false(mrd_cq_reserve(&self->cq));
    assert_int_equal(mrd_cq_take(&self->cq, 1, &wc), 1);
    assert_true(mrd_cq_reserve(&self->cq));
    assert_false(mrd_cq_reserve(&self->cq));
}

/* Indices run freely: nothing changes where 32 bits wrap. */
TEST_F(cq_fixture, mrd_cq_take__across_the_wrap_of_indices)
{
    struct mrd_wc wc;

    self->cq.head = self->cq.tail = UINT32_MAX - 2 * CQE;
    for (uint64_t i = 0; i < 6 * CQE; i++) {
        assert_true(mrd_cq_reserve(&self->cq));
        push(self, i);
        if (i < CQE - 1)
            continue;
        assert_false(mrd_cq_reserve(&self->cq));
        assert_int_equal(mrd_cq_take(&self->cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i - (CQE - 1));
    }
}

/* ------------------------------------------------------------------------------------- channels */

FIXTURE(channel_fixture)
{
    struct cq_fixture a, b;
    struct mrd_channel_impl channel;
    struct mrd_channel_news news;
};

static void begin_channel(struct channel_fixture *f)
{
    begin(&f->a);
    begin(&f->b);
    mrd_list_init(&f->news.channels);
    mrd_list_init(&f->channel.cqs);
    mrd_list_init(&f->channel.news_node);
    f->channel.news = &f->news;
    mrd_cq_set_channel(&f->a.cq, &f->channel);
    mrd_cq_set_channel(&f->b.cq, &f->channel);
}

FIXTURE_FROM(channel_fixture, begin_channel, kit_nothing);

static void complete(struct cq_fixture *f, const struct mrd_wc *wc)
{
    assert_true(mrd_cq_reserve(&f->cq));
    mrd_cq_push(&f->cq, wc);
}

TEST_F(channel_fixture, mrd_cq_arm__solicited)
{
    mrd_cq_arm(&self->a.cq, true);
    complete(&self->a, &(struct mrd_wc){.wc_flags = MRD_WC_WITH_IMM});
    assert_null(mrd_channel_take(&self->channel));
    complete(&self->a, &(struct mrd_wc){.wc_flags = MRD_WC_SOLICITED});
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->a.cq);
    mrd_cq_arm(&self->a.cq, true);
    complete(&self->a, &(struct mrd_wc){.status = MRD_WC_WR_FLUSH_ERR});
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->a.cq);
    /* Who asked for any completion is not put off. */
    mrd_cq_arm(&self->a.cq, false);
    mrd_cq_arm(&self->a.cq, true);
    complete(&self->a, &(struct mrd_wc){0});
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->a.cq);
}

/* Queues take turns; each event is taken as often as it was raised. */
TEST_F(channel_fixture, mrd_channel_take__in_turn)
{
    for (unsigned i = 0; i < 2; i++) {
        mrd_cq_arm(&self->a.cq, false);
        complete(&self->a, &(struct mrd_wc){0});
    }
    mrd_cq_arm(&self->b.cq, false);
    complete(&self->b, &(struct mrd_wc){0});
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->a.cq);
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->b.cq);
    assert_ptr_equal(mrd_channel_take(&self->channel), &self->a.cq);
    assert_null(mrd_channel_take(&self->channel));
    assert_int_equal(self->a.cq.notify.taken, 2);
}

TEST_F(channel_fixture, mrd_cq_leave_channel__takes_events_along)
{
    mrd_cq_arm(&self->a.cq, false);
    complete(&self->a, &(struct mrd_wc){0});
    mrd_cq_arm(&self->a.cq, false);
    mrd_cq_arm(&self->b.cq, true);
    assert_int_equal(self->news.num_armed, 2);
    mrd_cq_leave_channel(&self->a.cq);
    assert_int_equal(self->news.num_armed, 1);
    assert_null(mrd_channel_take(&self->channel));
    assert_int_equal(self->channel.users, 1);
    mrd_cq_leave_channel(&self->b.cq);
    assert_int_equal(self->channel.users, 0);
}
