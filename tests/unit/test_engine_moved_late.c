/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that moves while nothing of its epoch is acked yet, and what asks where it is. */
#include "core/engine/contact.h"
#include "tests/unit/engine_hand.h"

enum { ELSEWHERE = 9, LEN = 64 };

/* End 0 is elsewhere: it sends from there, and gets what is sent there. `deaf`: nothing. */
static void turns(struct pair *p, bool deaf, uint64_t until_ns)
{
    struct pair_end *a = &p->end[0];

    a->addr.ip[15] = ELSEWHERE;
    while (p->now < until_ns) {
        const struct mrd_peer *peer = pair_peer(p, 1);
        unsigned got = 0;

        p->now += MRD_MSEC;
        for (unsigned i = 0; i < a->num_inbox; i++)
            if (!deaf && (pair_head(&a->inbox[i]).type == MRD_WIRE_CHALLENGE ||
                          peer->addr.ip[15] == ELSEWHERE))
                a->inbox[got++] = a->inbox[i];
        a->num_inbox = got;
        (void)pair_turn(p, 0);
        (void)pair_turn(p, 1);
    }
    a->addr.ip[15] = 0;
}

/* The answers to its first packets from there were lost for longer than first contact lasts. */
TEST_F(wary_pair, mrd_address_came__after_first_contact)
{
    pair_write(self, 0, 0, LEN);
    pair_write(self, 1, 0, LEN);
    self->now += MRD_SEND_IDLE_LIFE_NS + MRD_SEC;
    pair_post(self, 0, MRD_WR_RDMA_WRITE, LEN, LEN);
    turns(self, true, self->now + MRD_FIRST_CONTACT_LIFE_NS + 100 * MRD_MSEC);
    turns(self, false, self->now + self->config.peer_timeout_ns * 2);
    pair_expect(self, 0, MRD_WC_SUCCESS);
}

/* A copy of a challenge comes long after what it answers was acked: nothing is proved to anybody. */
TEST_F(wary_pair, mrd_contact_challenge__late_copy)
{
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, LEN);
    (void)pair_hop(self, 0);
    (void)pair_hop(self, 1);
    assert_true(self->end[0].num_inbox > 0);
    struct pair_frame copy = self->end[0].inbox[0];
    assert_int_equal(pair_head(&copy).type, MRD_WIRE_CHALLENGE);
    pair_settle(self, self->now + MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    struct mrd_wire_head head = pair_head(&copy);
    head.epoch = pair_peer(self, 0)->tx->contact.epoch;
    struct mrd_rx_packet packet = pair_packet(self, 0, &copy);
    mrd_engine_begin(self->end[0].e, self->now);
    mrd_contact_challenge(self->end[0].e, &head, &packet);
    mrd_engine_drained(self->end[0].e, self->now);
    assert_false(pair_peer(self, 0)->tx->contact.proves);
    (void)pair_tx(self, 0);
    assert_int_equal(self->end[1].num_inbox, 0);
}

/*
 * Whoever only receives is asked where it is, too: about its acks. It proves it; but not about the acks
 * of another space, or as somebody else, or to somebody else.
 */
TEST_F(pair, mrd_contact_challenge__about_an_ack)
{
    for (unsigned flaw = 0; flaw < 4; flaw++) {
        pair_begin(self);
        struct mrd_peer *peer = hand_rx_peer(self, 0);
        struct mrd_wire_head head = hand_head(self, 0, MRD_WIRE_CHALLENGE);
        struct mrd_rx_packet packet = hand_packet(self, 0, 0, 0);
        head.cookie = 5;
        head.echo_stamp = mrd_wire_stamp(self->now);
        head.dst_inc += flaw == 1;
        head.src_inc += flaw == 2;
        head.epoch += flaw == 3;
        mrd_contact_challenge(self->end[0].e, &head, &packet);
        assert_int_equal(self->end[0].e->stats.rx_challenges, flaw == 0);
        assert_int_equal(self->end[0].e->stats.rx_drop_reset, flaw != 0);
        assert_int_equal(peer->tx && peer->tx->contact.proves && peer->tx->contact.cookie == 5,
                         flaw == 0);
    }
}
