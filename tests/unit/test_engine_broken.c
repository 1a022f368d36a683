/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered messages whose target's queue pair goes, or whose sender does: what is said of those that
 * were acked, and wait behind others.
 */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_reads.h"

enum { FROM, TO, BYTES = 64, LONG = 5 * PAIR_PAYLOAD };

FIXTURE(ordered)
{
    struct pair *p;
    struct mrd_qp *kept; /* the sender's queue pair without order */
};

static struct pair pair;

/* The two know each other. */
static void begin(struct ordered *o)
{
    struct pair *p = &pair;

    begin_in(p, MRD_ORDER_NONE);
    *o = (struct ordered){.p = p, .kept = hand_swap_qp(p, FROM, MRD_ORDER_MSG)};
    memset(p->end[TO].memory, 0, PAIR_MEMORY);
    pair_write(p, FROM, LONG, BYTES);
}

static void end(struct ordered *o)
{
    pair_settle(o->p, o->p->now + 20 * MRD_SEC);
    hand_restore_qp(o->p, FROM, o->kept);
    pair_end(o->p);
}

FIXTURE_FROM(ordered, begin, end);

/* A read or a write, or an add of 1, at the begin of the target's memory. */
static void request(struct ordered *o, uint64_t id, enum mrd_wr_opcode opcode)
{
    struct hand_wr w;

    hand_wr(o->p, FROM, opcode, opcode == MRD_WR_ATOMIC_FETCH_AND_ADD ? 8 : BYTES, &w);
    w.wr.wr_id = id;
    if (opcode == MRD_WR_ATOMIC_FETCH_AND_ADD) {
        w.wr.wr.atomic.remote_addr = (uintptr_t)o->p->end[TO].memory;
        w.wr.wr.atomic.rkey = o->p->end[TO].mr->rkey;
        w.wr.wr.atomic.compare_add = 1;
    }
    assert_int_equal(hand_post(o->p, FROM, &w.wr), 0);
}

/* What was posted arrives; what comes back is in the sender's inbox. */
static void deliver(struct ordered *o)
{
    pair_turn(o->p, FROM);
    o->p->now += 100 * MRD_USEC; /* acks are not held back for so long */
    pair_turn(o->p, TO);
    o->p->now += 100 * MRD_USEC;
    pair_turn(o->p, TO);
}

static void target_goes(struct ordered *o)
{
    mrd_engine_begin(o->p->end[TO].e, o->p->now);
    hand_flush(o->p, TO);
}

static struct mrd_wc expect(struct ordered *o, unsigned at, uint64_t id, enum mrd_wc_status status)
{
    struct mrd_wc wc = pair_expect(o->p, at, status);

    assert_int_equal(wc.wr_id, id);
    return wc;
}

/* The response to the read is lost, the one to the add is not. */
static void read_then_add(struct ordered *o)
{
    request(o, 1, MRD_WR_RDMA_READ);
    deliver(o);
    pair_rx_acks(o->p, FROM);
    request(o, 2, MRD_WR_ATOMIC_FETCH_AND_ADD);
    deliver(o);
    pair_turn(o->p, FROM);
}

/*
 * A read was executed, and its response is lost. The add behind it was executed as well, and
 * answered. Then the target's queue pair goes: what was answered succeeded.
 */
TEST_F(ordered, broken__answered_request_succeeds)
{
    read_then_add(self);
    target_goes(self);
    pair_settle(self->p, self->p->now + MRD_SEC);
    expect(self, FROM, 1, MRD_WC_REM_OP_ERR);
    expect(self, FROM, 2, MRD_WC_SUCCESS);
    assert_int_equal(*(uint64_t *)(void *)self->p->end[TO].memory, 1);
}

/* The same when the peer does not answer any more: of the read nothing is known, but of the add. */
TEST_F(ordered, broken__answered_request_succeeds_without_peer)
{
    read_then_add(self);
    mrd_send_state_end(self->p->end[FROM].e, pair_peer(self->p, FROM), MRD_WC_RETRY_EXC_ERR);
    expect(self, FROM, 1, MRD_WC_RETRY_EXC_ERR);
    expect(self, FROM, 2, MRD_WC_SUCCESS);
}

/* The same with a write behind it, which nothing answers: it may have been delivered or not. */
TEST_F(ordered, broken__acked_write_is_in_doubt)
{
    request(self, 1, MRD_WR_RDMA_READ);
    deliver(self);
    pair_rx_acks(self->p, FROM);
    request(self, 2, MRD_WR_RDMA_WRITE);
    deliver(self);
    pair_rx_acks(self->p, FROM);
    target_goes(self);
    /* This one finds no queue pair: it was not delivered for sure, nor are those behind it. */
    request(self, 3, MRD_WR_RDMA_WRITE);
    pair_settle(self->p, self->p->now + MRD_SEC);
    expect(self, FROM, 1, MRD_WC_REM_OP_ERR);
    assert_int_equal(expect(self, FROM, 2, MRD_WC_REM_OP_ERR).vendor_err, MRD_REFUSE_QPN);
    assert_int_equal(expect(self, FROM, 3, MRD_WC_REM_INV_REQ_ERR).vendor_err, MRD_REFUSE_QPN);
}

/*
 * A long message is here by half, and a short one behind it is whole. The queue pair, or the
 * sender, goes: that the first one ends must not give the turn to the second.
 */
static void whole_behind_half(struct ordered *o, bool sender_goes)
{
    enum mrd_wc_status status = sender_goes ? MRD_WC_REM_ABORT_ERR : MRD_WC_WR_FLUSH_ERR;

    pair_post_recv(o->p, TO, 0, LONG);
    pair_post_recv(o->p, TO, LONG, BYTES);
    pair_post(o->p, FROM, MRD_WR_SEND, 0, LONG);
    pair_tx(o->p, FROM);
    assert_true(o->p->end[TO].num_inbox > 2);
    o->p->end[TO].num_inbox = 2; /* the others are lost */
    pair_turn(o->p, TO);
    pair_post(o->p, FROM, MRD_WR_SEND, LONG, BYTES);
    pair_turn(o->p, FROM);
    pair_turn(o->p, TO);
    pair_expect_nothing(o->p, TO);
    assert_int_equal(pair_peer(o->p, TO)->uses.reorder_entries, 2);
    if (sender_goes)
        mrd_recv_state_end(o->p->end[TO].e, pair_peer(o->p, TO), MRD_SPACE_TOMB);
    else
        target_goes(o);
    expect(o, TO, 900, status);
    expect(o, TO, 900 + LONG, status);
}

TEST_F(ordered, broken__half_a_message_and_its_queue_pair_goes)
{
    whole_behind_half(self, false);
}

TEST_F(ordered, broken__half_a_message_and_its_sender_goes)
{
    whole_behind_half(self, true);
}

/* The target's queue pair is gone, and then one of that number is there: what is posted from then on arrives. */
TEST_F(ordered, broken__not_for_ever)
{
    target_goes(self);
    for (unsigned i = 0; i < 4; i++) {
        bool there = i & 1;

        self->p->end[TO].qp->state = there ? MRD_QPS_RTS : MRD_QPS_ERR;
        pair_post(self->p, FROM, MRD_WR_RDMA_WRITE, LONG, BYTES);
        pair_settle(self->p, self->p->now + 10 * MRD_MSEC);
        expect(self, FROM, 500 + LONG, there ? MRD_WC_SUCCESS : MRD_WC_REM_INV_REQ_ERR);
    }
}
