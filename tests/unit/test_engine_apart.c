/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that share an address, and names that come from where they do not belong. */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, FIRST = 1, SECOND = 2, ELSEWHERE = 9, ANOTHER_INC = 4711 };

/* A first contact of another life is; it came to that address of ours; 0: the mover does not tell. */
static void expect_challenged(struct pair *p, uint8_t ours)
{
    struct mrd_wire_head head = hand_first_contact(p, AT, ANOTHER_INC);
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, ours);

    assert_null(mrd_contact_identify(p->end[AT].e, &head, &packet));
    assert_int_equal(p->end[AT].e->stats.rx_drop_challenged, 1);
}

/* The answer to what was asked, from whom the send state does not know yet. */
static struct mrd_wire_head answer(const struct pair *p, const struct mrd_peer *peer, uint8_t type)
{
    struct mrd_wire_head head = hand_head(p, AT, type);

    head.dst_inc = peer->pair.own_inc;
    head.epoch = peer->tx->contact.epoch;
    head.src_inc = ANOTHER_INC;
    head.cookie = 1;
    head.echo_stamp = mrd_wire_stamp(p->now);
    return head;
}

/* ----------------------------------------------------------------------------------- tombstones */

/*
 * The peer called us at our first address, by a name of ours that is not the address's, and was given
 * up. Now something is sent to it.
 */
static struct mrd_peer *begin_with_tombstone(struct pair *p)
{
    pair_begin_wary(p);
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_peer *peer = hand_rx_peer(p, AT);
    mrd_peer_name(&e->peers, peer, (struct mrd_pair){.own_inc = 77, .epoch_base = 7});
    peer->place.own_ip[15] = FIRST;
    peer->heard_ns = p->now - MRD_SEC;
    mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
    mrd_send_state_open(e, peer);
    return peer;
}

static void challenge(struct pair *p, const struct mrd_peer *peer, uint8_t ours, uint32_t inc)
{
    struct mrd_wire_head head = answer(p, peer, MRD_WIRE_CHALLENGE);
    struct mrd_rx_packet packet = hand_packet(p, AT, 0, ours);

    head.src_inc = inc;
    mrd_contact_challenge(p->end[AT].e, &head, &packet);
}

/* Another name answers at another address of ours: the tombstone stays what it is, where it is. */
TEST_F(pair, mrd_contact_challenge__splits_off_a_tombstone)
{
    struct mrd_peer *peer = begin_with_tombstone(self), *other;

    challenge(self, peer, SECOND, ANOTHER_INC);
    other = mrd_peer_find_pair(&self->end[AT].e->peers, &peer->addr, 77, pair_inc(self, 1 - AT));
    assert_ptr_not_equal(other, peer);
    assert_int_equal(other->space.state, MRD_SPACE_TOMB);
    assert_int_equal(other->space.epoch, HAND_EPOCH);
    assert_int_equal(other->heard_ns, self->now - MRD_SEC);
    assert_int_equal(other->pair.epoch_base, 7);
    assert_int_equal(other->place.own_ip[15], FIRST);
    assert_null(other->tx);
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    assert_int_equal(peer->tx->contact.inc, ANOTHER_INC);
    assert_int_equal(peer->place.own_ip[15], SECOND);
}

/*
 * No other peer is who answers where the tombstone's called, or where we are not told, or as the
 * tombstone's does.
 */
TEST_F(pair, mrd_contact_challenge__keeps_the_tombstone)
{
    static const uint8_t ours[] = {FIRST, 0, SECOND};

    for (unsigned i = 0; i < sizeof(ours); i++) {
        struct mrd_peer *peer = begin_with_tombstone(self);
        uint32_t inc = ours[i] == SECOND ? peer->space.inc : ANOTHER_INC;

        challenge(self, peer, ours[i], inc);
        assert_int_equal(peer->tx->contact.inc, inc);
        assert_int_equal(peer->space.state, MRD_SPACE_TOMB);
        assert_int_equal(self->end[AT].e->peers.entries.used, 1);
    }
}

/* Its host has all the entries that it may have. */
TEST_F(pair, mrd_contact_challenge__no_entry_for_a_tombstone)
{
    struct mrd_peer *peer = begin_with_tombstone(self);
    struct mrd_peers *peers = &self->end[AT].e->peers;
    struct mrd_addr addr = peer->addr;

    for (addr.port = 1000; mrd_peers_room(peers) > peers->max / 8; addr.port++)
        assert_non_null(mrd_peer_open(self->end[AT].e, &addr));
    challenge(self, peer, SECOND, ANOTHER_INC);
    assert_int_equal(mrd_peers_room(peers), peers->max / 8);
    assert_int_equal(peer->space.state, MRD_SPACE_TOMB);
    assert_int_equal(peer->tx->contact.inc, ANOTHER_INC);
}

/* ---------------------------------------------------------------------------------- other lives */

/* Where the mover does not tell which address of ours was hit, another name is another life. */
TEST_F(pair, mrd_contact_identify__address_of_ours_unknown)
{
    for (unsigned before = 0; before < 2; before++) {
        pair_begin(self);
        struct mrd_peer *peer = hand_rx_peer(self, AT);
        peer->place.own_ip[15] = before ? FIRST : 0;
        expect_challenged(self, before ? 0 : FIRST);
        assert_int_equal(self->end[AT].e->peers.entries.used, 1);
    }
}

/* Another life than the one that answered us may be an earlier one, also where all are trusted. */
TEST_F(pair, mrd_contact_identify__another_than_answered)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT);

    peer->tx->contact.inc = pair_inc(self, 1 - AT);
    expect_challenged(self, 0);
    assert_int_equal(peer->tx->contact.inc, pair_inc(self, 1 - AT));
}

/* --------------------------------------------------------------------------------- wrong places */

/* By what we are called by one peer, from another one: what we sent, sent on to us. */
TEST_F(pair, mrd_contact_identify__our_name_from_another_peer)
{
    uint32_t our_name = hand_tx_peer(self, AT)->pair.own_inc;
    struct mrd_wire_head head = hand_first_contact(self, AT, our_name);
    struct mrd_rx_packet packet = hand_packet(self, AT, 0, 0);

    head.reply = 5000;
    assert_null(mrd_contact_identify(self->end[AT].e, &head, &packet));
    assert_int_equal(self->end[AT].e->stats.rx_drop_incarnation, 1);
    assert_int_equal(self->end[AT].e->peers.entries.used, 1);
    assert_int_equal(hand_answers(self, AT), 0);
}

/* A host answers from another address than it was asked at: name and epoch tell whom that is from. */
TEST_F(pair, mrd_contact_challenge__from_another_address)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT);
    struct mrd_wire_head head = answer(self, peer, MRD_WIRE_CHALLENGE);
    struct mrd_rx_packet packet = hand_packet(self, AT, ELSEWHERE, 0);

    mrd_contact_challenge(self->end[AT].e, &head, &packet);
    assert_int_equal(self->end[AT].e->stats.rx_drop_reset, 0);
    assert_int_equal(peer->tx->contact.inc, ANOTHER_INC);
    /* Once it has answered, no other one is it. */
    head.src_inc++;
    mrd_contact_challenge(self->end[AT].e, &head, &packet);
    assert_int_equal(self->end[AT].e->stats.rx_drop_reset, 1);
    assert_int_equal(peer->tx->contact.inc, ANOTHER_INC);
}
