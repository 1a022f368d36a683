/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered mode at the sender: when the record of a flow begins, rests and goes. */
#include "core/engine/tx_flow.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, REMOTE = 500 };

static struct mrd_flow_tx *open_flow(struct pair *p, uint32_t remote_qpn)
{
    return mrd_tx_flow_open(p->end[AT].e, hand_tx_peer(p, AT), hand_qp(p, AT), remote_qpn);
}

/* A flow whose messages have all ended. */
static struct mrd_flow_tx *begin_idle(struct pair *p)
{
    pair_begin(p);
    struct mrd_flow_tx *flow = open_flow(p, REMOTE);
    mrd_tx_flow_rest(p->end[AT].e, flow);
    return flow;
}

/* Its CLOSE is on its way, and says how far the flow is. */
static void send_close(struct mrd_flow_tx *flow)
{
    mrd_list_remove(&flow->idle_node);
    flow->closing = true;
    flow->close_msn = flow->msn_next;
}

static void end(struct pair *p, uint32_t flows)
{
    assert_int_equal(p->end[AT].e->flows_tx.pool.used, flows);
    pair_end(p);
}

/* Without messages it is idle from now on; with messages, or with a CLOSE under way, not. */
TEST_F(pair, mrd_tx_flow_rest__idle_without_messages)
{
    struct mrd_node msg;
    struct mrd_flow_tx *flow = open_flow(self, REMOTE);

    struct mrd_send_state *tx = flow->peer->tx;
    mrd_list_append(&flow->msgs, &msg);
    mrd_tx_flow_rest(self->end[AT].e, flow);
    assert_true(mrd_list_empty(&tx->idle));
    mrd_list_remove(&msg);
    flow->closing = true;
    mrd_tx_flow_rest(self->end[AT].e, flow);
    assert_true(mrd_list_empty(&tx->idle));
    flow->closing = false;
    mrd_tx_flow_rest(self->end[AT].e, flow);
    assert_int_equal(hand_length(&tx->idle), 1);
    assert_int_equal(flow->idle_ns, self->now);
    end(self, 1);
}

/* Of a destroyed queue pair nothing will be posted: it is closed at once. */
TEST_F(pair, mrd_tx_flow_rest__queue_pair_gone)
{
    struct mrd_flow_tx *flow = begin_idle(self);

    flow->qp_gone = true;
    mrd_tx_flow_rest(self->end[AT].e, flow);
    assert_true(mrd_list_empty(&flow->peer->tx->idle));
    assert_int_equal(hand_length(&flow->peer->tx->closes), 1);
    end(self, 1);
}

/* The record goes with the ack of its CLOSE, unless something was posted meanwhile. */
TEST_F(pair, mrd_tx_flow_close_acked__unless_used_meanwhile)
{
    struct mrd_flow_tx *flow = begin_idle(self);
    struct mrd_send_state *tx = flow->peer->tx;
    struct mrd_node msg;

    send_close(flow);
    flow->msn_next++; /* posted, and ended already */
    mrd_tx_flow_close_acked(self->end[AT].e, flow);
    assert_int_equal(hand_length(&tx->idle), 1);

    send_close(flow);
    mrd_list_append(&flow->msgs, &msg);
    mrd_tx_flow_close_acked(self->end[AT].e, flow);
    assert_false(flow->closing);
    assert_true(mrd_list_empty(&tx->idle)); /* its message is still under way */
    mrd_list_remove(&msg);

    send_close(flow);
    mrd_tx_flow_close_acked(self->end[AT].e, flow);
    assert_true(mrd_list_empty(&hand_qp(self, AT)->flows));
    end(self, 0);
}

/* Those that were idle for so long, the longest first; the others stay. */
TEST_F(pair, mrd_tx_flow_close_idle__longest_idle_first)
{
    struct mrd_flow_tx *flow[3];

    for (unsigned i = 0; i < 3; i++) {
        flow[i] = open_flow(self, REMOTE + i);
        mrd_engine_begin(self->end[AT].e, ++self->now);
        mrd_tx_flow_rest(self->end[AT].e, flow[i]);
    }
    struct mrd_send_state *tx = flow[0]->peer->tx;
    mrd_tx_flow_close_idle(self->end[AT].e, flow[0]->peer, 1);
    assert_int_equal(hand_length(&tx->closes), 2);
    assert_ptr_equal(tx->closes.next, &flow[0]->idle_node);
    assert_ptr_equal(tx->idle.next, &flow[2]->idle_node);
    mrd_tx_flow_close_idle(self->end[AT].e, flow[0]->peer, 0);
    assert_int_equal(hand_length(&tx->closes), 3);
    end(self, 3);
}
