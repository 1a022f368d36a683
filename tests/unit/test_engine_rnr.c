/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that were refused for want of a receive, and are to be told. */
#include "core/engine/peer_state.h"
#include "core/engine/rnr.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, PEERS = 3 };

/* Peers that want receives of the end's queue pair, in this order. */
struct want_test {
    struct mrd_engine *e;
    struct mrd_qp_impl *qp;
    struct mrd_peer *peer[PEERS];
};

static struct want_test begin(struct pair *p)
{
    struct want_test t;

    pair_begin(p);
    t.e = p->end[AT].e;
    t.qp = hand_qp(p, AT);
    for (unsigned i = 0; i < PEERS; i++) {
        t.peer[i] = mrd_peer_open(t.e, &(struct mrd_addr){.port = 1000 + i});
        mrd_rnr_add(t.e, t.peer[i], t.qp);
    }
    return t;
}

/* They go before the end of the test, which finds whether any leaked. */
static void end(struct pair *p, struct want_test *t)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&t->qp->rnr_waiters)))
        mrd_rnr_free(t->e, mrd_container_of(n, struct mrd_rnr_waiter, qp_node));
    assert_int_equal(t->e->rnr_waiters.pool.used, 0);
    pair_end(p);
}

static struct mrd_rnr_waiter *only_want(struct mrd_node *list)
{
    assert_int_equal(hand_length(list), 1);
    return mrd_container_of(list->next, struct mrd_rnr_waiter, peer_node);
}

/* Refused twice, a peer is told once; by another queue pair is another matter. */
TEST_F(pair, mrd_rnr_add__once_for_each_queue_pair)
{
    struct want_test t = begin(self);
    struct mrd_qp *kept;

    mrd_rnr_add(t.e, t.peer[0], t.qp);
    assert_int_equal(t.e->rnr_waiters.pool.used, PEERS);
    kept = hand_swap_qp(self, AT, MRD_ORDER_NONE);
    mrd_rnr_add(t.e, t.peer[0], hand_qp(self, AT));
    assert_int_equal(t.e->rnr_waiters.pool.used, PEERS + 1);
    assert_int_equal(hand_length(&t.peer[0]->rnr_waiters), 2);
    hand_restore_qp(self, AT, kept); /* which ends what waited for it */
    assert_int_equal(t.e->rnr_waiters.pool.used, PEERS);
    end(self, &t);
}

/* It is a hint: without a record the peer tries again by itself. */
TEST_F(pair, mrd_rnr_add__without_a_record)
{
    static void *taken[10000];
    struct want_test t = begin(self);
    struct mrd_peer *peer = mrd_peer_open(t.e, &(struct mrd_addr){.port = 2000});

    hand_exhaust(&t.e->rnr_waiters.pool, taken);
    mrd_rnr_add(t.e, peer, t.qp);
    hand_refill(&t.e->rnr_waiters.pool, taken);
    assert_true(mrd_list_empty(&peer->rnr_waiters));
    end(self, &t);
}

/* How many receives a peer that is to be told is told of; 0: it is not. */
static uint32_t told(struct mrd_peer *peer)
{
    return mrd_list_empty(&peer->readies) ? 0 : only_want(&peer->readies)->receives;
}

/* Each receive is told to one peer, in turn; who is not told costs nobody a message. */
TEST_F(pair, mrd_rnr_notify__in_turn)
{
    struct want_test t = begin(self);

    for (unsigned i = 0; i < 2 * PEERS + 1; i++) {
        for (unsigned k = 0; k < PEERS; k++)
            assert_int_equal(told(t.peer[k]), (i + PEERS - 1 - k) / PEERS);
        mrd_rnr_notify(t.e, &t.qp->recvq->rnr_waiters, 1);
        assert_false(mrd_list_empty(&t.peer[i % PEERS]->ready));
        assert_true(mrd_engine_says_ready(t.e));
    }
    mrd_rnr_notify(t.e, &t.qp->recvq->rnr_waiters, 2 * PEERS - 1);
    for (unsigned k = 0; k < PEERS; k++)
        assert_int_equal(told(t.peer[k]), 4);
    assert_int_equal(hand_length(&t.qp->rnr_waiters), PEERS);
    mrd_rnr_add(t.e, t.peer[0], t.qp); /* refused again before it was told */
    assert_int_equal(t.e->rnr_waiters.pool.used, PEERS);
    end(self, &t);
}

/* The receives were used up before a peer was told: it is the first to be told of the next. */
TEST_F(pair, mrd_rnr_postpone__waits_for_the_next)
{
    struct want_test t = begin(self);

    mrd_rnr_notify(t.e, &t.qp->recvq->rnr_waiters, 2);
    mrd_rnr_postpone(only_want(&t.peer[1]->readies));
    assert_int_equal(told(t.peer[1]), 0);
    assert_int_equal(told(t.peer[0]), 1);
    mrd_rnr_notify(t.e, &t.qp->recvq->rnr_waiters, 1);
    assert_int_equal(told(t.peer[1]), 1);
    end(self, &t);
}

/* The peer that was told had no message left: the next one hears of what it left. */
TEST_F(pair, mrd_rnr_notified__passes_on)
{
    struct want_test t = begin(self);

    mrd_rnr_notified(t.e, t.qp->pub.qp_num); /* nothing is left */
    mrd_rnr_notified(t.e, 12345);            /* it is gone */
    assert_int_equal(told(t.peer[0]), 0);
    pair_post_recv(self, AT, 0, 64);
    mrd_rnr_free(t.e, only_want(&t.peer[0]->readies)); /* as if told */
    assert_int_equal(told(t.peer[1]), 0);
    mrd_rnr_notified(t.e, t.qp->pub.qp_num);
    assert_int_equal(told(t.peer[1]), 1);
    end(self, &t);
}
