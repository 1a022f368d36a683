/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that were refused for want of a receive, and are to be told. */
#include "tests/unit/engine_hand.h"

enum { AT = 1, PEERS = 3 };

static struct pair pair; /* large, and begun anew by each test */

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
        t.peer[i] = mrd_half_open_peer(t.e, &(struct mrd_addr){.port = 1000 + i});
        mrd_want_add(t.e, t.peer[i], t.qp);
    }
    return t;
}

/* They go before the end of the test, which finds whether any leaked. */
static void end(struct pair *p, struct want_test *t)
{
    struct mrd_node *n;

    while ((n = mrd_list_first(&t->qp->wants)))
        mrd_want_free(t->e, mrd_container_of(n, struct mrd_want, qp_node));
    assert_int_equal(t->e->wants.pool.used, 0);
    pair_end(p);
}

static struct mrd_want *only_want(struct mrd_node *list)
{
    assert_int_equal(hand_length(list), 1);
    return mrd_container_of(list->next, struct mrd_want, peer_node);
}

/* Refused twice, a peer is told once; by another queue pair is another matter. */
static void mrd_want_add__once_for_each_queue_pair(void **state)
{
    struct pair *p = &pair;
    struct want_test t = begin(p);
    struct mrd_qp *kept;

    (void)state;
    mrd_want_add(t.e, t.peer[0], t.qp);
    assert_int_equal(t.e->wants.pool.used, PEERS);
    kept = hand_swap_qp(p, AT, MRD_ORDER_NONE);
    mrd_want_add(t.e, t.peer[0], hand_qp(p, AT));
    assert_int_equal(t.e->wants.pool.used, PEERS + 1);
    assert_int_equal(hand_length(&t.peer[0]->wants), 2);
    hand_restore_qp(p, AT, kept); /* which ends what waited for it */
    assert_int_equal(t.e->wants.pool.used, PEERS);
    end(p, &t);
}

/* It is a hint: without a record the peer tries again by itself. */
static void mrd_want_add__without_a_record(void **state)
{
    static void *taken[10000];
    struct pair *p = &pair;
    struct want_test t = begin(p);
    struct mrd_peer *peer = mrd_half_open_peer(t.e, &(struct mrd_addr){.port = 2000});

    (void)state;
    hand_exhaust(&t.e->wants.pool, taken);
    mrd_want_add(t.e, peer, t.qp);
    hand_refill(&t.e->wants.pool, taken);
    assert_true(mrd_list_empty(&peer->wants));
    end(p, &t);
}

/* Receives were posted: all are to be told, each once, and each gets a turn. */
static void mrd_want_meet__all(void **state)
{
    struct pair *p = &pair;
    struct want_test t = begin(p);

    (void)state;
    for (unsigned times = 0; times < 2; times++) {
        mrd_want_meet(t.e, &t.qp->recvq->wants);
        for (unsigned i = 0; i < PEERS; i++) {
            assert_true(mrd_list_empty(&only_want(&t.peer[i]->readies)->queue_node));
            assert_true(mrd_list_empty(&t.peer[i]->wants));
            assert_false(mrd_list_empty(&t.peer[i]->ready));
        }
        assert_true(mrd_engine_says_ready(t.e));
        assert_int_equal(hand_length(&t.qp->recvq->wants), 0);
        assert_int_equal(hand_length(&t.qp->wants), PEERS);
    }
    mrd_want_add(t.e, t.peer[0], t.qp); /* refused again before it was told */
    assert_int_equal(t.e->wants.pool.used, PEERS);
    end(p, &t);
}

/*
 * The receives were used up before a peer was told: it waits for the next, and the others do not.
 */
static void mrd_want_postpone__waits_for_the_next(void **state)
{
    struct pair *p = &pair;
    struct want_test t = begin(p);

    (void)state;
    mrd_want_meet(t.e, &t.qp->recvq->wants);
    mrd_want_postpone(only_want(&t.peer[1]->readies));
    assert_ptr_equal(t.qp->recvq->wants.next, &only_want(&t.peer[1]->wants)->queue_node);
    assert_true(mrd_list_empty(&t.peer[1]->readies));
    assert_int_equal(hand_length(&t.peer[0]->readies), 1);
    mrd_want_meet(t.e, &t.qp->recvq->wants);
    assert_non_null(only_want(&t.peer[1]->readies));
    end(p, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_want_add__once_for_each_queue_pair),
        cmocka_unit_test(mrd_want_add__without_a_record),
        cmocka_unit_test(mrd_want_meet__all),
        cmocka_unit_test(mrd_want_postpone__waits_for_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
