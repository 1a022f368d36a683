/* SPDX-License-Identifier: BSD-2-Clause */
/* Which space a packet belongs to, and who may begin one. */
#include <errno.h>

#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_bind.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, BYTES = 64 };

static struct mrd_rx_packet packet_from(const struct pair *p, uint32_t port)
{
    /* The source port is that of a path: where the peer receives its header says. */
    return (struct mrd_rx_packet){.from = {.port = port}, .to = p->end[AT].addr};
}

static struct mrd_peer *identify(struct pair *p, const struct mrd_wire_head *head)
{
    struct mrd_rx_packet packet = packet_from(p, 5000);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

/* A first contact of a life that knows nothing of ours. */
static struct mrd_wire_head first_contact(const struct pair *p)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.dst_inc = 0;
    return head;
}

/* The answer that waits alone, to where the asker receives; it leaves the ring. */
static struct mrd_wire_head only_answer(struct pair *p, const struct mrd_wire_head *asked)
{
    struct mrd_answers *a = &p->end[AT].e->answers;

    assert_int_equal(a->tail - a->head, 1);
    assert_int_equal(a->ring[a->head % MRD_STATELESS_MAX].to.port, asked->reply);
    return a->ring[a->head++ % MRD_STATELESS_MAX].head;
}

static void expect_no_answer(const struct pair *p)
{
    assert_int_equal(p->end[AT].e->answers.head, p->end[AT].e->answers.tail);
}

/* A reset that echoes what it answers. */
static struct mrd_wire_head expect_reset(struct pair *p, const struct mrd_wire_head *asked)
{
    struct mrd_wire_head answer = only_answer(p, asked);

    assert_int_equal(answer.type, MRD_WIRE_RESET);
    assert_int_equal(answer.dst_inc, asked->src_inc);
    assert_int_equal(answer.epoch, asked->epoch);
    assert_int_equal(answer.reply, p->end[AT].addr.port);
    return answer;
}

/* A challenge; its answer is the same packet with the cookie and our incarnation. */
static struct mrd_wire_head expect_challenge(struct pair *p, const struct mrd_wire_head *asked)
{
    struct mrd_wire_head answer = only_answer(p, asked), again = *asked;

    assert_int_equal(answer.type, MRD_WIRE_CHALLENGE);
    assert_int_equal(answer.src_inc, pair_inc(p, AT));
    assert_int_equal(answer.dst_inc, asked->src_inc);
    assert_int_equal(answer.epoch, asked->epoch);
    assert_int_equal(answer.echo_stamp, asked->stamp);
    again.flags |= MRD_WIRE_COOKIE;
    again.cookie = answer.cookie;
    again.dst_inc = pair_inc(p, AT);
    return again;
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
    struct mrd_rx_packet packet = packet_from(self, 5000);

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
    struct mrd_rx_packet packet = packet_from(self, self->end[AT].addr.port);
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
    assert_null(identify(self, &head));
    struct mrd_wire_head answer = expect_reset(self, &head);
    assert_int_equal(answer.src_inc, 5);
    assert_true(answer.live_epoch == UINT32_MAX);
    assert_int_equal(self->end[AT].e->stats.rx_drop_space, 1);
}

/* Of a space that is not held: the reset tells which of our spaces to the asker is the oldest. */
TEST_F(pair, mrd_contact_identify__space_not_held)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    assert_null(identify(self, &head));
    struct mrd_wire_head answer = expect_reset(self, &head);
    assert_int_equal(answer.src_inc, pair_inc(self, AT));
    uint32_t base = mrd_answer_pair(e, &self->end[0].addr).epoch_base;
    assert_int_equal(answer.live_epoch, base + e->lives.epoch_next);
    assert_int_equal(e->peers.entries.used, 0);
    hand_tx_peer(self, AT);
    assert_null(identify(self, &head));
    answer = expect_reset(self, &head);
    assert_int_equal(answer.live_epoch, base + e->lives.epoch_next - 1);
}

/* Epochs only grow. An older one is a late copy; a newer one ends the space, if it is begun. */
TEST_F(pair, mrd_contact_identify__other_epochs)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    pair_post_recv(self, AT, 0, 2 * BYTES);
    struct mrd_wire_part piece = hand_piece(hand_send(self, AT, 0), 1, 0, BYTES, 2 * BYTES);
    hand_place(self, AT, peer, 0, &piece, 1);
    struct mrd_wire_head head = first_contact(self);
    head.epoch = HAND_EPOCH - 1;
    assert_null(identify(self, &head));
    assert_int_equal(self->end[AT].e->stats.rx_drop_epoch, 1);
    expect_no_answer(self);

    head.epoch = HAND_EPOCH + 1;
    head.flags = 0;
    assert_null(identify(self, &head));
    expect_reset(self, &head);
    pair_expect_nothing(self, AT);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    assert_ptr_equal(identify(self, &head), peer);
    assert_int_equal(peer->space.epoch, HAND_EPOCH + 1);
    pair_expect(self, AT, MRD_WC_REM_ABORT_ERR);
    expect_no_answer(self);
}

/* Of a space that was dropped, whose packets may still come: each is answered by a reset. */
TEST_F(pair, mrd_contact_identify__tombstone)
{
    struct mrd_peer *peer = hand_rx_peer(self, AT);

    mrd_recv_state_end(self->end[AT].e, peer, MRD_SPACE_TOMB);
    struct mrd_wire_head head = first_contact(self);
    assert_null(identify(self, &head));
    expect_reset(self, &head);
    assert_null(peer->rx);
    head.epoch++;
    assert_ptr_equal(identify(self, &head), peer);
    assert_non_null(peer->rx);
}

/* ----------------------------------------------------------------------------------- challenges */

/* Whoever is not known is to show that it receives at its address. */
TEST_F(wary_pair, mrd_contact_identify__unknown)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    head.stamp = 1234;
    assert_null(identify(self, &head));
    assert_int_equal(e->stats.rx_drop_challenged, 1);
    assert_int_equal(e->peers.entries.used, 0); /* whoever asks costs no memory */
    struct mrd_wire_head again = expect_challenge(self, &head);
    again.cookie++;
    assert_null(identify(self, &again));
    again = expect_challenge(self, &head);
    again.dst_inc = 0; /* not for this life in particular */
    assert_null(identify(self, &again));
    again = expect_challenge(self, &head);
    assert_non_null(identify(self, &again));
    expect_no_answer(self);
}

/* What was sent long ago shows nothing: a cookie holds for two intervals at most, and for one at least. */
TEST_F(wary_pair, mrd_contact_identify__the_cookie_runs_out)
{
    self->now = self->now / MRD_COOKIE_NS * MRD_COOKIE_NS + 1;
    mrd_engine_begin(self->end[AT].e, self->now);
    struct mrd_wire_head head = first_contact(self);
    assert_null(identify(self, &head));
    struct mrd_wire_head again = expect_challenge(self, &head);
    pair_pass(self, AT, 2 * MRD_COOKIE_NS);
    assert_null(identify(self, &again));
    again = expect_challenge(self, &again);
    pair_pass(self, AT, MRD_COOKIE_NS);
    assert_non_null(identify(self, &again));
}

/* Another life where one is known: it must prove that it is there now, for just that change. */
TEST_F(pair, mrd_contact_identify__another_life)
{
    struct mrd_engine_event event;
    struct mrd_wc wc;

    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    peer->tx->contact.inc = pair_inc(self, 0);
    struct mrd_wire_head head = first_contact(self);
    head.src_inc = 77;
    assert_null(identify(self, &head));
    struct mrd_wire_head again = expect_challenge(self, &head);
    assert_int_equal(peer->space.inc, pair_inc(self, 0));
    assert_ptr_equal(identify(self, &again), peer);
    assert_int_equal(peer->space.inc, 77);
    assert_int_equal(self->end[AT].e->stats.peers_restarted, 1);
    assert_int_equal(mrd_engine_get_event(self->end[AT].e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_PEER_RESTARTED);
    assert_int_equal(pair_poll(self, AT, &wc), 1); /* what was meant for the earlier life fails */
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    head.src_inc = pair_inc(self, 0); /* which may not come back by the same cookie */
    head.flags = again.flags;
    head.cookie = again.cookie;
    head.dst_inc = again.dst_inc;
    assert_null(identify(self, &head));
    expect_challenge(self, &head);
}

/* A first contact from there, and its answer to the challenge; NULL: turned away. */
static struct mrd_peer *prove(struct mrd_engine *e, const struct mrd_wire_head *head,
                              const struct mrd_rx_packet *packet)
{
    struct mrd_answers *a = &e->answers;
    struct mrd_wire_head again = *head;

    assert_null(mrd_contact_identify(e, head, packet));
    assert_int_equal(a->ring[a->head % MRD_STATELESS_MAX].head.type, MRD_WIRE_CHALLENGE);
    again.flags |= MRD_WIRE_COOKIE;
    again.cookie = a->ring[a->head % MRD_STATELESS_MAX].head.cookie;
    again.dst_inc = a->ring[a->head++ % MRD_STATELESS_MAX].head.src_inc;
    struct mrd_peer *peer = mrd_contact_identify(e, &again, packet);
    a->head = a->tail;
    return peer;
}

/* One host does not fill the table: of the last eighth it may have as much as it leaves free. */
TEST_F(pair, mrd_contact_identify__few_entries_left)
{
    struct mrd_rx_packet packet, first;
    struct mrd_engine *e = self->end[AT].e;

    first = packet_from(self, 5000);
    uint32_t last = self->config.max_peers / 8;
    struct mrd_wire_head head = first_contact(self);
    for (; mrd_peers_room(&e->peers) > last; head.reply++)
        assert_non_null(identify(self, &head));
    assert_int_equal(e->peers.entries.used, self->config.max_peers - last);
    assert_null(prove(e, &head, &first));
    for (uint8_t host = 1; host < 4; host++) {
        packet = packet_from(self, 5000);
        packet.from.ip[15] = host;
        assert_int_equal(prove(e, &head, &packet) != NULL, host <= last);
        assert_int_equal(mrd_peers_of_host(&e->peers, &packet.from), host <= last);
    }
}

/* A full table of peers that are all wanted: the first contact is turned away, and both are told. */
TEST_F(pair, mrd_contact_identify__table_full)
{
    struct mrd_engine_event event;

    pair_config(self);
    self->config.max_peers = 1;
    self->config.trusting = false;
    pair_open(self);
    struct mrd_engine *e = self->end[AT].e;
    mrd_send_state_open(e, mrd_peer_open(e, &(struct mrd_addr){.port = 9}));
    struct mrd_wire_head head = first_contact(self);
    assert_null(identify(self, &head));
    struct mrd_wire_head again = expect_challenge(self, &head);
    for (unsigned i = 0; i < 3; i++) {
        assert_null(identify(self, &again));
        struct mrd_wire_head answer = only_answer(self, &again);
        assert_int_equal(answer.type, MRD_WIRE_BUSY);
        assert_int_equal(answer.src_inc, pair_inc(self, AT));
        assert_int_equal(answer.dst_inc, again.src_inc);
        assert_int_equal(answer.epoch, again.epoch);
        assert_int_equal(e->stats.rx_drop_table_full, i + 1);
        assert_int_equal(mrd_engine_get_event(e, &event), i == 1 ? -EAGAIN : 0);
        if (i != 1) {
            assert_int_equal(event.type, MRD_EVENT_PEERS_FULL);
            assert_int_equal(event.addr.port, again.reply);
        }
        pair_pass(self, AT, i ? MRD_FULL_EVENT_NS : 0); /* the first two are told of as one */
    }
}

/* Strangers share a ring of answers: more are counted as dropped packets, but not answered. */
TEST_F(pair, mrd_contact_identify__more_strangers_than_answers)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = hand_head(self, AT, MRD_WIRE_DATA);
    for (unsigned i = 0; i < MRD_STATELESS_MAX + 2; i++)
        assert_null(identify(self, &head));
    assert_int_equal(e->answers.tail - e->answers.head, MRD_STATELESS_MAX);
    assert_int_equal(e->stats.rx_drop_space, MRD_STATELESS_MAX + 2);
    assert_int_equal(pair_tx(self, AT), MRD_STATELESS_MAX);
    self->end[0].num_inbox = 0;
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
        answered += e->answers.tail - e->answers.head;
        e->answers.head = e->answers.tail;
    }
    assert_int_equal(answered, MRD_ANSWERS_LEAST);
    assert_int_equal(e->stats.rx_drop_unanswered, 2 * MRD_ANSWERS_LEAST);
    for (uint32_t i = 0; i < 3; i++, head.reply++) {
        pair_pass(self, AT, MRD_ANSWER_NS);
        assert_null(identify(self, &head));
        only_answer(self, &head);
        assert_null(identify(self, &head));
        expect_no_answer(self);
    }
}

/* A queue pair for one peer takes its messages wherever it is now, and nobody else's. */
TEST_F(pair, mrd_rx_check_source__follows_who_moved)
{
    struct mrd_addr elsewhere = pair_addr_of(3);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_qp_impl *qp = hand_qp(self, AT);
    struct mrd_peer *peer = hand_rx_peer(self, AT);
    struct mrd_peer *other = mrd_peer_open(e, &(struct mrd_addr){.port = 77});
    qp->dest = (struct mrd_qp_dest){
        .only = true, .addr = peer->addr, .own_inc = peer->pair.own_inc, .qpn = 5};
    assert_int_equal(mrd_rx_check_source(qp, peer, 5), MRD_RX_TAKEN);
    assert_int_equal(mrd_rx_check_source(qp, other, 5), MRD_REFUSE_QPN);
    mrd_peer_move(&e->peers, peer, &elsewhere);
    assert_int_equal(mrd_rx_check_source(qp, peer, 5), MRD_RX_TAKEN);
    assert_int_equal(mrd_rx_check_source(qp, peer, 6), MRD_REFUSE_QPN);
}

/*
 * A peer's packets come from another address. They are taken; while others come from its own, that is
 * all. After a silence there it is challenged where it is now, and moves with the cookie, not before.
 */
TEST_F(pair, mrd_address_came__moves_with_a_proof)
{
    struct mrd_answers *answers = &self->end[AT].e->answers;
    struct mrd_wire_head head = first_contact(self);
    struct mrd_peer *peer = identify(self, &head);
    assert_non_null(peer);
    head = hand_head(self, AT, MRD_WIRE_DATA);
    struct mrd_rx_packet packet = packet_from(self, 5000);
    packet.from.ip[15] = 9;
    for (unsigned i = 0; i < 2; i++) {
        pair_pass(self, AT, MRD_MOVED_NS - 1);
        assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &head, &packet), peer);
        expect_no_answer(self);
        assert_ptr_equal(identify(self, &head), peer); /* from its own address */
    }
    pair_pass(self, AT, MRD_MOVED_NS);
    for (unsigned i = 0; i < 2; i++) { /* asked once in a while */
        assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &head, &packet), peer);
        assert_int_equal(answers->tail - answers->head, 1);
        assert_int_equal(peer->addr.ip[15], 0);
    }
    assert_int_equal(answers->ring[answers->head % MRD_STATELESS_MAX].to.ip[15], 9);
    struct mrd_wire_head again = expect_challenge(self, &head);
    again.cookie ^= 1;
    assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &again, &packet), peer);
    assert_int_equal(peer->addr.ip[15], 0);
    again.cookie ^= 1;
    packet.from.ip[15] = 8; /* a cookie is of one address */
    assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &again, &packet), peer);
    assert_int_equal(peer->addr.ip[15], 0);
    packet.from.ip[15] = 9;
    assert_ptr_equal(mrd_contact_identify(self->end[AT].e, &again, &packet), peer);
    assert_int_equal(peer->addr.ip[15], 9);
    assert_int_equal(self->end[AT].e->stats.peers_moved, 1);
    assert_ptr_equal(mrd_peer_find(&self->end[AT].e->peers, &peer->addr), peer);
    assert_null(mrd_peer_find(&self->end[AT].e->peers, &self->end[1 - AT].addr));
}
