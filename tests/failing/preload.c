/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fail.c for a program that preloads it, all of which is watched. FAILING=CALL,CALL:ERRNO:FIRST:NUM:ONE_IN is the plan;
 * "memory" stands for all calls that allocate. The seed is FIRST. At the end, if FAILING_TELL is set, how many
 * calls failed is written to that file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/failing/fail.h"

static uint64_t calls_of(const char *text, size_t len)
{
    uint64_t calls = 0;

    if (len >= 6 && !strncmp(text, "memory", 6))
        calls = FAIL_MEMORY;
    for (enum fail_call call = 0; call < FAIL_NUM_CALLS; call++) {
        size_t name = strlen(fail_name(call));

        for (const char *at = text; at; at = memchr(at, ',', len - (size_t)(at - text))) {
            at += *at == ',';
            if (!strncmp(at, fail_name(call), name) && strchr(",:", at[name]))
                calls |= FAIL_BIT(call);
        }
    }
    return calls;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAILING"), *colon = text ? strchr(text, ':') : NULL;
    struct fail_plan plan = {0};

    if (!colon ||
        sscanf(colon, ":%d:%u:%u:%u", &plan.error, &plan.first, &plan.num, &plan.one_in) != 4)
        return;
    plan.calls = calls_of(text, (size_t)(colon - text));
    plan.seed = plan.first;
    fail_watch(true);
    fail_begin(&plan);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAILING_TELL");
    uint32_t failed = fail_end();
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

    if (fd < 0)
        return;
    dprintf(fd, "%u %s\n", failed, failed ? fail_last() : "nothing");
    close(fd);
}
