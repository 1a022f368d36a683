/* SPDX-License-Identifier: BSD-2-Clause */
/* The network says that nobody listens at a peer's address. */
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

static bool refuse(struct pair *p, uint64_t after_ns)
{
    p->now += after_ns;
    return mrd_engine_tx_refused(p->end[AT].e, &p->end[1 - AT].addr, p->now);
}

/* A request to a peer that was never heard of is under way. */
static void ask_nobody(struct pair *p)
{
    pair_begin(p);
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    assert_false(mrd_peer_was_heard(hand_tx_peer(p, AT)));
}

/* Several times, and for a while: the work fails, and an event names the peer. */
TEST_F(pair, mrd_engine_tx_refused__goes_on)
{
    ask_nobody(self);
    assert_false(refuse(self, 0));
    assert_false(refuse(self, MRD_MSEC));
    pair_expect_nothing(self, AT);
    assert_true(refuse(self, MRD_REFUSED_NS - MRD_MSEC));
    pair_expect(self, AT, MRD_WC_RETRY_EXC_ERR);
    struct mrd_engine_event event = pair_expect_event(self, AT, MRD_EVENT_PEER_UNREACHABLE);
    assert_memory_equal(&event.addr, &self->end[1 - AT].addr, sizeof(event.addr));
    assert_false(refuse(self, MRD_SEC)); /* nothing is under way any more */
}

/* Many at once may be of one moment, in which the peer began; two may be forged by luck. */
TEST_F(pair, mrd_engine_tx_refused__not_long_enough)
{
    ask_nobody(self);
    for (unsigned i = 0; i < 100; i++)
        assert_false(refuse(self, MRD_REFUSED_NS / 101));
    pair_end(self);
    ask_nobody(self);
    assert_false(refuse(self, 0));
    assert_false(refuse(self, MRD_SEC));
}

/* Whoever was heard is there, and what anybody else says of it is not believed. */
TEST_F(pair, mrd_engine_tx_refused__was_heard)
{
    hand_rx_peer(self, AT);
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    for (unsigned i = 0; i < 10; i++)
        assert_false(refuse(self, MRD_SEC / 2));
    pair_expect_nothing(self, AT);
    assert_int_equal(self->end[AT].e->stats.rx_nobody, 0);
}

/* An address that nothing is sent to. */
TEST_F(pair, mrd_engine_tx_refused__unknown)
{
    assert_false(mrd_engine_tx_refused(self->end[AT].e, &(struct mrd_addr){.port = 7}, self->now));
}
