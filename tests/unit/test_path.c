/* SPDX-License-Identifier: BSD-2-Clause */
/* A path: its numbers, its states but for losses, and how it is replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/path_fixture.h"

static void mrd_paths_init__numbers_paths(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    for (uint32_t i = 0; i < PATHS; i++) {
        assert_int_equal(f->path[i].ev, i);
        assert_int_equal(f->path[i].id, i);
        assert_true(mrd_path_usable(&f->path[i], 0));
    }
    assert_int_equal(f->paths.num_out, 0);
}

static void mrd_path_sent__counts_pseq_per_path(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    assert_int_equal(mrd_path_sent(&f->paths, 3), 1);
    assert_int_equal(mrd_path_sent(&f->paths, 3), 2);
    assert_int_equal(mrd_path_sent(&f->paths, 4), 1);
    assert_int_equal(f->load[3].out_packets, 2);
    assert_int_equal(f->path[3].packets, 2);
}

static void mrd_path_acked__ends_suspension(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    mrd_path_sent(&f->paths, 2);
    lose_at(f, 2, SEC_NS);
    assert_int_equal(f->path[2].state, MRD_PATH_SUSPENDED);
    mrd_path_acked(&f->paths, 2);
    assert_int_equal(f->path[2].state, MRD_PATH_GOOD);
}

/* A DEAD path is probed each second; an old packet's ack does not revive it, the probe's does. */
static void mrd_path_acked__dead_path_revived_by_probe_only(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    mrd_path_sent(&f->paths, 9);
    fail_until_dead(f, 9, &now_ns);
    mrd_path_acked(&f->paths, 9);
    assert_int_equal(f->path[9].state, MRD_PATH_DEAD);

    mrd_path_keep(&f->paths, 9, now_ns);
    assert_int_equal(f->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    assert_false(mrd_path_usable(&f->path[9], now_ns - 1));
    assert_true(mrd_path_usable(&f->path[9], now_ns));
    lose_at(f, 9, now_ns);
    assert_int_equal(f->path[9].until_ns, now_ns + SEC_NS);
    assert_int_equal(f->path[9].wants_ev, 0);
    now_ns += SEC_NS;
    ack(f, 9);
    assert_int_equal(f->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(f->path[9].loss_ewma < 0.05f);
}

static void mrd_path_pseq_acked__keeps_two_highest(void **state)
{
    static const struct {
        uint32_t ack[4];
        uint32_t highest, second;
    } table[] = {
        {{1, 2, 3, 4}, 4, 3},
        {{4, 3, 2, 1}, 4, 3},
        {{2, 2, 2, 1}, 2, 1},
        {{5, 1, 7, 6}, 7, 6},
    };
    struct path_fixture *f = *state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        begin(f, 1);
        for (int k = 0; k < 4; k++)
            mrd_path_pseq_acked(&f->path[0], table[i].ack[k]);
        assert_int_equal(f->path[0].pseq_acked[0], table[i].highest);
        assert_int_equal(f->path[0].pseq_acked[1], table[i].second);
    }
}

/* 32 bits of PSEQ wrap. */
static void mrd_path_pseq_acked__wraps(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    f->path[0].pseq_acked[0] = UINT32_MAX - 1;
    f->path[0].pseq_acked[1] = UINT32_MAX - 2;
    mrd_path_pseq_acked(&f->path[0], 1);
    mrd_path_pseq_acked(&f->path[0], UINT32_MAX);
    assert_int_equal(f->path[0].pseq_acked[0], 1);
    assert_int_equal(f->path[0].pseq_acked[1], UINT32_MAX);
}

/* A forgotten probe (its packet was cancelled) must not keep the path out for ever. */
static void mrd_path_forgot__probe_may_be_sent_again(void **state)
{
    struct path_fixture *f = *state;

    begin(f, PATHS);
    lose_at(f, 0, SEC_NS);
    mrd_path_sent(&f->paths, 0);
    assert_false(mrd_path_usable(&f->path[0], UINT64_MAX - 1));
    mrd_path_forgot(&f->paths, 0);
    assert_true(mrd_path_usable(&f->path[0], SEC_NS));
    assert_int_equal(f->load[0].out_packets, 0);
    assert_int_equal(f->path[0].state, MRD_PATH_SUSPENDED);
}

static void mrd_path_order_spurious__third_switches_off(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    mrd_path_order_spurious(&f->paths, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_int_equal(f->path[0].order_off, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_int_equal(f->path[0].order_off, 1);
}

/* Where two paths do not keep order, none does. */
static void mrd_path_order_spurious__on_two_paths_for_all(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 4);
    mrd_path_order_spurious(&f->paths, 0);
    mrd_path_order_spurious(&f->paths, 0);
    assert_false(f->path[0].order_off || f->path[3].order_off);
    mrd_path_order_spurious(&f->paths, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(f->path[i].order_off);
}

static void mrd_path_age__falls_slowly(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 1);
    mrd_path_age(&f->path[0], 8000);
    mrd_path_age(&f->path[0], 16000);
    assert_int_equal(f->path[0].age_ns, 16000);
    mrd_path_age(&f->path[0], 8000);
    assert_int_equal(f->path[0].age_ns, 15000);
}

/* A loss that was none leaves nothing behind. */
static void mrd_path_found__takes_the_loss_back(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 4);
    ack(f, 0);
    lose_at(f, 0, 20);
    assert_int_equal(f->path[0].state, MRD_PATH_SUSPENDED);
    mrd_path_found(&f->paths, 0);
    assert_int_equal(f->path[0].state, MRD_PATH_GOOD);
    assert_int_equal(f->path[0].losses_row, 0);
    assert_int_equal(f->path[0].lost, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(f->path[0].loss_ewma < 1e-6f && f->paths.loss_avg < 1e-6f);
}

/* One packet is let through after a suspension; the path is back with its ack. */
static void mrd_path_usable__first_packet_after_expiry_is_probe(void **state)
{
    struct path_fixture *f = *state;
    uint64_t end_ns;

    begin(f, PATHS);
    lose_at(f, 5, SEC_NS);
    end_ns = f->path[5].until_ns;
    assert_true(mrd_path_usable(&f->path[5], end_ns));
    assert_false(mrd_path_is_good(&f->path[5])); /* not for data */
    mrd_path_sent(&f->paths, 5);
    assert_false(mrd_path_usable(&f->path[5], end_ns + SEC_NS));
    mrd_path_acked(&f->paths, 5);
    assert_true(mrd_path_is_good(&f->path[5]));
    assert_int_equal(f->path[5].losses_row, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_true(mrd_path_usable(&f->path[5], 0));
}

/* A new id whose remainder is the index, nothing measured, and PSEQs that do not start again. */
static void mrd_path_replace__fresh_path_under_new_id(void **state)
{
    struct path_fixture *f = *state;
    uint64_t now_ns = SEC_NS;

    begin(f, PATHS);
    mrd_path_sample(&f->paths, 9, 100, 1000, 1000, 1);
    fail_until_dead(f, 9, &now_ns);
    f->path[9].rx_count = 7;
    uint32_t pseq = f->path[9].pseq_next;

    mrd_path_replace(&f->paths, 9, 77);
    assert_int_equal(f->path[9].state, MRD_PATH_GOOD);
    assert_int_equal(f->path[9].ev, 77);
    assert_int_equal(f->path[9].id, 9 + PATHS);
    assert_int_equal(f->path[9].rx_count, 0);
    assert_int_equal(f->path[9].packets, 0);
    assert_true(f->load[9].q_ns == MRD_PATH_NO_DELAY);
    assert_int_equal(f->path[9].wants_ev, 0);
    assert_int_equal(f->paths.num_out, 0);
    assert_int_equal(mrd_path_sent(&f->paths, 9), pseq);
}

/* 16 bits of id run out: it starts again at the index, also where num does not divide 65536. */
static void mrd_path_replace__id_wraps_to_index(void **state)
{
    struct path_fixture *f = *state;

    begin(f, 24);
    for (int i = 0; i < 3000; i++) {
        mrd_path_replace(&f->paths, 5, 5);
        assert_int_equal(f->path[5].id % 24, 5);
    }
}

/* ------------------------------------------------------------------------------------ more paths */

/* Eight of sixty-four, as a send half begins. */
static void begin_few(struct path_fixture *f)
{
    begin(f, PATHS);
    mrd_paths_init(&f->paths, f->path, f->load, 8, PATHS, NULL, 1);
}

/* They double up to the most; what is known of the first ones stays. */
static void mrd_paths_add__doubles(void **state)
{
    struct path_fixture *f = *state;
    uint32_t num;

    begin_few(f);
    lose_at(f, 5, SEC_NS);
    mrd_path_sent(&f->paths, 3);
    mrd_path_watch(&f->paths, &f->alloc.ops);
    for (num = 8; mrd_paths_add(&f->paths, &f->alloc.ops); num *= 2)
        assert_int_equal(f->paths.num, 2 * num);
    assert_int_equal(f->paths.num, PATHS);
    assert_int_equal(f->paths.path[3].packets, 1);
    assert_int_equal(f->paths.load[3].out_packets, 1);
    assert_int_equal(f->paths.path[5].state, MRD_PATH_SUSPENDED);
    assert_int_equal(f->paths.num_out, 1);
    for (uint32_t i = 8; i < PATHS; i++) {
        assert_int_equal(f->paths.path[i].ev, i);
        assert_true(mrd_path_of_id(&f->paths, i) == &f->paths.path[i]);
        assert_true(mrd_path_is_good(&f->paths.path[i]));
        assert_true(f->paths.load[i].q_ns == MRD_PATH_NO_DELAY);
        assert_true(f->paths.path[i].watch != f->paths.watch); /* it was not watched */
    }
    mrd_path_watch(&f->paths, &f->alloc.ops); /* there is a note for each of them */
}

/* Ids of paths to come, and of those that were replaced, are nobody's. */
static void mrd_path_of_id__whose_it_is(void **state)
{
    struct path_fixture *f = *state;

    begin_few(f);
    assert_null(mrd_path_of_id(&f->paths, 8));
    assert_null(mrd_path_of_id(&f->paths, PATHS + 2));
    mrd_path_replace(&f->paths, 2, 1000);
    assert_null(mrd_path_of_id(&f->paths, 2));
    assert_true(mrd_path_of_id(&f->paths, PATHS + 2) == &f->path[2]);
    assert_true(mrd_paths_add(&f->paths, &f->alloc.ops));
    assert_true(mrd_path_of_id(&f->paths, PATHS + 2) == &f->paths.path[2]);
}

/* Without memory those that are there go on, whichever of the blocks is wanting. */
static void mrd_paths_add__no_memory(void **state)
{
    struct path_fixture *f = *state;

    for (uint32_t nth = 1; nth <= 2; nth++) {
        begin_few(f);
        mrd_path_watch(&f->paths, &f->alloc.ops);
        f->alloc.fail_at = f->alloc.requests + nth;
        assert_false(mrd_paths_add(&f->paths, &f->alloc.ops));
        assert_int_equal(f->paths.num, 8);
        assert_int_equal(mrd_path_sent(&f->paths, 7), 1);
        assert_true(mrd_paths_add(&f->paths, &f->alloc.ops));
        assert_int_equal(mrd_path_sent(&f->paths, 7), 2);
    }
}

/* Where no path may be relied on for its order, no new one is; a new one is as long as the rest. */
static void mrd_paths_add__as_the_others(void **state)
{
    struct path_fixture *f = *state;

    begin_few(f);
    mrd_path_order_spurious(&f->paths, 0);
    mrd_path_order_spurious(&f->paths, 1);
    for (uint32_t i = 0; i < 8; i++) {
        f->path[i].far_ns = i == 4 ? 20000 : 30000;
        f->load[i].weight = i == 4 ? 3 : 2;
    }
    assert_true(mrd_paths_add(&f->paths, &f->alloc.ops));
    assert_true(f->paths.path[9].order_off);
    assert_float_equal(f->paths.path[9].far_ns, 20000, 0.1);
    assert_float_equal(f->paths.load[9].weight, 3, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mrd_paths_init__numbers_paths),
        cmocka_unit_test(mrd_path_sent__counts_pseq_per_path),
        cmocka_unit_test(mrd_path_acked__ends_suspension),
        cmocka_unit_test(mrd_path_acked__dead_path_revived_by_probe_only),
        cmocka_unit_test(mrd_path_pseq_acked__keeps_two_highest),
        cmocka_unit_test(mrd_path_pseq_acked__wraps),
        cmocka_unit_test(mrd_path_forgot__probe_may_be_sent_again),
        cmocka_unit_test(mrd_path_order_spurious__third_switches_off),
        cmocka_unit_test(mrd_path_order_spurious__on_two_paths_for_all),
        cmocka_unit_test(mrd_path_age__falls_slowly),
        cmocka_unit_test(mrd_path_found__takes_the_loss_back),
        cmocka_unit_test(mrd_path_usable__first_packet_after_expiry_is_probe),
        cmocka_unit_test(mrd_path_replace__fresh_path_under_new_id),
        cmocka_unit_test(mrd_path_replace__id_wraps_to_index),
        cmocka_unit_test(mrd_paths_add__doubles),
        cmocka_unit_test(mrd_path_of_id__whose_it_is),
        cmocka_unit_test(mrd_paths_add__no_memory),
        cmocka_unit_test(mrd_paths_add__as_the_others),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
