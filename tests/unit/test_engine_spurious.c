/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that were declared lost, and were not: what shows it, and that it is believed. */
#include "tests/unit/engine_pair.h"

enum { AT = 0, TO = 1, OTHERS = 8 };

/* A late packet was declared lost and sent again: `late` has the first copy, the inbox the next. */
static void begin(struct pair *p, struct pair_frame *late)
{
    struct mrd_wc wc;

    pair_begin(p);
    for (unsigned i = 0; i < OTHERS; i++) {
        pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, 64);
        pair_settle(p, p->now + MRD_MSEC);
        assert_int_equal(pair_poll(p, AT, &wc), 1);
    }
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, 64);
    assert_int_equal(pair_tx(p, AT), 1);
    *late = p->end[TO].inbox[0];
    p->end[TO].num_inbox = 0;
    while (!p->end[AT].e->stats.retx_packets) {
        pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, 64);
        pair_tx(p, AT);
        if (p->end[AT].e->stats.retx_packets)
            break;
        pair_hop(p, TO);
        pair_hop(p, AT);
        pair_poll(p, AT, &wc);
    }
    assert_int_equal(p->end[AT].e->stats.retx_rack + p->end[AT].e->stats.retx_order, 1);
    assert_int_equal(p->end[AT].e->stats.retx_packets, 1);
    assert_int_equal(p->end[AT].e->stats.retx_spurious, 0);
}

/* The late packet arrives; `after_ns` later its ack does. */
static void arrive(struct pair *p, const struct pair_frame *late, uint64_t after_ns)
{
    p->end[TO].num_inbox = 0;
    pair_rx_one(p, TO, late);
    pair_pass(p, TO, after_ns);
    mrd_engine_drained(p->end[TO].e, p->now);
    mrd_engine_expire(p->end[TO].e, p->now);
    pair_tx(p, TO);
    assert_true(p->end[AT].num_inbox > 0);
    pair_turn(p, AT);
}

/* An ack that comes sooner than an answer to the last copy could is of an earlier one. */
TEST_F(pair, undo_retransmission__sooner_than_an_answer)
{
    struct pair_frame late;

    begin(self, &late);
    arrive(self, &late, PAIR_HOP_NS / 2);
    assert_int_equal(self->end[AT].e->stats.retx_spurious, 1);
    pair_settle(self, self->now + 10 * MRD_MSEC);
    assert_int_equal(self->end[AT].e->stats.retx_spurious, 1); /* once, though it came twice */
}

/* After that time either copy may have come. */
TEST_F(pair, undo_retransmission__not_when_in_doubt)
{
    struct pair_frame late;

    begin(self, &late);
    arrive(self, &late, 20 * PAIR_HOP_NS);
    assert_int_equal(self->end[AT].e->stats.retx_spurious, 0);
    pair_settle(self, self->now + 10 * MRD_MSEC);
}

/* An ack that was overtaken still tells of a packet that came twice. */
TEST_F(pair, undo_retransmission__by_an_ack_that_was_overtaken)
{
    struct pair_frame late, copy, overtaken;
    struct pair_end *to = &self->end[TO];

    begin(self, &late);
    copy = to->inbox[0];
    assert_int_equal(pair_head(&copy).psn, pair_head(&late).psn);
    arrive(self, &late, 20 * PAIR_HOP_NS);
    pair_rx_one(self, TO, &copy);
    self->now += PAIR_HOP_NS; /* no ack waits for so long */
    pair_turn(self, TO);
    assert_int_equal(self->end[AT].num_inbox, 1);
    overtaken = self->end[AT].inbox[0];
    self->end[AT].num_inbox = 0;
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, 64);
    pair_settle(self, self->now + MRD_MSEC);
    assert_int_equal(self->end[AT].e->stats.retx_spurious, 0);
    for (unsigned i = 0; i < 2; i++) { /* the network repeats it: that is one all the same */
        pair_rx_one(self, AT, &overtaken);
        assert_int_equal(self->end[AT].e->stats.retx_spurious, 1);
    }
    pair_settle(self, self->now + MRD_MSEC);
}
