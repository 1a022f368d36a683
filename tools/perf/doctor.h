/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `mrd_perf doctor HOST`: what a pair of hosts gives, and what is in the way. Half a minute.
 */
#ifndef MRD_PERF_DOCTOR_H
#define MRD_PERF_DOCTOR_H

#include <stdio.h>

#include "tools/perf/control.h"
#include "tools/perf/options.h"

/*
 * The client, over a control connection that was greeted. Takes no longer than half a minute. Prints
 * to `table`; returns the report, or NULL with a sentence. A report with a sentence is of what was
 * found out before something failed.
 */
struct json_object *perf_doctor(const struct perf_options *o, struct perf_control *c, FILE *table,
                                char *error);
/* The server: 1: it answered; 0: the message is none of doctor's; -errno: the client is gone. */
int perf_doctor_answer(const struct perf_options *o, struct perf_control *c,
                       struct json_object *message);

#endif
