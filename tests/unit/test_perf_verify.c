/* SPDX-License-Identifier: BSD-2-Clause */
/* The verifier of mrd_perf: it must notice whatever could go wrong with messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/perf/verify.h"

enum { SEED = 42, SIZE = 5000, WINDOW = 8 };

FIXTURE(verifier)
{
    struct perf_verifier v;
    uint8_t message[SIZE];
};

FIXTURE_SETUP(verifier)
{
    assert_int_equal(perf_verifier_init(&self->v, SEED, SIZE, WINDOW, 0), 0);
}

FIXTURE_TEARDOWN(verifier)
{
    perf_verifier_fini(&self->v);
}

static void deliver(struct verifier *f, uint64_t n)
{
    perf_verify_fill(SEED, n, f->message, SIZE);
    perf_verifier_check(&f->v, n, 0, f->message, SIZE);
}

/* Any other seed, number or place gives other bytes. */
TEST(perf_verify_fill__depends_on_all)
{
    uint8_t a[64], b[64];

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
TEST(perf_verify_fill__odd_lengths)
{
    uint8_t whole[64], part[64];

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

TEST(perf_verify_diff__finds_each_byte)
{
    static uint8_t buf[9000];

    perf_verify_fill(3, 4, buf, sizeof(buf));
    for (size_t i = 0; i < sizeof(buf); i += 97) {
        buf[i] ^= 0x10;
        assert_int_equal(perf_verify_diff(3, 4, buf, sizeof(buf)), i);
        buf[i] ^= 0x10;
    }
}

TEST_F(verifier, perf_verifier_check__all_in_order)
{
    for (uint64_t n = 0; n < 3 * WINDOW; n++) {
        deliver(self, n);
        assert_int_equal(self->v.credit, n + 1);
    }
    assert_true(perf_verifier_ok(&self->v, 3 * WINDOW));
}

/* A credit names a prefix: the missing one holds it back. */
TEST_F(verifier, perf_verifier_check__any_order)
{
    deliver(self, 2);
    deliver(self, 1);
    assert_int_equal(self->v.credit, 0);
    deliver(self, 0);
    assert_int_equal(self->v.credit, 3);
    assert_true(perf_verifier_ok(&self->v, 3));
}

/* Whichever byte is flipped, the message is wrong, and the place is told. */
TEST(perf_verifier_check__flipped_byte)
{
    static const size_t places[] = {0, 1, 63, 64, 4095, 4096, SIZE - 1};

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
TEST_F(verifier, perf_verifier_check__stale_slot)
{
    deliver(self, 0);
    perf_verifier_check(&self->v, 1, 0, self->message, SIZE);
    assert_false(perf_verifier_ok(&self->v, 2));
}

TEST_F(verifier, perf_verifier_check__wrong_length)
{
    perf_verify_fill(SEED, 0, self->message, SIZE);
    perf_verifier_check(&self->v, 0, 0, self->message, SIZE - 1);
    assert_false(perf_verifier_ok(&self->v, 1));
    assert_string_equal(self->v.error, "message 0 has 4999 bytes instead of 5000");
}

/* Twice within the window, and twice after the credit went on. */
TEST_F(verifier, perf_verifier_check__duplicates)
{
    deliver(self, 1);
    deliver(self, 1);
    assert_string_equal(self->v.error, "message 1 arrived twice");
    self->v.error[0] = '\0';
    deliver(self, 0);
    deliver(self, 0);
    assert_string_equal(self->v.error, "message 0 arrived twice");
    assert_false(perf_verifier_ok(&self->v, 2));
}

TEST_F(verifier, perf_verifier_check__beyond_credit)
{
    deliver(self, WINDOW);
    assert_string_equal(self->v.error, "message 8 was never allowed by a credit");
    assert_false(perf_verifier_ok(&self->v, 1));
}

TEST_F(verifier, perf_verifier_ok__one_missing)
{
    deliver(self, 0);
    deliver(self, 2);
    assert_false(perf_verifier_ok(&self->v, 3));
    assert_string_equal(self->v.error, "3 messages were sent, 2 arrived and 2 were right");
}

TEST_F(verifier, perf_verifier_ok__none_sent)
{
    assert_true(perf_verifier_ok(&self->v, 0));
}

/* 32 bits travel: numbers go on beyond them, and those behind the credit stay distinct. */
TEST_F(verifier, perf_verifier_number__wraps)
{
    self->v.credit = 0xfffffffeull;
    assert_int_equal(perf_verifier_number(&self->v, 0xfffffffe), 0xfffffffeull);
    assert_int_equal(perf_verifier_number(&self->v, 1), 0x100000001ull);
    assert_int_equal(perf_verifier_number(&self->v, 0xfffffffd), 0xfffffffdull);
    self->v.credit = 0x100000002ull;
    assert_int_equal(perf_verifier_number(&self->v, 0xffffffff), 0xffffffffull);
}

/* Ordered: each QP's messages rise; across QPs there is no order. */
TEST(perf_verifier_check__order)
{
    struct perf_verifier v;
    uint8_t byte[2];

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
