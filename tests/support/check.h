/* SPDX-License-Identifier: BSD-2-Clause */
/* What every test includes: cmocka, units of time, the seed, failing with it, and simulations. */
#ifndef MRD_TESTS_SUPPORT_CHECK_H
#define MRD_TESTS_SUPPORT_CHECK_H

#include "mrd/sim.h"
#include "tests/kit/kit.h"

#define USEC_NS 1000ull
#define MSEC_NS 1000000ull
#define SEC_NS  1000000000ull

/*
 * Seeds of a test each of which must pass: all in tools/check.sh --long. One otherwise
 * (MRD_TEST_FEW_SEEDS of CMake), and with sanitizers, which make all of it many times as slow.
 */
#if defined(TEST_FEW_SEEDS) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TEST_SEEDS(num) 1
#else
#define TEST_SEEDS(num) (num)
#endif

/* The seed in MRD_TEST_SEED; `fallback` if it is unset. */
uint64_t test_seed_or(uint64_t fallback, int *is_given);
/* The seed in MRD_TEST_SEED, or a fixed number. Prints it once, for the case of failure. */
uint64_t test_seed(void);
/* A simulation of the test's, which is destroyed after it. */
struct mrd_sim *test_sim(const struct mrd_sim_attr *attr);
/* Fails the running test with a message and the seed that repeats it. */
_Noreturn void test_fail(uint64_t seed, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define test_check(seed, condition, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            test_fail(seed, __VA_ARGS__);                                                          \
    } while (0)

#endif
