/* SPDX-License-Identifier: BSD-2-Clause */
/* Each allocation of the library fails, one after the other. */
#include <errno.h>

#include "tests/failing/scene.h"
#include "tests/kit/kit.h"

/* Posts say EAGAIN where the state of a peer cannot grow. */
static const int allowed[] = {ENOMEM, EAGAIN, 0};

int kit_before_all(void)
{
    fail_watch(false);
    return 0;
}

/* Fails the n-th allocation, for all n until there are no more. Returns how many there are. */
static uint32_t sweep(struct scene_rules *rules, uint32_t num)
{
    uint32_t first = 0, failed;

    do {
        struct fail_plan plan = {
            .calls = FAIL_MEMORY, .error = ENOMEM, .first = first++, .num = num};

        rules->plan = &plan;
        rules->allowed = allowed;
        failed = scene_play(rules);
    } while (failed);
    return first - 1;
}

/* Who calls again succeeds. */
TEST(failing_memory__once)
{
    assert_in_range(sweep(&(struct scene_rules){0}, 1), 100, 10000);
}

/* The same with progress threads. */
TEST(failing_memory__once_with_threads)
{
    assert_in_range(sweep(&(struct scene_rules){.threads = true}, 1), 100, 10000);
}

/* No memory from then on: all is cleared away without any. */
TEST(failing_memory__for_good)
{
    assert_in_range(sweep(&(struct scene_rules){.gives_up = true}, 0), 100, 10000);
}
