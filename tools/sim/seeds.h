/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mean and confidence interval of runs with several seeds. simx_jobs_run() makes the
 * runs.
 */
#ifndef SIMX_SEEDS_H
#define SIMX_SEEDS_H

#include <json-c/json.h>
#include <stddef.h>

#include "tools/sim/jobs.h"

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
