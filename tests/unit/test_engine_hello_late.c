/* SPDX-License-Identifier: BSD-2-Clause */
/* A challenge that comes as first contact ends: what is sent then must find a way in. */
#include "tests/unit/engine_pair.h"

enum { LEN = 64 };

static struct pair pair;

/* Turns of end 0, a millisecond apart; its packets are lost. */
static void alone(struct pair *p, uint64_t until_ns)
{
    while (p->now < until_ns) {
        p->now += MRD_MSEC;
        p->end[1].num_inbox = 0;
        (void)pair_turn(p, 0);
    }
}

TEST(mrd_contact_challenge__at_the_end_of_first_contact)
{
    struct pair *p = &pair;
    uint64_t begun_ns;
    struct mrd_wc wc;

    pair_begin_wary(p);
    p->now += 10 * MRD_SEC; /* both were up long before */
    pair_post(p, 0, MRD_WR_RDMA_WRITE, 0, LEN);
    begun_ns = p->now + MRD_MSEC;
    alone(p, begun_ns + MRD_FIRST_CONTACT_LIFE_NS - 600 * MRD_MSEC);
    /* The next hello arrives, and so does the challenge, a round trip later. */
    while (!p->end[1].num_inbox && p->now < begun_ns + MRD_FIRST_CONTACT_LIFE_NS) {
        p->now += MRD_MSEC;
        (void)pair_turn(p, 0);
    }
    assert_true(p->end[1].num_inbox >= 1);
    assert_true(pair_head(&p->end[1].inbox[0]).flags & MRD_WIRE_FIRST_CONTACT);
    (void)pair_turn(p, 1);
    assert_true(p->end[0].num_inbox >= 1);
    p->now = begun_ns + MRD_FIRST_CONTACT_LIFE_NS + 10 * MRD_MSEC;
    pair_settle(p, p->now + 30 * MRD_SEC);
    assert_int_equal(pair_poll(p, 0, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_int_equal(p->end[0].e->stats.rx_resets, 0); /* it was taken for what it is */
    pair_end(p);
}
