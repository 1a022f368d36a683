/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON objects: the messages of the control connection, and reports.
 */
#ifndef MRD_PERF_JSON_H
#define MRD_PERF_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

/* Members of a message. 0, or -EPROTO if it is missing or of another type. */
int perf_json_get_u64(struct json_object *object, const char *key, uint64_t *value);
int perf_json_get_double(struct json_object *object, const char *key, double *value);
/* NULL if it is missing or no string. Owned by `object`. */
const char *perf_json_get_string(struct json_object *object, const char *key);
/* An array of that length, or NULL; a number in it. */
struct json_object *perf_json_get_array(struct json_object *object, const char *key, size_t length);
uint32_t perf_json_u32_at(struct json_object *array, size_t index);
/* A new message of that type. */
struct json_object *perf_message(const char *type);
bool perf_message_is(struct json_object *message, const char *type);
/* A number with 6 digits; null if it is not finite. */
struct json_object *perf_json_number(double value);

#endif
