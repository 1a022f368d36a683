/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: who takes receives, where they complete, when they come back. */
#include <errno.h>

#include "core/engine/query.h"
#include "core/engine/rnr.h"
#include "tests/unit/engine_srq.h"

/* Each message takes the oldest receive, whichever queue pair it is for. */
TEST_F(shared, srq__oldest_receive_first)
{
    static const unsigned order[] = {0, 1, 1, 0};

    for (uint64_t id = 0; id < 4; id++)
        post_recv(self, id);
    for (uint64_t id = 0; id < 4; id++) {
        send(self, order[id], id % 2 ? LONG : SHORT);
        settle(self);
        expect(self, order[id], id, MRD_WC_SUCCESS);
        assert_memory_equal(self->p->end[TO].memory + id * LONG, self->p->end[FROM].memory,
                            id % 2 ? LONG : SHORT);
    }
    assert_int_equal(num_posted(self), 0);
}

TEST_F(shared, srq__post_is_checked)
{
    struct mrd_sge sge[3];
    struct mrd_recv_wr wr[2] = {{.wr_id = 1, .sg_list = sge, .num_sge = 1, .next = &wr[1]},
                                {.wr_id = 2, .sg_list = sge, .num_sge = 3}},
                       *bad = NULL;

    for (unsigned i = 0; i < 3; i++)
        sge[i] = (struct mrd_sge){(uintptr_t)self->p->end[TO].memory, SHORT, self->mr->lkey};
    /* 3 entries */
    assert_int_equal(mrd_engine_post_srq_recv(self->e, self->srq, wr, &bad), -EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    assert_int_equal(num_posted(self), 1);
    sge[0].lkey = self->p->end[TO].mr->lkey; /* of the queue pairs' domain */
    assert_int_equal(mrd_engine_post_srq_recv(self->e, self->srq, wr, &bad), -EINVAL);
    assert_ptr_equal(bad, &wr[0]);
    assert_non_null(strstr(mrd_engine_error(self->e), "lkey"));
    for (uint64_t id = 1; id < RECEIVES; id++)
        post_recv(self, id);
    wr[0].num_sge = 0;
    assert_int_equal(mrd_engine_post_srq_recv(self->e, self->srq, wr, &bad), -ENOMEM);
    assert_non_null(strstr(mrd_engine_error(self->e), "receive queue is full"));
}

/* Without a receive messages to all its queue pairs wait, and one receive brings one of them. */
TEST_F(shared, srq__those_refused_are_told)
{
    struct mrd_wc wc;

    for (unsigned i = 0; i < QPS; i++)
        deliver(self, i, SHORT);
    expect_nothing(self);
    for (uint64_t id = 1; id <= QPS; id++) {
        post_recv(self, id);
        assert_true(mrd_engine_says_ready(self->e));
        settle(self);
        assert_int_equal(num_posted(self), 0);
    }
    for (unsigned i = 0; i < QPS; i++) {
        assert_int_equal(mrd_engine_poll_cq(self->e, self->cq[i], 1, &wc), 1);
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
    }
}

/* The first completion queue is full, and two messages to its queue pair were refused. */
static void begin_full(struct shared *s)
{
    begin(s);
    for (uint64_t id = 0; id < RECEIVES; id++)
        post_recv(s, id);
    for (unsigned i = 0; i < ROOM + 2; i++) {
        deliver(s, 0, SHORT);
    }
    assert_int_equal(num_posted(s), RECEIVES - ROOM);
}

FIXTURE_OF(full_queue, shared);
FIXTURE_FROM(full_queue, begin_full, end);

/* A full completion queue keeps its own messages out, as without a receive. A poll tells them. */
TEST_F(full_queue, srq__waits_for_room_in_the_completion_queue)
{
    deliver(self, 1, SHORT);
    assert_int_equal(num_posted(self), RECEIVES - ROOM - 1);
    expect(self, 1, ROOM, MRD_WC_SUCCESS);
    for (uint64_t id = 0; id < 2; id++) {
        expect(self, 0, id, MRD_WC_SUCCESS);
        assert_true(mrd_engine_says_ready(self->e));
        settle(self);
        assert_int_equal(num_posted(self), RECEIVES - ROOM - 2 - id);
    }
}

/* Room that a queue is given later is as good as that of a poll. */
TEST_F(full_queue, mrd_engine_resize_cq__room_is_told)
{
    struct mrd_rnr_waiter *want;

    assert_int_equal(mrd_engine_resize_cq(self->e, self->cq[0], ROOM), 0);
    assert_false(mrd_engine_says_ready(self->e));
    assert_int_equal(mrd_engine_resize_cq(self->e, self->cq[0], ROOM - 1), -EINVAL);
    assert_int_equal(mrd_engine_resize_cq(self->e, self->cq[0], ROOM + 1), 0);
    assert_true(mrd_engine_says_ready(self->e));
    settle(self);
    assert_int_equal(num_posted(self), RECEIVES - ROOM - 1);
    assert_int_equal(mrd_engine_resize_cq(self->e, self->cq[0], 1 << 24), 0);
    want = mrd_container_of(mrd_list_first(&mrd_cq_impl(self->cq[0])->rnr_waiters),
                            struct mrd_rnr_waiter, queue_node);
    assert_int_equal(want->receives, 1); /* however much it grew */
    settle(self);
    assert_int_equal(num_posted(self), RECEIVES - ROOM - 2);
    for (uint64_t id = 0; id < ROOM + 2; id++)
        expect(self, 0, id, MRD_WC_SUCCESS);
}

/* Room comes back with an unsignaled send, too: the queue pair's sends complete in the same queue. */
TEST_F(shared, srq__room_of_unsignaled_sends)
{
    struct mrd_qp_init_attr attr = {.qkey = PAIR_QKEY, .cap = {.max_send_wr = ROOM}};
    struct hand_wr w;
    struct mrd_send_wr *bad;
    int error;

    attr.send_cq = attr.recv_cq = self->cq[0];
    struct mrd_qp *other = mrd_engine_create_qp(self->e, self->p->end[TO].pd, &attr, &error);
    hand_wr(self->p, TO, MRD_WR_RDMA_WRITE, SHORT, &w);
    w.wr.send_flags = 0;
    for (unsigned i = 0; i < ROOM; i++)
        assert_int_equal(mrd_engine_post_send(self->e, other, &w.wr, &bad, self->p->now), 0);
    post_recv(self, 1);
    send(self, 0, SHORT);
    pair_tx(self->p, FROM);
    pair_turn(self->p, TO); /* refuses it, and sends the writes */
    expect_nothing(self);
    assert_int_equal(num_posted(self), 1);
    settle(self);
    expect(self, 0, 1, MRD_WC_SUCCESS);
    assert_int_equal(mrd_engine_destroy_qp(self->e, other, self->p->now), 0);
}

/* Half a message came to queue pair 0. */
static void begin_half(struct shared *s)
{
    begin(s);
    post_recv(s, 1);
    post_recv(s, 2);
    deliver(s, 1, SHORT); /* the two know each other */
    expect(s, 1, 1, MRD_WC_SUCCESS);
    send(s, 0, LONG);
    pair_tx(s->p, FROM);
    s->p->end[TO].num_inbox = 2;
    pair_turn(s->p, TO);
    assert_int_equal(num_posted(s), 0);
}

FIXTURE_OF(half_message, shared);
FIXTURE_FROM(half_message, begin_half, end);

/* Half a message has its receive until its silent sender is given up. Others find none. */
TEST_F(half_message, srq__half_a_message_holds_its_receive)
{
    struct mrd_wc wc = {0};
    uint64_t silent_ns;

    send(self, 1, SHORT);
    pair_turn(self->p, FROM);
    pair_turn(self->p, TO);
    assert_int_equal(self->e->stats.rx_refuse_rnr, 1);
    silent_ns = self->p->now;
    while (!mrd_engine_poll_cq(self->e, self->cq[0], 1, &wc)) {
        assert_true(self->p->now - silent_ns < 2 * self->e->config.peer_timeout_ns);
        assert_int_equal(num_posted(self), 0);
        self->p->now += 10 * MRD_MSEC;
        pair_turn(self->p, TO);
        self->p->end[FROM].num_inbox = 0;
    }
    assert_true(self->p->now - silent_ns >= self->e->config.peer_timeout_ns);
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, MRD_WC_REM_ABORT_ERR);
    expect_nothing(self);
}

/* A queue pair in error tells what became of the receives that it took; others stay shared. */
TEST_F(half_message, srq__error_ends_what_was_taken)
{
    post_recv(self, 3);
    assert_int_equal(mrd_engine_modify_qp(self->e, self->qp[0],
                                          &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR},
                                          MRD_QP_STATE, self->p->now),
                     0);
    expect(self, 0, 2, MRD_WC_WR_FLUSH_ERR);
    expect_nothing(self);
    assert_int_equal(num_posted(self), 1);
    settle(self);
    deliver(self, 1, SHORT);
    expect(self, 1, 3, MRD_WC_SUCCESS);
}

/* Nobody would hear of what a destroyed one took: it goes back, and who waits for it is told. */
TEST_F(half_message, srq__destroyed_queue_pair_gives_back)
{
    send(self, 1, SHORT);
    pair_turn(self->p, FROM);
    pair_turn(self->p, TO); /* the rest of the first message is lost; the second finds no receive */
    assert_int_equal(self->e->stats.rx_refuse_rnr, 1);
    pair_turn(self->p, FROM); /* hears of that */
    self->p->end[TO].num_inbox = 0;
    assert_int_equal(mrd_engine_destroy_qp(self->e, self->qp[0], self->p->now), 0);
    self->qp[0] = make_qp(self, 0);
    settle(self);
    assert_int_equal(num_posted(self), 0);
    expect(self, 1, 2, MRD_WC_SUCCESS);
    expect_nothing(self);
}

/* Who waited for a queue pair that is gone is forgotten, and nobody else. */
TEST_F(shared, srq__destroyed_queue_pair_is_waited_for_no_more)
{
    struct mrd_rnr_waiter *want;
    struct mrd_peer *peer = hand_rx_peer(self->p, TO);

    mrd_rnr_add(self->e, peer, mrd_qp_impl(self->qp[0]));
    mrd_rnr_add(self->e, peer, mrd_qp_impl(self->qp[1]));
    hand_fill_cq(mrd_cq_impl(self->cq[0]));
    post_recv(self, 1); /* told, but there is no room: it waits for that instead */
    post_recv(self, 2);
    want = mrd_container_of(peer->readies.next, struct mrd_rnr_waiter, peer_node);
    if (want->qp != mrd_qp_impl(self->qp[0]))
        want = mrd_container_of(peer->readies.prev, struct mrd_rnr_waiter, peer_node);
    mrd_rnr_postpone(want);
    assert_int_equal(hand_length(&mrd_cq_impl(self->cq[0])->rnr_waiters), 1);
    assert_int_equal(hand_length(&peer->readies), 1); /* the other one is still to be told */
    hand_empty_cq(mrd_cq_impl(self->cq[0]));
    assert_int_equal(mrd_engine_destroy_qp(self->e, self->qp[0], self->p->now), 0);
    self->qp[0] = make_qp(self, 0);
    assert_int_equal(self->e->rnr_waiters.pool.used, 1);
    assert_int_equal(mrd_engine_destroy_qp(self->e, self->qp[1], self->p->now), 0);
    self->qp[1] = make_qp(self, 1);
    assert_int_equal(self->e->rnr_waiters.pool.used, 0);
}

/* --------------------------------------------------------------------------------------- events */

/* The event of the limit; while it is not given back, the queue stays. */
static void expect_event(struct shared *s)
{
    struct mrd_engine_event event;
    struct mrd_srq_attr attr;

    assert_int_equal(mrd_engine_get_event(s->e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event.object, s->srq);
    mrd_engine_query_srq(s->srq, &attr);
    assert_int_equal(attr.srq_limit, 0);
    mrd_engine_hand_event(&event);
    assert_int_equal(mrd_srq_impl(s->srq)->event.taken, 1);
    mrd_engine_ack_event(event.type, event.object);
    mrd_engine_ack_event(event.type, event.object); /* once too often does no harm */
    assert_int_equal(mrd_srq_impl(s->srq)->event.taken, 0);
}

static void expect_no_event(struct shared *s)
{
    struct mrd_engine_event event;

    assert_int_equal(mrd_engine_get_event(s->e, &event), -EAGAIN);
}

/* Once, when there are fewer than the limit; then it is set anew. */
TEST_F(shared, srq_limit__raises_one_event)
{
    for (uint64_t id = 0; id < 4; id++)
        post_recv(self, id);
    set_limit(self, 3);
    deliver(self, 0, SHORT);
    expect_no_event(self); /* three are left */
    for (unsigned i = 0; i < 2; i++) {
        deliver(self, 0, SHORT);
    }
    expect_event(self);
    expect_no_event(self);
    set_limit(self, 1);
    expect_no_event(self);
    set_limit(self, 2); /* there are fewer already */
    expect_event(self);
    set_limit(self, 0);
    expect_no_event(self);
}

/* What nobody took is not told any more; what was taken keeps the queue in being. */
TEST_F(shared, srq_limit__destroyed_before_it_is_told)
{
    struct mrd_srq_init_attr attr = {.attr = {.max_wr = 1, .srq_limit = 1}};
    struct mrd_engine_event event;
    struct mrd_srq *srq;
    int error;

    for (unsigned taken = 0; taken < 2; taken++) {
        srq = mrd_engine_create_srq(self->e, self->pd, &attr, &error);
        assert_int_equal(mrd_engine_modify_srq(self->e, srq, &(struct mrd_srq_attr){.srq_limit = 1},
                                               MRD_SRQ_LIMIT),
                         0);
        if (taken) {
            assert_int_equal(mrd_engine_get_event(self->e, &event), 0);
            mrd_engine_hand_event(&event);
            assert_int_equal(mrd_engine_destroy_srq(self->e, srq), -EBUSY);
            assert_non_null(strstr(mrd_engine_error(self->e), "not acked"));
            mrd_engine_ack_event(event.type, event.object);
        }
        assert_int_equal(mrd_engine_destroy_srq(self->e, srq), 0);
        expect_no_event(self);
    }
}
