/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/flow.h"
#include "core/limits.h"
#include "tests/kit/kit.h"

enum { ENTRIES = 16 };

FIXTURE(flow_fixture)
{
    uint32_t msn, rsn; /* the first ones */
    struct mrd_flow_rx rx;
    struct mrd_reorder_entry entry[ENTRIES];
    struct mrd_recv *recv[ENTRIES]; /* only told apart, never looked into */
    char recv_memory[ENTRIES];
    unsigned used;
    uint32_t gone; /* of the peer */
};

static void begin(struct flow_fixture *f)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        f->recv[i] = (struct mrd_recv *)(void *)&f->recv_memory[i];
    mrd_flow_rx_init(&f->rx, NULL, NULL, 17, f->msn, f->rsn, &f->gone);
}

FIXTURE_FROM(flow_fixture, begin, kit_nothing);

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
        struct flow_fixture f = {.msn = first[k], .rsn = first[k] / 2};

        begin(&f);
        insert(&f, first[k] + 2, MRD_REORDER_OPEN);
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
            assert_int_equal(mrd_flow_rx_judge(&f.rx, first[k] + (uint32_t)table[i].msn,
                                               table[i].has_rsn,
                                               first[k] / 2 + (uint32_t)table[i].rsn),
                             table[i].verdict);
    }
}

/* Through RSN r: r itself and all lower ones that have none and will be used. */
TEST_F_WITH(flow_fixture, mrd_flow_rx_needs__counts_unbound_and_wanted, self->rsn = UINT32_MAX - 1)
{
    const uint32_t rsn = UINT32_MAX - 1;

    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn - 1), 0);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn), 1);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn + 4), 5);
    reserve(self, 0);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn), 0);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn + 4), 4);
    gone_rsn(self, rsn + 2);
    gone_rsn(self, rsn + 6);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn + 4), 3);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn + 1), 1);
    assert_int_equal(mrd_flow_rx_needs(&self->rx, rsn + 7), 5);
}

/* The next RSN is one that may come: gone ones are stepped over in turn; what is reserved stays. */
TEST_F_WITH(flow_fixture, mrd_flow_rx_gone__rsn_stops_at_one_that_may_come, self->rsn = UINT32_MAX)
{
    gone_rsn(self, 1);
    reserve(self, 0);
    assert_int_equal(self->rx.rsn_next, 0);
    gone_rsn(self, 0);
    assert_int_equal(self->rx.rsn_next, 2);
    gone_rsn(self, 3);
    assert_int_equal(self->rx.rsn_next, 2);
    reserve(self, 1);
    assert_int_equal(self->rx.rsn_next, 4);
    expect_reserved(self, 2, (uint32_t[]){UINT32_MAX, 2});
}

/* The same of MSNs, where what is pending is not gone. What is gone counts until stepped over. */
TEST_F_WITH(flow_fixture, mrd_flow_rx_gone__msn_stops_at_one_that_may_come, self->msn = UINT32_MAX)
{
    mrd_flow_rx_gone(&self->rx, 0, false, 0);
    mrd_flow_rx_gone(&self->rx, 1, false, 0);
    mrd_flow_rx_gone(&self->rx, 3, false, 0);
    assert_int_equal(self->rx.num_gone, 3);
    assert_false(mrd_flow_rx_idle(&self->rx));
    assert_int_equal(mrd_flow_rx_judge(&self->rx, 1, false, 0), MRD_MSN_OLD);
    struct mrd_reorder_entry *p = insert(self, 2, MRD_REORDER_FULL);
    assert_null(mrd_flow_rx_deliver(&self->rx));
    mrd_flow_rx_gone(&self->rx, UINT32_MAX, false, 0);
    assert_int_equal(self->rx.msn_next, 2);
    assert_ptr_equal(mrd_flow_rx_deliver(&self->rx), p);
    assert_int_equal(self->rx.msn_next, 4);
    assert_int_equal(self->gone, 0);
    assert_true(mrd_flow_rx_idle(&self->rx));
}

/* As many as the window holds: each is one bit, which is free for the number a window later. */
TEST_F(flow_fixture, mrd_flow_rx_gone__whole_window)
{
    for (uint32_t i = 1; i < MRD_MSN_WINDOW; i++)
        mrd_flow_rx_gone(&self->rx, i, true, i);
    assert_int_equal(self->gone, 2 * (MRD_MSN_WINDOW - 1));
    mrd_flow_rx_gone(&self->rx, 0, true, 0);
    assert_int_equal(self->rx.msn_next, MRD_MSN_WINDOW);
    assert_int_equal(self->rx.rsn_next, MRD_MSN_WINDOW);
    assert_int_equal(self->gone, 0);
    assert_int_equal(mrd_flow_rx_judge(&self->rx, MRD_MSN_WINDOW + 1, false, 0), MRD_MSN_NEW);
}

TEST_F_WITH(flow_fixture, mrd_flow_rx_insert__keeps_the_order_of_msn, self->msn = UINT32_MAX - 2)
{
    static const uint32_t msn[] = {UINT32_MAX, 2, 0, UINT32_MAX - 1, 1};

    for (size_t i = 0; i < 5; i++)
        insert(self, msn[i], MRD_REORDER_FULL);
    struct mrd_node *at = self->rx.pending.next;
    for (uint32_t i = 0; i < 5; i++, at = at->next)
        assert_int_equal(mrd_container_of(at, struct mrd_reorder_entry, node)->msn,
                         UINT32_MAX - 1 + i);
    assert_ptr_equal(at, &self->rx.pending);
}

TEST_F_WITH(flow_fixture, mrd_flow_rx_find__by_msn, self->msn = 5)
{
    insert(self, 6, MRD_REORDER_OPEN);
    struct mrd_reorder_entry *p = insert(self, 8, MRD_REORDER_OPEN);
    insert(self, 9, MRD_REORDER_OPEN);
    assert_ptr_equal(mrd_flow_rx_find(&self->rx, 8), p);
    assert_null(mrd_flow_rx_find(&self->rx, 7));
    assert_null(mrd_flow_rx_find(&self->rx, 5));
}

/* The sender owes nothing below: lower RSNs' records come back, newest first, for their order. */
TEST_F_WITH(flow_fixture, mrd_flow_rx_pass_rsn__gives_records_back, self->rsn = 10)
{
    struct mrd_node done;

    for (unsigned i = 0; i < 3; i++)
        reserve(self, i);
    gone_rsn(self, 14);
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(&self->rx, 12, &done);
    assert_int_equal(length(&done), 2);
    assert_int_equal(mrd_container_of(done.next, struct mrd_reorder_entry, node)->rsn, 11);
    assert_int_equal(mrd_container_of(done.prev, struct mrd_reorder_entry, node)->rsn, 10);
    assert_int_equal(self->rx.rsn_next, 13); /* 12 is bound */
    expect_reserved(self, 1, (uint32_t[]){12});

    gone_rsn(self, 20);
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(&self->rx, 20, &done);
    assert_int_equal(length(&done), 1);
    assert_int_equal(self->rx.rsn_next, 21); /* 20 is gone */
    self->rx.rsn_next = 20;
    assert_int_equal(self->rx.rsn_next, 20);
    mrd_flow_rx_pass_rsn(&self->rx, 15, &done); /* never back */
    assert_int_equal(self->rx.rsn_next, 20);
}

TEST_F_WITH(flow_fixture, mrd_flow_rx_skip__steps_over_a_message, self->msn = UINT32_MAX)
{
    struct mrd_reorder_entry *p = insert(self, 0, MRD_REORDER_FULL);

    assert_null(mrd_flow_rx_deliver(&self->rx));
    mrd_flow_rx_skip(&self->rx, self->rx.msn_next + 1);
    assert_ptr_equal(mrd_flow_rx_deliver(&self->rx), p);

    /* However far, what was gone on the way is forgotten. */
    mrd_flow_rx_gone(&self->rx, self->rx.msn_next + 7, false, 0);
    mrd_flow_rx_skip(&self->rx, self->rx.msn_next + 5000);
    assert_int_equal(self->rx.msn_next, 5001);
    assert_int_equal(self->gone, 0);
}
