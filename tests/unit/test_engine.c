/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/engine/peer_state.h"
#include "core/engine/query.h"
#include "core/engine/tx_gate.h"
#include "tests/unit/engine_pair.h"
#include <errno.h>

/* --------------------------------------------------------------------------------------- create */

TEST_F(pair, mrd_engine_create__rejects_bad_configurations)
{
    struct mrd_engine_config bad[16];

    pair_config(self);
    self->config.incarnation = 1;
    for (unsigned i = 0; i < 16; i++)
        bad[i] = self->config;
    bad[0].spray = "nonsense";
    bad[1].cc = "nonsense";
    bad[2].paths = 0;
    bad[3].paths = bad[3].mover.paths + 1;
    bad[4].paths = bad[4].mover.paths = MRD_PATHS_MAX + 1;
    bad[5].max_peers = 0;
    bad[6].max_peers = (1u << 20) + 1;
    bad[7].max_flows = 0;
    bad[8].incarnation = 0;
    bad[9].mover.tracker = MRD_TRACKER_MIN / 2;
    bad[10].mover.tracker = 1000;
    bad[11].mover.tracker = 8192;
    bad[12].mover.payload_bytes = 0;
    bad[13].mover.payload_bytes = MRD_PAYLOAD_BYTES_MAX + 64;
    bad[14].mover.quantum = 0;
    bad[15].mover.ack_every = 0;
    for (unsigned i = 0; i < 16; i++) {
        int error = 0;

        assert_null(mrd_engine_create(&bad[i], &self->alloc.ops, 0, &error));
        assert_int_equal(error, -EINVAL);
        assert_int_equal(self->alloc.requests, 0);
    }
}

TEST_F(pair, mrd_engine_create__gives_back_what_it_got)
{
    struct mrd_engine *e = NULL;
    int error;

    for (uint32_t at = 1; !e; at++) {
        pair_config(self);
        self->config.incarnation = 1;
        self->alloc.fail_at = at;
        e = mrd_engine_create(&self->config, &self->alloc.ops, 0, &error);
        assert_int_equal(error, e ? 0 : -ENOMEM);
        if (!e)
            assert_int_equal(self->alloc.live_bytes, 0);
    }
    assert_in_range(self->alloc.requests, 10, 100);
    mrd_engine_destroy(e);
    assert_int_equal(self->alloc.live_bytes, 0);
}

/* ----------------------------------------------------------------------------- clock and stalls */

/* Packets were read, and more may wait: nobody is judged before the queue was seen empty. */
TEST_F(pair, mrd_engine_drained__judges_nobody_before_all_is_read)
{
    struct mrd_engine *e = self->end[0].e;

    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 100);
    assert_int_equal(pair_tx(self, 0), 1);
    pair_pass(self, 0, 100 * MRD_MSEC);
    self->end[0].inbox[0].len = 3; /* no packet at all, but something was read */
    pair_rx_one(self, 0, &self->end[0].inbox[0]);
    assert_int_equal(e->stats.rx_drop_truncated, 1);
    mrd_engine_expire(e, self->now);
    assert_int_equal(pair_tx(self, 0), 0);
    assert_int_equal(e->stats.retx_tail, 0);
    self->now += 2;
    mrd_engine_drained(e, self->now);
    mrd_engine_expire(e, self->now);
    assert_true(pair_tx(self, 0) > 0);
    assert_int_equal(e->stats.retx_tail, 1);
}

/* Acks that prove a loss, with the packet's own ack perhaps behind them in the queue. */
TEST_F(pair, mrd_engine_drained__losses_after_the_last_ack)
{
    pair_config(self);
    self->config.spray = "single";
    pair_open(self);
    struct mrd_engine *e = self->end[0].e;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 6 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 0), 6);
    self->now += PAIR_HOP_NS;
    self->end[1].inbox[0].data[50] ^= 1; /* the first is lost: two later ones of its path arrive */
    assert_in_range(pair_turn(self, 1), 1, 2);
    pair_pass(self, 0, PAIR_HOP_NS);
    pair_rx_one(self, 0, &self->end[0].inbox[0]);
    assert_int_equal(e->stats.rx_acks, 1);
    assert_int_equal(e->stats.retx_order, 0);
    mrd_engine_drained(e, self->now);
    assert_int_equal(e->stats.retx_order, 1);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[0].memory, self->end[1].memory, 6 * PAIR_PAYLOAD);
}

/* An ack that waited unread while we slept tells nothing of the round trip. */
TEST_F(pair, mrd_engine_drained__rtt_across_a_stall_is_void)
{
    for (uint64_t sleep_ns = 0; sleep_ns <= 50 * MRD_MSEC; sleep_ns += 50 * MRD_MSEC) {
        pair_begin(self);
        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 3 * PAIR_PAYLOAD);
        pair_tx(self, 0);
        pair_hop(self, 1);
        self->now += MRD_ACK_WITH_REPLY_NS;
        pair_turn(self, 1);
        self->now += sleep_ns;
        pair_turn(self, 0);
        struct mrd_send_state *tx = pair_peer(self, 0)->tx;
        assert_int_equal(self->end[0].e->stats.stalls, sleep_ns ? 1 : 0);
        assert_int_equal(tx->sent.una, 3);
        assert_int_equal(tx->loss.srtt_ns != 0, sleep_ns == 0);
    }
}

/* --------------------------------------------------------------------------------------- timers */

/* A timer that was armed for nothing fires, finds nothing due, and is not set again. */
TEST_F(pair, mrd_engine_expire__a_timer_that_fires_early)
{
    struct mrd_engine *e = self->end[0].e;
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[1].addr);
    mrd_heap_arm(&e->timers.heap, &peer->timer, self->now + 50);
    assert_true(mrd_engine_deadline(e) == self->now + 50);
    mrd_engine_expire(e, self->now + 50);
    assert_true(mrd_engine_deadline(e) == MRD_NEVER);
}

/* Timers are set late, but as of when they began: a stall counts from the first deadline on. */
TEST_F(pair, mrd_timer_touch__a_stall_begins_at_the_deadline)
{
    const uint64_t whole_ns = 2 * MRD_SEC;
    uint64_t absent_ns[2];

    for (unsigned posts = 1; posts <= 2; posts++) {
        pair_begin(self);
        struct mrd_engine *e = self->end[0].e;
        for (unsigned i = 0; i < posts; i++) {
            pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, PAIR_PAYLOAD); /* does not wait for company */
            assert_int_equal(pair_tx(self, 0), 1);
            self->now += whole_ns / posts;
        }
        mrd_engine_begin(e, self->now);
        mrd_engine_drained(e, self->now);
        assert_int_equal(e->stats.stalls, 1);
        absent_ns[posts - 1] = e->clock.absent_sum_ns;
        pair_settle(self, self->now + MRD_SEC);
    }
    assert_in_range(absent_ns[0], whole_ns / 2 + 1, whole_ns - 1);
    assert_int_equal(absent_ns[0], absent_ns[1]); /* a post is no look at the queue */
}

/* Without a turn in between, the caller is told when the first timer is due. */
TEST_F(pair, mrd_timer_touch__deadline_after_a_post)
{
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 100);
    while (pair_tx(self, 0))
        ;
    uint64_t deadline_ns = mrd_engine_deadline(self->end[0].e);
    assert_in_range(deadline_ns, self->now + 1, self->now + MRD_SEC);
}

/*
 * A whole message, whose ack waits for an answer, leaves nothing to do; its ack, what follows it
 * and timers do.
 */
TEST_F(pair, mrd_engine_quiet__only_with_nothing_to_send)
{
    struct mrd_engine *a = self->end[0].e, *b = self->end[1].e;

    pair_settle(self, self->now + 1);
    assert_true(mrd_engine_quiet(a));
    pair_post_recv(self, 1, 0, 64);
    pair_post(self, 0, MRD_WR_SEND, 0, 64);
    assert_false(mrd_engine_quiet(a)); /* a message to send */
    pair_tx(self, 0);
    pair_rx(self, 1, PAIR_HOP_NS);
    assert_true(mrd_engine_quiet(b));
    mrd_engine_begin(b, self->now);
    assert_false(mrd_engine_quiet(b)); /* no answer came with the call: the ack goes now */
    pair_tx(self, 1);

    /* The ack, while another message is on its way: its losses would have to be judged. */
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 64, 64);
    pair_tx(self, 0);
    pair_rx(self, 0, PAIR_HOP_NS);
    assert_false(mrd_engine_quiet(a));
    pair_settle(self, self->now + MRD_SEC);
    assert_true(mrd_engine_quiet(a));

    /* The end of a long message is acked at once. */
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 2 * PAIR_PAYLOAD);
    pair_tx(self, 0);
    pair_rx(self, 1, PAIR_HOP_NS);
    assert_false(mrd_engine_quiet(b));
}

/* The ack of half a message is lost, and its sender says no more: the silence repeats the ack. */
TEST_F(pair, mrd_engine_expire__silence_repeats_the_ack)
{
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 2 * PAIR_PAYLOAD);
    assert_int_equal(pair_tx(self, 0), 2);
    self->now += PAIR_HOP_NS;
    self->end[1].num_inbox = 1; /* the second packet is lost, too */
    pair_turn(self, 1);
    self->now += MRD_MSEC;
    pair_turn(self, 1);
    assert_true(self->end[1].e->stats.tx_acks > 0);
    self->end[0].num_inbox = 0;
    uint64_t ack_sent_ns = self->now;
    while (!self->end[0].num_inbox && self->now < ack_sent_ns + 10 * MRD_SILENCE_MIN_NS) {
        self->now += MRD_MSEC;
        pair_turn(self, 1);
    }
    const struct mrd_send_state *tx = pair_peer(self, 0)->tx;
    assert_int_equal(tx->sent.una, 0);
    pair_rx(self, 0, 0);
    assert_int_equal(tx->sent.una, 1);
    pair_settle(self, self->now + MRD_SEC);
    assert_memory_equal(self->end[0].memory, self->end[1].memory, 2 * PAIR_PAYLOAD);
}

/* When all is done there is no timer and nothing to send: a context that is idle sleeps. */
TEST_F(pair, mrd_engine_deadline__never_when_idle)
{
    assert_true(mrd_engine_deadline(self->end[0].e) == MRD_NEVER);
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 10 * PAIR_PAYLOAD);
    assert_true(mrd_engine_deadline(self->end[0].e) == 0);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    for (int i = 0; i < 2; i++)
        assert_true(mrd_engine_deadline(self->end[i].e) == MRD_NEVER);
}

/* ------------------------------------------------------------------------------- events, pacing */

TEST_F(pair, mrd_engine_get_event__more_than_fit_are_counted)
{
    struct mrd_engine *e = self->end[0].e;
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[1].addr);

    pair_expect_no_event(self, 0);
    for (int i = 0; i < MRD_EVENTS_MAX + 3; i++)
        mrd_event_add(e, peer, MRD_EVENT_PEER_RESTARTED);
    for (int i = 0; i < MRD_EVENTS_MAX; i++)
        assert_int_equal(pair_expect_event(self, 0, MRD_EVENT_PEER_RESTARTED).addr.port,
                         self->end[1].addr.port);
    pair_expect_no_event(self, 0);
    assert_int_equal(e->stats.events_lost, 3);
}

/* A window that grew since the last packet, and is below one again, waits as long as it says now. */
TEST(mrd_tx_pace_ns__by_the_window_as_it_is)
{
    static struct mrd_send_state tx = {.sent_ns = 1000, .loss = {.srtt_ns = 24000}};

    tx.cc.packet_bytes = 4000;
    tx.cc.cwnd_bytes = 400;
    assert_int_equal(mrd_tx_pace_ns(&tx), 1000 + 240000);
    tx.cc.cwnd_bytes = 3200;
    assert_int_equal(mrd_tx_pace_ns(&tx), 1000 + 30000);
}
