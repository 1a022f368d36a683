/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two entries at one address, of two names of the peer. Our question from one of them is answered by
 * the name of the other: each name is of one entry, or what was executed by it is executed again.
 */
#include "core/engine/address.h"
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"
#include "tests/unit/engine_waits.h"

enum { AT = 1, FIRST = 1, SECOND = 2, NAME_1 = 1168, NAME_2 = 1154 };

static struct pair pair;
static uint32_t stamp = 1000;

static struct mrd_wire_head head_of(struct pair *p, uint32_t inc, uint32_t epoch, uint32_t psn)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.src_inc = inc;
    head.epoch = epoch;
    head.psn = psn;
    head.stamp = stamp++;
    return head;
}

static struct mrd_peer *identify(struct pair *p, const struct mrd_wire_head *head, uint8_t ours)
{
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, ours);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

/* The packet was challenged: it has the name and the cookie that the answer tells. */
static void take_cookie(struct pair *p, struct mrd_wire_head *head)
{
    struct mrd_answers *a = &p->end[AT].e->answers;

    assert_int_not_equal(a->head, a->tail);
    head->dst_inc = a->ring[a->head % MRD_STATELESS_MAX].head.src_inc;
    head->cookie = a->ring[a->head % MRD_STATELESS_MAX].head.cookie;
    a->head = a->tail;
    head->flags |= MRD_WIRE_COOKIE;
}

/* The first contact that was taken, with its cookie. */
static struct mrd_wire_head contact(struct pair *p, uint32_t inc, uint32_t epoch, uint8_t ours)
{
    struct mrd_wire_head head = head_of(p, inc, epoch, 0);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.dst_inc = 0;
    assert_null(identify(p, &head, ours));
    take_cookie(p, &head);
    return head;
}

static bool executed(struct pair *p, const struct mrd_wire_head *head, uint8_t ours)
{
    struct mrd_peer *peer = identify(p, head, ours);

    if (!peer || mrd_rcv_check(&peer->rx->rcv, head->psn) != MRD_RCV_NEW)
        return false;
    mrd_rcv_add(&peer->rx->rcv, head->psn, false);
    return true;
}

/* A first contact whose first packet was executed. */
static struct mrd_wire_head taken(struct pair *p, uint32_t inc, uint32_t epoch, uint8_t ours)
{
    struct mrd_wire_head head = contact(p, inc, epoch, ours);

    assert_true(executed(p, &head, ours));
    return head;
}

/* The peer's two entries: it calls us at two addresses, by two names. */
struct two {
    struct mrd_wire_head first, second; /* contacts */
    struct mrd_peer *one, *two;
};

static struct two meet(struct pair *p)
{
    const struct mrd_peers *peers = &p->end[AT].e->peers;
    struct two t = {.first = taken(p, NAME_1, 5, FIRST)};

    t.one = mrd_peer_find(peers, &p->end[1 - AT].addr);
    t.second = taken(p, NAME_2, 6, SECOND);
    t.two = mrd_peer_find_pair(peers, &t.one->addr, t.one->pair.own_inc, NAME_2);
    return t;
}

/* What answers our question: the challenge for it, by that name. */
static struct mrd_wire_head challenge(struct pair *p, const struct mrd_peer *asks, uint32_t name)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_CHALLENGE);

    head.dst_inc = asks->pair.own_inc;
    head.src_inc = name;
    head.epoch = asks->tx->contact.epoch;
    head.cookie = 1;
    head.echo_stamp = mrd_wire_stamp(p->now);
    return head;
}

/* It comes to that address of ours. */
static void challenged(struct pair *p, const struct mrd_peer *asks, uint32_t name, uint8_t ours)
{
    struct mrd_wire_head head = challenge(p, asks, name);
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, ours);

    mrd_contact_challenge(p->end[AT].e, &head, &packet);
}

/*
 * The peer calls us at two addresses, by two names. Both spaces are over (an outage). We ask from the
 * entry that is found; meanwhile the peer's other name may begin a new space, in its own entry. Our
 * question left from that address of ours (the other one fails, or the mover chose), so it is answered
 * by that name.
 */
enum then { THE_SAME_AGAIN, THE_NEXT, THE_ONE_BEFORE, FROM_HERE, FROM_ELSEWHERE };

static void two_entries_for_one_name(enum then then)
{
    struct pair *p = &pair;
    struct mrd_wire_head again;
    struct mrd_addr here, elsewhere;

    pair_begin_wary(p);
    struct mrd_engine *e = p->end[AT].e;
    struct two t = meet(p);
    assert_ptr_not_equal(t.one, t.two);
    p->now += MRD_SEC;
    mrd_engine_begin(e, p->now);
    mrd_recv_state_end(e, t.one, MRD_SPACE_TOMB);
    mrd_recv_state_end(e, t.two, MRD_SPACE_TOMB);
    struct mrd_peer *asks = mrd_peer_open(e, &t.one->addr); /* as a post does */
    mrd_send_state_open(e, asks);
    assert_int_equal(asks->tx->contact.inc, 0);
    struct mrd_peer *other = asks == t.one ? t.two : t.one;
    here = elsewhere = asks->addr;
    elsewhere.ip[15] ^= 8;
    uint32_t name = asks == t.one ? NAME_2 : NAME_1;
    uint8_t ours = asks == t.one ? SECOND : FIRST;
    if (then == THE_ONE_BEFORE) {
        mrd_recv_state_end(e, asks, MRD_SPACE_NONE); /* it was over for longer */
    } else {
        again = taken(p, name, 9, ours);
        assert_int_equal(other->space.epoch, 9);
    }
    if (then == FROM_ELSEWHERE)
        mrd_peer_move(&e->peers, other, &elsewhere);
    challenged(p, asks, name, ours);
    if (then == THE_SAME_AGAIN) {
        assert_false(executed(p, &again, ours)); /* its ack was lost */
    } else if (then == THE_ONE_BEFORE) {
        assert_non_null(asks->tx); /* it goes on, by that name */
        assert_int_equal(asks->tx->contact.inc, name);
        assert_false(executed(p, name == NAME_1 ? &t.first : &t.second, ours));
        again = taken(p, name, 9, ours);
        assert_int_equal(asks->space.epoch, 9);
    } else if (then == FROM_HERE || then == FROM_ELSEWHERE) {
        assert_memory_equal(&other->addr, &here, sizeof(here));
        assert_null(asks->tx);
        assert_ptr_equal(mrd_peer_open(e, &here), other);
        assert_int_equal(e->stats.peers_restarted, 0);
    } else {
        struct mrd_wire_head next = head_of(p, name, 9, 1);

        next.dst_inc = asks->pair.own_inc;
        assert_true(executed(p, &next, ours)); /* not reset */
    }
    pair_end(p);
}

TEST(namesakes__execute_once)
{
    two_entries_for_one_name(THE_SAME_AGAIN);
}

TEST(namesakes__the_space_goes_on)
{
    two_entries_for_one_name(THE_NEXT);
}

/* Its own space is over, too: what came in there stays known as executed. */
TEST(namesakes__what_is_over_goes_with_the_name)
{
    two_entries_for_one_name(THE_ONE_BEFORE);
}

/* What is posted to the address from now on goes to the entry of the name, wherever that was. */
TEST(namesakes__from_elsewhere)
{
    two_entries_for_one_name(FROM_HERE);
    two_entries_for_one_name(FROM_ELSEWHERE);
}

/*
 * A life ends, the next one takes its place, and reaches us at another address of ours from then on. A
 * late copy of the first one's contact, cookie and all, comes to where that life reached us.
 */
TEST_F(wary_pair, namesakes__late_contact_of_the_life_before)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_addr to = self->end[AT].addr;
    struct mrd_wire_head first = taken(self, NAME_1, 5, FIRST);
    taken(self, NAME_2, 6, FIRST);
    struct mrd_peer *peer = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
    assert_int_equal(peer->space.inc, NAME_2);
    to.ip[15] = SECOND;
    mrd_address_of_ours(peer, &to);
    assert_false(executed(self, &first, FIRST));
    assert_int_equal(peer->space.inc, NAME_2);
    e->answers.head = e->answers.tail; /* it was asked again */
    /* Somebody else who is there has a cookie of now. */
    taken(self, NAME_1 + 1, 7, FIRST);
    assert_int_equal(e->stats.peers, 2);
}

/* Two names take each other's place in turn: no cookie of a turn before holds again. */
TEST_F(wary_pair, namesakes__in_turn)
{
    taken(self, NAME_1, 5, FIRST);
    struct mrd_wire_head second = taken(self, NAME_2, 6, FIRST);
    taken(self, NAME_1, 7, FIRST);
    assert_false(executed(self, &second, FIRST)); /* a late copy */
}

/* First contacts at many addresses of ours at once, by as many names: one round trip serves all. */
TEST_F(wary_pair, namesakes__at_once)
{
    enum { NAMES = 8 };
    struct mrd_wire_head head[NAMES];

    for (unsigned i = 0; i < NAMES; i++)
        head[i] = contact(self, NAME_1 + i, 5, (uint8_t)(FIRST + i));
    for (unsigned i = 0; i < NAMES; i++)
        assert_true(executed(self, &head[i], (uint8_t)(FIRST + i)));
    assert_int_equal(self->end[AT].e->stats.peers, NAMES);
}

/* A host that speaks to us as very many has a bounded number of entries: all are looked at each time. */
TEST_F(pair, namesakes__are_bounded)
{
    struct mrd_wire_head head;

    pair_config(self);
    self->config.trusting = false;
    self->config.max_peers = 4 * MRD_NAMESAKES_MAX;
    pair_open(self);
    struct mrd_answers *a = &self->end[AT].e->answers;
    for (unsigned i = 0; i < MRD_NAMESAKES_MAX; i++) {
        head = contact(self, 5000 + i, 5, (uint8_t)(1 + i));
        assert_true(executed(self, &head, (uint8_t)(1 + i)));
    }
    head = contact(self, NAME_1, 5, 200);
    assert_false(executed(self, &head, 200));
    assert_int_equal(a->ring[a->head % MRD_STATELESS_MAX].head.type, MRD_WIRE_BUSY);
    assert_int_equal(self->end[AT].e->stats.peers, MRD_NAMESAKES_MAX);
}

/* The peer proves that it is there now. */
static void move_to(struct pair *p, struct mrd_peer *peer, const struct mrd_addr *there)
{
    struct mrd_wire_head proof = head_of(p, NAME_1, 5, 1);
    struct mrd_rx_packet packet = hand_packet(p, AT, there->ip[15], FIRST);

    proof.dst_inc = peer->pair.own_inc;
    (void)mrd_contact_identify(p->end[AT].e, &proof, &packet);
    take_cookie(p, &proof);
    proof.stamp = stamp++;
    assert_ptr_equal(mrd_contact_identify(p->end[AT].e, &proof, &packet), peer);
    assert_memory_equal(&peer->addr, there, sizeof(*there));
}

static void elapse(struct pair *p, uint64_t ns)
{
    pair_pass(p, AT, ns);
    pair_tx_lost(p, AT);
}

/*
 * Two entries of one peer by one name of ours. One was elsewhere, and comes back to where the other asks:
 * the peer knows us there by that name alone, and answers each by its own.
 */
TEST_F(pair, namesakes__come_back)
{
    static const enum mrd_space_state over[] = {MRD_SPACE_TOMB, MRD_SPACE_NONE};

    for (unsigned i = 0; i < 2; i++) {
        struct mrd_addr here, elsewhere;

        pair_begin_wary(self);
        struct mrd_engine *e = self->end[AT].e;
        struct two t = meet(self);
        here = elsewhere = t.one->addr;
        elsewhere.ip[15] ^= 8;
        mrd_peer_move(&e->peers, t.one, &elsewhere);
        mrd_recv_state_end(e, t.two, over[i]);
        mrd_send_state_open(e, t.two);
        assert_true(t.two->tx->contact.hello);
        elapse(self, MRD_SEC);
        move_to(self, t.one, &here);
        assert_non_null(t.two->tx);
        challenged(self, t.two, NAME_2, SECOND);
        assert_int_equal(t.two->tx->contact.inc, NAME_2);
    }
}

/* A handle that watches who is there. */
static struct mrd_ah *watch(struct pair *p, const struct mrd_addr *there)
{
    struct pair_end *at = &p->end[AT];
    int error;
    struct mrd_ah *ah = mrd_engine_create_ah(at->e, at->pd, there, 0, &error);

    assert_int_equal(mrd_engine_watch_peer(at->e, ah, true, p->now), 0);
    return ah;
}

/*
 * Who asks at an address is watched by its handle, and another entry's peer moves there. The handle ends
 * the watch; and who answered before was another process, of which the watch tells. Watches of both add up,
 * unless they are of two lives: then the one that is over is told at once.
 */
TEST_F(pair, namesakes__are_watched)
{
    static const struct {
        uint32_t asks_inc, peer_inc, inc; /* of the watches; of the one that is left */
        bool peer_watched, over;
    } rows[] = {{0, 0, 0, false, false},
                {NAME_2, 0, NAME_2, false, false},
                {0, 0, NAME_1, true, false},
                {NAME_2, 0, 0, true, true},
                {NAME_1, 0, NAME_1, true, false},
                {0, NAME_1, NAME_1, true, false},
                {NAME_2, NAME_1, NAME_1, true, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned users = (rows[i].peer_watched ? 1 : 0) + (rows[i].over ? 0 : 1);

        pair_begin_wary(self);
        struct mrd_engine *e = self->end[AT].e;
        taken(self, NAME_1, 5, FIRST);
        struct mrd_peer *peer = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
        struct mrd_addr there = peer->addr;
        peer->watch.users = rows[i].peer_watched;
        peer->watch.inc = rows[i].peer_inc;
        there.ip[15] ^= 8;
        struct mrd_ah *ah = watch(self, &there);
        struct mrd_peer *asks = mrd_peer_find(&e->peers, &there);
        assert_true(asks->watch.users);
        asks->watch.inc = rows[i].asks_inc;
        elapse(self, MRD_SEC);
        move_to(self, peer, &there);
        assert_int_equal(asks->watch.users, 0);
        assert_int_equal(peer->watch.users, users);
        assert_int_equal(peer->watch.inc, rows[i].inc);
        assert_int_equal(e->stats.peers_restarted, rows[i].over);
        for (unsigned k = 0; k < users; k++) {
            assert_true(peer->watch.users);
            assert_int_equal(mrd_engine_watch_peer(e, ah, false, self->now), 0);
        }
        assert_false(peer->watch.users);
        elapse(self, MRD_SEND_IDLE_LIFE_NS);
        assert_ptr_equal(mrd_handle_known(e, (struct mrd_ah_impl *)(void *)ah), peer);
        assert_int_equal(mrd_engine_destroy_ah(e, ah), 0);
    }
}

/* The answer by the other's name, from where the peer was, is late: it moved and proved it. */
TEST_F(wary_pair, namesakes__late_answer_takes_nobody_back)
{
    struct mrd_engine *e = self->end[AT].e;
    struct two t = meet(self);
    struct mrd_addr elsewhere = t.one->addr;
    elsewhere.ip[15] ^= 8;
    mrd_recv_state_end(e, t.two, MRD_SPACE_TOMB);
    mrd_send_state_open(e, t.two);
    mrd_tx_ready(e, t.two);
    elapse(self, MRD_MSEC); /* the question leaves */
    struct mrd_wire_head head = challenge(self, t.two, NAME_1);
    struct mrd_rx_packet packet = hand_packet(self, AT, 0, FIRST);
    elapse(self, 500 * MRD_MSEC);
    move_to(self, t.one, &elsewhere);
    elapse(self, 500 * MRD_MSEC);
    assert_non_null(t.two->tx);
    mrd_contact_challenge(e, &head, &packet); /* it was a second on its way */
    assert_memory_equal(&t.one->addr, &elsewhere, sizeof(elsewhere));
}

/* The watch went with a peer that moves on; perhaps the handle's own entry speaks again, or was answered. */
TEST_F(pair, namesakes__watched_and_moved_on)
{
    for (unsigned again = 0; again < 3; again++) {
        struct mrd_addr there, further;

        pair_begin_wary(self);
        struct mrd_engine *e = self->end[AT].e;
        taken(self, NAME_1, 5, FIRST);
        struct mrd_peer *peer = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
        there = further = peer->addr;
        there.ip[15] ^= 8;
        further.ip[15] ^= 16;
        struct mrd_ah *ah = watch(self, &there);
        struct mrd_peer *asks = mrd_peer_find(&e->peers, &there);
        elapse(self, MRD_SEC);
        move_to(self, peer, &there);
        assert_false(asks->watch.users);
        assert_true(peer->watch.users);
        elapse(self, MRD_SEC);
        move_to(self, peer, &further);
        assert_true(peer->watch.users);
        if (again)
            mrd_send_state_open(e, asks);
        if (again == 2) {
            asks->tx->contact.acked_once = true;
            mrd_send_state_end(e, asks, MRD_WC_SUCCESS);
            sweep(self, AT, MRD_MSEC);
        }
        assert_int_equal(mrd_engine_watch_peer(e, ah, false, self->now), 0);
        assert_false(peer->watch.users);
        assert_int_equal(mrd_engine_destroy_ah(e, ah), 0);
    }
}
