/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEED_DEFAULT = 20240613 };

uint64_t test_seed_or(uint64_t fallback, int *is_given)
{
    const char *text = getenv("MRD_TEST_SEED");
    char *end;

    *is_given = text && *text;
    if (!*is_given)
        return fallback;

    uint64_t seed = strtoull(text, &end, 0);

    if (*end) {
        fprintf(stderr, "MRD_TEST_SEED=%s is not a number\n", text);
        exit(2);
    }
    return seed;
}

uint64_t test_seed(void)
{
    static int told;
    int is_given;
    uint64_t seed = test_seed_or(SEED_DEFAULT, &is_given);

    /* Assertions of cmocka print no seed: print it before any can fail. */
    if (!told++)
        fprintf(stderr, "MRD_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

static void destroy_sim(void *object)
{
    mrd_sim_destroy(object);
}

struct mrd_sim *test_sim(const struct mrd_sim_attr *attr)
{
    struct mrd_sim *sim = mrd_sim_create(attr);

    assert_non_null(sim);
    kit_own(sim, destroy_sim);
    return sim;
}

_Noreturn void test_fail(uint64_t seed, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fail_msg("%s (MRD_TEST_SEED=%" PRIu64 ")", text, seed);
    abort(); /* not reached: fail_msg() jumps */
}
