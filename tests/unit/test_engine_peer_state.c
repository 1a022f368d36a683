/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of peers and of their halves. */
#include "core/engine/peer_state.h"
#include "core/engine/rnr.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, FIRST_GRANT = 320 };

/* A peer with the default patience was silent for so long: nothing of its space can still come. */
#define EXPIRED_NS (MRD_SEND_IDLE_LIFE_NS + 8 * MRD_SEC + 2 * MRD_PACKET_LIFE_NS)

/* The receive queue is seen empty at that time. */
static void drained_at(struct pair *p, uint64_t now_ns)
{
    p->now = now_ns;
    mrd_engine_begin(p->end[AT].e, now_ns);
    mrd_engine_drained(p->end[AT].e, now_ns);
}

/* The first of two pieces of a message to this end. */
static void half_message(struct pair *p, struct mrd_peer *peer, uint32_t id)
{
    struct mrd_wire_part part = hand_piece(hand_send(p, AT, 0), id, 0, BYTES, 2 * BYTES);

    assert_int_equal(hand_place(p, AT, peer, id, &part, 1).verdict, MRD_PLACED);
}

/* -------------------------------------------------------------------------------------- expiry */

/* An answer of the peer: it is not given up, and probes count anew. */
TEST_F(pair, mrd_send_state_answered__begins_patience_anew)
{
    struct mrd_peer *peer = mrd_peer_open(self->end[AT].e, &self->end[1].addr);

    peer->given_up = true;
    mrd_send_state_answered(self->end[AT].e, peer);
    assert_true(peer->given_up); /* nothing was sent to it that it could answer */
    mrd_send_state_open(self->end[AT].e, peer);
    peer->tx->probes.unanswered = 4;
    mrd_engine_begin(self->end[AT].e, self->now + 5);
    self->end[AT].e->clock.absent_sum_ns = 2;
    mrd_send_state_answered(self->end[AT].e, peer);
    assert_false(peer->given_up);
    assert_int_equal(peer->tx->probes.unanswered, 0);
    assert_int_equal(peer->tx->probes.silent_since_ns, self->now + 3);
}

/* A space lasts as long as a copy of its packets may, and as its sender may wait; not longer. */
TEST_F(pair, mrd_recv_state_expire__after_the_silence)
{
    static const struct {
        uint64_t patience_ns, life_ns;
    } rows[] = {
        {0, EXPIRED_NS}, {8 * MRD_SEC, EXPIRED_NS}, {60 * MRD_SEC, EXPIRED_NS + 52 * MRD_SEC}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_begin(self);
        uint64_t heard_ns = self->now;
        struct mrd_peer *peer = hand_rx_peer(self, AT);
        peer->space.max_unacked_ns = rows[i].patience_ns;
        drained_at(self, heard_ns + rows[i].life_ns);
        mrd_recv_state_expire(self->end[AT].e, peer);
        assert_non_null(peer->rx);
        mrd_engine_begin(self->end[AT].e, self->now + 1); /* not seen empty since */
        mrd_recv_state_expire(self->end[AT].e, peer);
        assert_non_null(peer->rx);
        drained_at(self, self->now + 1);
        mrd_recv_state_expire(self->end[AT].e, peer);
        assert_null(peer->rx);
        assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    }
}

/* ---------------------------------------------------------------------------------------- peers */

/* With the table full the first idle peer goes, of those whose space is over; a tombstone stays. */
TEST_F(pair, mrd_peer_open__evicts_the_first_idle_one)
{
    pair_open_with(self, 2, 0);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *held = hand_rx_peer(self, AT);
    mrd_recv_state_end(e, held, MRD_SPACE_TOMB);
    struct mrd_peer *idle = mrd_peer_open(e, &(struct mrd_addr){.port = 102});
    assert_ptr_equal(mrd_peer_open(e, &idle->addr), idle);
    assert_int_equal(e->stats.peers, 2);
    mrd_tx_ready(e, idle);
    assert_non_null(mrd_peer_open(e, &(struct mrd_addr){.port = 103}));
    assert_null(mrd_peer_find(&e->peers, &(struct mrd_addr){.port = 102}));
    assert_ptr_equal(mrd_peer_find(&e->peers, &self->end[1].addr), held);
    assert_int_equal(e->stats.peers_evicted, 1);
    assert_int_equal(e->stats.peers, 2);
    assert_true(mrd_list_empty(&e->turns.ready));
}

/* A full table is not searched for each packet of a stranger: once in a while is enough. */
TEST_F(pair, mrd_peer_open__full_for_a_while)
{
    const struct mrd_addr stranger = {.port = 102};

    pair_open_with(self, 1, 0);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    assert_null(mrd_peer_open(self->end[AT].e, &stranger));
    mrd_recv_state_end(self->end[AT].e, peer, MRD_SPACE_NONE);
    drained_at(self, self->now + MRD_FULL_NS - 1);
    assert_null(mrd_peer_open(self->end[AT].e, &stranger));
    drained_at(self, self->now + 1);
    assert_non_null(mrd_peer_open(self->end[AT].e, &stranger));
}

/* With all of them in use there is no entry. */
TEST_F(pair, mrd_peer_open__null_when_all_are_wanted)
{
    pair_open_with(self, 1, 0);
    hand_rx_peer(self, AT);
    assert_null(mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 102}));
    assert_int_equal(self->end[AT].e->stats.peers_evicted, 0);
    drained_at(self, self->now + EXPIRED_NS + 1);
    assert_non_null(mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 102}));
}

/* A watched peer is wanted, however long it seems idle. */
TEST_F(pair, mrd_peer_open__null_when_all_are_watched)
{
    pair_open_with(self, 1, 0);
    struct mrd_peer *watched = mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 101});
    watched->watch.users = 1;
    drained_at(self, self->now + 60 * MRD_SEC);
    assert_null(mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 102}));
    watched->watch.users = 0;
    drained_at(self, self->now + MRD_FULL_NS);
    assert_non_null(mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 102}));
}

/* ---------------------------------------------------------------------------------- send states */

/* Each epoch is new. Before the peer tells, what the smallest tracker takes is granted. */
TEST_F(pair, mrd_send_state_begin_epoch__table)
{
    static const struct {
        uint32_t tracker, grant;
    } rows[] = {{512, 128}, {1024, 256}, {2048, FIRST_GRANT}, {4096, FIRST_GRANT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_config(self);
        self->config.mover.tracker = rows[i].tracker;
        pair_open(self);
        struct mrd_send_state *tx = hand_tx_peer(self, AT)->tx;
        uint32_t epoch = tx->contact.epoch;
        mrd_send_state_begin_epoch(self->end[AT].e, pair_peer(self, AT), 77);
        assert_int_equal(tx->contact.epoch, epoch + 1);
        assert_true(tx->contact.epoch_ns == MRD_NEVER);
        assert_int_equal(tx->contact.inc, 77);
        assert_true(tx->contact.knew_inc);
        assert_int_equal(tx->told.psn_limit, rows[i].grant);
        mrd_send_state_begin_epoch(self->end[AT].e, pair_peer(self, AT), 0);
        assert_false(tx->contact.knew_inc);
    }
}

/* A half that idled for too long may be forgotten at the peer: another begins. */
TEST_F(pair, mrd_send_state_open__after_idling)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT);

    uint32_t epoch = peer->tx->contact.epoch;
    drained_at(self, self->now + MRD_SEND_IDLE_LIFE_NS - 1);
    assert_int_equal(mrd_send_state_open(self->end[AT].e, peer)->contact.epoch, epoch);
    drained_at(self, self->now + 1);
    assert_int_equal(mrd_send_state_open(self->end[AT].e, peer)->contact.epoch, epoch + 1);
}

/* It speaks to the life whose space is held; to that of a tombstone not. */
TEST_F(pair, mrd_send_state_open__to_whom)
{
    struct mrd_peer *peer;

    for (unsigned tomb = 0; tomb < 2; tomb++) {
        pair_begin(self);
        peer = hand_rx_peer(self, AT);
        if (tomb)
            mrd_recv_state_end(self->end[AT].e, peer, MRD_SPACE_TOMB);
        mrd_send_state_open(self->end[AT].e, peer);
        assert_int_equal(peer->tx->contact.inc, tomb ? 0 : pair_inc(self, 1));
    }
}

/* An empty packet goes first, but to a peer that is known, or where first contacts are trusted. */
TEST_F(pair, mrd_send_state_open__begins_with_hello)
{
    static const struct {
        bool trusting, given_up, known, hello;
    } rows[] = {
        {true, false, false, false}, {true, true, false, true},   {true, true, true, false},
        {false, false, false, true}, {false, false, true, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pair_config(self);
        self->config.trusting = rows[i].trusting;
        pair_open(self);
        struct mrd_peer *peer = rows[i].known ? hand_rx_peer(self, AT)
                                              : mrd_peer_open(self->end[AT].e, &self->end[1].addr);
        peer->given_up = rows[i].given_up;
        mrd_send_state_open(self->end[AT].e, peer);
        assert_int_equal(peer->tx->contact.hello, rows[i].hello);
        assert_int_equal(peer->tx->probes.silence_due, rows[i].hello);
    }
}

/* What is over and was not looked at yet ends; looked for at most each 10 ms. */
TEST_F(pair, mrd_peers_reclaim__not_too_often)
{
    mrd_peers_reclaim(self->end[AT].e);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    drained_at(self, self->now + EXPIRED_NS + 1);
    self->end[AT].e->lives.reclaimed_ns = self->now - MRD_RECLAIM_NS + 1;
    mrd_peers_reclaim(self->end[AT].e);
    assert_non_null(peer->rx);
    self->end[AT].e->lives.reclaimed_ns--;
    mrd_peers_reclaim(self->end[AT].e);
    assert_null(peer->rx);
}

/* --------------------------------------------------------------------------------- ends of them */

/* Messages in every state fail, queues and flows go, and nothing is left to be sent. */
TEST_F(pair, mrd_send_state_end__ends_all_that_hangs_on_it)
{
    static const uint32_t offset[] = {0, BYTES, 0};
    unsigned num = 0;
    struct mrd_wc wc;

    struct mrd_engine *e = self->end[AT].e;
    struct mrd_qp *kept = hand_swap_qp(self, AT, MRD_ORDER_MSG);
    pair_post(self, AT, MRD_WR_SEND, 0, BYTES);
    pair_tx(self, AT); /* one in flight */
    pair_post(self, AT, MRD_WR_RDMA_WRITE, BYTES, 40 * PAIR_PAYLOAD);
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES); /* two that wait */
    struct mrd_peer *peer = mrd_peer_find(&e->peers, &self->end[1].addr);
    mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    assert_null(peer->tx);
    assert_true(mrd_list_empty(&peer->msgs));
    assert_int_equal(e->txqs.pool.used + e->flows_tx.pool.used, 0);
    for (; pair_poll(self, AT, &wc); num++) {
        assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
        assert_int_equal(wc.wr_id, 500 + offset[num]); /* in order */
    }
    assert_int_equal(num, 3);
    hand_restore_qp(self, AT, kept);
}

/* Half messages fail; records of flows, of who waits for receives, and of refusals go. */
TEST_F(pair, mrd_recv_state_end__ends_all_that_hangs_on_it)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    pair_post_recv(self, AT, 0, 2 * BYTES);
    half_message(self, peer, 1);
    struct mrd_wire_part part = hand_write(self, AT, BYTES);
    part.flags = MRD_PART_ORDERED;
    assert_int_equal(hand_place(self, AT, peer, 2, &part, 1).verdict, MRD_PLACED);
    mrd_rnr_add(e, peer, hand_qp(self, AT));
    struct mrd_refusal *refusal = mrd_pool_alloc(&e->refusals);
    mrd_list_init(&refusal->node);
    peer->uses.refusals++;
    mrd_list_append(&mrd_send_state_open(e, peer)->refusals, &refusal->node);
    assert_int_equal(peer->uses.flows, 1);

    mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
    pair_expect(self, AT, MRD_WC_REM_ABORT_ERR);
    assert_null(peer->rx);
    assert_int_equal(peer->space.state, MRD_SPACE_TOMB);
    assert_int_equal(peer->uses.flows + peer->uses.reorder_entries + peer->uses.refusals, 0);
    assert_int_equal(e->rnr_waiters.pool.used + e->refusals.used + e->flows_rx.pool.used, 0);
    assert_true(mrd_list_empty(&hand_qp(self, AT)->recvq->rnr_waiters));
    assert_non_null(peer->tx); /* what we send it is another matter */
}

/* Both directions end, and an event tells it; a space that was held leaves a tombstone. */
TEST_F(pair, mrd_peer_unreachable__ends_both_directions)
{
    for (unsigned known = 0; known < 2; known++) {
        pair_begin(self);
        pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        struct mrd_peer *peer = mrd_peer_find(&self->end[AT].e->peers, &self->end[1].addr);
        if (known)
            hand_rx_peer(self, AT);
        mrd_peer_unreachable(self->end[AT].e, peer);
        pair_expect(self, AT, MRD_WC_RETRY_EXC_ERR);
        assert_null(peer->tx);
        assert_null(peer->rx);
        assert_true(peer->given_up);
        assert_int_equal(peer->space.state, known ? MRD_SPACE_TOMB : MRD_SPACE_NONE);
        assert_int_equal(self->end[AT].e->stats.peers_unreachable, 1);
        pair_expect_event(self, AT, MRD_EVENT_PEER_UNREACHABLE);
    }
}

/* That a peer restarted concerns the user only where work or receives were lost by it. */
TEST_F(pair, mrd_peer_restarted__event_if_anything_was_lost)
{
    for (unsigned i = 0; i < 4; i++) {
        struct mrd_engine_event event;
        bool work = i & 1, receives = i & 2;

        pair_begin(self);
        if (work)
            pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        struct mrd_peer *peer = hand_tx_peer(self, AT);
        hand_rx_peer(self, AT);
        mrd_peer_restarted(self->end[AT].e, peer, receives);
        assert_int_equal(mrd_engine_get_event(self->end[AT].e, &event) == 0, work || receives);
        assert_int_equal(self->end[AT].e->stats.peers_restarted, work || receives);
        assert_null(peer->tx);
        assert_non_null(peer->rx);
    }
}

/* A peer that closed waits for nothing any more: its space need not outlive that. */
TEST_F(pair, mrd_peer_closed__has_no_patience)
{
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    peer->space.max_unacked_ns = 60 * MRD_SEC;
    mrd_peer_closed(self->end[AT].e, peer);
    assert_int_equal(peer->space.max_unacked_ns, 0);
    pair_expect(self, AT, MRD_WC_RETRY_EXC_ERR);
    assert_null(peer->tx);
}

/* A half message, what is held back or reserved, what never comes, a refused PSN: each is owed. */
TEST_F(pair, mrd_recv_state_is_owed__table)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    assert_false(mrd_recv_state_is_owed(peer));
    peer->uses.reorder_entries = 1;
    assert_true(mrd_recv_state_is_owed(peer));
    peer->uses.reorder_entries = 0;
    peer->uses.gone = 1;
    assert_true(mrd_recv_state_is_owed(peer));
    peer->uses.gone = 0;
    mrd_rcv_add(&peer->rx->rcv, 0, true);
    assert_true(mrd_recv_state_is_owed(peer));
    assert_true(mrd_rcv_refusal_acked(&peer->rx->rcv, 0));
    assert_false(mrd_recv_state_is_owed(peer));
    pair_post_recv(self, AT, 0, 2 * BYTES);
    half_message(self, peer, 1);
    assert_true(mrd_recv_state_is_owed(peer));
}
