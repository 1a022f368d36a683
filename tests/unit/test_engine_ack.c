/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When acks leave, how often and which way; and what is asked for. Also where a mover takes one
 * packet at a time.
 */
#include "core/engine/rnr.h"
#include "tests/unit/engine_hand.h"

enum { LONG_PACKETS = 5, FAR_NS = 1000 * 1000 };

static bool is_ack(const struct pair_frame *f)
{
    return pair_head(f).type == MRD_WIRE_ACK;
}

static bool asks(const struct pair_frame *f)
{
    return pair_head(f).flags & MRD_WIRE_ACK_REQUEST;
}

/* Acks on their way to an end. */
static unsigned acks_to(const struct pair *p, unsigned to)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->end[to].num_inbox; i++)
        n += is_ack(&p->end[to].inbox[i]);
    return n;
}

/* What lies in the inbox is lost but for frames [first, first + num). */
static void keep(struct pair *p, unsigned at, unsigned first, unsigned num)
{
    struct pair_end *end = &p->end[at];

    memmove(end->inbox, end->inbox + first, num * sizeof(end->inbox[0]));
    end->num_inbox = num;
}

/* Acks are rare and late: those that come have a reason. */
static void begin_late_acks(struct pair *p)
{
    pair_config(p);
    p->config.mover.ack_every = 1000;
    p->config.mover.ack_delay_ns = FAR_NS;
    pair_open(p);
}

/* Two long messages leave together, and so many packets of them arrive; how many acks leave at once. */
static unsigned acks_after(struct pair *p, unsigned packets)
{
    begin_late_acks(p);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, LONG_PACKETS * PAIR_PAYLOAD);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 16 * PAIR_PAYLOAD, LONG_PACKETS * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), 2 * LONG_PACKETS);
    keep(p, 1, 0, packets);
    for (unsigned i = 0; i < packets; i++)
        assert_false(asks(&p->end[1].inbox[i]));
    pair_turn(p, 1);
    return acks_to(p, 0);
}

/* Its sender waits for just that ack, whether it asked for it or not. */
TEST_F(pair, mrd_engine_rx__end_of_a_long_message_is_acked_at_once)
{
    for (unsigned packets = 1; packets < 2 * LONG_PACKETS; packets++)
        assert_int_equal(acks_after(self, packets), packets >= LONG_PACKETS);
}

/* An answer may be close that the ack can ride on: it waits until the call returns. */
TEST_F(pair, mrd_engine_rx__end_of_a_short_message_waits_for_the_call)
{
    begin_late_acks(self);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 100);
    assert_int_equal(pair_tx(self, 0), 1);
    assert_true(asks(&self->end[1].inbox[0]));
    assert_int_equal(pair_turn(self, 1), 0);
    assert_int_equal(pair_turn(self, 1), 1);
    assert_int_equal(acks_to(self, 0), 1);
}

/* A message of four packets, of which PSN 2 is lost; the path that it was lost on. */
static uint16_t lose_one_of_four(struct pair *p)
{
    struct pair_frame *f = p->end[1].inbox;

    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, 4 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), 4);
    uint16_t lost_on = f[2].path;
    f[2] = f[3];
    p->end[1].num_inbox = 3;
    return lost_on;
}

/* Turns and waits until end 0 sends again; what it sent lies in the inbox of end 1. */
static void run_until_repeated(struct pair *p)
{
    for (int i = 0; i < 1000 && !p->end[0].e->stats.retx_packets; i++) {
        pair_turn(p, 1);
        pair_hop(p, 0);
        p->now += PAIR_HOP_NS;
    }
    assert_true(p->end[0].e->stats.retx_packets > 0);
}

/*
 * Both with much room and with little: the retransmission twice, on two paths that are not the one
 * it was lost on.
 */
TEST_F(pair, mrd_engine_tx__tail_is_repeated_on_two_paths)
{
    static const unsigned bursts[] = {1, 2, PAIR_BURST};

    for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
        const struct pair_frame *f = self->end[1].inbox;

        pair_begin(self);
        self->burst = bursts[i];
        uint16_t lost_on = lose_one_of_four(self);
        run_until_repeated(self);
        assert_int_equal(self->end[1].num_inbox, 2);
        assert_int_equal(pair_head(&f[0]).psn, 2);
        assert_int_equal(pair_head(&f[1]).psn, 2);
        assert_int_not_equal(f[0].path, lost_on);
        assert_int_not_equal(f[1].path, f[0].path);
        assert_int_equal(self->end[0].e->stats.retx_packets, 2);
        assert_int_equal(self->end[0].e->stats.retx_copy, 1);
    }
}

/* All that end 0 sends is lost, until that figure of its grows. */
static void hop_in_vain_until(struct pair *p, const uint64_t *figure)
{
    for (int i = 0; i < 1000000 && !*figure; i++) {
        p->end[1].num_inbox = 0;
        pair_hop(p, 0);
    }
    assert_true(*figure > 0);
}

/* The one path just dropped it: a second copy would be one packet too many there. */
static void one_path_gets_no_copy(struct pair *p)
{
    pair_open(p);
    lose_one_of_four(p);
    run_until_repeated(p);
    assert_int_equal(p->end[1].num_inbox, 1);
    assert_int_equal(pair_head(&p->end[1].inbox[0]).psn, 2);
    /* Nor does a probe of a full window: all its acks are lost. */
    pair_settle(p, p->now + MRD_SEC);
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD);
    assert_int_equal(pair_tx(p, 0), 1);
    hop_in_vain_until(p, &p->end[0].e->stats.retx_tail);
    assert_int_equal(p->end[0].e->stats.retx_copy, 0);
    /* After a timeout two tries are better than one. */
    hop_in_vain_until(p, &p->end[0].e->stats.retx_timeout);
    pair_turn(p, 0);
    assert_int_equal(p->end[0].e->stats.retx_copy, 1);
}

TEST_F(pair, mrd_engine_tx__one_path_gets_no_copy)
{
    pair_config(self);
    self->config.paths = self->config.mover.paths = 1;
    one_path_gets_no_copy(self);
    /* Many, of which one is used. */
    pair_config(self);
    self->config.spray = "single";
    one_path_gets_no_copy(self);
}

/* A copy that is due may find that its packet was acked meanwhile: then there is none. */
TEST_F(pair, mrd_engine_tx__no_copy_of_what_was_acked)
{
    self->burst = 1;
    lose_one_of_four(self);
    pair_turn(self, 1);
    /* As a mover does that is busy after one packet. */
    while (!self->end[0].e->stats.retx_packets) {
        self->end[1].num_inbox = 0;
        pair_rx(self, 0, PAIR_HOP_NS);
        mrd_engine_drained(self->end[0].e, self->now);
        mrd_engine_expire(self->end[0].e, self->now);
        pair_tx_burst(self, 0, 1);
    }
    assert_true(pair_peer(self, 0)->tx->probes.copy_due);
    pair_hop(self, 1);
    assert_true(acks_to(self, 0) > 0);
    pair_turn(self, 0);
    assert_int_equal(self->end[0].e->stats.retx_packets, 1);
    assert_int_equal(self->end[0].e->stats.retx_copy, 0);
}

/* The ack that completes a message after losses leaves twice, on two paths. */
TEST_F(pair, mrd_engine_rx__completing_ack_goes_on_two_paths)
{
    static const unsigned bursts[] = {1, 2, PAIR_BURST};

    for (size_t i = 0; i < 64 * sizeof(bursts) / sizeof(bursts[0]); i++) {
        const struct pair_frame *f = self->end[0].inbox;

        pair_config(self);
        self->config.seed = i / 3;
        pair_open(self);
        self->burst = bursts[i % 3];
        lose_one_of_four(self);
        run_until_repeated(self);
        keep(self, 1, 1, 1); /* the second copy, which asks */
        assert_int_equal(self->end[0].num_inbox, 0);
        pair_turn(self, 1);
        assert_int_equal(self->end[0].num_inbox, 2);
        assert_true(is_ack(&f[0]) && is_ack(&f[1]));
        assert_int_equal(pair_head(&f[0]).psn, 4);
        assert_int_equal(pair_head(&f[1]).psn, 4);
        assert_int_not_equal(f[0].path, f[1].path);
        assert_int_equal(pair_hop(self, 1), 0); /* and not once more */
    }
}

/* The last packet asks, also if there is no room behind it to find out that it is the last. */
TEST_F(pair, mrd_engine_tx__last_packet_asks_for_an_ack)
{
    static const unsigned bursts[] = {1, 2, 3, 6, PAIR_BURST};

    for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
        const struct pair_frame *f = self->end[1].inbox;

        pair_begin(self);
        self->burst = bursts[i];
        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 6 * PAIR_PAYLOAD);
        assert_int_equal(pair_tx(self, 0), 6);
        for (unsigned k = 0; k < 6; k++)
            assert_int_equal(asks(&f[k]), k == 5);
    }
}

/*
 * A refusal fills the caller's room. The peer is to be told of receives, too, but they are used up
 * when its turn comes: nothing follows.
 */
TEST_F(pair, mrd_engine_tx__last_packet_asks_before_a_used_up_ready)
{
    struct mrd_engine *e = self->end[0].e;

    pair_write(self, 0, 0, PAIR_PAYLOAD);
    pair_post(self, 1, MRD_WR_SEND, 0, PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 1), 1);
    pair_rx(self, 0, 0);
    mrd_rnr_notify(e, &hand_qp(self, 0)->recvq->rnr_waiters, 1);
    assert_false(mrd_list_empty(&pair_peer(self, 0)->readies));
    self->burst = 1;
    unsigned refusals = pair_tx(self, 0) - acks_to(self, 1);
    assert_int_equal(refusals, 1);
    for (unsigned i = 0; i < self->end[1].num_inbox; i++)
        assert_true(is_ack(&self->end[1].inbox[i]) || asks(&self->end[1].inbox[i]));
    assert_true(mrd_list_empty(&pair_peer(self, 0)->readies));
    assert_int_equal(e->stats.tx_readies, 0);
    pair_post_recv(self, 0, 0, PAIR_PAYLOAD);
}

/* Data goes on and on: an ack that is due does not wait for the end of it. */
TEST_F(pair, mrd_engine_tx__data_does_not_keep_acks_back)
{
    self->burst = 1;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 20 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 0), 20);
    pair_post(self, 1, MRD_WR_RDMA_WRITE, 32 * PAIR_PAYLOAD, 20 * PAIR_PAYLOAD);
    pair_turn(self, 1);
    assert_true(self->end[0].num_inbox > 20);
    assert_int_equal(acks_to(self, 0), 1);
    assert_true(is_ack(&self->end[0].inbox[0]));
    pair_settle(self, self->now + MRD_SEC);
    assert_int_equal(self->end[0].e->stats.retx_packets + self->end[1].e->stats.retx_packets, 0);
}
