/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusals outlive the send state that they were to go by, within the space that they are of. */
#include "tests/unit/engine_pair.h"

enum { TARGET = 0, SENDER = 1, BYTES = 64 };

/* A write that the target will refuse: its queue pair takes none without a valid key. */
static void post_bad(struct pair *p)
{
    uint32_t rkey = p->end[TARGET].mr->rkey;

    p->end[TARGET].mr->rkey ^= 1;
    pair_post(p, SENDER, MRD_WR_RDMA_WRITE, 0, BYTES);
    p->end[TARGET].mr->rkey = rkey;
}

/* The two know each other, and no timer runs. */
static void begin(struct pair *p)
{
    struct mrd_wc wc;

    pair_begin(p);
    for (unsigned i = 0; i < 2; i++)
        pair_post(p, i, MRD_WR_RDMA_WRITE, 0, BYTES);
    pair_settle(p, p->now + MRD_SEC);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pair_poll(p, i, &wc), 1);
}

/* The other end forgot the space that `at` sends in, and nothing else. */
static void reset(struct pair *p, unsigned at)
{
    struct mrd_wire_head head = {.type = MRD_WIRE_RESET,
                                 .src_inc = pair_inc(p, 1 - at),
                                 .dst_inc = pair_inc(p, at),
                                 .epoch = pair_peer(p, at)->tx->contact.epoch,
                                 .live_epoch = pair_peer(p, 1 - at)->tx->contact.epoch,
                                 .reply = p->end[1 - at].addr.port};
    struct pair_frame f;
    uint8_t *end = mrd_wire_put_head(f.data, &head);

    mrd_wire_seal(f.data, end);
    f.len = (uint32_t)(end - f.data);
    pair_rx_one(p, at, &f);
    assert_int_equal(p->end[at].e->stats.rx_resets, 1);
}

/* All that the end has received but not read goes to it, and nothing leaves yet. */
static void read_only(struct pair *p, unsigned at)
{
    for (unsigned i = 0; i < p->end[at].num_inbox; i++)
        pair_rx_one(p, at, &p->end[at].inbox[i]);
    p->end[at].num_inbox = 0;
}

static void expect_refused(struct pair *p)
{
    pair_settle(p, p->now + 100 * MRD_MSEC);
    pair_expect(p, SENDER, MRD_WC_REM_ACCESS_ERR);
    pair_end(p);
}

/* The target's send state ends with a refusal in it: the next takes it, the sender learns. */
TEST_F(pair, mrd_send_state_end__refusals_that_wait_move_on)
{
    begin(self);
    post_bad(self);
    pair_turn(self, SENDER);
    read_only(self, TARGET);
    assert_false(mrd_list_empty(&pair_peer(self, TARGET)->tx->refusals));
    reset(self, TARGET);
    expect_refused(self);
}

/* The same with a refusal that was sent, and lost. */
TEST_F(pair, mrd_send_state_end__refusals_in_flight_move_on)
{
    begin(self);
    post_bad(self);
    pair_turn(self, SENDER);
    pair_turn(self, TARGET);
    assert_true(mrd_list_empty(&pair_peer(self, TARGET)->tx->refusals));
    self->end[SENDER].num_inbox = 0;
    reset(self, TARGET);
    expect_refused(self);
}

/*
 * The ack of a refusal comes when its sender has begun a new space, in which the same PSN was
 * refused as well: that one waits for its own refusal, whatever becomes of that.
 */
TEST_F(pair, mrd_msg_record_acked__refusal_of_an_earlier_space)
{
    struct mrd_wc wc;

    begin(self);
    reset(self, SENDER); /* so that the refused PSN is the first of its space, both times */
    self->end[SENDER].e->stats.rx_resets = 0;
    post_bad(self);
    pair_turn(self, SENDER);
    pair_turn(self, TARGET);
    pair_turn(self, SENDER);
    self->now += MRD_MSEC; /* the ack of the refusal need not wait for more packets */
    pair_turn(self, SENDER);
    assert_true(self->end[TARGET].num_inbox > 0);
    struct pair_frame ack = self->end[TARGET].inbox[self->end[TARGET].num_inbox - 1];
    self->end[TARGET].num_inbox = 0;

    reset(self, SENDER);
    while (pair_poll(self, SENDER, &wc))
        ;
    post_bad(self);
    pair_turn(self, SENDER);
    pair_turn(self, TARGET);
    assert_int_equal(self->end[TARGET].e->stats.tx_refusals, 2);
    self->end[SENDER].num_inbox = 0; /* the second refusal is lost */
    pair_rx_one(self, TARGET, &ack);
    assert_int_equal(pair_peer(self, TARGET)->rx->rcv.num_refused, 1);
    expect_refused(self);
}

/* Of two writes in a packet one was refused: the other was taken, which is known with the refusal. */
TEST_F(pair, mrd_msg_rest_taken__ends_with_the_refusal)
{
    struct mrd_wc wc[3];

    begin(self);
    post_bad(self);
    pair_post(self, SENDER, MRD_WR_RDMA_WRITE, 1, BYTES);
    pair_tx(self, SENDER);
    assert_int_equal(self->end[TARGET].num_inbox, 1);
    read_only(self, TARGET);
    pair_tx(self, TARGET);
    read_only(self, SENDER);
    assert_int_equal(mrd_engine_poll_cq(self->end[SENDER].e, self->end[SENDER].cq, 3, wc), 2);
    assert_int_equal(wc[0].wr_id, 500);
    assert_int_equal(wc[0].status, MRD_WC_REM_ACCESS_ERR);
    assert_int_equal(wc[1].wr_id, 501);
    assert_int_equal(wc[1].status, MRD_WC_SUCCESS);
    pair_settle(self, self->now + 100 * MRD_MSEC);
    assert_int_equal(mrd_engine_poll_cq(self->end[SENDER].e, self->end[SENDER].cq, 3, wc), 0);
}
