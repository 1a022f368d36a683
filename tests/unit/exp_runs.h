/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of runs, written as JSON with ' for ". */
#ifndef EXP_RUNS_H
#define EXP_RUNS_H

#include "tests/unit/json_text.h"
#include "tools/sim/report.h"

/* Takes texts up to a NULL; returns how many. The runs are freed after the test. */
static inline size_t exp_runs_make(struct json_object **runs, const char *const *texts)
{
    size_t n = 0;

    for (; texts[n]; n++)
        runs[n] = json_text(texts[n]);
    return n;
}

#endif
