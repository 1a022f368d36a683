/* SPDX-License-Identifier: BSD-2-Clause */
/* Which peer an address handle leads to. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 0, STEP_MS = 5, ELSEWHERE = 9 };

static struct mrd_ah_impl *handle(const struct pair *p)
{
    return mrd_container_of(p->end[AT].ah, struct mrd_ah_impl, pub);
}

/* Whom messages through the handle go to. */
static struct mrd_peer *peer_of_handle(struct pair *p)
{
    return mrd_handle_open(p->end[AT].e, handle(p));
}

/* Until all that is idle rests. */
static void idle(struct pair *p)
{
    const struct mrd_pool *entries = &p->end[AT].e->peers.entries;

    for (unsigned i = 0; entries->used && i < 60000 / STEP_MS; i++) {
        p->now += STEP_MS * MRD_MSEC;
        pair_turn(p, AT);
    }
    assert_int_equal(entries->used, 0);
}

/* The handle's peer moved, and rests: the handle goes on to where it was last. */
TEST_F(pair, mrd_handle_open__rests_where_it_moved)
{
    struct mrd_peer *peer = peer_of_handle(self);
    uint32_t id = peer->id;

    pair_move_peer(self, AT, peer, ELSEWHERE);
    idle(self);
    assert_int_equal(peer_of_handle(self)->addr.ip[15], ELSEWHERE);
    assert_int_equal(peer_of_handle(self)->id, id);
}

/* Another peer has the id now, and moved: the handle leads to its own address. */
TEST_F(pair, mrd_handle_open__id_came_again)
{
    for (unsigned rests = 0; rests < 2; rests++) {
        pair_begin(self);
        struct mrd_peer *other = mrd_peer_open(self->end[AT].e, &(struct mrd_addr){.port = 5000});
        handle(self)->peer_id = other->id;
        handle(self)->own_inc = other->pair.own_inc + 1;
        pair_move_peer(self, AT, other, ELSEWHERE);
        assert_null(mrd_handle_known(self->end[AT].e, handle(self)));
        if (rests)
            idle(self);
        assert_int_equal(peer_of_handle(self)->addr.port, self->end[1 - AT].addr.port);
        assert_int_equal(peer_of_handle(self)->addr.ip[15], 0);
    }
}

/* Two entries at the address, one of which speaks to it: the handle's has no half, and is not it. */
TEST_F(pair, mrd_handle_open__one_speaks_for_the_address)
{
    struct mrd_peer *peer = peer_of_handle(self);

    assert_ptr_equal(peer_of_handle(self), peer);
    struct mrd_peer *other = mrd_peer_add_entry(self->end[AT].e, &peer->addr);
    assert_ptr_equal(mrd_peer_open(self->end[AT].e, &peer->addr), other); /* the newest */
    mrd_send_state_open(self->end[AT].e, other);
    assert_ptr_equal(peer_of_handle(self), other);
    pair_begin(self);
    peer = peer_of_handle(self);
    mrd_send_state_open(self->end[AT].e, peer);
    other = mrd_peer_add_entry(self->end[AT].e, &peer->addr);
    mrd_send_state_open(self->end[AT].e, other);
    assert_ptr_equal(peer_of_handle(self), peer); /* each goes on as it is */
}
