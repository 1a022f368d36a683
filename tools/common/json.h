/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON objects: results, reports, and the messages of mrd_perf's control connection.
 *
 * They are made with json_add_*() and read with json_get*(). Nothing here takes ownership of an
 * object, or gives it away, but for json_number() and json_rounded(), whose objects are the
 * caller's.
 *
 * A path names a value inside objects: "fct_us.max" is the member "max" of the member "fct_us".
 */
#ifndef MRD_COMMON_JSON_H
#define MRD_COMMON_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A number as it is printed: whole numbers up to 2^53 exactly, others with 9 digits, NULL (JSON's
 * null) if not finite. The object's value is the printed one, so that it is the same after a way
 * through text.
 */
struct json_object *json_number(double value);
/* With 6 digits, NULL if not finite. The object's value is not rounded. */
struct json_object *json_rounded(double value);

/* Set members of an object: json_add_numbers(object, {"key", value}, ...). */
struct json_member {
    const char *key;
    double value;
};
void(json_add_numbers)(struct json_object *object, const struct json_member *members, size_t num);
#define json_add_numbers(object, ...)                                                              \
    json_add_numbers(object, (const struct json_member[]){__VA_ARGS__},                            \
                     sizeof((const struct json_member[]){__VA_ARGS__}) /                           \
                         sizeof(struct json_member))
/* Set one. */
void json_add_u64(struct json_object *object, const char *key, uint64_t value);
void json_add_bool(struct json_object *object, const char *key, bool value);
void json_add_rounded(struct json_object *object, const char *key, double value);
void json_add_string(struct json_object *object, const char *key, const char *value); /* or NULL */
/* Adds the elements of `more` to an array. */
void json_append(struct json_object *array, struct json_object *more);

/* The value at a path, borrowed; NULL if it is null or missing. */
struct json_object *json_get(struct json_object *object, const char *path);
/* Sets the value at a path and takes ownership of it. False: there is no object for it. */
bool json_set(struct json_object *object, const char *path, struct json_object *value);
/* The number at a path; NAN if there is none. */
double json_get_number(struct json_object *object, const char *path);
/* The number at a path, or its mean if it is a summary of several results. */
double json_mean(struct json_object *object, const char *path);
struct json_object *json_mean_of(struct json_object *object, const char *path);
/* Half the confidence interval of a summary's value; NAN if there is none. */
double json_interval(struct json_object *object, const char *path);

/* Members of a message. 0, or -EPROTO if it is missing or of another type. */
int json_get_u64(struct json_object *object, const char *key, uint64_t *value);
/* NULL if it is missing or no string. Owned by `object`. */
const char *json_get_string(struct json_object *object, const char *key);
/* An array of that length, or NULL; a number in it. */
struct json_object *json_get_array(struct json_object *object, const char *key, size_t length);
uint32_t json_u32_at(struct json_object *array, size_t index);

#endif
