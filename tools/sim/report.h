/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of runs, and what is printed of them.
 *
 * A run's result is a JSON object: strings, numbers, nulls, arrays, and objects of these. It is
 * made with simx_json_add_*(), read with simx_json_get*(), and printed by simx_report_json() as
 * soon as it is there, or together with others by simx_report_csv() and simx_report_table(). No
 * function here takes ownership of a run.
 *
 * A path names a value inside objects: "fct_us.max" is the member "max" of the member "fct_us".
 */
#ifndef SIMX_REPORT_H
#define SIMX_REPORT_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One column of a table; behind the last one a key is NULL. */
struct simx_column {
    const char *key;   /* the path of the value */
    const char *title; /* the head of the column */
    const char *unit;  /* printed in brackets behind the title, or NULL */
    int decimals;      /* of a number */
};

/*
 * A number as it is printed: whole numbers up to 2^53 exactly, others with 9 digits, NULL (JSON's
 * null) if not finite. The object's value is the printed one, so that it is the same after a way
 * through text.
 */
struct json_object *simx_json_number(double value);

/* Set members of an object: simx_json_add_numbers(object, {"key", value}, ...). */
struct simx_number {
    const char *key;
    double value;
};
void(simx_json_add_numbers)(struct json_object *object, const struct simx_number *numbers,
                            size_t num);
#define simx_json_add_numbers(object, ...)                                                         \
    simx_json_add_numbers(object, (const struct simx_number[]){__VA_ARGS__},                       \
                          sizeof((const struct simx_number[]){__VA_ARGS__}) /                      \
                              sizeof(struct simx_number))
/* NULL is null. */
void simx_json_add_string(struct json_object *object, const char *key, const char *value);

/* The value at a path, borrowed; NULL if it is null or missing. */
struct json_object *simx_json_get(struct json_object *run, const char *path);
/* The number at a path; NAN if there is none. */
double simx_json_get_number(struct json_object *run, const char *path);
/* A value of a run, or its mean if it is a summary of seeds. */
double simx_value(struct json_object *run, const char *path);
/* Half the confidence interval of a summary's value; NAN if there is none. */
double simx_interval(struct json_object *run, const char *path);

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
