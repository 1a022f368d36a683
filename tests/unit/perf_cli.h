/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines of mrd_perf for unit tests: taken, or refused with the cause. */
#ifndef MRD_UNIT_PERF_CLI_H
#define MRD_UNIT_PERF_CLI_H

#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/perf/options.h"

enum { WORDS_MAX = 32 };

static struct perf_options options;
static char error[PERF_ERROR_BYTES];

/* Parse a line as a shell without quotes would. */
static inline int parse(const char *line)
{
    static char text[512];
    char *argv[WORDS_MAX + 1] = {"mrd_perf"};
    int argc = 1;

    error[0] = '\0';
    assert_true(strlen(line) < sizeof(text));
    strcpy(text, line);
    for (char *word = strtok(text, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    return perf_options_parse(&options, argc, argv, error);
}

static inline void good(const char *line)
{
    if (parse(line) != PERF_PARSE_RUN)
        fail_msg("'%s': %s", line, error);
}

/* Refused, and the sentence names the cause. */
static inline void bad(const char *line, const char *cause)
{
    int rc = parse(line);

    if (rc >= 0)
        fail_msg("'%s' was taken", line);
    if (!strstr(error, cause))
        fail_msg("'%s': '%s' does not say '%s'", line, error, cause);
}

#endif
