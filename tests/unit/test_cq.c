/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/cq.h"
#include "tests/kit/kit.h"

enum { CQE = 5, RING = 8 };

struct cq_fixture {
    struct mrd_cq_impl cq;
    struct mrd_wc ring[RING];
};

static void begin(struct cq_fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->cq.pub.cqe = CQE;
    f->cq.ring = f->ring;
    f->cq.mask = RING - 1;
}

static void push(struct cq_fixture *f, uint64_t wr_id)
{
    struct mrd_wc wc = {.wr_id = wr_id};

    mrd_cq_push(&f->cq, &wc);
}

/* The capacity is what was asked for, not the size of the ring behind it. */
TEST(mrd_cq_reserve__up_to_cqe)
{
    struct cq_fixture f;

    begin(&f);
    for (int i = 0; i < CQE; i++)
        assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
    assert_int_equal(f.cq.reserved, CQE);
}

/*
 * A completion keeps its room until it is polled: work that is posted meanwhile cannot overflow
 * the queue.
 */
TEST(mrd_cq_reserve__counts_completions_not_polled)
{
    struct cq_fixture f;
    struct mrd_wc wc;

    begin(&f);
    for (uint64_t i = 0; i < CQE; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, i);
    }
    assert_false(mrd_cq_reserve(&f.cq));
    assert_int_equal(mrd_cq_take(&f.cq, 1, &wc), 1);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
}

TEST(mrd_cq_unreserve__makes_room)
{
    struct cq_fixture f;

    begin(&f);
    for (int i = 0; i < CQE; i++)
        assert_true(mrd_cq_reserve(&f.cq));
    mrd_cq_unreserve(&f.cq);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
}

TEST(mrd_cq_push__uses_up_its_reservation)
{
    struct cq_fixture f;

    begin(&f);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_true(mrd_cq_reserve(&f.cq));
    push(&f, 7);
    assert_int_equal(f.cq.reserved, 1);
}

TEST(mrd_cq_take__in_order_and_no_more_than_asked)
{
    struct cq_fixture f;
    struct mrd_wc wc[CQE];

    begin(&f);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, 100 + i);
    }
    assert_int_equal(mrd_cq_take(&f.cq, 0, wc), 0);
    assert_int_equal(mrd_cq_take(&f.cq, 2, wc), 2);
    assert_int_equal(wc[0].wr_id, 100);
    assert_int_equal(wc[1].wr_id, 101);
    assert_int_equal(mrd_cq_take(&f.cq, CQE, wc), 1);
    assert_int_equal(wc[0].wr_id, 102);
    assert_int_equal(mrd_cq_take(&f.cq, CQE, wc), 0);
}

/* Indices run freely: nothing changes where 32 bits wrap. */
TEST(mrd_cq_take__across_the_wrap_of_indices)
{
    struct cq_fixture f;
    struct mrd_wc wc;

    begin(&f);
    f.cq.head = f.cq.tail = UINT32_MAX - 2 * CQE;
    for (uint64_t i = 0; i < 6 * CQE; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, i);
        if (i < CQE - 1)
            continue;
        assert_false(mrd_cq_reserve(&f.cq));
        assert_int_equal(mrd_cq_take(&f.cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i - (CQE - 1));
    }
}

/* ------------------------------------------------------------------------------------- channels */

struct channel_fixture {
    struct cq_fixture a, b;
    struct mrd_channel_impl channel;
    struct mrd_channel_news news;
};

static void begin_channel(struct channel_fixture *f)
{
    begin(&f->a);
    begin(&f->b);
    memset(&f->channel, 0, sizeof(f->channel));
    mrd_list_init(&f->news.channels);
    f->news.num_armed = 0;
    mrd_list_init(&f->channel.cqs);
    mrd_list_init(&f->channel.news_node);
    f->channel.news = &f->news;
    mrd_cq_set_channel(&f->a.cq, &f->channel);
    mrd_cq_set_channel(&f->b.cq, &f->channel);
}

static void complete(struct cq_fixture *f, const struct mrd_wc *wc)
{
    assert_true(mrd_cq_reserve(&f->cq));
    mrd_cq_push(&f->cq, wc);
}

/* One event a request, at the next completion; the queue is told of once. */
TEST(mrd_cq_arm__one_event)
{
    struct channel_fixture f;

    begin_channel(&f);
    complete(&f.a, &(struct mrd_wc){0});
    assert_null(mrd_channel_take(&f.channel));
    mrd_cq_arm(&f.a.cq, false);
    mrd_cq_arm(&f.a.cq, false);
    assert_true(mrd_list_empty(&f.news.channels));
    complete(&f.a, &(struct mrd_wc){0});
    assert_ptr_equal(mrd_list_pop(&f.news.channels), &f.channel.news_node);
    complete(&f.a, &(struct mrd_wc){0});
    assert_true(mrd_list_empty(&f.news.channels));
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
    assert_null(mrd_channel_take(&f.channel));
    assert_int_equal(f.a.cq.notify.taken, 1);
}

TEST(mrd_cq_arm__solicited)
{
    struct channel_fixture f;

    begin_channel(&f);
    mrd_cq_arm(&f.a.cq, true);
    complete(&f.a, &(struct mrd_wc){.wc_flags = MRD_WC_WITH_IMM});
    assert_null(mrd_channel_take(&f.channel));
    complete(&f.a, &(struct mrd_wc){.wc_flags = MRD_WC_SOLICITED});
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
    mrd_cq_arm(&f.a.cq, true);
    complete(&f.a, &(struct mrd_wc){.status = MRD_WC_WR_FLUSH_ERR});
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
    /* Who asked for any completion is not put off. */
    mrd_cq_arm(&f.a.cq, false);
    mrd_cq_arm(&f.a.cq, true);
    complete(&f.a, &(struct mrd_wc){0});
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
}

/* Queues take turns; each event is taken as often as it was raised. */
TEST(mrd_channel_take__in_turn)
{
    struct channel_fixture f;

    begin_channel(&f);
    for (unsigned i = 0; i < 2; i++) {
        mrd_cq_arm(&f.a.cq, false);
        complete(&f.a, &(struct mrd_wc){0});
    }
    mrd_cq_arm(&f.b.cq, false);
    complete(&f.b, &(struct mrd_wc){0});
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.b.cq);
    assert_ptr_equal(mrd_channel_take(&f.channel), &f.a.cq);
    assert_null(mrd_channel_take(&f.channel));
    assert_int_equal(f.a.cq.notify.taken, 2);
}

TEST(mrd_cq_leave_channel__takes_events_along)
{
    struct channel_fixture f;

    begin_channel(&f);
    mrd_cq_arm(&f.a.cq, false);
    complete(&f.a, &(struct mrd_wc){0});
    mrd_cq_arm(&f.a.cq, false);
    mrd_cq_arm(&f.b.cq, true);
    assert_int_equal(f.news.num_armed, 2);
    mrd_cq_leave_channel(&f.a.cq);
    assert_int_equal(f.news.num_armed, 1);
    assert_null(mrd_channel_take(&f.channel));
    assert_int_equal(f.channel.users, 1);
    mrd_cq_leave_channel(&f.b.cq);
    assert_int_equal(f.channel.users, 0);
}
