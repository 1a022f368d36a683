/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 96 };

struct json_object *json_number(double value)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    char text[32];

    if (!isfinite(value))
        return NULL;
    value += 0.0; /* no negative zero */
    bool whole = fabs(value) <= exact && floor(value) == value;
    snprintf(text, sizeof(text), whole ? "%.0f" : "%.9g", value);
    return json_object_new_double_s(strtod(text, NULL), text);
}

struct json_object *json_rounded(double value)
{
    char text[32];

    if (!isfinite(value))
        return NULL;
    snprintf(text, sizeof(text), "%.6g", value);
    return json_object_new_double_s(value, text);
}

void(json_add_numbers)(struct json_object *object, const struct json_member *members, size_t num)
{
    for (size_t i = 0; i < num; i++)
        json_object_object_add(object, members[i].key, json_number(members[i].value));
}

void json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_uint64(value));
}

void json_add_bool(struct json_object *object, const char *key, bool value)
{
    json_object_object_add(object, key, json_object_new_boolean(value));
}

void json_add_rounded(struct json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, json_rounded(value));
}

void json_add_string(struct json_object *object, const char *key, const char *value)
{
    json_object_object_add(object, key, value ? json_object_new_string(value) : NULL);
}

void json_append(struct json_object *array, struct json_object *more)
{
    for (size_t i = 0; i < json_object_array_length(more); i++)
        json_object_array_add(array, json_object_get(json_object_array_get_idx(more, i)));
}

struct json_object *json_get(struct json_object *object, const char *path)
{
    char names[PATH_BYTES], *rest = names;

    snprintf(names, sizeof(names), "%s", path);
    while (object && rest)
        object = json_object_object_get(object, strsep(&rest, "."));
    return object;
}

bool json_set(struct json_object *object, const char *path, struct json_object *value)
{
    char names[PATH_BYTES], *last;

    snprintf(names, sizeof(names), "%s", path);
    last = strrchr(names, '.');
    if (last) {
        *last = '\0';
        object = json_get(object, names);
    }
    return json_object_is_type(object, json_type_object) &&
           json_object_object_add(object, last ? last + 1 : names, value) == 0;
}

/* The value at a path within a part of a summary. */
static struct json_object *get_part(struct json_object *object, const char *part, const char *path)
{
    char whole[PATH_BYTES];

    snprintf(whole, sizeof(whole), "%s.%s", part, path);
    return json_get(object, whole);
}

static double to_number(struct json_object *value)
{
    if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
        return NAN;
    return json_object_get_double(value);
}

double json_get_number(struct json_object *object, const char *path)
{
    return to_number(json_get(object, path));
}

struct json_object *json_mean_of(struct json_object *object, const char *path)
{
    struct json_object *mean = get_part(object, "mean", path);

    return mean ? mean : json_get(object, path);
}

double json_mean(struct json_object *object, const char *path)
{
    return to_number(json_mean_of(object, path));
}

double json_interval(struct json_object *object, const char *path)
{
    return to_number(get_part(object, "ci95", path));
}

/* NULL: it is missing, or of another type. */
static struct json_object *member_of(struct json_object *object, const char *key,
                                     enum json_type type)
{
    struct json_object *member = json_object_object_get(object, key);

    return json_object_is_type(member, type) ? member : NULL;
}

int json_get_u64(struct json_object *object, const char *key, uint64_t *value)
{
    struct json_object *member = member_of(object, key, json_type_int);

    if (!member)
        return -EPROTO;
    *value = json_object_get_uint64(member);
    return 0;
}

const char *json_get_string(struct json_object *object, const char *key)
{
    return json_object_get_string(member_of(object, key, json_type_string));
}

struct json_object *json_get_array(struct json_object *object, const char *key, size_t length)
{
    struct json_object *array = member_of(object, key, json_type_array);

    return array && json_object_array_length(array) == length ? array : NULL;
}

uint32_t json_u32_at(struct json_object *array, size_t index)
{
    return (uint32_t)json_object_get_uint64(json_object_array_get_idx(array, index));
}
