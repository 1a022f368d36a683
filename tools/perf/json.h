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
/* NULL if it is missing or no string. Owned by `object`. */
const char *perf_json_get_string(struct json_object *object, const char *key);
/* An array of that length, or NULL; a number in it. */
struct json_object *perf_json_get_array(struct json_object *object, const char *key, size_t length);
uint32_t perf_json_u32_at(struct json_object *array, size_t index);
/* Adds the elements of `more` to an array. */
void perf_json_append(struct json_object *array, struct json_object *more);
/* Add a member. A number has 6 digits; null if it is not finite. */
void perf_json_add_u64(struct json_object *object, const char *key, uint64_t value);
void perf_json_add_bool(struct json_object *object, const char *key, bool value);
void perf_json_add_number(struct json_object *object, const char *key, double value);
void perf_json_add_text(struct json_object *object, const char *key, const char *text);
/* Add a member of paths_used[] to `paths`: what is not known of it is null. */
struct json_object *perf_json_add_path(struct json_object *paths, unsigned port, uint64_t packets);
/* A new message of that type. */
struct json_object *perf_message(const char *type);
bool perf_message_is(struct json_object *message, const char *type);
/* As perf_json_add_number() adds. */
struct json_object *perf_json_number(double value);

#endif
