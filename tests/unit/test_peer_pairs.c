/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that share an address, or a name of ours: which one is meant. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/peer.h"

enum { PEERS = 8, PATHS = 2, TRACKER = 256, OWN = 50, INC = 60, EPOCH = 70 };

FIXTURE(pairs)
{
    struct unit_alloc alloc;
    struct mrd_peers peers;
};

FIXTURE_SETUP(pairs)
{
    unit_alloc_init(&self->alloc);
    assert_true(mrd_peers_init(&self->peers, &self->alloc.ops, PEERS, PATHS, TRACKER, false));
}

FIXTURE_TEARDOWN(pairs)
{
    mrd_peers_fini(&self->peers);
    assert_int_equal(self->alloc.live_bytes, 0);
}

static struct mrd_addr addr_of(uint8_t host)
{
    return (struct mrd_addr){.ip = {[15] = host}, .port = 4793};
}

/* A peer there that knows us as `own_inc`. */
static struct mrd_peer *add(struct pairs *f, uint8_t host, uint32_t own_inc)
{
    struct mrd_addr addr = addr_of(host);
    struct mrd_peer *peer = mrd_peer_add(&f->peers, &addr);

    assert_non_null(peer);
    mrd_peer_name(&f->peers, peer, (struct mrd_pair){.own_inc = own_inc});
    return peer;
}

/* It sends to us as `inc`. */
static void receive_from(struct pairs *f, struct mrd_peer *peer, uint32_t inc)
{
    mrd_peer_rx_begin(&f->peers, peer, TRACKER);
    peer->space.inc = inc;
}

static void send_to(struct pairs *f, struct mrd_peer *peer, uint32_t inc)
{
    struct mrd_send_state *tx = mrd_peer_tx_begin(&f->peers, peer, PATHS, NULL, 1000);

    tx->contact.inc = inc;
    tx->contact.epoch = EPOCH;
}

static struct mrd_peer *find(const struct pairs *f, uint8_t host)
{
    struct mrd_addr addr = addr_of(host);

    return mrd_peer_find(&f->peers, &addr);
}

static struct mrd_peer *find_pair(const struct pairs *f, uint8_t host, uint32_t own_inc,
                                  uint32_t inc)
{
    struct mrd_addr addr = addr_of(host);

    return mrd_peer_find_pair(&f->peers, &addr, own_inc, inc);
}

/* Of two at an address the newest that has a half; a tombstone is none. */
TEST_F(pairs, mrd_peer_find__who_has_a_half)
{
    struct mrd_peer *older = add(self, 1, OWN);
    struct mrd_peer *newer = add(self, 1, OWN);

    assert_ptr_equal(find(self, 1), newer);
    send_to(self, older, INC);
    assert_ptr_equal(find(self, 1), older);
    receive_from(self, newer, INC + 1);
    assert_ptr_equal(find(self, 1), newer);
    mrd_peer_rx_end(&self->peers, newer, MRD_SPACE_TOMB);
    assert_ptr_equal(find(self, 1), older);
    assert_null(find(self, 2));
}

/* By both names, wherever it is; by what it calls itself in its space, and in its answers. */
TEST_F(pairs, mrd_peer_find_pair__by_both_names)
{
    struct mrd_peer *speaks = add(self, 1, OWN);

    receive_from(self, speaks, INC);
    struct mrd_peer *answers = add(self, 1, OWN);
    send_to(self, answers, INC + 1);
    struct mrd_peer *buried = add(self, 1, OWN);
    receive_from(self, buried, INC + 2);
    mrd_peer_rx_end(&self->peers, buried, MRD_SPACE_TOMB);
    struct mrd_peer *newest = add(self, 1, OWN);
    receive_from(self, newest, INC + 3);
    for (uint8_t host = 1; host <= 2; host++) {
        assert_ptr_equal(find_pair(self, host, OWN, INC), speaks);
        assert_ptr_equal(find_pair(self, host, OWN, INC + 1), answers);
        assert_ptr_equal(find_pair(self, host, OWN, INC + 2), buried);
        assert_ptr_equal(find_pair(self, host, OWN, INC + 3), newest);
        /* By its own name alone it is found at its address. Else it is whoever is there. */
        assert_ptr_equal(find_pair(self, host, OWN, INC + 4), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(self, host, OWN + 1, INC), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(self, host, 0, INC), host == 1 ? speaks : NULL);
        assert_ptr_equal(find_pair(self, host, 0, INC + 4), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(self, host, OWN, 0), host == 1 ? newest : NULL);
    }
    mrd_peer_rx_end(&self->peers, speaks, MRD_SPACE_NONE);
    assert_ptr_equal(find_pair(self, 1, OWN, INC), newest);
}

/* Two have the same names by chance: the one that is there. */
TEST_F(pairs, mrd_peer_find_pair__who_is_there)
{
    struct mrd_peer *peer[3];

    for (uint8_t i = 0; i < 3; i++) {
        peer[i] = add(self, i, OWN);
        receive_from(self, peer[i], INC);
    }
    for (uint8_t i = 0; i < 3; i++)
        assert_ptr_equal(find_pair(self, i, OWN, INC), peer[i]);
}

/* Whom we asked as that, in that epoch, until it answers. */
TEST_F(pairs, mrd_peer_find_asked__until_it_answers)
{
    receive_from(self, add(self, 1, OWN), INC);
    struct mrd_peer *peer = add(self, 1, OWN);
    send_to(self, peer, 0);
    assert_ptr_equal(mrd_peer_find_asked(&self->peers, OWN, EPOCH), peer);
    assert_null(mrd_peer_find_asked(&self->peers, OWN + 1, EPOCH));
    assert_null(mrd_peer_find_asked(&self->peers, OWN, EPOCH + 1));
    peer->tx->contact.inc = INC;
    assert_null(mrd_peer_find_asked(&self->peers, OWN, EPOCH));
}

/* A name is taken elsewhere if a peer at another address has it, active or not. */
TEST_F(pairs, mrd_peer_is_named_elsewhere__awake_or_not)
{
    struct mrd_addr here = addr_of(1), there = addr_of(2);
    struct mrd_peer *peer = add(self, 1, OWN);

    for (unsigned rests = 0; rests < 2; rests++) {
        assert_false(mrd_peer_is_named_elsewhere(&self->peers, OWN, &here));
        assert_true(mrd_peer_is_named_elsewhere(&self->peers, OWN, &there));
        assert_false(mrd_peer_is_named_elsewhere(&self->peers, OWN + 1, &there));
        assert_int_equal(mrd_peer_has_name(&self->peers, OWN), !rests);
        if (!rests)
            mrd_peer_make_idle(&self->peers, peer);
    }
    peer = mrd_peer_activate(&self->peers, &here);
    mrd_peer_move(&self->peers, peer, &there);
    assert_true(mrd_peer_is_named_elsewhere(&self->peers, OWN, &here));
    assert_false(mrd_peer_is_named_elsewhere(&self->peers, OWN, &there));
}
