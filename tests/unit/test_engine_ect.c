/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets leave with ECT, and which must not. */
#include "tests/unit/engine_pair.h"

enum { SEGMENTS = 6, MESSAGE = SEGMENTS * PAIR_PAYLOAD, ECT = MRD_TX_ECT | MRD_TX_NOT_ECT };

static void begin(struct pair *p, bool no_ect)
{
    pair_config(p);
    p->config.no_ect = no_ect;
    p->config.mover.quantum = SEGMENTS;
    pair_open(p);
}

/* The two have met. */
static void begin_met(struct pair *p)
{
    begin(p, false);
    pair_write(p, 0, 0, PAIR_PAYLOAD);
}

/* All that is on its way to an end has those flags; there are `num`. */
static void expect_flags(const struct pair *p, unsigned to, unsigned num, uint8_t flags)
{
    assert_true(num > 0 && num <= p->end[to].num_inbox);
    for (unsigned i = 0; i < num; i++)
        assert_int_equal(p->end[to].inbox[i].flags & ECT, flags);
}

/* What has come is read, and acked at last. Returns the flags of the ack. */
static uint8_t ack_at_last(struct pair *p)
{
    for (unsigned i = 0; i < 10 && !pair_turn(p, 1); i++)
        p->now = mrd_engine_deadline(p->end[1].e);
    assert_true(p->end[0].num_inbox >= 1);
    assert_int_equal(pair_head(&p->end[0].inbox[0]).type, MRD_WIRE_ACK);
    return p->end[0].inbox[0].flags & ECT;
}

/* One packet there, with these flags in place of its own; the flags of the ack that comes back. */
static uint8_t flags_of_ack(struct pair *p, uint8_t flags)
{
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), 1);
    p->end[1].inbox[0].flags = flags;
    p->now += PAIR_HOP_NS;
    uint8_t ack = ack_at_last(p);
    pair_settle(p, p->now + MRD_SEC);
    return ack;
}

/* Acks may be marked, which does no harm; not if what they ack came without ECT, nor later. */
TEST_F(pair, mrd_tx_put_ack__as_the_peer)
{
    begin_met(self);
    assert_int_equal(flags_of_ack(self, MRD_TX_ECT), 0);
    assert_int_equal(flags_of_ack(self, MRD_TX_NOT_ECT), MRD_TX_NOT_ECT);
    assert_int_equal(flags_of_ack(self, MRD_TX_ECT), MRD_TX_NOT_ECT);
}

/* The packet came, but its ack did not: its copy, without ECT, is a duplicate. */
TEST_F(pair, mrd_tx_put_ack__of_a_duplicate)
{
    begin_met(self);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 0), 1);
    struct pair_frame copy = self->end[1].inbox[0];
    copy.flags = MRD_TX_NOT_ECT;
    self->now += PAIR_HOP_NS;
    assert_int_equal(ack_at_last(self), 0);
    self->end[0].num_inbox = 0;
    self->end[1].inbox[self->end[1].num_inbox++] = copy;
    assert_int_equal(ack_at_last(self), MRD_TX_NOT_ECT);
}

/* Answers are not acked: a way that drops ECT would drop them each time. */
TEST_F(pair, mrd_tx_put_answers__not_ect)
{
    struct pair_frame *f = &self->end[0].inbox[0];

    begin(self, false);
    self->end[1].e->config.trusting = false;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    assert_true(pair_tx(self, 0) >= 1);
    assert_int_equal(self->end[1].inbox[0].flags & ECT, MRD_TX_ECT);
    assert_true(pair_hop(self, 1) >= 1);
    assert_int_equal(pair_head(f).type, MRD_WIRE_CHALLENGE);
    assert_int_equal(f->flags & ECT, MRD_TX_NOT_ECT);
}

/* Of packets that leave as one run the first is the test; the others would all be lost with it. */
TEST_F(pair, mrd_tx_follow__one_test)
{
    begin_met(self);
    pair_peer(self, 0)->ect.off = true;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
    assert_int_equal(pair_tx(self, 0), SEGMENTS);
    for (unsigned i = 0; i < SEGMENTS; i++)
        assert_int_equal(self->end[1].inbox[i].flags & ECT, i ? MRD_TX_NOT_ECT : MRD_TX_ECT);
    pair_settle(self, self->now + MRD_SEC);
    assert_false(pair_peer(self, 0)->ect.off); /* it came */
}

TEST_F(pair, mrd_tx_emit__no_ect)
{
    begin(self, true);
    for (unsigned round = 0; round < 2; round++) { /* first contact, and later */
        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, MESSAGE);
        expect_flags(self, 1, pair_tx(self, 0), MRD_TX_NOT_ECT);
        expect_flags(self, 0, pair_hop(self, 1), MRD_TX_NOT_ECT);
        pair_settle(self, self->now + MRD_SEC);
    }
}
