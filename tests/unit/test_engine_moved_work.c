/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer moves to an address where an entry of ours asks who is there: what was posted to that entry goes on by
 * the peer's own one.
 */
#include "tests/unit/engine_moves.h"

/* A moved message that was posted earlier than one that waits for a receive there, and is numbered later. */
TEST_F_WITH(world, moved__rnr, self->order = MRD_ORDER_MSG)
{
    post_asking(self, MRD_WR_SEND);                  /* waits: nobody answers there */
    post(self, self->p->end[AT].ah, MRD_WR_SEND, 2); /* finds no receive */
    pair_settle(self->p, self->p->now + MRD_MSEC);
    assert_int_equal(self->peer->tx->rnr.txqs.next != &self->peer->tx->rnr.txqs, 1);
    moves(self->p, self->peer);
    assert_int_equal(hand_length(&self->peer->msgs), 2);
    /* The user of the other end posts a receive at a time, each when the one before is done. */
    for (unsigned i = 0; i < 2; i++) {
        pair_post_recv(self->p, 0, 0, 256);
        pair_settle(self->p, self->p->now + 20 * MRD_SEC);
        pair_expect(self->p, 0, MRD_WC_SUCCESS);
    }
}

/* The same, and so many were posted there since that the moved one is beyond the window. */
TEST_F_WITH(world, moved__window, self->order = MRD_ORDER_MSG)
{
    enum { MANY = 1100 };
    struct mrd_qp_init_attr attr = {
        .cap = {.max_send_wr = 2 * MANY, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qkey = PAIR_QKEY,
        .order = MRD_ORDER_MSG};
    struct mrd_qp *small = self->p->end[AT].qp;
    struct mrd_wc wc;
    unsigned done = 0;
    int error;
    struct mrd_cq *cq = mrd_engine_create_cq(self->e, NULL, 2 * MANY, NULL, &error);

    attr.send_cq = attr.recv_cq = cq;
    self->p->end[AT].qp = mrd_engine_create_qp(self->e, self->p->end[AT].pd, &attr, &error);
    assert_non_null(self->p->end[AT].qp);
    post_asking(self, MRD_WR_RDMA_WRITE);
    for (unsigned i = 0; i < MANY; i++)
        post(self, self->p->end[AT].ah, MRD_WR_RDMA_WRITE, 2 + i);
    moves(self->p, self->peer);
    assert_int_equal(hand_length(&self->peer->msgs), MANY + 1);
    pair_settle(self->p, self->p->now + 20 * MRD_SEC);
    while (mrd_engine_poll_cq(self->e, cq, 1, &wc) == 1) {
        assert_int_equal(wc.status, MRD_WC_SUCCESS);
        done++;
    }
    assert_int_equal(done, MANY + 1);
    mrd_engine_destroy_qp(self->e, self->p->end[AT].qp, self->p->now);
    self->p->end[AT].qp = small;
    mrd_engine_destroy_cq(self->e, cq);
}

/* `asks` is known as the peer's other address, and w.ah's message is sent by it. */
static void begin_sent(struct world *w)
{
    mrd_send_state_open(w->e, w->asks);
    answered(w->asks, w->peer->space.inc);
    post(w, w->ah, MRD_WR_RDMA_WRITE, 1);
    struct mrd_msg *msg = last_of(w->asks);
    pair_tx_lost(w->p, AT); /* a copy is on its way for long */
    assert_true(msg->started);
}

/* The message moves to the peer with the entry, and waits there. */
static void expect_moved(struct world *w, const struct mrd_msg *msg)
{
    moves(w->p, w->peer);
    assert_ptr_equal(msg->peer, w->peer);
    (void)pair_tx(w->p, AT);
    assert_false(msg->started);
}

/* An ordered message was sent, and its entry given up; the next, which only asked, moves to another entry. */
TEST_F_WITH(world, moved__does_not_wait, self->order = MRD_ORDER_MSG)
{
    begin_sent(self);
    mrd_peer_unreachable(self->e, self->asks);
    uint64_t failed_ns = self->p->now;
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    assert_true(self->asks->tx->contact.hello);
    expect_moved(self, last_of(self->asks));
    assert_true(self->p->now < failed_ns + MRD_PACKET_LIFE_NS);
}

/* The next that was posted waited by its flow (the failed one went by a third entry), and moves. */
TEST_F_WITH(world, moved__forgets_start, self->order = MRD_ORDER_MSG)
{
    begin_sent(self);
    struct mrd_peer *asks = add_asking(self->p, AT, ELSEWHERE);
    mrd_peer_unreachable(self->e, self->asks);
    uint64_t failed_ns = self->p->now;
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    assert_int_equal(last_of(asks)->order.flow->start_ns, failed_ns + MRD_PACKET_LIFE_NS);
    expect_moved(self, last_of(asks));
}

/* Who was at the address before is over, and another process, which knows us, moves there. */
TEST(took_place__of_a_tomb)
{
    for (unsigned tomb = 0; tomb < 2; tomb++) {
        struct world w = begin_order(MRD_ORDER_NONE);

        post(&w, w.p->end[AT].ah, MRD_WR_SEND, 1); /* finds no receive */
        pair_settle(w.p, w.p->now + MRD_MSEC);
        pass(w.p, 1);
        {
            struct mrd_addr there = w.peer->addr;

            there.ip[15] = ELSEWHERE;
            w.asks = mrd_peer_open(w.e, &there);
        }
        if (tomb) {
            w.asks->space.state = MRD_SPACE_TOMB;
            w.asks->space.inc = w.peer->space.inc + 1;
            w.asks->heard_ns = w.p->now;
        }
        post_asking(&w, MRD_WR_RDMA_WRITE);
        w.asks->tx->probes.silence_due = true;
        moves(w.p, w.peer);
        pair_settle(w.p, w.p->now + 100 * MRD_MSEC);
        pair_post_recv(w.p, 0, 0, 256);
        pair_settle(w.p, w.p->now + MRD_SEC);
        for (unsigned i = 0; i < 2; i++)
            pair_expect(w.p, AT, MRD_WC_SUCCESS);
        finish(&w);
    }
}

/*
 * A handle's message goes on by the peer that moves to its address, and waits for a receive. The peer moves on.
 * What the handle posts next must follow it, or it is delivered before.
 */
TEST_F_WITH(world, moved__handle_follows, self->order = MRD_ORDER_MSG)
{
    post_asking(self, MRD_WR_SEND);
    moves(self->p, self->peer);
    assert_int_equal(hand_length(&self->peer->msgs), 1);
    pair_settle(self->p, self->p->now + MRD_MSEC);
    assert_int_equal(hand_length(&self->peer->msgs), 1); /* refused: it waits */
    pair_move_peer(self->p, AT, self->peer, 25);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    assert_int_equal(hand_length(&self->peer->msgs), 2);
}

/* A message half sent by an entry that is well stops for 2 s, as another entry at the address failed. */
TEST_F_WITH(world, half_sent__goes_on, self->order = MRD_ORDER_MSG)
{
    struct hand_wr wr;

    mrd_send_state_open(self->e, self->peer);
    struct mrd_peer *other = mrd_peer_add_entry(self->e, &self->peer->addr);
    hand_wr(self->p, AT, MRD_WR_RDMA_WRITE, 60 * PAIR_PAYLOAD, &wr);
    assert_int_equal(hand_post(self->p, AT, &wr.wr), 0);
    struct mrd_msg *msg = last_of(self->peer);
    assert_ptr_equal(msg->peer, self->peer);
    pair_pass(self->p, AT, 1);
    assert_int_equal(pair_tx_burst(self->p, AT, 4), 4);
    self->p->end[0].num_inbox = 0;
    uint32_t sent = msg->next_offset;
    assert_true(sent > 0 && sent < 60 * PAIR_PAYLOAD);
    other->failed_ns = self->e->lives.failed_ns = self->p->now; /* as note_failed() says */
    post(self, self->p->end[AT].ah, MRD_WR_RDMA_WRITE, 2);
    pair_settle(self->p, self->p->now + MRD_SEC);
    assert_true(msg->next_offset == 60 * PAIR_PAYLOAD); /* the second one waits, by right */
}

/* What an entry that asks holds when it gives way: flushed, destroyed, without memory; tables full in part. */
TEST(moved__in_all_states)
{
    enum { FLUSH, DESTROY, DEREG, NO_QUEUES, NO_FLOWS, TWO_TARGETS, CLOSED, NUM };

    for (unsigned i = 0; i < 2 * NUM; i++) {
        struct world w = begin_order(i < NUM ? MRD_ORDER_MSG : MRD_ORDER_NONE);
        static const enum mrd_wr_opcode ops[] = {MRD_WR_RDMA_READ, MRD_WR_RDMA_WRITE,
                                                 MRD_WR_RDMA_WRITE, MRD_WR_SEND};
        void *taken[4200];
        struct mrd_wc wc;
        unsigned got = 0, how = i % NUM;
        struct mrd_pool *pool = NULL; /* what is exhausted */

        pair_pass(w.p, AT, 1);
        mrd_send_state_open(w.e, w.asks)->contact.hello = true;
        for (unsigned m = 0; m < 8; m++) {
            struct hand_wr wr;

            hand_wr(w.p, AT, ops[m % 4], 64, &wr);
            wr.wr.ud.ah = w.ah;
            wr.wr.wr_id = m;
            wr.wr.send_flags |= m % 4 == 2 ? MRD_SEND_FENCE : 0;
            if (how == TWO_TARGETS && m & 1)
                wr.wr.ud.remote_qpn++;
            assert_int_equal(hand_post(w.p, AT, &wr.wr), 0);
        }
        if (how == FLUSH)
            hand_flush(w.p, AT);
        if (how == DESTROY)
            hand_restore_qp(w.p, AT, w.kept);
        if (how == DEREG)
            hand_dereg(w.p, AT);
        if (how == NO_QUEUES)
            pool = &w.e->txqs.pool;
        if (how == NO_FLOWS || how == TWO_TARGETS)
            pool = &w.e->flows_tx.pool;
        if (pool)
            hand_exhaust(pool, taken);
        if (how == TWO_TARGETS) /* one is left */
            mrd_pool_release(pool, taken[0]);
        if (how == CLOSED)
            mrd_engine_farewell(w.e, w.p->now);
        moves(w.p, w.peer);
        if (pool)
            hand_refill(pool, how == TWO_TARGETS ? taken + 1 : taken);
        assert_null(mrd_engine_audit(w.e));
        for (unsigned r = 0; r < 4; r++)
            pair_post_recv(w.p, 0, 0, 256);
        pair_settle(w.p, w.p->now + 100 * MRD_MSEC);
        assert_null(mrd_engine_audit(w.e));
        pair_settle(w.p, w.p->now + 5 * MRD_SEC);
        assert_null(mrd_engine_audit(w.e));
        while (pair_poll(w.p, AT, &wc) == 1)
            got++;
        assert_int_equal(got, how == DESTROY ? 0 : 8);
        if (how == DESTROY) /* finish() gives one back */
            hand_swap_qp(w.p, AT, MRD_ORDER_NONE);
        finish(&w);
    }
}
