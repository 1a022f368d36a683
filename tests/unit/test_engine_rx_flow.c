/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a received message; in ordered mode in its turn. */
#include "core/engine/complete.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_bind.h"
#include "core/engine/rx_flow.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64, MESSAGES = 4, QPN = 1000 };

/* An ordered flow from queue pair QPN of the peer, with receives posted. */
struct flow_test {
    struct pair *p;
    struct mrd_peer *peer;
    struct mrd_flow_rx *flow;
    struct mrd_bound bound[MESSAGES]; /* by MSN, which is the RSN as well */
};

static struct mrd_wire_part part_of(const struct pair *p, uint16_t msn)
{
    struct mrd_wire_part part = hand_send(p, AT, BYTES);

    part.flags = MRD_PART_ORDERED;
    part.src_qpn = QPN;
    part.msn = part.rsn = part.msn_behind = part.rsn_behind = msn;
    return part;
}

static void bind(struct flow_test *t, uint16_t msn)
{
    struct mrd_wire_part part = part_of(t->p, msn);
    bool old;

    assert_int_equal(mrd_rx_bind(t->p->end[AT].e, t->peer, &part, &t->bound[msn], &old), 0);
    t->flow = t->bound[msn].flow;
}

static struct flow_test begin(struct pair *p)
{
    struct flow_test t = {.p = p};

    pair_begin(p);
    t.peer = hand_rx_peer(p, AT);
    for (unsigned i = 0; i < MESSAGES; i++)
        pair_post_recv(p, AT, i * BYTES, BYTES);
    return t;
}

static void end(struct flow_test *t, uint16_t msn)
{
    struct mrd_wc wc = mrd_rx_wc(t->peer, MRD_OP_SEND, 0, BYTES, 0, QPN);

    mrd_rx_end_message(t->p->end[AT].e, &t->bound[msn], &wc);
}

/* The next completion is of the receive with that number, with that status. */
static void expect(const struct flow_test *t, uint32_t number, enum mrd_wc_status status)
{
    assert_int_equal(pair_expect(t->p, AT, status).wr_id, 900 + number * BYTES);
}

/* A half message that fails has its turn, too: those behind it are not held up. */
TEST_F(pair, mrd_rx_fail_slot__in_its_turn)
{
    struct flow_test t = begin(self);
    struct mrd_wire_part part = hand_piece(part_of(self, 1), 1, 0, BYTES / 2, BYTES);

    bind(&t, 2);
    end(&t, 2);
    hand_place(self, AT, t.peer, 0, &part, 1);
    struct mrd_slot *slot = mrd_container_of(t.peer->rx->slots.open.next, struct mrd_slot, node);
    mrd_rx_fail_slot(self->end[AT].e, t.peer, slot, MRD_SLOT_CLOSED, MRD_WC_REM_ABORT_ERR);
    assert_int_equal(t.peer->rx->slots.num_open, 0);
    pair_expect_nothing(self, AT);
    bind(&t, 0);
    end(&t, 0);
    expect(&t, 0, MRD_WC_SUCCESS);
    expect(&t, 1, MRD_WC_REM_ABORT_ERR);
    expect(&t, 2, MRD_WC_SUCCESS);
}

/* Records are counted for the peer that has them; without one there is none to count. */
TEST_F(pair, mrd_rx_take_pend__counts_for_the_peer)
{
    static void *taken[10000];
    struct flow_test t = begin(self);
    struct mrd_reorder_entry *entry = mrd_rx_take_entry(self->end[AT].e, t.peer);

    assert_non_null(entry);
    assert_int_equal(t.peer->uses.reorder_entries, 1);
    hand_exhaust(&self->end[AT].e->reorder_entries, taken);
    assert_null(mrd_rx_take_entry(self->end[AT].e, t.peer));
    assert_int_equal(t.peer->uses.reorder_entries, 1);
    hand_refill(&self->end[AT].e->reorder_entries, taken);
    mrd_rx_release_entry(self->end[AT].e, t.peer, entry);
    assert_int_equal(t.peer->uses.reorder_entries, 0);
}

/* All that is here fails with the status; reserved receives go back in front, in their order. */
TEST_F(pair, mrd_rx_free_flow__gives_receives_back_in_order)
{
    struct flow_test t = begin(self);

    bind(&t, 2);
    end(&t, 2);
    mrd_rx_free_flow(self->end[AT].e, t.flow, MRD_WC_REM_ABORT_ERR);
    expect(&t, 2, MRD_WC_REM_ABORT_ERR);
    assert_int_equal(t.peer->uses.flows + t.peer->uses.reorder_entries, 0);
    assert_null(mrd_rx_find_flow(self->end[AT].e, t.peer, hand_qp(self, AT), QPN));
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, MESSAGES - 1);
    for (uint16_t msn = 0; msn < 3; msn++) {
        bind(&t, msn);
        end(&t, msn);
    }
    expect(&t, 0, MRD_WC_SUCCESS);
    expect(&t, 1, MRD_WC_SUCCESS);
    expect(&t, 3, MRD_WC_SUCCESS);
}

/* A message that failed already keeps its status. */
TEST_F(pair, mrd_rx_free_flow__keeps_errors)
{
    struct flow_test t = begin(self);

    bind(&t, 1);
    struct mrd_wc wc = mrd_rx_wc(t.peer, MRD_OP_SEND, 0, 0, 0, QPN);
    wc.status = MRD_WC_LOC_LEN_ERR;
    mrd_rx_end_message(self->end[AT].e, &t.bound[1], &wc);
    mrd_rx_free_flow(self->end[AT].e, t.flow, MRD_WC_REM_ABORT_ERR);
    expect(&t, 1, MRD_WC_LOC_LEN_ERR);
}

/* A flow is closed where its sender is, and only if nothing of it waits here. */
TEST_F(pair, mrd_rx_close_flow__idle_and_of_the_same_number)
{
    struct flow_test t = begin(self);
    struct mrd_wire_part close = {.op = MRD_OP_CLOSE, .flags = MRD_PART_ORDERED, .src_qpn = QPN};

    bind(&t, 1);
    end(&t, 1);
    mrd_rx_close_flow(self->end[AT].e, t.peer, hand_qp(self, AT), &close);
    assert_int_equal(t.peer->uses.flows, 1); /* message 1 waits */
    bind(&t, 0);
    end(&t, 0);
    for (close.msn = 1; close.msn <= 3; close.msn += 2)
        mrd_rx_close_flow(self->end[AT].e, t.peer, hand_qp(self, AT), &close);
    assert_int_equal(t.peer->uses.flows, 1); /* it is at 2 */
    close.msn = 2;
    mrd_rx_close_flow(self->end[AT].e, t.peer, hand_qp(self, AT), &close);
    assert_int_equal(t.peer->uses.flows, 0);
}

/* A message that never comes: what waits is delivered, its own receive goes to another. */
TEST_F(pair, mrd_rx_skip_message__frees_its_receive)
{
    struct flow_test t = begin(self);

    bind(&t, 2);
    end(&t, 2);
    mrd_rx_skip_message(self->end[AT].e, t.flow, 1, true, 1);
    assert_int_equal(hand_qp(self, AT)->recvq->num_posted, 2); /* number 1, and one never taken */
    assert_int_equal(t.peer->uses.gone, 1);
    pair_expect_nothing(self, AT);
    mrd_rx_skip_message(self->end[AT].e, t.flow, 0, true, 0);
    expect(&t, 2, MRD_WC_SUCCESS);
    assert_int_equal(t.flow->msn_next, 3);
    assert_int_equal(t.peer->uses.gone + t.peer->uses.reorder_entries, 0);
}
