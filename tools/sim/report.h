/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of runs, and what is printed of them.
 *
 * A run's result is a JSON object: strings, numbers, nulls, arrays, and objects of these. It is
 * printed by simx_report_json() as soon as it is there, or together with others by
 * simx_report_csv() and simx_report_table(). No function here takes ownership of a run.
 */
#ifndef SIMX_REPORT_H
#define SIMX_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/common/json.h"

/* One column of a table; behind the last one a key is NULL. */
struct simx_column {
    const char *key;   /* the path of the value */
    const char *title; /* the head of the column */
    const char *unit;  /* printed in brackets behind the title, or NULL */
    int decimals;      /* of a number */
};

/* One line of JSON, written at once. 0, or -errno. */
int simx_report_json(FILE *out, struct json_object *run);

/*
 * A line of paths and a line for each run, as RFC 4180 has it but for the ends of lines, which are
 * the system's. The columns are the paths of all runs in the order of their first appearance;
 * arrays are left out, null and missing are empty. 0, or -errno.
 */
int simx_report_csv(FILE *out, struct json_object *const *runs, size_t num_runs);

/*
 * A line of titles and a line for each run or summary: numbers to the right, text to the left. 0,
 * or -errno.
 */
int simx_report_table(FILE *out, const struct simx_column *columns, struct json_object *const *runs,
                      size_t num_runs);

/* ---------------------------------------------------------------------------- of several seeds */

/*
 * One result for n > 0 runs: a copy of the first without "seed", and added to it "seeds" (how
 * many), "mean" and "ci95", which have the numbers of a run, nested as there, but for "seed" and
 * "config". ci95 is half the width of the mean's 95 % confidence interval, t(0.975, n - 1) s /
 * sqrt(n); null if n is 1. A run in which a number is null or missing is left out of that number's
 * mean and n.
 *
 * Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2, Confidence Limits for the Mean.
 */
struct json_object *simx_seeds_summary(struct json_object *const *runs, size_t n);

/* The 0.975 quantile of Student's t distribution with so many degrees of freedom; NAN for 0. */
double simx_student_t975(size_t degrees);

#endif
