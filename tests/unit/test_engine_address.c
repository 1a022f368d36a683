/* SPDX-License-Identifier: BSD-2-Clause */
/* When a peer moves, what follows from it, and when another source of ours is tried. */
#include "core/engine/address.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, ELSEWHERE = 9, STAMP = 5000 };

static void pass(struct pair *p, uint64_t ns)
{
    pair_pass(p, AT, ns);
    mrd_engine_drained(p->end[AT].e, p->now);
}

/* A packet of the peer comes from its address, or from another one of its host. */
static void came(struct pair *p, struct mrd_peer *peer, const struct mrd_wire_head *head,
                 uint8_t host)
{
    struct mrd_rx_packet packet = {.from = p->end[1 - AT].addr, .to = p->end[AT].addr};

    packet.from.ip[15] = host;
    mrd_address_came(p->end[AT].e, peer, head, &packet);
}

static uint32_t num_answers(const struct pair *p)
{
    return p->end[AT].e->answers.tail - p->end[AT].e->answers.head;
}

/* A packet that left at `stamp`; with the cookie for where it comes from. */
static struct mrd_wire_head proof(struct pair *p, struct mrd_peer *peer, uint32_t stamp)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);
    struct mrd_answers *a = &p->end[AT].e->answers;

    head.stamp = stamp;
    pass(p, MRD_MOVED_NS);
    peer->place.tried_ns = 0;
    came(p, peer, &head, ELSEWHERE);
    assert_int_equal(num_answers(p), 1);
    head.cookie = a->ring[a->head++ % MRD_STATELESS_MAX].head.cookie;
    head.flags |= MRD_WIRE_COOKIE;
    return head;
}

static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    pass(p, MRD_SEC);
    struct mrd_peer *peer = hand_rx_peer(p, AT);
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);
    head.stamp = STAMP;
    came(p, peer, &head, 0);
    return peer;
}

/* ------------------------------------------------------------------------------------ the peer's */

/* All is acked at once, the new route is asked for, and late packets from where it was ask nothing. */
TEST_F(pair, mrd_address_came__what_follows)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = proof(self, peer, STAMP + 1);

    peer->route_asked = true;
    peer->rx->rcv.now = false;
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    assert_false(peer->route_asked);
    assert_true(peer->rx->rcv.now);
    assert_false(mrd_list_empty(&peer->ready));
    peer->place.asked_ns = 0;
    head = hand_head(self, AT, MRD_WIRE_DATA);
    head.stamp = STAMP;
    came(self, peer, &head, 0);
    assert_int_equal(num_answers(self), 0);
}

/* What left before something that came from its own address is no proof, in whatever order that came. */
TEST_F(pair, mrd_address_came__no_proof_is_older)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);

    head.stamp = STAMP - 100; /* late */
    came(self, peer, &head, 0);
    head = proof(self, peer, STAMP - 1);
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], 0);
    head = proof(self, peer, STAMP + 1);
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
}

/* A copy of a proof does not take the peer back to where it left. */
TEST_F(pair, mrd_address_came__a_proof_counts_once)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_addr old = peer->addr;
    struct mrd_wire_head head = proof(self, peer, STAMP + 10);

    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    /* It is where it was before. */
    mrd_peer_move(&self->end[AT].e->peers, peer, &old);
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], 0);
    head = proof(self, peer, STAMP + 11);
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
}

/* Stamps come round: after a silence of half a turn a new one looks old. */
TEST_F(pair, mrd_address_came__after_a_long_silence)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_wire_head head;

    pass(self, 40 * MRD_SEC);
    head = proof(self, peer, STAMP + (uint32_t)(40 * MRD_SEC / MRD_WIRE_STAMP_NS));
    came(self, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
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
TEST_F(pair, mrd_address_came__takes_the_place_of_a_first_contact)
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
        struct mrd_peer *peer = begin(self), *asks;
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_addr there = peer->addr;

        there.ip[15] = ELSEWHERE;
        asks = mrd_peer_open(e, &there);
        mrd_send_state_open(e, asks)->contact.hello = !rows[i].inc;
        asks->tx->contact.inc = rows[i].inc ? peer->space.inc + rows[i].inc - HERS : 0;
        asks->tx->contact.acked_once = rows[i].acked;
        if (rows[i].has_space) {
            mrd_peer_rx_begin(&e->peers, asks, e->config.mover.tracker);
            asks->space.inc = asks->tx->contact.inc;
        }
        asks->watch.on = true;
        struct mrd_wire_head head = proof(self, peer, STAMP + 1);
        came(self, peer, &head, ELSEWHERE);
        assert_memory_equal(&peer->addr, &there, sizeof(there));
        assert_int_equal(asks->tx != NULL, rows[i].goes_on);
        assert_int_equal(asks->watch.on, rows[i].goes_on);
        assert_int_equal(peer->watch.on, !rows[i].goes_on);
        if (!rows[i].goes_on) {
            assert_true(peer->tx->probes.silence_due);
            assert_ptr_equal(mrd_peer_open(e, &there), peer);
        }
        assert_int_equal(e->stats.peers_restarted, 0);
    }
}

/* The peer's memory may be read, and what it answers is of a later epoch than the space begun by hand. */
static void let_read(struct pair *p, struct mrd_peer *peer)
{
    struct pair_end *end = &p->end[1 - AT];
    int error;

    mrd_engine_dereg_mr(end->e, end->mr, p->now);
    end->mr =
        mrd_engine_reg_mr(end->e, end->pd, end->memory, sizeof(end->memory),
                          MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ,
                          &(struct mrd_mover_mr){0}, &error);
    assert_non_null(end->mr);
    peer->space.epoch =
        mrd_answer_pair(end->e, &p->end[AT].addr).epoch_base + end->e->lives.epoch_next - 1;
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
TEST_F(pair, mrd_address_came__work_goes_on)
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
        struct mrd_peer *peer = begin(self), *asks;
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_addr there = peer->addr;
        struct mrd_qp *kept = hand_swap_qp(self, AT, rows[i].order);
        void *taken[32];
        struct mrd_wc wc;
        int error;

        there.ip[15] = ELSEWHERE;
        asks = mrd_peer_open(e, &there);
        mrd_send_state_open(e, asks)->contact.hello = true;
        struct mrd_ah *ah = mrd_engine_create_ah(e, self->end[AT].pd, &there, 0, &error);
        let_read(self, peer);
        post_to(self, ah, rows[i].len);
        assert_int_equal(asks->uses.held, 1);
        asks->tx->contact.hello = !rows[i].sent;
        struct mrd_wire_head head = proof(self, peer, STAMP + 1);
        if (rows[i].full)
            hand_exhaust(&e->flows_tx.pool, taken);
        came(self, peer, &head, ELSEWHERE);
        if (rows[i].full)
            hand_refill(&e->flows_tx.pool, taken);
        assert_int_equal(hand_length(&peer->msgs), goes_on ? MESSAGES : 0);
        assert_int_equal(peer->uses.held + peer->uses.requests, goes_on ? 2 : 0);
        assert_int_equal(asks->uses.held + asks->uses.requests, 0);
        assert_null(asks->tx);
        assert_true(mrd_list_empty(&asks->msgs) && mrd_list_empty(&asks->flows_tx));
        for (unsigned m = 0; m < MESSAGES; m++) {
            pair_settle(self, self->now + (goes_on ? 20 * MRD_MSEC : 0));
            wc = pair_expect(self, AT, goes_on ? MRD_WC_SUCCESS : MRD_WC_RETRY_EXC_ERR);
            assert_true(wc.wr_id == m || rows[i].order == MRD_ORDER_NONE);
        }
        assert_int_equal(mrd_engine_destroy_ah(e, ah), 0);
        hand_restore_qp(self, AT, kept);
    }
}
