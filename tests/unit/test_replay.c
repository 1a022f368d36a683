/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/replay.h"
#include "core/rng.h"
#include "tests/kit/kit.h"

enum { RING = MRD_REPLAY_WORDS * 64, N = MRD_REPLAY_NUMBERS };

/* Its top: a number more than any that is allowed. */
#define LAST (UINT64_MAX - 1)

/* A model that forgets nothing: numbers near those of each test, from `base` on. */
enum { MODEL_NUMBERS = 1 << 20 };

FIXTURE(window)
{
    struct mrd_replay r;
    uint64_t base, top; /* above all that were added */
    bool seen[MODEL_NUMBERS];
};

static void begin(struct window *f, uint64_t base)
{
    memset(f, 0, sizeof(*f));
    f->base = base;
}

static void begin_at_0(struct window *f)
{
    begin(f, 0);
}

FIXTURE_FROM(window, begin_at_0, kit_nothing);

/*
 * What was seen is known. What is new and at most N below the top is not; what is older than
 * all of the ring is. In the one word between them both are right.
 */
static void check(const struct window *f, uint64_t number)
{
    bool knows = mrd_replay_knows(&f->r, number);

    assert_true(number >= f->base && number - f->base < MODEL_NUMBERS);
    if (f->seen[number - f->base])
        assert_true(knows);
    else if (number >= f->top || f->top - number <= N)
        assert_false(knows);
    else if (f->top - number > RING)
        assert_true(knows);
}

/* Adds the number if it is not known, as the receiver of a packet does. */
static void receive(struct window *f, uint64_t number)
{
    check(f, number);
    if (mrd_replay_knows(&f->r, number))
        return;
    mrd_replay_add(&f->r, number);
    f->seen[number - f->base] = true;
    if (number >= f->top)
        f->top = number + 1;
    assert_true(f->r.top == f->top);
    check(f, number);
}

/* Where numbers become too old. */
static void check_border(const struct window *f)
{
    uint64_t below = f->top - f->base;

    for (uint64_t back = N - 100; back < RING + 100 && back <= below; back++)
        check(f, f->top - back);
}

static void check_all(const struct window *f)
{
    uint64_t above = LAST - f->top < 200 ? LAST - f->top : 200;

    for (uint64_t number = f->base; number < f->top + above; number++)
        check(f, number);
}

TEST_F(window, mrd_replay_knows__none_when_zeroed)
{
    static const uint64_t numbers[] = {0, 1, 63, 64, N, RING, UINT32_MAX, LAST};

    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_false(mrd_replay_knows(&self->r, numbers[i]));
}

/* The first number may be any; the others of its ring are new, as far as they are not too old. */
TEST_F(window, mrd_replay_add__first)
{
    static const uint64_t first[] = {0,        1,           63,       64,   65,       N - 1,
                                     N,        N + 1,       RING - 1, RING, RING + 1, 2 * RING - 1,
                                     2 * RING, 3 * RING + 7};

    for (unsigned i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        begin(self, 0);
        receive(self, first[i]);
        assert_true(self->seen[first[i]]);
        check_all(self);
    }
}

/* In order each is new once, over several turns of the ring. */
TEST_F(window, mrd_replay_add__in_order)
{
    for (uint64_t number = 0; number < 3 * RING + 100; number++) {
        assert_false(mrd_replay_knows(&self->r, number));
        receive(self, number);
        assert_true(mrd_replay_knows(&self->r, number));
        assert_true(mrd_replay_knows(&self->r, number / 2));
    }
    check_all(self);
}

/* Each that was left out is taken as long as it is N below the top at most, and then only once. */
TEST_F(window, mrd_replay_knows__until_the_border)
{
    for (uint64_t offset = 0; offset < 130; offset++) {
        uint64_t late = 2 * RING + offset;

        begin(self, 0);
        receive(self, late - 1);
        receive(self, late + N - 1); /* the top is N above it */
        assert_false(mrd_replay_knows(&self->r, late));
        receive(self, late);
        assert_true(mrd_replay_knows(&self->r, late));
        assert_true(mrd_replay_knows(&self->r, late - 1));
        check_all(self);
    }
}

/* What is as old as the ring is long may be told from none: its bit is that of a newer one. */
TEST_F(window, mrd_replay_knows__too_old)
{
    for (uint64_t top = RING; top < RING + 200; top++) {
        begin(self, 0);
        receive(self, top);
        assert_true(mrd_replay_knows(&self->r, top - RING));
        for (uint64_t old = 0; old + RING <= top; old++)
            assert_true(mrd_replay_knows(&self->r, old));
        assert_false(mrd_replay_knows(&self->r, top + 1 - N));
    }
}

/* A jump of any size forgets what it leaves behind and nothing else, wherever in a word it begins. */
TEST_F(window, mrd_replay_add__jumps)
{
    static const uint64_t around[] = {
        0, 64, 128, N - 64, N, RING, RING + 64, 2 * RING - 128, 2 * RING - 64, 2 * RING, 5 * RING};
    static const uint64_t starts[] = {0, 1, 63, 64, RING - 1, RING, RING + 33};

    for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
            for (uint64_t jump = around[i] > 2 ? around[i] - 2 : 1; jump <= around[i] + 2; jump++) {
                begin(self, 0);
                for (uint64_t number = starts[s] > 300 ? starts[s] - 300 : 0; number <= starts[s];
                     number++)
                    receive(self, number);
                receive(self, starts[s] + jump);
                check_all(self);
            }
        }
    }
}

/* Any order: old ones, new ones, the same again, and jumps about as long as the window. */
static uint64_t pick(const struct window *f, struct mrd_rng *rng)
{
    static const uint32_t jumps[] = {1, 2, 63, 64, 65, 1000, N - 64, N, N + 64, RING, RING + 64};
    uint64_t back = 1 + mrd_rng_below(rng, mrd_rng_below(rng, 2) ? RING + 200 : 300);

    switch (mrd_rng_below(rng, 1000)) {
    case 0:
        return f->top + jumps[mrd_rng_below(rng, sizeof(jumps) / sizeof(jumps[0]))] +
               mrd_rng_below(rng, 3);
    case 1:
        return f->top + mrd_rng_below(rng, 2 * RING);
    default:
        if (mrd_rng_below(rng, 3) == 0)
            return f->top + mrd_rng_below(rng, 4);
        return f->top >= f->base + back ? f->top - back : f->base;
    }
}

static void receive_at_random(struct window *f, struct mrd_rng *rng, uint64_t end)
{
    uint64_t number = pick(f, rng);

    while (number - f->base < end - f->base) { /* it may wrap */
        bool jumps = number > f->top + 60;

        receive(f, number);
        if (jumps)
            check_border(f);
        number = pick(f, rng);
    }
}

TEST_F(window, mrd_replay_add__at_random)
{
    struct mrd_rng rng;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        begin(self, 0);
        mrd_rng_init(&rng, seed);
        receive_at_random(self, &rng, MODEL_NUMBERS / 4);
        assert_true(self->top > 3 * RING);
        check_all(self);
    }
}

/* Numbers do not begin at 0 where a peer is heard of late, and go up to the last that is allowed. */
TEST_F(window, mrd_replay_add__large_numbers)
{
    static const uint64_t ends[] = {UINT32_MAX + 100ull, 1ull << 62, LAST};
    struct mrd_rng rng;

    for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        begin(self, ends[i] - 6 * RING);
        mrd_rng_init(&rng, i);
        receive(self, self->base + RING);
        receive_at_random(self, &rng, ends[i]);
        check_all(self);
        receive(self, ends[i] - 1);
        receive(self, ends[i]);
        assert_true(mrd_replay_knows(&self->r, ends[i]));
        assert_true(mrd_replay_knows(&self->r, 0));
        assert_false(mrd_replay_knows(&self->r, ends[i] + 1));
        for (uint64_t number = self->base; number < ends[i]; number++)
            receive(self, number); /* what is left */
        for (uint64_t number = self->base; number <= ends[i]; number++)
            assert_true(mrd_replay_knows(&self->r, number));
    }
}

/* From nothing to the last number at once. */
TEST_F(window, mrd_replay_add__longest_jump)
{
    begin(self, LAST - 2 * RING);
    mrd_replay_add(&self->r, 0);
    receive(self, LAST);
    assert_true(mrd_replay_knows(&self->r, 0));
    assert_true(mrd_replay_knows(&self->r, LAST));
    assert_true(mrd_replay_knows(&self->r, LAST - RING));
    assert_false(mrd_replay_knows(&self->r, LAST - N + 1));
    check_all(self);
}
