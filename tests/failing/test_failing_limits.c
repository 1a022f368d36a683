/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes whose limits are low: each has more than the one before, until it has enough. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/failing/scene.h"
#include "tests/kit/kit.h"

enum { GAVE_UP = 10, MIB = 1 << 20 };

int kit_before_all(void)
{
    fail_watch(false);
    return 0;
}

/* Plays the scene with that limit, in a process of its own. true: it had enough. */
static bool suffices(int resource, rlim_t limit, int error)
{
    const int allowed[] = {error, EAGAIN, 0}; /* a name may be known later */
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        struct fail_plan plan = {.calls = 0, .error = error};
        bool over = false;

        if (setrlimit(resource, &(struct rlimit){limit, limit}))
            _exit(1);
        scene_play(&(struct scene_rules){
            .plan = &plan, .allowed = allowed, .gives_up = true, .over = &over});
        _exit(over ? GAVE_UP : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != GAVE_UP))
        fail_msg("with a limit of %llu the process ends with %x", (unsigned long long)limit,
                 (unsigned)status);
    return WEXITSTATUS(status) == 0;
}

TEST(failing_limits__descriptors)
{
    rlim_t few = 4, limit = few; /* one is for the test's own count */

    while (!suffices(RLIMIT_NOFILE, limit, EMFILE))
        limit++;
    assert_in_range(limit, few + 20, 100);
}

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

TEST(failing_limits__address_space)
{
    rlim_t now = address_space(), more = 8 * MIB; /* the test's own memory */

    if (now > (rlim_t)MIB * MIB) {
        print_message("skipped: a sanitizer has reserved the address space\n");
        return;
    }
    while (!suffices(RLIMIT_AS, now + more, ENOMEM))
        more += more / 8;
    assert_in_range(more, 9 * MIB, 4096ull * MIB);
}

/* Over UDP nothing is locked. */
TEST(failing_limits__locked_memory)
{
    assert_true(suffices(RLIMIT_MEMLOCK, 0, ENOMEM));
}
