/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that were refused for want of a receive, and are to be told. */
#include "core/engine/peer_state.h"
#include "core/engine/rnr.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, PEERS = 3 };

/* Peers that want receives of the end's queue pair, in this order. */
FIXTURE(want_test)
{
    struct pair pair;
    struct mrd_engine *e;
    struct mrd_qp_impl *qp;
    struct mrd_peer *peer[PEERS];
};

FIXTURE_SETUP(want_test)
{
    pair_begin(&self->pair);
    self->e = self->pair.end[AT].e;
    self->qp = hand_qp(&self->pair, AT);
    for (unsigned i = 0; i < PEERS; i++) {
        self->peer[i] = mrd_peer_open(self->e, &(struct mrd_addr){.port = 1000 + i});
        mrd_rnr_add(self->e, self->peer[i], self->qp);
    }
}

/* They go before the end of the test, which finds whether any leaked. */
FIXTURE_TEARDOWN(want_test)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&self->qp->rnr_waiters)))
        mrd_rnr_free(self->e, mrd_container_of(n, struct mrd_rnr_waiter, qp_node));
    assert_int_equal(self->e->rnr_waiters.pool.used, 0);
    pair_end(&self->pair);
}

static struct mrd_rnr_waiter *only_want(struct mrd_node *list)
{
    assert_int_equal(hand_length(list), 1);
    return mrd_container_of(list->next, struct mrd_rnr_waiter, peer_node);
}

/* Refused twice, a peer is told once; by another queue pair is another matter. */
TEST_F(want_test, mrd_rnr_add__once_for_each_queue_pair)
{
    mrd_rnr_add(self->e, self->peer[0], self->qp);
    assert_int_equal(self->e->rnr_waiters.pool.used, PEERS);
    struct mrd_qp *kept = hand_swap_qp(&self->pair, AT, MRD_ORDER_NONE);
    mrd_rnr_add(self->e, self->peer[0], hand_qp(&self->pair, AT));
    assert_int_equal(self->e->rnr_waiters.pool.used, PEERS + 1);
    assert_int_equal(hand_length(&self->peer[0]->rnr_waiters), 2);
    hand_restore_qp(&self->pair, AT, kept); /* which ends what waited for it */
    assert_int_equal(self->e->rnr_waiters.pool.used, PEERS);
}

/* It is a hint: without a record the peer tries again by itself. */
TEST_F(want_test, mrd_rnr_add__without_a_record)
{
    static void *taken[10000];
    struct mrd_peer *peer = mrd_peer_open(self->e, &(struct mrd_addr){.port = 2000});

    hand_exhaust(&self->e->rnr_waiters.pool, taken);
    mrd_rnr_add(self->e, peer, self->qp);
    hand_refill(&self->e->rnr_waiters.pool, taken);
    assert_true(mrd_list_empty(&peer->rnr_waiters));
}

/* How many receives a peer that is to be told is told of; 0: it is not. */
static uint32_t told(struct mrd_peer *peer)
{
    return mrd_list_empty(&peer->readies) ? 0 : only_want(&peer->readies)->receives;
}

/* Each receive is told to one peer, in turn; who is not told costs nobody a message. */
TEST_F(want_test, mrd_rnr_notify__in_turn)
{
    for (unsigned i = 0; i < 2 * PEERS + 1; i++) {
        for (unsigned k = 0; k < PEERS; k++)
            assert_int_equal(told(self->peer[k]), (i + PEERS - 1 - k) / PEERS);
        mrd_rnr_notify(self->e, &self->qp->recvq->rnr_waiters, 1);
        assert_false(mrd_list_empty(&self->peer[i % PEERS]->ready));
        assert_true(mrd_engine_says_ready(self->e));
    }
    mrd_rnr_notify(self->e, &self->qp->recvq->rnr_waiters, 2 * PEERS - 1);
    for (unsigned k = 0; k < PEERS; k++)
        assert_int_equal(told(self->peer[k]), 4);
    assert_int_equal(hand_length(&self->qp->rnr_waiters), PEERS);
    mrd_rnr_add(self->e, self->peer[0], self->qp); /* refused again before it was told */
    assert_int_equal(self->e->rnr_waiters.pool.used, PEERS);
}

/* The receives were used up before a peer was told: it is the first to be told of the next. */
TEST_F(want_test, mrd_rnr_postpone__waits_for_the_next)
{
    mrd_rnr_notify(self->e, &self->qp->recvq->rnr_waiters, 2);
    mrd_rnr_postpone(only_want(&self->peer[1]->readies));
    assert_int_equal(told(self->peer[1]), 0);
    assert_int_equal(told(self->peer[0]), 1);
    mrd_rnr_notify(self->e, &self->qp->recvq->rnr_waiters, 1);
    assert_int_equal(told(self->peer[1]), 1);
}

/* The peer that was told had no message left: the next one hears of what it left. */
TEST_F(want_test, mrd_rnr_notified__passes_on)
{
    mrd_rnr_notified(self->e, self->qp->pub.qp_num); /* nothing is left */
    mrd_rnr_notified(self->e, 12345);                /* it is gone */
    assert_int_equal(told(self->peer[0]), 0);
    pair_post_recv(&self->pair, AT, 0, 64);
    mrd_rnr_free(self->e, only_want(&self->peer[0]->readies)); /* as if told */
    assert_int_equal(told(self->peer[1]), 0);
    mrd_rnr_notified(self->e, self->qp->pub.qp_num);
    assert_int_equal(told(self->peer[1]), 1);
}
