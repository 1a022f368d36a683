/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of two names or two addresses: which entry a packet belongs to, and where we are to it. */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, OTHER_INC = 0x777 };

static void begin(struct pair *p, bool trusting)
{
    pair_config(p);
    p->config.trusting = trusting;
    pair_open(p);
    mrd_engine_begin(p->end[AT].e, p->now);
}

/* From host `from` of the other end to the address `to` of ours. */
static struct mrd_peer *identify(struct pair *p, const struct mrd_wire_head *head, uint8_t from,
                                 uint8_t to)
{
    struct mrd_rx_packet packet = hand_packet(p, AT, from, to);

    return mrd_contact_identify(p->end[AT].e, head, &packet);
}

/* Of a peer that was told our name. */
static struct mrd_wire_head first_contact(const struct pair *p)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.stamp = 1000;
    return head;
}

static uint32_t answers(struct pair *p)
{
    struct mrd_answers *a = &p->end[AT].e->answers;
    uint32_t num = a->tail - a->head;

    a->head = a->tail;
    return num;
}

/*
 * A space was over, and our send state was bound to another name of the same host. The space begins
 * anew: refusals of what comes in it must not go to that other name, which would ack and forget them.
 */
TEST_F(pair, mrd_contact_identify__space_of_another_name)
{
    begin(self, true);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    struct mrd_peer *peer = identify(self, &head, 0, 0);
    assert_non_null(peer);
    mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
    mrd_send_state_open(e, peer)->contact.inc = OTHER_INC;
    head.epoch++;
    struct mrd_peer *again = identify(self, &head, 0, 0);
    assert_non_null(again);
    assert_ptr_not_equal(again, peer);
    assert_int_equal(again->pair.own_inc, peer->pair.own_inc);
    assert_int_equal(mrd_send_state_open(e, again)->contact.inc, head.src_inc);
    assert_int_equal(peer->tx->contact.inc, OTHER_INC);
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    head.flags = 0;
    assert_ptr_equal(identify(self, &head, 0, 0), again);
    assert_int_equal(answers(self), 0);
}

/* Who is admitted beside a peer that moved there keeps the name of ours that it was told. */
TEST_F(pair, mrd_contact_identify__beside_one_that_moved)
{
    begin(self, false);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_wire_head head = first_contact(self);
    assert_null(identify(self, &head, 0, 3));
    head.cookie = e->answers.ring[e->answers.head % MRD_STATELESS_MAX].head.cookie;
    head.flags |= MRD_WIRE_COOKIE;
    struct mrd_peer *peer = identify(self, &head, 0, 3);
    assert_non_null(peer);
    struct mrd_addr there = peer->addr;
    there.ip[15] = 9;
    mrd_peer_move(&e->peers, peer, &there);
    (void)answers(self);
    /* Another context of that host asks at another address of ours. */
    head = first_contact(self);
    head.src_inc = OTHER_INC;
    head.dst_inc = 0;
    assert_null(identify(self, &head, 9, 4));
    head.cookie = e->answers.ring[e->answers.head % MRD_STATELESS_MAX].head.cookie;
    head.dst_inc = e->answers.ring[e->answers.head % MRD_STATELESS_MAX].head.src_inc;
    assert_int_equal(answers(self), 1);
    head.flags |= MRD_WIRE_COOKIE;
    struct mrd_peer *other = identify(self, &head, 9, 4);
    assert_non_null(other);
    assert_ptr_not_equal(other, peer);
    head.flags = 0;
    head.psn++;
    assert_ptr_equal(identify(self, &head, 9, 4), other);
    assert_int_equal(answers(self), 0);
    assert_int_equal(peer->space.state, MRD_SPACE_KNOWN);
}

/*
 * The newest packet tells where we are to the peer. A copy of an old one does not, nor any while we
 * try another source: the peer sends to the old one until it hears of the new.
 */
TEST_F(pair, mrd_address_came__newest_tells_where_we_are)
{
    begin(self, true);
    struct mrd_wire_head head = first_contact(self);
    struct mrd_peer *peer = identify(self, &head, 0, 3);
    assert_non_null(peer);
    assert_int_equal(peer->local.ip[15], 3);
    for (unsigned i = 0; i < 2; i++, head.stamp--) { /* the same one, and an older one */
        assert_ptr_equal(identify(self, &head, 0, 4), peer);
        assert_int_equal(peer->local.ip[15], 3);
        assert_int_equal(peer->place.own_ip[15], 3);
    }
    head.stamp += 10;
    assert_ptr_equal(identify(self, &head, 0, 4), peer);
    assert_int_equal(peer->local.ip[15], 4);
    peer->place.tried_ns = self->now;
    head.stamp++;
    assert_ptr_equal(identify(self, &head, 0, 5), peer);
    assert_int_equal(peer->local.ip[15], 4);
    assert_int_equal(peer->place.own_ip[15], 5);
    pair_pass(self, AT, self->config.peer_timeout_ns / MRD_SOURCE_SHARE);
    head.stamp++;
    assert_ptr_equal(identify(self, &head, 0, 5), peer);
    assert_int_equal(peer->local.ip[15], 5);
}

/* One of our packets, sent back to us from anywhere, has no answer: that would end what it is of. */
TEST_F(pair, mrd_answer_reset__own_packet)
{
    begin(self, true);
    struct mrd_wire_head head = first_contact(self);
    struct mrd_peer *peer = identify(self, &head, 0, 0);
    struct mrd_wire_head back = head;
    back.flags = 0;
    back.src_inc = peer->pair.own_inc;
    back.dst_inc = head.src_inc;
    assert_null(identify(self, &back, 8, 0));
    assert_int_equal(answers(self), 0);
    back.src_inc++; /* of nobody */
    assert_null(identify(self, &back, 8, 0));
    assert_int_equal(answers(self), 1);
}
