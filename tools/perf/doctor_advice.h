/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What doctor's measurements say: "findings" of the report, an array of objects with "name", a word;
 * "text", what was seen; "advice", what to do about it.
 */
#ifndef MRD_PERF_DOCTOR_ADVICE_H
#define MRD_PERF_DOCTOR_ADVICE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/* Are there source ports of which no datagram with ECT arrived? */
bool perf_doctor_some_silent(struct json_object *arrivals);
/*
 * Of the bare datagrams: ports, order, marks, sizes. Adds "ports_through", the source ports of which
 * some arrived.
 */
void perf_doctor_judge_probes(struct json_object *report);
/* Do datagrams come through both ways? */
bool perf_doctor_may_run(struct json_object *report);
/* Have more ports more, again and again? Noise goes up and down. */
bool perf_doctor_seems_capped(struct json_object *report);
/* Of the runs, of what hosts say, and of counters before and after. */
void perf_doctor_judge_runs(struct json_object *report);
/* A finding; `format` makes its text, `advice` is static. */
void perf_doctor_find(struct json_object *report, const char *name, const char *advice,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
void perf_doctor_print(FILE *table, struct json_object *report);

#endif
