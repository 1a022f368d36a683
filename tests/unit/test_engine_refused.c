/* SPDX-License-Identifier: BSD-2-Clause */
/* The network says that nobody listens at a peer's address. */
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64 };

static struct pair pair; /* large, and begun anew by each test */

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
TEST(mrd_engine_tx_refused__goes_on)
{
    struct pair *p = &pair;
    struct mrd_engine_event event;
    struct mrd_wc wc;

    ask_nobody(p);
    assert_false(refuse(p, 0));
    assert_false(refuse(p, MRD_MSEC));
    assert_int_equal(pair_poll(p, AT, &wc), 0);
    assert_true(refuse(p, MRD_REFUSED_NS - MRD_MSEC));
    assert_int_equal(pair_poll(p, AT, &wc), 1);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(mrd_engine_get_event(p->end[AT].e, &event), 0);
    assert_int_equal(event.type, MRD_EVENT_PEER_UNREACHABLE);
    assert_memory_equal(&event.addr, &p->end[1 - AT].addr, sizeof(event.addr));
    assert_false(refuse(p, MRD_SEC)); /* nothing is under way any more */
    pair_end(p);
}

/* Many at once may be of one moment, in which the peer began; two may be forged by luck. */
TEST(mrd_engine_tx_refused__not_long_enough)
{
    struct pair *p = &pair;

    ask_nobody(p);
    for (unsigned i = 0; i < 100; i++)
        assert_false(refuse(p, MRD_REFUSED_NS / 101));
    pair_end(p);
    ask_nobody(p);
    assert_false(refuse(p, 0));
    assert_false(refuse(p, MRD_SEC));
    pair_end(p);
}

/* Whoever was heard is there, and what anybody else says of it is not believed. */
TEST(mrd_engine_tx_refused__was_heard)
{
    struct pair *p = &pair;
    struct mrd_wc wc;

    pair_begin(p);
    hand_rx_peer(p, AT);
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    for (unsigned i = 0; i < 10; i++)
        assert_false(refuse(p, MRD_SEC / 2));
    assert_int_equal(pair_poll(p, AT, &wc), 0);
    assert_int_equal(p->end[AT].e->stats.rx_nobody, 0);
    pair_end(p);
}

/* An address that nothing is sent to. */
TEST(mrd_engine_tx_refused__unknown)
{
    struct pair *p = &pair;

    pair_begin(p);
    assert_false(mrd_engine_tx_refused(p->end[AT].e, &(struct mrd_addr){.port = 7}, p->now));
    pair_end(p);
}
