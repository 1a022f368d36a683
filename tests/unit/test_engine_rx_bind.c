/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a message is for, and which receive it takes. */
#include "core/engine/complete.h"
#include "core/engine/rx_bind.h"
#include "core/engine/rx_flow.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64, POOL_MAX = 10000, FOR_NEXT = 32, QPN = 1000 };

/* A binding is kept until the end of the test: as if the message were half received. */
struct bind_test {
    struct pair *p;
    struct mrd_peer *peer;
    struct mrd_bound b;
    bool old;
};

static struct bind_test begin(struct pair *p)
{
    pair_begin(p);
    return (struct bind_test){.p = p, .peer = hand_rx_peer(p, AT)};
}

static uint8_t bind(struct bind_test *t, struct mrd_wire_part part)
{
    return mrd_rx_bind(t->p->end[AT].e, t->peer, &part, &t->b, &t->old);
}

/* An ordered send; the sender still owes what is `behind` numbers older. */
static struct mrd_wire_part ordered(const struct bind_test *t, uint16_t msn, uint16_t rsn,
                                    uint16_t behind)
{
    struct mrd_wire_part part = hand_send(t->p, AT, BYTES);

    part.flags = MRD_PART_ORDERED;
    part.msn = msn;
    part.rsn = rsn;
    part.msn_behind = part.rsn_behind = behind;
    return part;
}

/* A message that was bound is all here: it completes, in its turn. */
static void end_bound(struct bind_test *t)
{
    struct mrd_wc wc = mrd_rx_wc(t->peer, MRD_OP_SEND, 0, BYTES, 0, 0);

    mrd_rx_end_message(t->p->end[AT].e, &t->b, &wc);
}

static void post_recvs(struct pair *p, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        pair_post_recv(p, AT, i * BYTES, BYTES);
}

/* Completions in the order of their receives, `num` of them. */
static void expect_receives(struct pair *p, unsigned first, unsigned num)
{
    for (unsigned i = first; i < first + num; i++)
        assert_int_equal(pair_expect(p, AT, MRD_WC_SUCCESS).wr_id, 900 + i * BYTES);
    pair_expect_nothing(p, AT);
}

/* ---------------------------------------------------------------------------------------- flows */

/* A flow begins with the oldest message that its sender still owes; numbers are told in 16 bits. */
TEST_F(pair, mrd_rx_open_flow__numbers_in_full)
{
    struct bind_test t = begin(self);
    struct mrd_wire_part part = ordered(&t, 2, 1, 3);
    struct mrd_engine *e = self->end[AT].e;
    uint32_t msn, rsn;
    struct mrd_flow_rx *flow = mrd_rx_open_flow(e, t.peer, hand_qp(self, AT), &part, &msn, &rsn);

    assert_non_null(flow);
    assert_int_equal(flow->msn_next, 65535);
    assert_int_equal(flow->rsn_next, 65534);
    assert_int_equal(msn, 65538);
    assert_int_equal(rsn, 65537);
    assert_ptr_equal(mrd_rx_open_flow(e, t.peer, hand_qp(self, AT), &part, &msn, &rsn), flow);
}

/* The sender owes nothing older: what never came will not, and the receive kept for it is free. */
TEST_F(pair, mrd_rx_open_flow__catches_up_with_its_sender)
{
    struct bind_test t = begin(self);
    uint32_t msn, rsn;

    post_recvs(self, 2);
    assert_int_equal(bind(&t, ordered(&t, 1, 1, 1)), MRD_RX_TAKEN);
    end_bound(&t);
    expect_receives(self, 0, 0);
    struct mrd_wire_part part = ordered(&t, 2, 2, 1);
    mrd_rx_open_flow(self->end[AT].e, t.peer, hand_qp(self, AT), &part, &msn, &rsn);
    expect_receives(self, 1, 1);
    assert_int_equal(t.b.flow->msn_next, 2);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1);
    assert_int_equal(t.peer->uses.reorder_entries, 0);
}

/* A peer alone may have max_flows of records; ABORTs go beyond, as far as there are any. */
TEST_F(pair, mrd_rx_open_flow__shares_of_records)
{
    pair_open_with(self, 0, 1);
    struct bind_test t = (struct bind_test){.p = self, .peer = hand_rx_peer(self, AT)};
    post_recvs(self, 1);
    struct mrd_wire_part part = ordered(&t, 0, 0, 0);
    assert_int_equal(bind(&t, part), MRD_RX_TAKEN);
    end_bound(&t);
    part.src_qpn++;
    assert_int_equal(bind(&t, part), MRD_REFUSE_RESOURCES);
    part.op = MRD_OP_ABORT;
    for (uint32_t i = 1; i <= 3; i++, part.src_qpn++) {
        uint32_t msn, rsn;

        assert_int_equal(
            mrd_rx_open_flow(self->end[AT].e, t.peer, hand_qp(self, AT), &part, &msn, &rsn) != NULL,
            i < 3);
    }
}

/* -------------------------------------------------------------------------------------- targets */

/* A send names the queue pair's key; a write a key that covers all of it, if it has any bytes. */
TEST_F(pair, mrd_rx_check_target__keys)
{
    struct mrd_wire_part send = hand_send(self, AT, BYTES), write = hand_write(self, AT, BYTES);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_qp_impl *qp = hand_qp(self, AT);

    assert_int_equal(mrd_rx_check_target(e, &send, qp), MRD_RX_TAKEN);
    send.qkey++;
    assert_int_equal(mrd_rx_check_target(e, &send, qp), MRD_REFUSE_QKEY);
    assert_int_equal(mrd_rx_check_target(e, &write, qp), MRD_RX_TAKEN);
    write.total = PAIR_MEMORY + 1;
    assert_int_equal(mrd_rx_check_target(e, &write, qp), MRD_REFUSE_ACCESS);
    write.rkey ^= 1;
    write.total = 0;
    assert_int_equal(mrd_rx_check_target(e, &write, qp), MRD_RX_TAKEN);
    write.total = 1;
    assert_int_equal(mrd_rx_check_target(e, &write, qp), MRD_REFUSE_ACCESS);
}

/* A region that only its owner may write is no target. */
TEST_F(pair, mrd_rx_check_target__access)
{
    struct mrd_wire_part write = hand_write(self, AT, BYTES);
    struct mrd_mr *mr = pair_register(self, AT, MRD_ACCESS_LOCAL_WRITE);

    write.rkey = mr->rkey;
    assert_int_equal(mrd_rx_check_target(self->end[AT].e, &write, hand_qp(self, AT)),
                     MRD_REFUSE_ACCESS);
    assert_int_equal(mrd_engine_dereg_mr(self->end[AT].e, mr, self->now), 0);
}

/* -------------------------------------------------------------------------------------- binding */

/* A message that came before is dropped; one beyond the window is none that its sender may send. */
TEST_F(pair, mrd_rx_bind__order_window)
{
    struct bind_test t = begin(self);

    post_recvs(self, 2);
    assert_int_equal(bind(&t, ordered(&t, 0, 0, 0)), MRD_RX_TAKEN);
    assert_false(t.old);
    end_bound(&t);
    assert_int_equal(bind(&t, ordered(&t, 0, 0, 0)), MRD_RX_TAKEN);
    assert_true(t.old);
    assert_int_equal(bind(&t, ordered(&t, MRD_MSN_WINDOW + 1, 1, MRD_MSN_WINDOW)),
                     MRD_REFUSE_INVALID);
    assert_false(t.old);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 1);
}

/* The last records are for messages next in order. Of the others each peer has its share. */
TEST_F(pair, mrd_rx_bind__last_records_are_for_the_next)
{
    static const struct {
        uint32_t left, held;
        uint8_t code;
    } rows[] = {{FOR_NEXT + 1, 0, MRD_REFUSE_RESOURCES},
                {FOR_NEXT + 2, FOR_NEXT - 2, MRD_REFUSE_RESOURCES},
                {FOR_NEXT + 2, FOR_NEXT - 3, MRD_RX_TAKEN}};
    static void *taken[POOL_MAX];
    struct bind_test t = begin(self);
    struct mrd_pool *pends = &self->end[AT].e->reorder_entries;

    post_recvs(self, 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned n = 0;

        while (mrd_pool_free(pends) > rows[i].left)
            taken[n++] = mrd_pool_alloc(pends);
        taken[n] = NULL;
        t.peer->uses.reorder_entries += rows[i].held;
        assert_int_equal(bind(&t, ordered(&t, 1, 1, 1)), rows[i].code); /* takes two records */
        t.peer->uses.reorder_entries -= rows[i].held;
        hand_refill(pends, taken);
    }
    end_bound(&t);
    hand_exhaust(pends, taken);
    assert_int_equal(bind(&t, ordered(&t, 0, 0, 0)), MRD_RX_TAKEN); /* its record is reserved */
    end_bound(&t);
    hand_refill(pends, taken);
    hand_exhaust(pends, taken);
    assert_int_equal(bind(&t, ordered(&t, 2, 2, 0)), MRD_REFUSE_RESOURCES); /* none at all */
    hand_refill(pends, taken);
    expect_receives(self, 0, 2);
}
