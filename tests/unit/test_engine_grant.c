/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sender is granted beyond its share of the receive buffer. */
#include "core/engine/grant.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, ROOM = 64 };

/* A peer that sends to us, whose share is 2 * ROOM PSNs. */
static struct mrd_peer *begin(struct pair *p)
{
    pair_begin(p);
    struct mrd_peer *peer = hand_tx_peer(p, AT);
    mrd_peer_rx_begin(&p->end[AT].e->peers, peer, p->config.mover.tracker);
    p->end[AT].e->share.room = ROOM;
    return peer;
}

static uint32_t granted(struct pair *p, struct mrd_peer *peer)
{
    return mrd_grant_limit(p->end[AT].e, peer) - peer->rx->rcv.cum;
}

/* What it is granted when it wants more, with that PSN as the last that it may send. */
static uint32_t granted_after(struct pair *p, struct mrd_peer *peer, uint32_t psn)
{
    mrd_grant_wanted(peer->rx, psn);
    return granted(p, peer);
}

/* Who asks gets twice as much, but not for a packet that left before it heard of that. */
TEST_F(pair, mrd_grant_limit__doubles_once_a_round_trip)
{
    struct mrd_peer *peer = begin(self);

    assert_int_equal(granted(self, peer), 2 * ROOM);
    assert_int_equal(granted_after(self, peer, ROOM - 1),
                     4 * ROOM); /* the last one that it may send */
    assert_int_equal(granted(self, peer), 4 * ROOM);
    assert_int_equal(granted_after(self, peer, ROOM - 1), 4 * ROOM);
    assert_int_equal(granted_after(self, peer, ROOM), 8 * ROOM);
}

/* It may ask again after any number of packets that did not ask. */
TEST_F(pair, mrd_grant_limit__asks_after_a_turn_of_psns)
{
    struct mrd_peer *peer = begin(self);

    assert_int_equal(granted_after(self, peer, 0), 4 * ROOM);
    for (unsigned i = 0; i < 4; i++) {
        peer->rx->rcv.cum = peer->rx->rcv.highest += 1u << 30;
        assert_int_equal(granted(self, peer), 4 * ROOM);
    }
    assert_int_equal(granted_after(self, peer, peer->rx->rcv.cum + ROOM), 8 * ROOM);
}

/* More only while the buffer is nearly empty; when it fills, all have their share again. */
TEST_F(pair, mrd_grant_limit__heeds_the_buffer)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_share *share = &self->end[AT].e->share;

    share->most = ROOM / 4 + 1;
    assert_int_equal(granted_after(self, peer, 0), 2 * ROOM);
    share->most = ROOM / 4;
    assert_int_equal(granted(self, peer), 2 * ROOM); /* asked for then, not now */
    assert_int_equal(granted_after(self, peer, 0), 4 * ROOM);
    share->most = ROOM / 2;
    assert_int_equal(granted(self, peer), 4 * ROOM);
    share->most = ROOM / 2 + 1;
    assert_int_equal(granted(self, peer), 2 * ROOM);
    share->most = 0;
    assert_int_equal(granted(self, peer), 2 * ROOM);
}

/* The tracker grows with the grant, to its greatest and no further. */
TEST_F(pair, mrd_grant_limit__up_to_the_widest)
{
    struct mrd_peer *peer = begin(self);

    self->end[AT].e->share.room = 0;
    for (uint32_t i = 0; i < 20; i++) {
        mrd_grant_wanted(peer->rx, peer->rx->rcv.cum + MRD_TRACKER_WIDEST / 2);
        assert_in_range(granted(self, peer), self->config.mover.tracker, MRD_TRACKER_WIDEST);
        assert_true(granted(self, peer) <= peer->rx->rcv.tracker);
    }
    assert_int_equal(granted(self, peer), MRD_TRACKER_WIDEST);
    assert_int_equal(peer->rx->rcv.tracker, MRD_TRACKER_WIDEST);
}

/* Without memory for a wider tracker it stays as it was, and may be asked for again. */
TEST_F(pair, mrd_grant_limit__no_memory)
{
    struct mrd_peer *peer = begin(self);
    struct mrd_engine *e = self->end[AT].e;

    e->share.room = 0;
    uint32_t before = granted(self, peer);
    e->peers.maps.wide_bytes = MRD_WIDE_BYTES;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(granted_after(self, peer, peer->rx->rcv.cum + before), before);
    }
    e->peers.maps.wide_bytes = 0;
    assert_int_equal(granted_after(self, peer, peer->rx->rcv.cum + before), 2 * before);
}
