/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/cq.h"

enum { CQE = 5, RING = 8 };

struct cq_fixture {
    struct mrd_cq_impl cq;
    struct mrd_wc ring[RING];
};

static void begin(struct cq_fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->cq.pub.cqe = CQE;
    f->cq.ring = f->ring;
    f->cq.mask = RING - 1;
}

static void push(struct cq_fixture *f, uint64_t wr_id)
{
    struct mrd_wc wc = {.wr_id = wr_id};

    mrd_cq_push(&f->cq, &wc);
}

/* The capacity is what was asked for, not the size of the ring behind it. */
static void mrd_cq_reserve__up_to_cqe(void **state)
{
    struct cq_fixture f;

    (void)state;
    begin(&f);
    for (int i = 0; i < CQE; i++)
        assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
    assert_int_equal(f.cq.reserved, CQE);
}

/*
 * A completion keeps its room until it is polled: work that is posted meanwhile cannot overflow
 * the queue.
 */
static void mrd_cq_reserve__counts_completions_not_polled(void **state)
{
    struct cq_fixture f;
    struct mrd_wc wc;

    (void)state;
    begin(&f);
    for (uint64_t i = 0; i < CQE; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, i);
    }
    assert_false(mrd_cq_reserve(&f.cq));
    assert_int_equal(mrd_cq_take(&f.cq, 1, &wc), 1);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
}

static void mrd_cq_unreserve__makes_room(void **state)
{
    struct cq_fixture f;

    (void)state;
    begin(&f);
    for (int i = 0; i < CQE; i++)
        assert_true(mrd_cq_reserve(&f.cq));
    mrd_cq_unreserve(&f.cq);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_false(mrd_cq_reserve(&f.cq));
}

static void mrd_cq_push__uses_up_its_reservation(void **state)
{
    struct cq_fixture f;

    (void)state;
    begin(&f);
    assert_true(mrd_cq_reserve(&f.cq));
    assert_true(mrd_cq_reserve(&f.cq));
    push(&f, 7);
    assert_int_equal(f.cq.reserved, 1);
}

static void mrd_cq_take__in_order_and_no_more_than_asked(void **state)
{
    struct cq_fixture f;
    struct mrd_wc wc[CQE];

    (void)state;
    begin(&f);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, 100 + i);
    }
    assert_int_equal(mrd_cq_take(&f.cq, 0, wc), 0);
    assert_int_equal(mrd_cq_take(&f.cq, 2, wc), 2);
    assert_int_equal(wc[0].wr_id, 100);
    assert_int_equal(wc[1].wr_id, 101);
    assert_int_equal(mrd_cq_take(&f.cq, CQE, wc), 1);
    assert_int_equal(wc[0].wr_id, 102);
    assert_int_equal(mrd_cq_take(&f.cq, CQE, wc), 0);
}

/* Indices run freely: nothing changes where 32 bits wrap. */
static void mrd_cq_take__across_the_wrap_of_indices(void **state)
{
    struct cq_fixture f;
    struct mrd_wc wc;

    (void)state;
    begin(&f);
    f.cq.head = f.cq.tail = UINT32_MAX - 2 * CQE;
    for (uint64_t i = 0; i < 6 * CQE; i++) {
        assert_true(mrd_cq_reserve(&f.cq));
        push(&f, i);
        if (i < CQE - 1)
            continue;
        assert_false(mrd_cq_reserve(&f.cq));
        assert_int_equal(mrd_cq_take(&f.cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i - (CQE - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_cq_reserve__up_to_cqe),
        cmocka_unit_test(mrd_cq_reserve__counts_completions_not_polled),
        cmocka_unit_test(mrd_cq_unreserve__makes_room),
        cmocka_unit_test(mrd_cq_push__uses_up_its_reservation),
        cmocka_unit_test(mrd_cq_take__in_order_and_no_more_than_asked),
        cmocka_unit_test(mrd_cq_take__across_the_wrap_of_indices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
