/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that pass, fail and skip on purpose: kit.sh runs them and reads what they print. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/kit/kit.h"

FIXTURE(box)
{
    unsigned number, untouched;
    char large[64 << 20]; /* more than a stack has */
};

FIXTURE_SETUP(box)
{
    printf("setup %u\n", self->number);
    assert_true(self->number < 100);
    self->number++;
}

FIXTURE_TEARDOWN(box)
{
    printf("teardown %u\n", self->number);
    assert_true(self->number != 50);
}

static void after(void)
{
    puts("after");
}

TEST(plain__passes)
{
    kit_after_test(after);
    kit_after_test(after);
}

TEST(plain__fails)
{
    kit_after_test(after);
    assert_true(false);
}

static void destroy(void *object)
{
    printf("destroy %s\n", (char *)object);
}

TEST(owner__passes)
{
    static char first[] = "first", second[] = "second", third[] = "third";

    kit_own(first, destroy);
    kit_own(second, destroy);
    kit_own(third, destroy);
    kit_disown(second);
}

TEST(owner__fails)
{
    static char left[] = "left";

    kit_own(left, destroy);
    assert_true(false);
}

TEST_F(box, box__passes)
{
    assert_int_equal(self->number, 1);
    assert_int_equal(self->untouched, 0);
    assert_int_equal(self->large[sizeof(self->large) - 1], 0);
    self->untouched = 7;
}

TEST_F(box, box__fails)
{
    assert_int_equal(self->untouched, 0);
    self->number = 9;
    assert_true(false);
}

TEST_F_WITH(box, box__with, self->number = 20)
{
    assert_int_equal(self->number, 21);
}

TEST_F_WITH(box, box__setup_fails, self->number = 100)
{
    puts("not reached");
}

TEST_F_WITH(box, box__teardown_fails, self->number = 49)
{
    kit_after_test(after);
}

TEST(plain__skips)
{
    skip();
}

TEST(plain__last)
{
}

int kit_before_all(void)
{
    puts("before all");
    return getenv("SAMPLE_SKIPS") ? KIT_SKIPPED : 0;
}

void kit_before_each(void)
{
    puts("before");
}

int kit_after_all(void)
{
    puts("after all");
    return getenv("SAMPLE_ENDS") ? KIT_SKIPPED : 0;
}
