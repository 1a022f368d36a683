/* SPDX-License-Identifier: BSD-2-Clause */
/* When a peer moves, what follows from it, and when another source of ours is tried. */
#include "tests/unit/engine_moves.h"

enum { STAMP = 5000 };

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    pass(p, MRD_SEC);
    return known_peer(p, STAMP);
}

/* The peer moves to where that packet says, or not. */
static void comes_from_elsewhere(struct pair *p, struct mrd_peer *peer,
                                 const struct mrd_wire_head *head, bool moves_there)
{
    came(p, peer, head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], moves_there ? ELSEWHERE : 0);
}

/* Such a packet that left at `stamp`, with a proof. */
static struct mrd_wire_head is_proven(struct pair *p, struct mrd_peer *peer, uint32_t stamp,
                                      bool moves_there)
{
    struct mrd_wire_head head = proof(p, peer, stamp);

    comes_from_elsewhere(p, peer, &head, moves_there);
    return head;
}

/* ------------------------------------------------------------------------------------ the peer's */

/* All is acked at once, the new route is asked for, and late packets from where it was ask nothing. */
TEST_F(pair, mrd_address_came__what_follows)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = proof(self, peer, STAMP + 1);

    peer->route_asked = true;
    peer->rx->rcv.now = false;
    comes_from_elsewhere(self, peer, &head, true);
    assert_false(peer->route_asked);
    assert_true(peer->rx->rcv.now);
    assert_false(mrd_list_empty(&peer->ready));
    peer->place.asked_ns = 0;
    head = hand_head(self, AT, MRD_WIRE_DATA);
    head.stamp = STAMP;
    came(self, peer, &head, 0);
    assert_int_equal(hand_answers(self, AT), 0);
}

/* What left before something that came from its own address is no proof, in whatever order that came. */
TEST_F(pair, mrd_address_came__no_proof_is_older)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);

    head.stamp = STAMP - 100; /* late */
    came(self, peer, &head, 0);
    is_proven(self, peer, STAMP - 1, false);
    is_proven(self, peer, STAMP + 1, true);
}

/* A copy of a proof does not take the peer back to where it left. */
TEST_F(pair, mrd_address_came__a_proof_counts_once)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = is_proven(self, peer, STAMP + 10, true);

    pair_move_peer(self, AT, peer, 0); /* it is where it was before */
    comes_from_elsewhere(self, peer, &head, false);
    is_proven(self, peer, STAMP + 11, true);
}

/* Stamps come round: after a silence of half a turn a new one looks old. */
TEST_F(pair, mrd_address_came__after_a_long_silence)
{
    struct mrd_peer *peer = begin(self);

    pass(self, 40 * MRD_SEC);
    is_proven(self, peer, STAMP + (uint32_t)(40 * MRD_SEC / MRD_WIRE_STAMP_NS), true);
}

/* ------------------------------------------------------------------------------------------ ours */

/* A peer that has not answered for long: another source is tried. */
static struct mrd_peer *begin_doubt(struct pair *p)
{
    pair_begin(p);
    pass(p, MRD_SEC);
    struct mrd_peer *peer = hand_tx_peer(p, AT);
    peer->local.ip[15] = 1;
    peer->tx->probes.unanswered = MRD_SOURCE_PROBES;
    peer->tx->probes.silent_since_ns = mrd_clock_present_ns(&p->end[AT].e->clock);
    pass(p, MRD_SOURCE_MAX_NS);
    return peer;
}

static bool doubted(struct pair *p, struct mrd_peer *peer)
{
    struct mrd_turns *turns = &p->end[AT].e->turns;
    uint32_t before = turns->wants_source;

    mrd_address_doubt(p->end[AT].e, peer);
    bool asked = turns->wants_source > before;
    if (asked) {
        assert_int_equal(turns->sourceless[before], peer->id);
        assert_int_equal(peer->local.ip[15], 0); /* the mover chooses */
        assert_int_equal(peer->place.tried_ns, p->now);
    } else {
        assert_int_equal(turns->wants_source, before);
    }
    turns->wants_source = before;
    return asked;
}

TEST_F(pair, mrd_address_doubt__once_in_a_while)
{
    struct mrd_peer *peer = begin_doubt(self);

    assert_true(doubted(self, peer));
    pass(self, MRD_SOURCE_MAX_NS - 1);
    assert_false(doubted(self, peer));
    pass(self, 1);
    assert_true(doubted(self, peer));
}

/* Not because of one lost probe, nor within the time of a few. */
TEST_F(pair, mrd_address_doubt__not_early)
{
    struct mrd_peer *peer = begin_doubt(self);

    peer->tx->probes.unanswered = MRD_SOURCE_PROBES - 1;
    assert_false(doubted(self, peer));
    peer->tx->probes.unanswered = MRD_SOURCE_PROBES;
    peer->tx->probes.silent_since_ns++;
    assert_false(doubted(self, peer));
    assert_int_equal(peer->local.ip[15], 1);
    peer->tx->probes.silent_since_ns--;
    assert_true(doubted(self, peer));
}

/*
 * Not while a first contact repeats its cookie, which is for the source that was asked. Later the peer
 * may have taken it, and only its acks do not arrive.
 */
TEST_F(pair, mrd_address_doubt__not_in_a_first_contact)
{
    struct mrd_peer *peer = begin_doubt(self);

    peer->tx->contact.has_cookie = true;
    peer->tx->contact.acked_once = false;
    peer->tx->contact.epoch_ns = self->now - MRD_FIRST_CONTACT_LIFE_NS;
    assert_false(doubted(self, peer));
    assert_int_equal(peer->local.ip[15], 1);
    peer->tx->contact.epoch_ns--;
    assert_true(doubted(self, peer));
    pass(self, MRD_SOURCE_MAX_NS);
    peer->tx->contact.epoch_ns = self->now;
    peer->tx->contact.has_cookie = false; /* it knows us, and asks for none */
    assert_true(doubted(self, peer));
    peer->tx->contact.has_cookie = peer->tx->contact.acked_once = true;
    pass(self, MRD_SOURCE_MAX_NS);
    assert_true(doubted(self, peer));
}

/* So many wait for another source that it must ask again later. */
TEST_F(pair, mrd_address_doubt__too_many)
{
    struct mrd_peer *peer = begin_doubt(self);
    struct mrd_turns *turns = &self->end[AT].e->turns;

    turns->wants_source = MRD_ROUTES_WANTED;
    assert_false(doubted(self, peer));
    assert_int_equal(peer->local.ip[15], 1);
    turns->wants_source = 0;
    assert_true(doubted(self, peer));
}

/*
 * It moves to an address where another entry is in its first contact, by another name of ours. The peer would
 * take that for another life of ours: its work ends, its watch goes on. One that the peer knows goes on, and so
 * does one that speaks to another peer there.
 */
TEST(mrd_address_came__takes_the_place_of_a_first_contact)
{
    enum { HERS = 1, ANOTHERS };
    static const struct {
        uint8_t inc; /* of the peer, or another one, answered there; 0: none did */
        bool acked, has_space, goes_on;
    } rows[] = {
        {0, false, false, false},       {HERS, false, false, false}, {HERS, true, false, true},
        {ANOTHERS, false, false, true}, {HERS, false, true, true},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world w = begin_order(MRD_ORDER_NONE);
        struct mrd_addr there = w.asks->addr;

        mrd_send_state_open(w.e, w.asks)->contact.hello = !rows[i].inc;
        w.asks->tx->contact.inc = rows[i].inc ? w.peer->space.inc + rows[i].inc - HERS : 0;
        w.asks->tx->contact.acked_once = rows[i].acked;
        if (rows[i].has_space) {
            mrd_peer_rx_begin(&w.e->peers, w.asks, w.e->config.mover.tracker);
            w.asks->space.inc = w.asks->tx->contact.inc;
        }
        w.asks->watch.users = 1;
        moves(w.p, w.peer);
        assert_memory_equal(&w.peer->addr, &there, sizeof(there));
        assert_int_equal(w.asks->tx != NULL, rows[i].goes_on);
        assert_int_equal(w.asks->watch.users, rows[i].goes_on);
        assert_int_equal(w.peer->watch.users, !rows[i].goes_on);
        if (!rows[i].goes_on) {
            assert_true(w.peer->tx->probes.silence_due);
            assert_ptr_equal(mrd_peer_open(w.e, &there), w.peer);
        }
        assert_int_equal(w.e->stats.peers_restarted, 0);
        finish(&w);
    }
}

/* The peer's memory may be read. */
static void let_read(struct pair *p)
{
    struct pair_end *end = &p->end[1 - AT];

    hand_dereg(p, 1 - AT);
    end->mr = pair_register(
        p, 1 - AT, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ);
}

/* Posts to that address, while nobody answers there: a write, and one behind a fence that waits for a read. */
static void post_to(struct pair *p, struct mrd_ah *ah, uint32_t len)
{
    static const enum mrd_wr_opcode opcodes[] = {MRD_WR_RDMA_READ, MRD_WR_RDMA_WRITE,
                                                 MRD_WR_RDMA_WRITE};

    for (unsigned i = 0; i < 3; i++) {
        struct hand_wr w;

        hand_wr(p, AT, opcodes[i], len, &w);
        w.wr.ud.ah = ah;
        w.wr.wr_id = i;
        w.wr.send_flags |= i == 2 ? MRD_SEND_FENCE : 0;
        assert_int_equal(hand_post(p, AT, &w.wr), 0);
    }
}

/*
 * While an entry only asks, nothing of its messages is sent: they go on by the peer that moves there, in order
 * and behind fences as before. What was sent fails, and what finds a table full.
 */
TEST(mrd_address_came__work_goes_on)
{
    enum { LONG = 4 * PAIR_PAYLOAD, MESSAGES = 3 };
    static const struct {
        enum mrd_order order;
        uint32_t len;
        bool sent, full;
    } rows[] = {{MRD_ORDER_NONE, 64, false, false},   {MRD_ORDER_MSG, 64, false, false},
                {MRD_ORDER_NONE, LONG, false, false}, {MRD_ORDER_MSG, LONG, false, false},
                {MRD_ORDER_MSG, 64, true, false},     {MRD_ORDER_MSG, 64, false, true}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool goes_on = !rows[i].sent && !rows[i].full;
        struct world w = begin_order(rows[i].order);
        void *taken[32] = {NULL};

        mrd_send_state_open(w.e, w.asks)->contact.hello = true;
        let_read(w.p);
        post_to(w.p, w.ah, rows[i].len);
        assert_int_equal(w.asks->uses.held, 1);
        w.asks->tx->contact.hello = !rows[i].sent;
        if (rows[i].full)
            hand_exhaust(&w.e->flows_tx.pool, taken);
        moves(w.p, w.peer);
        hand_refill(&w.e->flows_tx.pool, taken);
        assert_int_equal(hand_length(&w.peer->msgs), goes_on ? MESSAGES : 0);
        assert_int_equal(w.peer->uses.held + w.peer->uses.requests, goes_on ? 2 : 0);
        assert_int_equal(w.asks->uses.held + w.asks->uses.requests, 0);
        assert_null(w.asks->tx);
        assert_true(mrd_list_empty(&w.asks->msgs) && mrd_list_empty(&w.asks->flows_tx));
        for (unsigned m = 0; m < MESSAGES; m++) {
            pair_settle(w.p, w.p->now + (goes_on ? 20 * MRD_MSEC : 0));
            struct mrd_wc wc =
                pair_expect(w.p, AT, goes_on ? MRD_WC_SUCCESS : MRD_WC_RETRY_EXC_ERR);
            assert_true(wc.wr_id == m || rows[i].order == MRD_ORDER_NONE);
        }
        finish(&w);
    }
}
