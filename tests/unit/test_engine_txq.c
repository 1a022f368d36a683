/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of what waits to be sent, and of what waits for receives. */
#include "core/engine/txq.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, DELAY_USEC = 80, REMOTE = 500 };

static struct mrd_txq *queue_to(struct pair *p, uint32_t remote_qpn)
{
    return mrd_txq_open(p->end[AT].e, mrd_peer_find(&p->end[AT].e->peers, &p->end[1].addr),
                        p->end[AT].qp->qp_num, remote_qpn, false);
}

/* A message to that queue pair, the `i`th that is posted. */
static struct mrd_msg *post(struct pair *p, unsigned i, enum mrd_wr_opcode opcode,
                            uint32_t remote_qpn)
{
    struct hand_wr w;

    hand_wr(p, AT, opcode, BYTES, &w);
    w.wr.ud.remote_qpn = remote_qpn;
    assert_int_equal(hand_post(p, AT, &w.wr), 0);
    return &hand_qp(p, AT)->msgs[i];
}

/* It was sent and refused, and all of it is acked. */
static void refuse(struct pair *p, struct mrd_msg *msg)
{
    mrd_txq_dequeue(p->end[AT].e, msg);
    msg->started = true;
    msg->rnr.usec = DELAY_USEC;
    msg->rnr.refused_ns = p->now;
    mrd_txq_wait(p->end[AT].e, msg);
}

/* `num` sends that were refused, to one queue pair. */
static struct mrd_txq *begin_waiting(struct pair *p, unsigned num)
{
    pair_begin(p);
    for (unsigned i = 0; i < num; i++)
        post(p, i, MRD_WR_SEND, REMOTE);
    for (unsigned i = 0; i < num; i++)
        refuse(p, &hand_qp(p, AT)->msgs[i]);
    return queue_to(p, REMOTE);
}

static void set_time(struct pair *p, uint64_t now_ns)
{
    p->now = now_ns;
    mrd_engine_begin(p->end[AT].e, now_ns);
}

/* --------------------------------------------------------------------------------------- queues */

/* One for each pair of queue pairs; none when the table is full. */
TEST_F(pair, mrd_txq_open__by_both_queue_pairs)
{
    pair_open_with(self, 0, 3);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_tx_peer(self, AT);
    struct mrd_txq *q = mrd_txq_open(e, peer, 1, 2, false);
    assert_ptr_equal(mrd_txq_open(e, peer, 1, 2, false), q);
    assert_ptr_not_equal(mrd_txq_open(e, peer, 2, 1, false), q);
    assert_ptr_not_equal(mrd_txq_open(e, peer, 1, 3, false), q);
    assert_null(mrd_txq_open(e, peer, 1, 4, false));
    mrd_txq_rest(e, q);
    assert_non_null(mrd_txq_open(e, peer, 1, 4, false));
}

/* What has begun goes on; then what was refused once goes before what was not. */
TEST_F(pair, mrd_txq_first__order)
{
    struct mrd_msg *msg[3];

    for (unsigned i = 0; i < 3; i++)
        msg[i] = post(self, i, MRD_WR_SEND, REMOTE);
    struct mrd_txq *q = msg[0]->txq;
    assert_ptr_equal(mrd_txq_first(q), msg[0]);
    refuse(self, msg[2]);
    mrd_txq_apply_ready(self->end[AT].e, msg[0]->peer, REMOTE, 1);
    assert_ptr_equal(mrd_txq_first(q), msg[2]);
    msg[0]->next_offset = 1;
    assert_ptr_equal(mrd_txq_first(q), msg[0]);
    msg[0]->next_offset = 0;
}

/* The bytes that wait count in the half's sum, until they are taken off. */
TEST_F(pair, mrd_txq_dequeue__bytes)
{
    struct mrd_msg *msg[2];

    msg[0] = post(self, 0, MRD_WR_SEND, REMOTE);
    uint64_t each = msg[0]->peer->tx->queued_bytes;
    assert_true(each >= BYTES);
    msg[1] = post(self, 1, MRD_WR_SEND, REMOTE);
    assert_int_equal(msg[0]->peer->tx->queued_bytes, 2 * each);
    mrd_txq_dequeue(self->end[AT].e, msg[0]);
    assert_int_equal(msg[0]->state, MRD_MSG_SENDING);
    assert_null(msg[0]->txq);
    assert_ptr_equal(mrd_txq_first(msg[1]->txq), msg[1]);
    mrd_txq_dequeue(self->end[AT].e, msg[1]);
    assert_int_equal(msg[0]->peer->tx->queued_bytes, 0);
}

/* ------------------------------------------------------------------------ for want of a receive */

/* They wait in the order in which they were posted, and the first attempt has its time. */
TEST_F(pair, mrd_txq_wait__in_the_order_posted)
{
    enum { NUM = 7, STEP = 5 }; /* near the front, near the end, and between */

    for (unsigned i = 0; i < NUM; i++)
        post(self, i, MRD_WR_SEND, REMOTE);
    for (unsigned i = 0; i < NUM; i++)
        refuse(self, &hand_qp(self, AT)->msgs[(i * STEP + 2) % NUM]);
    struct mrd_txq *q = queue_to(self, REMOTE);
    const struct mrd_node *n = q->waiting.next;
    for (unsigned i = 0; i < NUM; i++, n = n->next)
        assert_ptr_equal(n, &hand_qp(self, AT)->msgs[i].node);
    assert_in_range(q->rnr_at_ns - self->now, DELAY_USEC * MRD_USEC,
                    DELAY_USEC * MRD_USEC * 9 / 8 + 2);
    assert_int_equal(q->peer->tx->rnr.next_ns, q->rnr_at_ns);
}

/* Receives were announced while the refusal was on its way: it goes at once, but only one. */
TEST_F(pair, mrd_txq_wait__announced_meanwhile)
{
    struct mrd_msg *msg[3];

    for (unsigned i = 0; i < 3; i++)
        msg[i] = post(self, i, MRD_WR_SEND, i < 2 ? REMOTE : REMOTE + 1);
    mrd_txq_apply_ready(self->end[AT].e, msg[0]->peer, REMOTE, 1);
    refuse(self, msg[2]);
    assert_int_equal(msg[2]->state, MRD_MSG_RNR_WAIT); /* it is for another queue pair */
    refuse(self, msg[0]);
    assert_int_equal(msg[0]->state, MRD_MSG_QUEUED);
    assert_true(msg[0]->rnr.hinted);
    assert_int_equal(msg[0]->attempt, 1);
    refuse(self, msg[1]);
    assert_int_equal(msg[1]->state, MRD_MSG_RNR_WAIT);
}

/* An announcement older than the refusal by more than a round trip was in vain. */
TEST_F(pair, mrd_txq_wait__announced_long_ago)
{
    struct mrd_msg *msg;

    for (uint64_t late_ns = 0; late_ns < 2; late_ns++) {
        pair_begin(self);
        msg = post(self, 0, MRD_WR_SEND, REMOTE);
        msg->peer->tx->loss.srtt_ns = 10 * MRD_USEC;
        mrd_txq_apply_ready(self->end[AT].e, msg->peer, REMOTE, 1);
        set_time(self, self->now + 10 * MRD_USEC + late_ns);
        refuse(self, msg);
        assert_int_equal(msg->state, late_ns ? MRD_MSG_RNR_WAIT : MRD_MSG_QUEUED);
    }
}

/* Where the table of queues is full they wait on the half's common one, and four are tried. */
TEST_F(pair, mrd_txq_wait__without_a_queue)
{
    pair_open_with(self, 0, 1);
    for (unsigned i = 0; i < 5; i++)
        mrd_txq_dequeue(self->end[AT].e, post(self, i, MRD_WR_SEND, REMOTE));
    struct mrd_send_state *tx = hand_tx_peer(self, AT)->tx;
    mrd_txq_rest(self->end[AT].e, queue_to(self, REMOTE));
    struct mrd_txq *other = queue_to(self, REMOTE + 1);
    for (unsigned i = 0; i < 5; i++) {
        struct mrd_msg *msg = &hand_qp(self, AT)->msgs[i];

        msg->started = true;
        msg->rnr.usec = DELAY_USEC;
        mrd_txq_wait(self->end[AT].e, msg);
        assert_ptr_equal(msg->txq, tx->rnr.common[0]);
    }
    set_time(self, tx->rnr.common[0]->rnr_at_ns);
    mrd_txq_retry(self->end[AT].e, other->peer);
    assert_int_equal(hand_length(&tx->rnr.common[0]->waiting), 1);
    assert_int_equal(hand_length(&tx->rnr.common[0]->retries), 4);
    mrd_txq_rest(self->end[AT].e, other);
}

/* So many of those that wait for that queue pair go, oldest first, and delays begin anew. */
TEST_F(pair, mrd_txq_apply_ready__as_many_as_there_are_receives)
{
    struct mrd_txq *q = begin_waiting(self, 4);

    set_time(self, q->rnr_at_ns);
    mrd_txq_retry(self->end[AT].e, q->peer);
    assert_int_equal(q->rnr_doublings, 1);
    assert_false(hand_qp(self, AT)->msgs[0].rnr.hinted);
    mrd_txq_apply_ready(self->end[AT].e, q->peer, REMOTE + 1, 2);
    assert_int_equal(hand_length(&q->retries), 1);
    mrd_txq_apply_ready(self->end[AT].e, q->peer, REMOTE, 2);
    assert_int_equal(hand_length(&q->retries), 3);
    assert_int_equal(hand_qp(self, AT)->msgs[3].state, MRD_MSG_RNR_WAIT);
    assert_true(hand_qp(self, AT)->msgs[1].rnr.hinted && hand_qp(self, AT)->msgs[2].rnr.hinted);
    assert_int_equal(q->rnr_doublings, 0);
}

/* One ended without a receive: the others go, and are not tried again, unless for ever. */
TEST_F(pair, mrd_txq_end_wait__all_go)
{
    struct mrd_txq *q = begin_waiting(self, 3);
    struct mrd_msg *msgs = hand_qp(self, AT)->msgs;

    msgs[1].rnr.left = 3;
    msgs[2].rnr.left = MRD_RNR_RETRY_FOREVER;
    mrd_list_remove(&msgs[0].node); /* it is given up */
    msgs[0].state = MRD_MSG_SENDING;
    mrd_txq_end_wait(self->end[AT].e, &msgs[0]);
    assert_int_equal(hand_length(&q->retries), 2);
    assert_int_equal(msgs[1].rnr.left, 0);
    assert_int_equal(msgs[2].rnr.left, MRD_RNR_RETRY_FOREVER);
    assert_true(mrd_list_empty(&q->rnr_node));
}

/* Each message that found a receive lets two others go; a write says nothing about receives. */
TEST_F(pair, mrd_txq_found_receive__lets_two_others_go)
{
    struct mrd_txq *q = begin_waiting(self, 4);
    struct mrd_msg *write = post(self, 4, MRD_WR_RDMA_WRITE, REMOTE);
    struct mrd_msg *other = post(self, 5, MRD_WR_SEND, REMOTE + 1);

    mrd_txq_found_receive(self->end[AT].e, write);
    mrd_txq_found_receive(self->end[AT].e, other);
    assert_int_equal(hand_length(&q->waiting), 4);
    mrd_txq_found_receive(self->end[AT].e, &hand_qp(self, AT)->msgs[0]);
    assert_int_equal(hand_length(&q->waiting), 2);
    assert_true(hand_qp(self, AT)->msgs[1].rnr.hinted);
}
