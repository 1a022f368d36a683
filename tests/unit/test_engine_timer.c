/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines: when a peer's timer fires, and what it does then. */
#include "core/engine/timer.h"
#include "core/engine/tx_flow.h"
#include "core/engine/txq.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

/* The timers are looked at then, with all packets read before. */
static void fire_at(struct pair *p, uint64_t now_ns)
{
    struct mrd_engine *e = p->end[AT].e;

    p->now = now_ns;
    mrd_engine_begin(e, now_ns);
    mrd_engine_drained(e, now_ns);
    mrd_timer_fire_due(e);
}

/* The peer's timer, computed anew. */
static uint64_t next_of(struct pair *p, struct mrd_peer *peer)
{
    mrd_heap_disarm(&p->end[AT].e->timers.heap, &peer->timer);
    mrd_timer_touch(p->end[AT].e, peer);
    return mrd_timer_next_ns(p->end[AT].e);
}

static bool has_turn(const struct mrd_peer *peer)
{
    return !mrd_list_empty(&peer->ready);
}

static void take_turn(struct mrd_peer *peer)
{
    mrd_list_remove(&peer->ready);
}

/* ------------------------------------------------------------------------------------- the heap */

/* Touched twice is once, and settled as of the last time; no deadline lies in the past. */
TEST_F(pair, mrd_timer_settle__as_of_the_touch)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_engine *e = self->end[AT].e;

    peer->rx->rcv.due_ns = self->now - 5;
    mrd_timer_touch(e, peer);
    mrd_engine_begin(e, self->now + 10);
    mrd_timer_touch(e, peer);
    mrd_engine_begin(e, self->now + 30);
    assert_int_equal(mrd_timer_next_ns(e), self->now + 11);
    assert_true(mrd_list_empty(&e->timers.touched));
}

/* A peer that owes nothing has no timer; else the earliest of its deadlines is its own. */
TEST_F(pair, mrd_timer_next_ns__earliest)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    hand_tx_peer(self, AT);
    assert_true(next_of(self, peer) == MRD_NEVER);
    peer->rx->probe_at_ns = self->now + 500;
    assert_int_equal(next_of(self, peer), self->now + 500);
    peer->tx->loss.rack_ns = self->now + 400;
    assert_int_equal(next_of(self, peer), self->now + 400);
    peer->tx->rnr.next_ns = self->now + 300;
    assert_int_equal(next_of(self, peer), self->now + 300);
    peer->rx->rcv.due_ns = self->now + 200;
    assert_int_equal(next_of(self, peer), self->now + 200);
}

/* ---------------------------------------------------------------------------------- what is due */

/* An ack that was held back long enough. */
TEST_F(pair, mrd_timer_fire_due__ack)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    peer->rx->rcv.due_ns = self->now + 1000;
    mrd_timer_touch(self->end[AT].e, peer);
    fire_at(self, self->now + 999);
    assert_false(has_turn(peer));
    fire_at(self, self->now + 1);
    assert_true(has_turn(peer));
}

static struct mrd_peer *post_work(struct pair *p)
{
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    return hand_tx_peer(p, AT);
}

/* Work, and a window of a quarter of a packet. */
static struct mrd_peer *pace(struct pair *p)
{
    struct mrd_peer *peer = post_work(p);

    take_turn(peer);
    peer->tx->cc.cwnd_bytes = peer->tx->cc.packet_bytes / 4.0;
    peer->tx->loss.srtt_ns = 1000;
    peer->tx->sent_ns = p->now;
    return peer;
}

/* A window below one packet: the next one may go in its time. */
TEST_F(pair, mrd_timer_fire_due__paced)
{
    struct mrd_peer *peer = pace(self);

    assert_int_equal(next_of(self, peer), self->now + 4000);
    fire_at(self, self->now + 4000);
    assert_true(has_turn(peer));
}

/* Work with nothing in flight is tried again after 100 us, then 1/8 of its wait, at most 10 ms. */
TEST_F(pair, mrd_timer_fire_due__starved)
{
    static const struct {
        uint64_t waited_ns, pause_ns;
    } rows[] = {{0, 100 * MRD_USEC},
                {800 * MRD_USEC, 100 * MRD_USEC},
                {8 * MRD_MSEC, MRD_MSEC},
                {MRD_SEC, 10 * MRD_MSEC}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_begin(self);
        struct mrd_peer *peer = post_work(self);
        take_turn(peer);
        peer->tx->active_ns = self->now - rows[i].waited_ns;
        assert_int_equal(next_of(self, peer), self->now + rows[i].pause_ns);
        fire_at(self, self->now + rows[i].pause_ns);
        assert_true(has_turn(peer));
    }
}

/* Without a grant an empty packet asks, each 10 ms. */
TEST_F(pair, mrd_timer_fire_due__without_a_grant)
{
    struct mrd_peer *peer = post_work(self);

    peer->tx->told.psn_limit = 1;
    for (unsigned i = 0; i < 2; i++) {
        peer->tx->probes.silence_due = false;
        mrd_timer_touch(self->end[AT].e, peer);
        fire_at(self, self->now + 1);
        assert_int_equal(peer->tx->probes.silence_due, i == 0);
    }
    assert_int_equal(next_of(self, peer), self->now - 1 + 10 * MRD_MSEC);
    fire_at(self, self->now - 1 + 10 * MRD_MSEC);
    assert_true(peer->tx->probes.silence_due);
}

/* A packet's time has come, but there is no grant: the next turn is due when it may ask. */
TEST_F(pair, mrd_timer_fire_due__paced_without_a_grant)
{
    struct mrd_peer *peer = pace(self);

    peer->tx->told.psn_limit = 1;
    peer->tx->told.grant_ask_ns = self->now + 5 * MRD_MSEC;
    assert_int_equal(next_of(self, peer), self->now + 4000);
    fire_at(self, self->now + 4000);
    take_turn(peer);
    assert_int_equal(next_of(self, peer), peer->tx->told.grant_ask_ns);
}

/* A message that waits for a receive, and is tried again after so long. */
static struct mrd_msg *wait_for_receive(struct pair *p, uint32_t rnr_usec)
{
    pair_begin(p);
    pair_post(p, AT, MRD_WR_SEND, 0, BYTES);
    struct mrd_msg *msg = &hand_qp(p, AT)->msgs[0];
    mrd_txq_dequeue(p->end[AT].e, msg);
    msg->rnr.usec = rnr_usec;
    msg->started = true;
    mrd_txq_wait(p->end[AT].e, msg);
    return msg;
}

/* Where messages only wait for receives, the peer is asked before it forgets the space. */
TEST_F(pair, mrd_timer_fire_due__waiting_for_receives)
{
    struct mrd_msg *msg = wait_for_receive(self, UINT32_MAX);
    struct mrd_peer *peer = msg->peer;

    mrd_txq_rest(self->end[AT].e, msg->txq);
    take_turn(peer);
    mrd_timer_touch(self->end[AT].e, peer);
    fire_at(self, self->now + MRD_WAITING_NS - 1);
    assert_false(has_turn(peer));
    fire_at(self, self->now + 1);
    assert_true(peer->tx->probes.silence_due);
    assert_true(has_turn(peer));
    assert_int_equal(peer->tx->active_ns, self->now);
}

/* The delay of a queue of such messages is over: one is tried. */
TEST_F(pair, mrd_timer_fire_due__attempt)
{
    struct mrd_msg *msg = wait_for_receive(self, 80);

    fire_at(self, msg->peer->tx->rnr.next_ns - 1);
    assert_int_equal(msg->state, MRD_MSG_RNR_WAIT);
    fire_at(self, self->now + 1);
    assert_int_equal(msg->state, MRD_MSG_QUEUED);
}

/* An ordered flow that was idle for a second is closed. */
TEST_F(pair, mrd_timer_fire_due__idle_flow)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT);

    mrd_tx_flow_rest(self->end[AT].e,
                     mrd_tx_flow_open(self->end[AT].e, peer, hand_qp(self, AT), 500));
    assert_int_equal(next_of(self, peer), self->now + MRD_FLOW_IDLE_NS);
    fire_at(self, self->now + MRD_FLOW_IDLE_NS - 1);
    assert_true(mrd_list_empty(&peer->tx->closes));
    fire_at(self, self->now + 1);
    assert_false(mrd_list_empty(&peer->tx->closes));
}

/* Whoever owes us is asked after a silence that doubles up to a second, and hears our ack twice. */
TEST_F(pair, mrd_timer_fire_due__silence)
{
    uint64_t silence_ns = MRD_SILENCE_MIN_NS;
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    mrd_rcv_add(&peer->rx->rcv, 0, true); /* a refused PSN */
    peer->rx->probe_at_ns = self->now + 1;
    mrd_timer_touch(self->end[AT].e, peer);
    fire_at(self, self->now + 1);
    for (unsigned i = 0; i < 9; i++) {
        assert_true(has_turn(peer));
        assert_true(peer->tx->probes.silence_due);
        assert_true(peer->rx->rcv.now && peer->rx->rcv.twice);
        assert_int_equal(peer->rx->probe_at_ns, self->now + silence_ns);
        peer->tx->probes.silence_due = false;
        take_turn(peer);
        mrd_timer_touch(self->end[AT].e, peer);
        fire_at(self, peer->rx->probe_at_ns);
        silence_ns = 2 * silence_ns < MRD_SILENCE_MAX_NS ? 2 * silence_ns : MRD_SILENCE_MAX_NS;
    }
    mrd_rcv_refusal_acked(&peer->rx->rcv, 0); /* nothing is owed any more */
    fire_at(self, peer->rx->probe_at_ns);
    assert_true(peer->rx->probe_at_ns == MRD_NEVER);
}

/* On a long way the silence is of at least eight round trips. */
TEST_F(pair, mrd_timer_fire_due__silence_on_a_long_way)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    hand_tx_peer(self, AT)->tx->loss.srtt_ns = 20 * MRD_MSEC;
    mrd_rcv_add(&peer->rx->rcv, 0, true);
    peer->rx->probe_at_ns = self->now + 1;
    mrd_timer_touch(self->end[AT].e, peer);
    fire_at(self, self->now + 1);
    assert_int_equal(peer->rx->probe_at_ns, self->now + 160 * MRD_MSEC);
}
