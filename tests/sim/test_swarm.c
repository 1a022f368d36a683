/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The swarm (tests/support/swarm.h) over many seeds: MRD_SWARM_SEEDS of them, 600 by default;
 * MRD_TEST_SEED runs that one alone, MRD_SWARM_ONCE only once. tests/swarm.sh runs more of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/swarm.h"

enum { SEEDS_DEFAULT = 600, SEED_FIRST = 1, SEED_REPEATED = 1000 };

static unsigned num_seeds(void)
{
    const char *text = getenv("MRD_SWARM_SEEDS");
    unsigned long n = text ? strtoul(text, NULL, 0) : 0;

    return n > 0 ? (unsigned)n : SEEDS_DEFAULT;
}

/* Under any faults nothing wrong happens, and when they end everything completes. */
TEST(sim_swarm)
{
    int is_given;
    uint64_t first = test_seed_or(SEED_FIRST, &is_given);
    unsigned n = is_given ? 1 : num_seeds();
    uint64_t messages = 0, successes = 0, failures = 0;

    for (unsigned i = 0; i < n; i++) {
        struct swarm_report report = swarm_run(first + i);

        messages += report.messages;
        successes += report.successes;
        failures += report.failures;
    }
    print_message("%u seeds: %" PRIu64 " messages, %" PRIu64 " successes, %" PRIu64 " failures\n",
                  n, messages, successes, failures);
    /* A swarm in which little succeeds tests little. */
    if (!is_given)
        assert_true(successes > messages / 3);
}

/* Same seed, same packets at the same times; another seed, others. */
TEST(sim_swarm__deterministic)
{
    int is_given;
    uint64_t first = test_seed_or(SEED_REPEATED, &is_given), last = 0;

    for (uint64_t seed = first; seed < first + (is_given ? 1 : 4); seed++) {
        struct swarm_report a = swarm_run(seed), b = swarm_run(seed);

        test_check(seed, a.digest == b.digest && a.virtual_ns == b.virtual_ns,
                   "two runs of a seed differ");
        assert_true(a.digest != last);
        last = a.digest;
    }
}

int kit_before_all(void)
{
    if (getenv("MRD_SWARM_ONCE"))
        cmocka_set_test_filter("sim_swarm");
    return 0;
}
