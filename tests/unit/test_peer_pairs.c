/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that share an address, or a name of ours: which one is meant. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/peer.h"

enum { PEERS = 8, PATHS = 2, TRACKER = 256, OWN = 50, INC = 60, EPOCH = 70 };

struct pairs {
    struct unit_alloc alloc;
    struct mrd_peers peers;
};

static void begin(struct pairs *f)
{
    memset(f, 0, sizeof(*f));
    unit_alloc_init(&f->alloc);
    assert_true(mrd_peers_init(&f->peers, &f->alloc.ops, PEERS, PATHS, TRACKER, false));
}

static void end(struct pairs *f)
{
    mrd_peers_fini(&f->peers);
    assert_int_equal(f->alloc.live_bytes, 0);
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
    struct mrd_tx_half *tx = mrd_peer_tx_begin(&f->peers, peer, PATHS, NULL, 1000);

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
TEST(mrd_peer_find__who_has_a_half)
{
    struct pairs f;
    struct mrd_peer *older, *newer;

    begin(&f);
    older = add(&f, 1, OWN);
    newer = add(&f, 1, OWN);
    assert_ptr_equal(find(&f, 1), newer);
    send_to(&f, older, INC);
    assert_ptr_equal(find(&f, 1), older);
    receive_from(&f, newer, INC + 1);
    assert_ptr_equal(find(&f, 1), newer);
    mrd_peer_rx_end(&f.peers, newer, MRD_SPACE_TOMB);
    assert_ptr_equal(find(&f, 1), older);
    assert_null(find(&f, 2));
    end(&f);
}

/* By both names, wherever it is; by what it calls itself in its space, and in its answers. */
TEST(mrd_peer_find_pair__by_both_names)
{
    struct pairs f;
    struct mrd_peer *speaks, *answers, *buried, *newest;

    begin(&f);
    speaks = add(&f, 1, OWN);
    receive_from(&f, speaks, INC);
    answers = add(&f, 1, OWN);
    send_to(&f, answers, INC + 1);
    buried = add(&f, 1, OWN);
    receive_from(&f, buried, INC + 2);
    mrd_peer_rx_end(&f.peers, buried, MRD_SPACE_TOMB);
    newest = add(&f, 1, OWN);
    receive_from(&f, newest, INC + 3);
    for (uint8_t host = 1; host <= 2; host++) {
        assert_ptr_equal(find_pair(&f, host, OWN, INC), speaks);
        assert_ptr_equal(find_pair(&f, host, OWN, INC + 1), answers);
        assert_ptr_equal(find_pair(&f, host, OWN, INC + 2), buried);
        assert_ptr_equal(find_pair(&f, host, OWN, INC + 3), newest);
        /* By its own name alone it is found at its address. Else it is whoever is there. */
        assert_ptr_equal(find_pair(&f, host, OWN, INC + 4), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(&f, host, OWN + 1, INC), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(&f, host, 0, INC), host == 1 ? speaks : NULL);
        assert_ptr_equal(find_pair(&f, host, 0, INC + 4), host == 1 ? newest : NULL);
        assert_ptr_equal(find_pair(&f, host, OWN, 0), host == 1 ? newest : NULL);
    }
    mrd_peer_rx_end(&f.peers, speaks, MRD_SPACE_NONE);
    assert_ptr_equal(find_pair(&f, 1, OWN, INC), newest);
    end(&f);
}

/* Two have the same names by chance: the one that is there. */
TEST(mrd_peer_find_pair__who_is_there)
{
    struct pairs f;
    struct mrd_peer *peer[3];

    begin(&f);
    for (uint8_t i = 0; i < 3; i++) {
        peer[i] = add(&f, i, OWN);
        receive_from(&f, peer[i], INC);
    }
    for (uint8_t i = 0; i < 3; i++)
        assert_ptr_equal(find_pair(&f, i, OWN, INC), peer[i]);
    end(&f);
}

/* Whom we asked as that, in that epoch, until it answers. */
TEST(mrd_peer_find_asked__until_it_answers)
{
    struct pairs f;
    struct mrd_peer *peer;

    begin(&f);
    receive_from(&f, add(&f, 1, OWN), INC);
    peer = add(&f, 1, OWN);
    send_to(&f, peer, 0);
    assert_ptr_equal(mrd_peer_find_asked(&f.peers, OWN, EPOCH), peer);
    assert_null(mrd_peer_find_asked(&f.peers, OWN + 1, EPOCH));
    assert_null(mrd_peer_find_asked(&f.peers, OWN, EPOCH + 1));
    peer->tx->contact.inc = INC;
    assert_null(mrd_peer_find_asked(&f.peers, OWN, EPOCH));
    end(&f);
}

/* A name is taken elsewhere if a peer at another address has it, awake or not. */
TEST(mrd_peer_is_named_elsewhere__awake_or_not)
{
    struct pairs f;
    struct mrd_addr here = addr_of(1), there = addr_of(2);
    struct mrd_peer *peer;

    begin(&f);
    peer = add(&f, 1, OWN);
    for (unsigned rests = 0; rests < 2; rests++) {
        assert_false(mrd_peer_is_named_elsewhere(&f.peers, OWN, &here));
        assert_true(mrd_peer_is_named_elsewhere(&f.peers, OWN, &there));
        assert_false(mrd_peer_is_named_elsewhere(&f.peers, OWN + 1, &there));
        assert_int_equal(mrd_peer_has_name(&f.peers, OWN), !rests);
        if (!rests)
            mrd_peer_rest(&f.peers, peer);
    }
    peer = mrd_peer_wake(&f.peers, &here);
    mrd_peer_move(&f.peers, peer, &there);
    assert_true(mrd_peer_is_named_elsewhere(&f.peers, OWN, &here));
    assert_false(mrd_peer_is_named_elsewhere(&f.peers, OWN, &there));
    end(&f);
}
