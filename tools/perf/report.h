/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports: a JSON object for each run, with the keys of mrd_perf(1), and the table made from it.
 * compare.c makes one report of many.
 */
#ifndef MRD_PERF_REPORT_H
#define MRD_PERF_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

#include "tools/perf/options.h"
#include "tools/perf/run.h"

/* The client's report on a run whose findings have come. */
struct json_object *perf_report_make(const struct perf_run *run);
/* False if it says that the run was verified and did not pass. */
bool perf_report_passed(struct json_object *report);

/* The head of the table for a test, and a line for a report. */
void perf_table_head(FILE *out, enum perf_test test, bool gbits);
void perf_table_row(FILE *out, struct json_object *report, bool gbits);

/* A column of numbers: what a report has at `path`, "-" for null; the peak of "samples". */
struct perf_column {
    const char *title; /* NULL: there are no more */
    int width, digits;
    const char *path;
    double scale; /* what to multiply by */
};
/* A table of the transports: its head, and a line for a report; `rest` ends the line. */
void perf_columns_head(FILE *out, const struct perf_column *columns, const char *rest);
void perf_columns_row(FILE *out, const struct perf_column *columns, struct json_object *report,
                      const char *rest);

/*
 * Write an array of reports where the options want it; of a single run only its report. 0, or
 * -errno with a sentence: also if a table that standard output was given is lost.
 */
int perf_report_write(const struct perf_options *options, struct json_object *reports, char *error);

/*
 * Run the same test over several transports in turn, so that noise of the machine hits all alike,
 * and print the table to `table`: the array of medians, or NULL with a sentence.
 */
struct json_object *perf_compare(const struct perf_options *options, struct perf_control *control,
                                 FILE *table, char *error);

/*
 * Make one object of `count` reports of the same test. Each number is the median, `verified` is
 * true only if it always was, `disturbed` if it ever was. paths_used and samples are those of the
 * median run by `key`. Takes ownership of the reports.
 */
struct json_object *perf_compare_median(struct json_object **reports, size_t count,
                                        const char *key);
/* Add ratio_to_first to `median`. */
void perf_compare_ratio(struct json_object *median, struct json_object *first);
/* The second half of the table: ratios, and what the transports cost. "-" for null. */
void perf_compare_print(FILE *table, struct json_object *medians, bool lat);

#endif
