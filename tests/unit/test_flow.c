/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/flow.h"
#include "core/limits.h"
#include "tests/kit/kit.h"

enum { ENTRIES = 16 };

struct flow_fixture {
    struct mrd_flow_rx rx;
    struct mrd_reorder_entry entry[ENTRIES];
    struct mrd_recv *recv[ENTRIES]; /* only told apart, never looked into */
    char recv_memory[ENTRIES];
    unsigned used;
    uint32_t gone; /* of the peer */
};

static void begin(struct flow_fixture *f, uint32_t msn, uint32_t rsn)
{
    memset(f, 0, sizeof(*f));
    for (unsigned i = 0; i < ENTRIES; i++)
        f->recv[i] = (struct mrd_recv *)(void *)&f->recv_memory[i];
    mrd_flow_rx_init(&f->rx, NULL, NULL, 17, msn, rsn, &f->gone);
}

static struct mrd_reorder_entry *fresh(struct flow_fixture *f)
{
    assert_true(f->used < ENTRIES);
    return &f->entry[f->used++];
}

static struct mrd_reorder_entry *insert(struct flow_fixture *f, uint32_t msn,
                                        enum mrd_reorder_state state)
{
    struct mrd_reorder_entry *p = fresh(f);

    p->msn = msn;
    p->state = (uint8_t)state;
    mrd_flow_rx_insert(&f->rx, p);
    return p;
}

static void reserve(struct flow_fixture *f, unsigned recv)
{
    mrd_flow_rx_reserve(&f->rx, fresh(f), f->recv[recv]);
}

/* Of messages that come much later. */
static void gone_rsn(struct flow_fixture *f, uint32_t rsn)
{
    mrd_flow_rx_gone(&f->rx, f->rx.msn_next + MRD_MSN_WINDOW / 2 + f->rx.num_gone, true, rsn);
}

static unsigned length(const struct mrd_node *list)
{
    unsigned n = 0;

    for (const struct mrd_node *at = list->next; at != list; at = at->next)
        n++;
    return n;
}

/* The flow's RSNs with a record must be those of `expected`, in this order. */
static void expect_reserved(struct flow_fixture *f, unsigned n, const uint32_t *expected)
{
    struct mrd_node *at = f->rx.reserved.next;

    assert_int_equal(length(&f->rx.reserved), n);
    for (unsigned i = 0; i < n; i++, at = at->next)
        assert_int_equal(mrd_container_of(at, struct mrd_reorder_entry, node)->rsn, expected[i]);
}

TEST(mrd_flow_hash__tells_flows_apart)
{
    assert_true(mrd_flow_hash(1, 2, 3) == mrd_flow_hash(1, 2, 3));
    assert_true(mrd_flow_hash(1, 2, 3) != mrd_flow_hash(2, 1, 3));
    assert_true(mrd_flow_hash(1, 2, 3) != mrd_flow_hash(1, 3, 2));
    assert_true(mrd_flow_hash(1, 2, 3) != mrd_flow_hash(3, 2, 1));
}

TEST(mrd_flow_tx_init__begins_at_zero)
{
    struct mrd_flow_tx tx;

    memset(&tx, 0xff, sizeof(tx));
    mrd_flow_tx_init(&tx, NULL, 16, 17);
    assert_int_equal(tx.msn_next, 0);
    assert_int_equal(tx.rsn_next, 0);
    assert_int_equal(tx.qpn, 16);
    assert_int_equal(tx.remote_qpn, 17);
    assert_true(mrd_list_empty(&tx.msgs));
}

TEST(mrd_flow_rx_init__begins_with_the_oldest_owed)
{
    struct flow_fixture f;

    begin(&f, 100, 50);
    assert_int_equal(f.rx.msn_next, 100);
    assert_int_equal(f.rx.rsn_next, 50);
    assert_int_equal(f.rx.remote_qpn, 17);
    assert_null(mrd_flow_rx_deliver(&f.rx));
}

TEST(mrd_flow_rx_judge__table)
{
    static const struct {
        int32_t msn; /* from the next */
        bool has_rsn;
        int32_t rsn;
        enum mrd_msn_verdict verdict;
    } table[] = {
        {-1, false, 0, MRD_MSN_OLD},
        {-1000, true, -1000, MRD_MSN_OLD},
        {0, false, 0, MRD_MSN_NEW},
        {0, true, 0, MRD_MSN_NEW},
        {2, false, 0, MRD_MSN_OLD}, /* pending already */
        {3, false, 0, MRD_MSN_NEW},
        {MRD_MSN_WINDOW - 1, true, MRD_MSN_WINDOW - 1, MRD_MSN_NEW},
        {MRD_MSN_WINDOW, false, 0, MRD_MSN_BEYOND},
        {0, true, MRD_MSN_WINDOW, MRD_MSN_BEYOND},
        {0, false, MRD_MSN_WINDOW, MRD_MSN_NEW}, /* it consumes no receive: its RSN says nothing */
        {0, true, -5, MRD_MSN_NEW},              /* a receive reserved for it waits */
    };
    static const uint32_t first[] = {0, 5000, UINT32_MAX, UINT32_MAX - 500};

    for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        struct flow_fixture f;

        begin(&f, first[k], first[k] / 2);
        insert(&f, first[k] + 2, MRD_REORDER_OPEN);
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
            assert_int_equal(mrd_flow_rx_judge(&f.rx, first[k] + (uint32_t)table[i].msn,
                                               table[i].has_rsn,
                                               first[k] / 2 + (uint32_t)table[i].rsn),
                             table[i].verdict);
    }
}

/* Through RSN r: r itself and all lower ones that have none and will be used. */
TEST(mrd_flow_rx_needs__counts_unbound_and_wanted)
{
    const uint32_t rsn = UINT32_MAX - 1;
    struct flow_fixture f;

    begin(&f, 0, rsn);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn - 1), 0);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn), 1);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn + 4), 5);
    reserve(&f, 0);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn), 0);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn + 4), 4);
    gone_rsn(&f, rsn + 2);
    gone_rsn(&f, rsn + 6);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn + 4), 3);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn + 1), 1);
    assert_int_equal(mrd_flow_rx_needs(&f.rx, rsn + 7), 5);
}

/* Receives go to RSNs in the order posted, whatever is gone further on. */
TEST(mrd_flow_rx_reserve__in_order_of_rsn)
{
    struct flow_fixture f;

    begin(&f, 0, 10);
    gone_rsn(&f, 14);
    reserve(&f, 0);
    reserve(&f, 1);
    assert_int_equal(f.rx.rsn_next, 12);
    expect_reserved(&f, 2, (uint32_t[]){10, 11});
    assert_ptr_equal(mrd_flow_rx_claim(&f.rx, 11)->recv, f.recv[1]);
    assert_ptr_equal(mrd_flow_rx_claim(&f.rx, 10)->recv, f.recv[0]);
}

/*
 * The next RSN is one that may come: those that are gone are stepped over, one after the other;
 * what is reserved stays.
 */
TEST(mrd_flow_rx_gone__rsn_stops_at_one_that_may_come)
{
    struct flow_fixture f;

    begin(&f, 0, UINT32_MAX);
    gone_rsn(&f, 1);
    reserve(&f, 0);
    assert_int_equal(f.rx.rsn_next, 0);
    gone_rsn(&f, 0);
    assert_int_equal(f.rx.rsn_next, 2);
    gone_rsn(&f, 3);
    assert_int_equal(f.rx.rsn_next, 2);
    reserve(&f, 1);
    assert_int_equal(f.rx.rsn_next, 4);
    expect_reserved(&f, 2, (uint32_t[]){UINT32_MAX, 2});
}

/*
 * The same of MSNs, where what is pending is not gone. All that is gone is counted until it is
 * stepped over.
 */
TEST(mrd_flow_rx_gone__msn_stops_at_one_that_may_come)
{
    struct flow_fixture f;
    struct mrd_reorder_entry *p;

    begin(&f, UINT32_MAX, 0);
    mrd_flow_rx_gone(&f.rx, 0, false, 0);
    mrd_flow_rx_gone(&f.rx, 1, false, 0);
    mrd_flow_rx_gone(&f.rx, 3, false, 0);
    assert_int_equal(f.rx.num_gone, 3);
    assert_false(mrd_flow_rx_idle(&f.rx));
    assert_int_equal(mrd_flow_rx_judge(&f.rx, 1, false, 0), MRD_MSN_OLD);
    p = insert(&f, 2, MRD_REORDER_FULL);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    mrd_flow_rx_gone(&f.rx, UINT32_MAX, false, 0);
    assert_int_equal(f.rx.msn_next, 2);
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p);
    assert_int_equal(f.rx.msn_next, 4);
    assert_int_equal(f.gone, 0);
    assert_true(mrd_flow_rx_idle(&f.rx));
}

/* As many as the window holds: each is one bit, which is free for the number a window later. */
TEST(mrd_flow_rx_gone__whole_window)
{
    struct flow_fixture f;

    begin(&f, 0, 0);
    for (uint32_t i = 1; i < MRD_MSN_WINDOW; i++)
        mrd_flow_rx_gone(&f.rx, i, true, i);
    assert_int_equal(f.gone, 2 * (MRD_MSN_WINDOW - 1));
    mrd_flow_rx_gone(&f.rx, 0, true, 0);
    assert_int_equal(f.rx.msn_next, MRD_MSN_WINDOW);
    assert_int_equal(f.rx.rsn_next, MRD_MSN_WINDOW);
    assert_int_equal(f.gone, 0);
    assert_int_equal(mrd_flow_rx_judge(&f.rx, MRD_MSN_WINDOW + 1, false, 0), MRD_MSN_NEW);
}

/* A reserved receive is claimed once; a gone RSN has none. */
TEST(mrd_flow_rx_claim__once)
{
    struct flow_fixture f;

    begin(&f, 0, 10);
    reserve(&f, 0);
    gone_rsn(&f, 12);
    assert_null(mrd_flow_rx_claim(&f.rx, 11));
    assert_null(mrd_flow_rx_claim(&f.rx, 12));
    assert_non_null(mrd_flow_rx_claim(&f.rx, 10));
    assert_null(mrd_flow_rx_claim(&f.rx, 10));
}

TEST(mrd_flow_rx_insert__keeps_the_order_of_msn)
{
    static const uint32_t msn[] = {UINT32_MAX, 2, 0, UINT32_MAX - 1, 1};
    struct flow_fixture f;
    struct mrd_node *at;

    begin(&f, UINT32_MAX - 2, 0);
    for (size_t i = 0; i < 5; i++)
        insert(&f, msn[i], MRD_REORDER_FULL);
    at = f.rx.pending.next;
    for (uint32_t i = 0; i < 5; i++, at = at->next)
        assert_int_equal(mrd_container_of(at, struct mrd_reorder_entry, node)->msn,
                         UINT32_MAX - 1 + i);
    assert_ptr_equal(at, &f.rx.pending);
}

TEST(mrd_flow_rx_find__by_msn)
{
    struct flow_fixture f;
    struct mrd_reorder_entry *p;

    begin(&f, 5, 0);
    insert(&f, 6, MRD_REORDER_OPEN);
    p = insert(&f, 8, MRD_REORDER_OPEN);
    insert(&f, 9, MRD_REORDER_OPEN);
    assert_ptr_equal(mrd_flow_rx_find(&f.rx, 8), p);
    assert_null(mrd_flow_rx_find(&f.rx, 7));
    assert_null(mrd_flow_rx_find(&f.rx, 5));
}

/*
 * The sender owes nothing below: lower RSNs' records come back, newest first, so that receives go
 * back in order.
 */
TEST(mrd_flow_rx_pass_rsn__gives_records_back)
{
    struct flow_fixture f;
    struct mrd_node done;

    begin(&f, 0, 10);
    for (unsigned i = 0; i < 3; i++)
        reserve(&f, i);
    gone_rsn(&f, 14);
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(&f.rx, 12, &done);
    assert_int_equal(length(&done), 2);
    assert_int_equal(mrd_container_of(done.next, struct mrd_reorder_entry, node)->rsn, 11);
    assert_int_equal(mrd_container_of(done.prev, struct mrd_reorder_entry, node)->rsn, 10);
    assert_int_equal(f.rx.rsn_next, 13); /* 12 is bound */
    expect_reserved(&f, 1, (uint32_t[]){12});

    gone_rsn(&f, 20);
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(&f.rx, 20, &done);
    assert_int_equal(length(&done), 1);
    assert_int_equal(f.rx.rsn_next, 21); /* 20 is gone */
    f.rx.rsn_next = 20;
    assert_int_equal(f.rx.rsn_next, 20);
    mrd_flow_rx_pass_rsn(&f.rx, 15, &done); /* never back */
    assert_int_equal(f.rx.rsn_next, 20);
}

TEST(mrd_flow_rx_skip__steps_over_a_message)
{
    struct flow_fixture f;
    struct mrd_reorder_entry *p;

    begin(&f, UINT32_MAX, 0);
    p = insert(&f, 0, MRD_REORDER_FULL);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    mrd_flow_rx_skip(&f.rx, f.rx.msn_next + 1);
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p);

    /* However far, what was gone on the way is forgotten. */
    mrd_flow_rx_gone(&f.rx, f.rx.msn_next + 7, false, 0);
    mrd_flow_rx_skip(&f.rx, f.rx.msn_next + 5000);
    assert_int_equal(f.rx.msn_next, 5001);
    assert_int_equal(f.gone, 0);
}

/* In order, each once, and never past one that is not whole. */
TEST(mrd_flow_rx_deliver__in_order)
{
    struct flow_fixture f;
    struct mrd_reorder_entry *p[4];

    begin(&f, UINT32_MAX - 1, 0);
    p[1] = insert(&f, UINT32_MAX, MRD_REORDER_FULL);
    p[3] = insert(&f, 1, MRD_REORDER_FULL);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    p[0] = insert(&f, UINT32_MAX - 1, MRD_REORDER_FULL);
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p[0]);
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p[1]);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    p[2] = insert(&f, 0, MRD_REORDER_OPEN);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    p[2]->state = MRD_REORDER_FULL;
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p[2]);
    assert_ptr_equal(mrd_flow_rx_deliver(&f.rx), p[3]);
    assert_null(mrd_flow_rx_deliver(&f.rx));
    assert_int_equal(f.rx.msn_next, 2);
    assert_true(mrd_list_empty(&f.rx.pending));
}
