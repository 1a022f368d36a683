/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that moved: late copies of what it sent with a proof from its old address. */
#include "tests/unit/engine_pair.h"

enum { ELSEWHERE = 9, LEN = 64 };

static void round_trips(struct pair *p, unsigned num)
{
    for (unsigned i = 0; i < num; i++) {
        (void)pair_hop(p, 0);
        (void)pair_hop(p, 1);
    }
}

/* A copy of a packet with the cookie, which came before, does not move the peer back. */
TEST_F(wary_pair, mrd_address_came__copy_of_a_proof)
{
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, LEN);
    round_trips(self, 1); /* the challenge */
    (void)pair_hop(self, 0);
    assert_true(self->end[1].num_inbox > 0);
    struct pair_frame copy = self->end[1].inbox[0];
    struct mrd_wire_head head = pair_head(&copy);
    assert_true(head.flags & MRD_WIRE_COOKIE);
    (void)pair_turn(self, 1);
    round_trips(self, 4);
    struct mrd_peer *peer = pair_peer(self, 1);
    assert_int_equal(peer->addr.ip[15], 0);
    /* Its address changes, and it speaks. */
    self->now += 2 * MRD_MOVED_NS;
    self->end[0].addr.ip[15] = ELSEWHERE;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, LEN, LEN);
    round_trips(self, 4);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    assert_int_equal(self->end[1].e->stats.peers_moved, 1);
    /* Within the life of packets a copy of its first ones comes, from where it was. */
    self->end[0].addr.ip[15] = 0;
    pair_rx_one(self, 1, &copy);
    assert_int_equal(self->end[1].e->stats.rx_duplicates, 1);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    assert_int_equal(self->end[1].e->stats.peers_moved, 1);
}
