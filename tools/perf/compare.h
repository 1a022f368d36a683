/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the same test over several transports in turn, so that noise of the machine hits all alike.
 */
#ifndef MRD_PERF_COMPARE_H
#define MRD_PERF_COMPARE_H

#include <json-c/json.h>

#include "tools/perf/control.h"
#include "tools/perf/options.h"

/* Run it and print the table to `table`: the array of medians, or NULL with a sentence. */
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
