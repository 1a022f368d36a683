/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: which completions raise events, and what an event keeps in being. */
#include <errno.h>

#include "tests/unit/engine_hand.h"

enum { FROM, TO, SHORT = 64, LONG = 5 * PAIR_PAYLOAD };

static struct mrd_channel_impl channel;

FIXTURE_OF(with_channel, pair);

FIXTURE_SETUP(with_channel)
{
    pair_begin(self);
    mrd_engine_open_channel(self->end[TO].e, &channel);
    mrd_engine_set_channel(self->end[TO].cq, &channel);
}

/* Objects keep the channel, and the channel the context. */
FIXTURE_TEARDOWN(with_channel)
{
    struct mrd_engine *e = self->end[TO].e;
    unsigned objects = mrd_engine_objects(e);
    int error;

    assert_int_equal(mrd_engine_close_channel(e, &channel), -EBUSY);
    assert_int_equal(mrd_engine_destroy_qp(e, self->end[TO].qp, self->now), 0);
    assert_int_equal(mrd_engine_destroy_cq(e, self->end[TO].cq), 0);
    assert_int_equal(mrd_engine_close_channel(e, &channel), 0);
    assert_int_equal(mrd_engine_objects(e), objects - 3);
    /* What pair_end() expects. */
    self->end[TO].cq = mrd_engine_create_cq(e, NULL, 4, NULL, &error);
    self->end[TO].qp = mrd_engine_create_qp(
        e, self->end[TO].pd,
        &(struct mrd_qp_init_attr){.send_cq = self->end[TO].cq, .recv_cq = self->end[TO].cq},
        &error);
    pair_end(self);
}

static void send(struct pair *p, uint32_t bytes, unsigned flags)
{
    struct hand_wr w;

    pair_post_recv(p, TO, 0, LONG);
    hand_wr(p, FROM, MRD_WR_SEND, bytes, &w);
    w.wr.send_flags = flags;
    assert_int_equal(hand_post(p, FROM, &w.wr), 0);
    pair_settle(p, p->now + 100 * MRD_MSEC);
}

/* The next completion, which is of a solicited send or not. */
static void expect(struct pair *p, unsigned solicited)
{
    struct mrd_wc wc = pair_expect(p, TO, MRD_WC_SUCCESS);

    assert_int_equal(wc.wc_flags & MRD_WC_SOLICITED, solicited);
}

TEST_F(with_channel, mrd_engine_arm_cq__without_channel)
{
    assert_int_equal(mrd_engine_arm_cq(self->end[FROM].e, self->end[FROM].cq, false), -EINVAL);
    assert_string_equal(mrd_engine_error(self->end[FROM].e),
                        "the completion queue has no completion channel");
}

/* Of a message of one packet and of several. */
TEST_F(with_channel, mrd_engine_arm_cq__solicited)
{
    struct mrd_engine *e = self->end[TO].e;

    for (unsigned i = 0; i < 2; i++) {
        uint32_t bytes = i ? LONG : SHORT;

        assert_int_equal(mrd_engine_arm_cq(e, self->end[TO].cq, true), 0);
        assert_true(mrd_engine_is_awaited(e));
        send(self, bytes, 0);
        expect(self, 0);
        assert_null(mrd_engine_take_news(e));
        send(self, bytes, MRD_SEND_SOLICITED);
        expect(self, MRD_WC_SOLICITED);
        assert_false(mrd_engine_is_awaited(e));
        assert_ptr_equal(mrd_engine_take_news(e), &channel);
        assert_null(mrd_engine_take_news(e));
        assert_ptr_equal(mrd_engine_take_cq_event(&channel), self->end[TO].cq);
        assert_null(mrd_engine_take_cq_event(&channel));
        assert_int_equal(mrd_engine_ack_cq_events(e, self->end[TO].cq, 1), 0);
    }
}

/* An event that is out holds its queue. */
TEST_F(with_channel, mrd_engine_destroy_cq__with_an_event_out)
{
    struct mrd_engine *e = self->end[TO].e;
    int error;
    struct mrd_cq *cq = mrd_engine_create_cq(e, NULL, 4, NULL, &error);
    struct mrd_recv_wr wr = {0}, *bad;

    mrd_engine_set_channel(cq, &channel);
    struct mrd_qp *qp = mrd_engine_create_qp(
        e, self->end[TO].pd,
        &(struct mrd_qp_init_attr){
            .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1}},
        &error);
    assert_non_null(qp);
    assert_int_equal(mrd_engine_arm_cq(e, cq, false), 0);
    assert_int_equal(mrd_engine_post_recv(e, qp, &wr, &bad), 0);
    assert_int_equal(mrd_engine_modify_qp(e, qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                          MRD_QP_STATE, self->now),
                     0);
    assert_ptr_equal(mrd_engine_take_cq_event(&channel), cq);
    assert_int_equal(mrd_engine_destroy_qp(e, qp, self->now), 0);
    assert_int_equal(mrd_engine_destroy_cq(e, cq), -EBUSY);
    assert_int_equal(mrd_engine_ack_cq_events(e, cq, 2), -EINVAL);
    assert_int_equal(mrd_engine_ack_cq_events(e, cq, 1), 0);
    assert_int_equal(mrd_engine_destroy_cq(e, cq), 0);
    assert_ptr_equal(mrd_engine_take_news(e), &channel);
}
