/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted sends and writes: what a request leaves behind, whether it is taken or not. */
#include <errno.h>

#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { BYTES = 64 };

/* A request that is not sound takes nothing: no peer, no queue, no slot, no completion. */
TEST_F(pair, mrd_engine_post_send__unsound)
{
    static const struct {
        unsigned flaw;
        const char *why;
    } rows[] = {{0, "unknown opcode"}, {1, "another context"}, {2, "lkey"}, {3, "lkey"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hand_holdings before = hand_holdings(self, 0);
        struct mrd_ah other = *self->end[0].ah;
        struct hand_wr w;

        hand_wr(self, 0, MRD_WR_SEND, BYTES, &w);
        other.context = (struct mrd_context *)(void *)self;
        if (rows[i].flaw == 0)
            w.wr.opcode = (enum mrd_wr_opcode)99;
        if (rows[i].flaw == 1)
            w.wr.ud.ah = &other;
        if (rows[i].flaw == 2)
            w.sge.lkey ^= 1;
        if (rows[i].flaw == 3)
            w.sge.length = PAIR_MEMORY + 1;
        assert_int_equal(hand_post(self, 0, &w.wr), -EINVAL);
        hand_expect_refused(self, 0, &before, rows[i].why);
    }
}

/* Room for the completion is reserved before anything else is taken. */
TEST_F(pair, mrd_engine_post_send__completion_queue_full)
{
    struct hand_wr w;

    struct mrd_cq_impl *cq = mrd_cq_impl(self->end[0].cq);
    hand_fill_cq(cq);
    struct hand_holdings before = hand_holdings(self, 0);
    hand_wr(self, 0, MRD_WR_SEND, BYTES, &w);
    assert_int_equal(hand_post(self, 0, &w.wr), -ENOMEM);
    hand_expect_refused(self, 0, &before, "send completion queue is full");
    hand_empty_cq(cq);
}

/* With work under way to the only peer that there is room for, a second one is refused. */
TEST_F(pair, mrd_engine_post_send__peer_table_full)
{
    struct hand_wr w;

    pair_open_with(self, 1, 0);
    struct mrd_ah *known = self->end[0].ah;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct hand_holdings before = hand_holdings(self, 0);
    self->end[0].ah = pair_ah(self, 0, &(struct mrd_addr){.port = 102});
    hand_wr(self, 0, MRD_WR_RDMA_WRITE, BYTES, &w);
    assert_int_equal(hand_post(self, 0, &w.wr), -EAGAIN);
    hand_expect_refused(self, 0, &before, "peer table is full");
    assert_int_equal(mrd_engine_destroy_ah(self->end[0].e, self->end[0].ah), 0);
    self->end[0].ah = known;
}

/* A queue is held as long as something waits on it; then another may have its place. */
TEST_F(pair, mrd_engine_post_send__table_of_queues_full)
{
    struct hand_wr w;

    pair_open_with(self, 0, 1);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct hand_holdings before = hand_holdings(self, 0);
    hand_wr(self, 0, MRD_WR_RDMA_WRITE, BYTES, &w);
    w.wr.ud.remote_qpn++;
    assert_int_equal(hand_post(self, 0, &w.wr), -EAGAIN);
    hand_expect_refused(self, 0, &before, "active flows is full");
    pair_tx(self, 0);
    assert_int_equal(hand_post(self, 0, &w.wr), 0);
}

/* Of a list, those before the one without a slot are taken; *bad_wr names that one. */
TEST_F(pair, mrd_engine_post_send__send_queue_full_within_a_list)
{
    struct mrd_send_wr *bad = NULL;
    struct hand_wr w[20];
    struct mrd_wc wc;
    int done = 0;

    for (unsigned i = 0; i < 20; i++) {
        hand_wr(self, 0, MRD_WR_RDMA_WRITE, BYTES, &w[i]);
        w[i].wr.next = i < 19 ? &w[i + 1].wr : NULL;
    }
    assert_int_equal(
        mrd_engine_post_send(self->end[0].e, self->end[0].qp, &w[0].wr, &bad, self->now), -ENOMEM);
    assert_ptr_equal(bad, &w[16].wr);
    assert_int_equal(hand_holdings(self, 0).reserved, 16);
    assert_non_null(strstr(mrd_engine_error(self->end[0].e), "send queue is full"));
    pair_settle(self, self->now + MRD_SEC);
    while (pair_poll(self, 0, &wc))
        done += wc.status == MRD_WC_SUCCESS;
    assert_int_equal(done, 16);
}

/* A queue that was made for a request without a slot goes with the next turn. */
TEST_F(pair, mrd_engine_post_send__drops_the_queue_that_it_made_in_vain)
{
    struct hand_wr w;

    for (unsigned i = 0; i < 16; i++)
        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    for (unsigned i = 0; i < 2; i++)
        pair_turn(self, 0);
    assert_int_equal(hand_holdings(self, 0).queues, 0);
    assert_true(mrd_list_empty(&self->end[0].e->turns.ready)); /* no other reason for a turn */
    hand_wr(self, 0, MRD_WR_RDMA_WRITE, BYTES, &w);
    w.wr.ud.remote_qpn++;
    assert_int_equal(hand_post(self, 0, &w.wr), -ENOMEM);
    assert_int_equal(hand_holdings(self, 0).queues, 1);
    pair_turn(self, 0);
    assert_int_equal(hand_holdings(self, 0).queues, 0);
}

/* An idle flow holds the only record: the post fails, and the flow's end makes room for it. */
TEST_F(pair, mrd_engine_post_send__flow_table_full)
{
    struct hand_wr w;

    pair_open_with(self, 0, 1);
    struct mrd_qp *kept = hand_swap_qp(self, 0, MRD_ORDER_MSG);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(self, self->now + MRD_MSEC);
    struct hand_holdings before = hand_holdings(self, 0);
    assert_int_equal(before.flows, 1);
    hand_wr(self, 0, MRD_WR_RDMA_WRITE, BYTES, &w);
    w.wr.ud.remote_qpn++;
    assert_int_equal(hand_post(self, 0, &w.wr), -EAGAIN);
    before.sends++; /* a number in the context's order is used up, and nothing else */
    before.queues++;
    hand_expect_refused(self, 0, &before, "flow table is full");
    pair_settle(self, self->now + MRD_MSEC);
    assert_int_equal(hand_holdings(self, 0).flows, 0);
    assert_int_equal(hand_post(self, 0, &w.wr), 0);
    pair_settle(self, self->now + MRD_SEC);
    hand_restore_qp(self, 0, kept);
}

/* In error a queue pair gives requests back at once; those that are not sound it still refuses. */
TEST_F(pair, mrd_engine_post_send__in_error)
{
    struct hand_wr w[2];
    struct mrd_wc wc;

    hand_flush(self, 0);
    hand_wr(self, 0, MRD_WR_RDMA_WRITE_WITH_IMM, BYTES, &w[0]);
    hand_wr(self, 0, MRD_WR_SEND, BYTES, &w[1]);
    w[0].wr.next = &w[1].wr;
    w[0].wr.send_flags = 0; /* told all the same */
    w[1].wr.wr_id = 1;
    assert_int_equal(hand_post(self, 0, &w[0].wr), 0);
    for (unsigned i = 0; i < 2; i++) {
        wc = pair_expect(self, 0, MRD_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.opcode, i ? MRD_WC_SEND : MRD_WC_RDMA_WRITE);
        assert_int_equal(wc.qp_num, self->end[0].qp->qp_num);
    }
    assert_int_equal(self->end[0].e->peers.entries.used, 0);
    w[1].sge.lkey ^= 1;
    assert_int_equal(hand_post(self, 0, &w[1].wr), -EINVAL);
    assert_int_equal(mrd_cq_impl(self->end[0].cq)->reserved, 0);
}

/* A handle keeps the id of its peer, which by now may be another's: the address decides. */
TEST_F(pair, mrd_engine_post_send__by_address_not_by_a_stale_id)
{
    struct mrd_peer *other = mrd_peer_open(self->end[0].e, &(struct mrd_addr){.port = 102});

    struct mrd_ah_impl *ah = (struct mrd_ah_impl *)(void *)self->end[0].ah;
    ah->peer_id = other->id;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    assert_null(other->tx);
    assert_int_equal(pair_tx(self, 0), 1);
    assert_int_not_equal(ah->peer_id, other->id);
}

/* Two handles to one peer: what the narrower of them says holds. */
TEST_F(pair, mrd_engine_post_send__least_payload_of_the_handles)
{
    const struct mrd_peer *peer;
    struct mrd_ah *kept;
    int error;

    for (unsigned wide = 0; wide < 2; wide++) {
        pair_begin(self);
        kept = self->end[0].ah;
        for (unsigned i = 0; i < 2; i++) {
            self->end[0].ah =
                mrd_engine_create_ah(self->end[0].e, self->end[0].pd, &self->end[1].addr,
                                     i == wide ? PAIR_PAYLOAD : 512, &error);
            pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
            assert_int_equal(mrd_engine_destroy_ah(self->end[0].e, self->end[0].ah), 0);
        }
        self->end[0].ah = kept;
        peer = mrd_peer_find(&self->end[0].e->peers, &self->end[1].addr);
        assert_int_equal(peer->payload_bytes, 512);
        assert_int_equal(peer->tx->pmtu.payload, 512); /* also of a half that is in use */
        pair_settle(self, self->now + MRD_SEC);
    }
}

/* Each message has an MSN; only those that consume a receive have an RSN of their own. */
TEST_F(pair, mrd_engine_post_send__numbers_of_ordered_messages)
{
    static const enum mrd_wr_opcode opcodes[] = {MRD_WR_RDMA_WRITE, MRD_WR_SEND, MRD_WR_RDMA_WRITE,
                                                 MRD_WR_RDMA_WRITE_WITH_IMM, MRD_WR_SEND};
    static const uint32_t rsns[] = {0, 0, 1, 1, 2};
    struct mrd_qp *kept = hand_swap_qp(self, 0, MRD_ORDER_MSG);

    for (uint32_t i = 0; i < 5; i++) {
        const struct mrd_msg *msg = &hand_qp(self, 0)->msgs[i];

        pair_post(self, 0, opcodes[i], 0, BYTES);
        assert_int_equal(msg->order.msn, i);
        assert_int_equal(msg->order.rsn, rsns[i]);
        assert_ptr_equal(msg->order.flow->msgs.prev, &msg->order.node);
    }
    hand_restore_qp(self, 0, kept);
}

/* A flow that was idle, and about to be closed, has work again. */
TEST_F(pair, mrd_engine_post_send__on_an_idle_flow)
{
    struct mrd_qp *kept = hand_swap_qp(self, 0, MRD_ORDER_MSG);

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(self, self->now + MRD_MSEC);
    const struct mrd_send_state *tx = mrd_peer_find(&self->end[0].e->peers, &self->end[1].addr)->tx;
    assert_int_equal(hand_length(&tx->idle), 1);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, BYTES);
    assert_int_equal(hand_length(&tx->idle), 0);
    hand_restore_qp(self, 0, kept);
}
