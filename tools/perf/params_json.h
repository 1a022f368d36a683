/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters on the control connection.
 */
#ifndef MRD_PERF_PARAMS_JSON_H
#define MRD_PERF_PARAMS_JSON_H

#include <json-c/json.h>

#include "tools/perf/perf.h"

void perf_params_to_json(const struct perf_params *params, struct json_object *object);
/* 0, or -EPROTO: a member is missing. What they say is for perf_params_check() to judge. */
int perf_params_from_json(struct perf_params *params, struct json_object *object);

#endif
