/* SPDX-License-Identifier: BSD-2-Clause */
/* Which space a packet belongs to, and who may begin one. */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_bind.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64 };

/* The source port is that of a path: where the peer receives its header says. */
static struct mrd_rx_packet packet_from(const struct pair *p, uint8_t host)
{
    return (struct mrd_rx_packet){.from = {.ip[15] = host, .port = 5000}, .to = p->end[AT].addr};
}

/* The peer to whom a packet is of that host of its, or NULL. */
static struct mrd_peer *identify_from(struct pair *p, const struct mrd_wire_head *head,
                                      uint8_t host)
{
    struct mrd_rx_packet packet = packet_from(p, host);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

static struct mrd_peer *identify(struct pair *p, const struct mrd_wire_head *head)
{
    return identify_from(p, head, 0);
}

/* A first contact of a life that knows nothing of ours. */
static struct mrd_wire_head first_contact(const struct pair *p)
{
    return hand_first_contact(p, AT, pair_inc(p, 1 - AT));
}

/* The answer that waits alone, to where the asker receives, and echoes what it answers. */
static struct mrd_wire_head expect_answer(struct pair *p, const struct mrd_wire_head *asked,
                                          uint8_t type)
{
    struct mrd_answer answer = hand_answer(p, AT, type);

    assert_int_equal(answer.to.port, asked->reply);
    assert_int_equal(answer.head.dst_inc, asked->src_inc);
    assert_int_equal(answer.head.epoch, asked->epoch);
    return answer.head;
}

static void expect_no_answer(const struct pair *p)
{
    assert_int_equal(hand_answers(p, AT), 0);
}

static struct mrd_wire_head expect_reset(struct pair *p, const struct mrd_wire_head *asked)
{
    struct mrd_wire_head answer = expect_answer(p, asked, MRD_WIRE_RESET);

    assert_int_equal(answer.reply, p->end[AT].addr.port);
    return answer;
}

/* A challenge; its answer is the same packet with the cookie and our incarnation. */
static struct mrd_wire_head expect_challenge(struct pair *p, const struct mrd_wire_head *asked)
{
    struct mrd_wire_head answer = expect_answer(p, asked, MRD_WIRE_CHALLENGE);
    struct mrd_wire_head again = hand_with_cookie(*asked, answer.cookie);

    assert_int_equal(answer.src_inc, pair_inc(p, AT));
    assert_int_equal(answer.echo_stamp, asked->stamp);
    again.dst_inc = pair_inc(p, AT);
    return again;
}

/* It is no packet of a peer, and is challenged. */
static struct mrd_wire_head be_challenged(struct pair *p, const struct mrd_wire_head *head)
{
    assert_null(identify(p, head));
    return expect_challenge(p, head);
}

static struct mrd_wire_head be_reset(struct pair *p, const struct mrd_wire_head *head)
{
    assert_null(identify(p, head));
    return expect_reset(p, head);
}

/* -------------------------------------------------------------------------------- known spaces */

/* A first contact makes the entry, under the address that the header names. */
TEST_F(pair, mrd_contact_identify__first_contact)
{
    struct mrd_wire_head head = first_contact(self);

    head.peer_timeout_ns = 12 * MRD_SEC;
    struct mrd_peer *peer = identify(self, &head);
    assert_ptr_equal(peer, mrd_peer_find(&self->end[AT].e->peers, &self->end[0].addr));
    assert_non_null(peer->rx);
    assert_int_equal(peer->space.state, MRD_SPACE_KNOWN);
    assert_int_equal(peer->space.inc, pair_inc(self, 0));
    assert_int_equal(peer->space.epoch, HAND_EPOCH);
    assert_int_equal(peer->space.max_unacked_ns, 12 * MRD_SEC);
    expect_no_answer(self);
    head.flags = 0; /* from here on the space is known */
    head.peer_timeout_ns = 0;
    pair_pass(self, AT, MRD_SEC);
    assert_ptr_equal(identify(self, &head), peer);
    assert_int_equal(peer->heard_ns, self->now);
    assert_int_equal(peer->space.max_unacked_ns, 12 * MRD_SEC);
}

/* Answers leave from the address that was hit, from whatever port; an unknown one tells nothing. */
TEST_F(pair, mrd_contact_identify__address_that_was_hit)
{
    struct mrd_wire_head head = first_contact(self);
    struct mrd_rx_packet packet = packet_from(self, 0);

    packet.to.ip[15] = 3;
    struct mrd_peer *peer = mrd_contact_identify(self->end[AT].e, &head, &packet);
    assert_int_equal(peer->local.ip[15], 3);
    assert_int_equal(peer->local.port, 0);
    packet.to.ip[15] = 0;
    assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &head, &packet), peer);
    assert_int_equal(peer->local.ip[15], 3);
}

/* A send state that spoke to whoever answers first now knows to whom. */
TEST_F(pair, mrd_contact_identify__binds_the_send_half)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT);

    assert_int_equal(peer->tx->contact.inc, 0);
    struct mrd_wire_head head = first_contact(self);
    assert_ptr_equal(identify(self, &head), peer);
    assert_int_equal(peer->tx->contact.inc, pair_inc(self, 0));
    assert_false(peer->tx->contact.knew_inc);
}

/* Our own incarnation from another place: somebody sends our packets back. */
TEST_F(pair, mrd_contact_identify__own_packets_from_elsewhere)
{
    struct mrd_wire_head head = first_contact(self);

    head.src_inc = pair_inc(self, AT);
    assert_null(identify(self, &head));
    assert_int_equal(self->end[AT].e->stats.rx_drop_incarnation, 1);
    assert_int_equal(self->end[AT].e->peers.entries.used, 0);
    expect_no_answer(self);
}

/*
 * What we send to ourselves: of our send state's epoch, and from the address that it hits. It is not
 * challenged: our own life cannot be an earlier one.
 */
TEST_F(wary_pair, mrd_contact_identify__to_oneself)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = mrd_peer_open(e, &self->end[AT].addr);
    mrd_send_state_open(e, peer);
    struct mrd_wire_head head = first_contact(self);
    head.src_inc = peer->pair.own_inc;
    head.reply = self->end[AT].addr.port;
    assert_null(identify(self, &head));
    head.epoch = peer->tx->contact.epoch;
    struct mrd_rx_packet packet = packet_from(self, 0);
    packet.from.port = self->end[AT].addr.port;
    packet.to.ip[0] = 1;
    assert_null(mrd_contact_identify(e, &head, &packet));
    assert_int_equal(e->stats.rx_drop_incarnation, 2);
    assert_ptr_equal(identify(self, &head), peer);
}

/* To an earlier life of ours: the reset speaks for it, and says that all its spaces are over. */
TEST_F(pair, mrd_contact_identify__for_an_earlier_life)
{
    struct mrd_wire_head head = first_contact(self);

    head.dst_inc = 5;
    struct mrd_wire_head answer = be_reset(self, &head);
    assert_int_equal(answer.src_inc, 5);
    assert_true(answer.live_epoch == UINT32_MAX);
    assert_int_equal(self->end[AT].e->stats.rx_drop_space, 1);
}

/* Of a space that is not held: the reset tells which of our spaces to the asker is the oldest. */
TEST_F(pair, mrd_contact_identify__space_not_held)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    struct mrd_wire_head answer = be_reset(self, &head);
    assert_int_equal(answer.src_inc, pair_inc(self, AT));
    uint32_t base = mrd_answer_pair(e, &self->end[0].addr).epoch_base;
    assert_int_equal(answer.live_epoch, base + e->lives.epoch_next);
    assert_int_equal(e->peers.entries.used, 0);
    hand_tx_peer(self, AT);
    answer = be_reset(self, &head);
    assert_int_equal(answer.live_epoch, base + e->lives.epoch_next - 1);
}

/* ----------------------------------------------------------------------------------- challenges */

/* Whoever is not known is to show that it receives at its address. */
TEST_F(wary_pair, mrd_contact_identify__unknown)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    head.stamp = 1234;
    struct mrd_wire_head again = be_challenged(self, &head);
    assert_int_equal(e->stats.rx_drop_challenged, 1);
    assert_int_equal(e->peers.entries.used, 0); /* whoever asks costs no memory */
    again.cookie++;
    again = be_challenged(self, &again);
    again.dst_inc = 0; /* not for this life in particular */
    again = be_challenged(self, &again);
    assert_non_null(identify(self, &again));
    expect_no_answer(self);
}

/* What was sent long ago shows nothing: a cookie holds for two intervals at most, and for one at least. */
TEST_F(wary_pair, mrd_contact_identify__the_cookie_runs_out)
{
    self->now = self->now / MRD_COOKIE_NS * MRD_COOKIE_NS + 1;
    mrd_engine_begin(self->end[AT].e, self->now);
    struct mrd_wire_head head = first_contact(self);
    struct mrd_wire_head again = be_challenged(self, &head);
    pair_pass(self, AT, 2 * MRD_COOKIE_NS);
    again = be_challenged(self, &again);
    pair_pass(self, AT, MRD_COOKIE_NS);
    assert_non_null(identify(self, &again));
}

/* Another life where one is known: it must prove that it is there now, for just that change. */
TEST_F(pair, mrd_contact_identify__another_life)
{
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    peer->tx->contact.inc = pair_inc(self, 0);
    struct mrd_wire_head head = first_contact(self);
    head.src_inc = 77;
    struct mrd_wire_head again = be_challenged(self, &head);
    assert_int_equal(peer->space.inc, pair_inc(self, 0));
    assert_ptr_equal(identify(self, &again), peer);
    assert_int_equal(peer->space.inc, 77);
    assert_int_equal(self->end[AT].e->stats.peers_restarted, 1);
    pair_expect_event(self, AT, MRD_EVENT_PEER_RESTARTED);
    pair_expect(self, AT, MRD_WC_RETRY_EXC_ERR); /* what was meant for the earlier life fails */
    again.src_inc = pair_inc(self, 0);           /* which may not come back by the same cookie */
    be_challenged(self, &again);
}

/* A first contact from that host, and its answer to the challenge; NULL: turned away. */
static struct mrd_peer *prove(struct pair *p, const struct mrd_wire_head *head, uint8_t host)
{
    struct mrd_answers *a = &p->end[AT].e->answers;

    assert_null(identify_from(p, head, host));
    struct mrd_wire_head answer = hand_answer(p, AT, MRD_WIRE_CHALLENGE).head;
    struct mrd_wire_head again = hand_with_cookie(*head, answer.cookie);
    again.dst_inc = answer.src_inc;
    struct mrd_peer *peer = identify_from(p, &again, host);
    a->head = a->tail;
    return peer;
}

/* One host does not fill the table: of the last eighth it may have as much as it leaves free. */
TEST_F(pair, mrd_contact_identify__few_entries_left)
{
    struct mrd_engine *e = self->end[AT].e;
    uint32_t last = self->config.max_peers / 8;
    struct mrd_wire_head head = first_contact(self);
    for (; mrd_peers_room(&e->peers) > last; head.reply++)
        assert_non_null(identify(self, &head));
    assert_int_equal(e->peers.entries.used, self->config.max_peers - last);
    assert_null(prove(self, &head, 0));
    for (uint8_t host = 1; host < 4; host++) {
        assert_int_equal(prove(self, &head, host) != NULL, host <= last);
        assert_int_equal(mrd_peers_of_host(&e->peers, &(struct mrd_addr){.ip[15] = host}),
                         host <= last);
    }
}

/* Strangers share a ring of answers: more are counted as dropped packets, but not answered. */
TEST_F(pair, mrd_contact_identify__more_strangers_than_answers)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    for (unsigned i = 0; i < MRD_STATELESS_MAX + 2; i++)
        assert_null(identify(self, &head));
    assert_int_equal(hand_answers(self, AT), MRD_STATELESS_MAX);
    assert_int_equal(e->stats.rx_drop_space, MRD_STATELESS_MAX + 2);
    assert_int_equal(pair_tx_lost(self, AT), MRD_STATELESS_MAX);
}

/*
 * Strangers are answered as fast as they ask, until as many were as the table has peers, 1,024 at
 * least; then 50,000 a second.
 */
TEST_F(wary_pair, mrd_answer_challenge__limited_in_rate)
{
    uint32_t answered = 0;

    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    for (uint32_t i = 0; i < 3 * MRD_ANSWERS_LEAST; i++, head.reply++) {
        assert_null(identify(self, &head));
        answered += hand_answers(self, AT);
        e->answers.head = e->answers.tail;
    }
    assert_int_equal(answered, MRD_ANSWERS_LEAST);
    assert_int_equal(e->stats.rx_drop_unanswered, 2 * MRD_ANSWERS_LEAST);
    for (uint32_t i = 0; i < 3; i++, head.reply++) {
        pair_pass(self, AT, MRD_ANSWER_NS);
        assert_null(identify(self, &head));
        expect_answer(self, &head, MRD_WIRE_CHALLENGE);
        assert_null(identify(self, &head));
        expect_no_answer(self);
    }
}

/* A queue pair for one peer takes its messages wherever it is now, and nobody else's. */
TEST_F(pair, mrd_rx_check_source__follows_who_moved)
{
    struct mrd_qp_impl *qp = hand_qp(self, AT);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_peer *other = mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 77});
    qp->dest = (struct mrd_qp_dest){
        .only = true, .addr = peer->addr, .own_inc = peer->pair.own_inc, .qpn = 5};
    assert_int_equal(mrd_rx_check_source(qp, peer, 5), MRD_RX_TAKEN);
    assert_int_equal(mrd_rx_check_source(qp, other, 5), MRD_REFUSE_QPN);
    pair_move_peer(self, AT, peer, 3);
    assert_int_equal(mrd_rx_check_source(qp, peer, 5), MRD_RX_TAKEN);
    assert_int_equal(mrd_rx_check_source(qp, peer, 6), MRD_REFUSE_QPN);
}

/*
 * A peer's packets come from another address. They are taken; while others come from its own, that is
 * all. After a silence there it is challenged where it is now, and moves with the cookie, not before.
 */
TEST_F(pair, mrd_address_came__moves_with_a_proof)
{
    enum { ANOTHER = 8, ELSEWHERE = 9 };
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    struct mrd_peer *peer = identify(self, &head);
    assert_non_null(peer);
    head = hand_head(self, AT, MRD_WIRE_DATA);
    for (unsigned i = 0; i < 2; i++) {
        pair_pass(self, AT, MRD_MOVED_NS - 1);
        assert_ptr_equal(identify_from(self, &head, ELSEWHERE), peer);
        expect_no_answer(self);
        assert_ptr_equal(identify(self, &head), peer); /* from its own address */
    }
    pair_pass(self, AT, MRD_MOVED_NS);
    for (unsigned i = 0; i < 2; i++) { /* asked once in a while */
        assert_ptr_equal(identify_from(self, &head, ELSEWHERE), peer);
        assert_int_equal(hand_answers(self, AT), 1);
        assert_int_equal(peer->addr.ip[15], 0);
    }
    assert_int_equal(e->answers.ring[e->answers.head % MRD_STATELESS_MAX].to.ip[15], ELSEWHERE);
    struct mrd_wire_head again = expect_challenge(self, &head), wrong = again;
    wrong.cookie ^= 1;
    assert_ptr_equal(identify_from(self, &wrong, ELSEWHERE), peer);
    assert_int_equal(peer->addr.ip[15], 0);
    assert_ptr_equal(identify_from(self, &again, ANOTHER), peer); /* a cookie is of one address */
    assert_int_equal(peer->addr.ip[15], 0);
    assert_ptr_equal(identify_from(self, &again, ELSEWHERE), peer);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    assert_int_equal(e->stats.peers_moved, 1);
    assert_ptr_equal(mrd_peer_find(&e->peers, &peer->addr), peer);
    assert_null(mrd_peer_find(&e->peers, &self->end[1 - AT].addr));
}
