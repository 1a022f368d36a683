/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doctor's runs: latency, then the rate with more and more source ports, then that of one TCP
 * connection. What there is no time for is left out.
 */
#ifndef MRD_PERF_DOCTOR_RUNS_H
#define MRD_PERF_DOCTOR_RUNS_H

#include <json-c/json.h>
#include <stdint.h>

#include "tools/perf/control.h"
#include "tools/perf/options.h"

/*
 * Adds "latency", "rates", "tcp" to a report whose probes are judged. 0; or -errno with a sentence
 * and a finding: a run failed, or was not over at `end_ns`, and the control connection ended with it.
 */
int perf_doctor_run(const struct perf_options *o, struct perf_control *c,
                    struct json_object *report, uint64_t end_ns, char *error);

#endif
