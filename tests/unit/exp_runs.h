/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of runs, written as JSON with ' for ". */
#ifndef EXP_RUNS_H
#define EXP_RUNS_H

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/sim/report.h"

/* Parses texts up to a NULL; the caller frees that many runs with exp_runs_free(). */
static inline size_t exp_runs_make(struct json_object **runs, const char *const *texts)
{
    size_t n = 0;

    for (; texts[n]; n++) {
        char *text = strdup(texts[n]);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        runs[n] = json_tokener_parse(text);
        free(text);
        assert_non_null(runs[n]);
    }
    return n;
}

static inline void exp_runs_free(struct json_object **runs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_object_put(runs[i]);
}

#endif
