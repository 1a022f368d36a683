/* SPDX-License-Identifier: BSD-2-Clause */
/* A challenge that comes as first contact ends: what is sent then must find a way in. */
#include "tests/unit/engine_pair.h"

enum { LEN = 64 };

/* A turn of end 0, a millisecond from now. */
static void turn(struct pair *p)
{
    p->now += MRD_MSEC;
    (void)pair_turn(p, 0);
}

TEST_F(wary_pair, mrd_contact_challenge__at_the_end_of_first_contact)
{
    self->now += 10 * MRD_SEC; /* both were up long before */
    pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, LEN);
    uint64_t begun_ns = self->now + MRD_MSEC;
    while (self->now < begun_ns + MRD_FIRST_CONTACT_LIFE_NS - 600 * MRD_MSEC) {
        self->end[1].num_inbox = 0;
        turn(self);
    }
    /* The next hello arrives, and so does the challenge, a round trip later. */
    while (!self->end[1].num_inbox && self->now < begun_ns + MRD_FIRST_CONTACT_LIFE_NS)
        turn(self);
    assert_true(self->end[1].num_inbox >= 1);
    assert_true(pair_head(&self->end[1].inbox[0]).flags & MRD_WIRE_FIRST_CONTACT);
    (void)pair_turn(self, 1);
    assert_true(self->end[0].num_inbox >= 1);
    self->now = begun_ns + MRD_FIRST_CONTACT_LIFE_NS + 10 * MRD_MSEC;
    pair_settle(self, self->now + 30 * MRD_SEC);
    pair_expect(self, 0, MRD_WC_SUCCESS);
    assert_int_equal(self->end[0].e->stats.rx_resets, 0); /* it was taken for what it is */
}
