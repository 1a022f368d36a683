/* SPDX-License-Identifier: BSD-2-Clause */
/* The verifier of mrd_perf: it must notice whatever could go wrong with messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/perf/verify.h"

enum { SEED = 42, SIZE = 5000, WINDOW = 8 };

struct fixture {
    struct perf_verifier v;
    uint8_t message[SIZE];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(perf_verifier_init(&f->v, SEED, SIZE, WINDOW, 0), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    perf_verifier_fini(&f->v);
    free(f);
    return 0;
}

static void deliver(struct fixture *f, uint64_t n)
{
    perf_verify_fill(SEED, n, f->message, SIZE);
    perf_verifier_check(&f->v, n, 0, f->message, SIZE);
}

/* Any other seed, number or place gives other bytes. */
static void perf_verify_fill__depends_on_all(void **state)
{
    uint8_t a[64], b[64];

    (void)state;
    perf_verify_fill(1, 1, a, sizeof(a));
    perf_verify_fill(1, 2, b, sizeof(b));
    assert_memory_not_equal(a, b, 8);
    perf_verify_fill(2, 1, b, sizeof(b));
    assert_memory_not_equal(a, b, 8);
    assert_memory_not_equal(a, a + 8, 8);
    perf_verify_fill(1, 1, b, sizeof(b));
    assert_memory_equal(a, b, sizeof(a));
}

/* A message is a prefix of the longer one: odd lengths are filled to their last byte. */
static void perf_verify_fill__odd_lengths(void **state)
{
    uint8_t whole[64], part[64];

    (void)state;
    perf_verify_fill(7, 9, whole, sizeof(whole));
    for (size_t len = 0; len <= sizeof(part); len++) {
        memset(part, 0, sizeof(part));
        perf_verify_fill(7, 9, part, len);
        assert_memory_equal(part, whole, len);
        assert_int_equal(perf_verify_diff(7, 9, part, len), len);
        for (size_t i = len; i < sizeof(part); i++)
            assert_int_equal(part[i], 0);
    }
}

static void perf_verify_diff__finds_each_byte(void **state)
{
    static uint8_t buf[9000];

    (void)state;
    perf_verify_fill(3, 4, buf, sizeof(buf));
    for (size_t i = 0; i < sizeof(buf); i += 97) {
        buf[i] ^= 0x10;
        assert_int_equal(perf_verify_diff(3, 4, buf, sizeof(buf)), i);
        buf[i] ^= 0x10;
    }
}

static void perf_verifier_check__all_in_order(void **state)
{
    struct fixture *f = *state;

    for (uint64_t n = 0; n < 3 * WINDOW; n++) {
        deliver(f, n);
        assert_int_equal(f->v.credit, n + 1);
    }
    assert_true(perf_verifier_ok(&f->v, 3 * WINDOW));
}

/* A credit names a prefix: the missing one holds it back. */
static void perf_verifier_check__any_order(void **state)
{
    struct fixture *f = *state;

    deliver(f, 2);
    deliver(f, 1);
    assert_int_equal(f->v.credit, 0);
    deliver(f, 0);
    assert_int_equal(f->v.credit, 3);
    assert_true(perf_verifier_ok(&f->v, 3));
}

/* Whichever byte is flipped, the message is wrong, and the place is told. */
static void perf_verifier_check__flipped_byte(void **state)
{
    static const size_t places[] = {0, 1, 63, 64, 4095, 4096, SIZE - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct perf_verifier v;
        uint8_t message[SIZE];
        char expected[64];
        assert_int_equal(perf_verifier_init(&v, SEED, SIZE, WINDOW, 0), 0);
        perf_verify_fill(SEED, 0, message, SIZE);
        message[places[i]] ^= 1;
        perf_verifier_check(&v, 0, 0, message, SIZE);
        assert_false(perf_verifier_ok(&v, 1));
        snprintf(expected, sizeof(expected), "message 0 differs from byte %zu on", places[i]);
        assert_string_equal(v.error, expected);
        perf_verifier_fini(&v);
    }
}

/* What an earlier message left in the slot is not this one. */
static void perf_verifier_check__stale_slot(void **state)
{
    struct fixture *f = *state;

    deliver(f, 0);
    perf_verifier_check(&f->v, 1, 0, f->message, SIZE);
    assert_false(perf_verifier_ok(&f->v, 2));
}

static void perf_verifier_check__wrong_length(void **state)
{
    struct fixture *f = *state;

    perf_verify_fill(SEED, 0, f->message, SIZE);
    perf_verifier_check(&f->v, 0, 0, f->message, SIZE - 1);
    assert_false(perf_verifier_ok(&f->v, 1));
    assert_string_equal(f->v.error, "message 0 has 4999 bytes instead of 5000");
}

/* Twice within the window, and twice after the credit went on. */
static void perf_verifier_check__duplicates(void **state)
{
    struct fixture *f = *state;

    deliver(f, 1);
    deliver(f, 1);
    assert_string_equal(f->v.error, "message 1 arrived twice");
    f->v.error[0] = '\0';
    deliver(f, 0);
    deliver(f, 0);
    assert_string_equal(f->v.error, "message 0 arrived twice");
    assert_false(perf_verifier_ok(&f->v, 2));
}

static void perf_verifier_check__beyond_credit(void **state)
{
    struct fixture *f = *state;

    deliver(f, WINDOW);
    assert_string_equal(f->v.error, "message 8 was never allowed by a credit");
    assert_false(perf_verifier_ok(&f->v, 1));
}

static void perf_verifier_ok__one_missing(void **state)
{
    struct fixture *f = *state;

    deliver(f, 0);
    deliver(f, 2);
    assert_false(perf_verifier_ok(&f->v, 3));
    assert_string_equal(f->v.error, "3 messages were sent, 2 arrived and 2 were right");
}

static void perf_verifier_ok__none_sent(void **state)
{
    struct fixture *f = *state;

    assert_true(perf_verifier_ok(&f->v, 0));
}

/* 32 bits travel: numbers go on beyond them, and those behind the credit stay distinct. */
static void perf_verifier_number__wraps(void **state)
{
    struct fixture *f = *state;

    f->v.credit = 0xfffffffeull;
    assert_int_equal(perf_verifier_number(&f->v, 0xfffffffe), 0xfffffffeull);
    assert_int_equal(perf_verifier_number(&f->v, 1), 0x100000001ull);
    assert_int_equal(perf_verifier_number(&f->v, 0xfffffffd), 0xfffffffdull);
    f->v.credit = 0x100000002ull;
    assert_int_equal(perf_verifier_number(&f->v, 0xffffffff), 0xffffffffull);
}

/* Ordered: each QP's messages rise; across QPs there is no order. */
static void perf_verifier_check__order(void **state)
{
    struct perf_verifier v;
    uint8_t byte[2];

    (void)state;
    assert_int_equal(perf_verifier_init(&v, SEED, 1, WINDOW, 2), 0);
    for (uint64_t n = 1; n < 4; n += 2) {
        perf_verify_fill(SEED, n, byte, 1);
        perf_verifier_check(&v, n, 1, byte, 1);
    }
    perf_verify_fill(SEED, 0, byte, 1);
    perf_verifier_check(&v, 0, 0, byte, 1);
    assert_string_equal(v.error, "");
    perf_verify_fill(SEED, 5, byte, 1);
    perf_verifier_check(&v, 5, 0, byte, 1);
    perf_verify_fill(SEED, 2, byte, 1);
    perf_verifier_check(&v, 2, 0, byte, 1);
    assert_string_equal(v.error, "message 2 arrived after a later one of its ordered QP");
    perf_verifier_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perf_verify_fill__depends_on_all),
        cmocka_unit_test(perf_verify_fill__odd_lengths),
        cmocka_unit_test(perf_verify_diff__finds_each_byte),
        cmocka_unit_test_setup_teardown(perf_verifier_check__all_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_check__any_order, setup, teardown),
        cmocka_unit_test(perf_verifier_check__flipped_byte),
        cmocka_unit_test_setup_teardown(perf_verifier_check__stale_slot, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_check__wrong_length, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_check__duplicates, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_check__beyond_credit, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_ok__one_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_ok__none_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_verifier_number__wraps, setup, teardown),
        cmocka_unit_test(perf_verifier_check__order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
