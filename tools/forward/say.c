/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/say.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { LINES_MAX = 50 /* a second */ };

static bool details;

void say_all(void)
{
    details = true;
}

/* A thousand connections that fail must not fill the log. */
static bool is_too_much(void)
{
    static time_t second;
    static unsigned lines;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != second) {
        if (lines > LINES_MAX)
            fprintf(stderr, "mrd_forward: (%u lines more)\n", lines - LINES_MAX);
        second = now.tv_sec;
        lines = 0;
    }
    return ++lines > LINES_MAX;
}

/* One write for a line, so that lines of several processes do not mix. */
static void print(const char *format, va_list args)
{
    char line[1024];

    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "mrd_forward: %s\n", line);
}

void say(const char *format, ...)
{
    va_list args;

    if (is_too_much())
        return;
    va_start(args, format);
    print(format, args);
    va_end(args);
}

void say_detail(const char *format, ...)
{
    va_list args;

    if (!details)
        return;
    va_start(args, format);
    print(format, args);
    va_end(args);
}
