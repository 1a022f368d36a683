/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* NULL: it is missing, or of another type. */
static struct json_object *member_of(struct json_object *object, const char *key,
                                     enum json_type type)
{
    struct json_object *member = json_object_object_get(object, key);

    return json_object_is_type(member, type) ? member : NULL;
}

int perf_json_get_u64(struct json_object *object, const char *key, uint64_t *value)
{
    struct json_object *member = member_of(object, key, json_type_int);

    if (!member)
        return -EPROTO;
    *value = json_object_get_uint64(member);
    return 0;
}

const char *perf_json_get_string(struct json_object *object, const char *key)
{
    return json_object_get_string(member_of(object, key, json_type_string));
}

struct json_object *perf_json_get_array(struct json_object *object, const char *key, size_t length)
{
    struct json_object *array = member_of(object, key, json_type_array);

    return array && json_object_array_length(array) == length ? array : NULL;
}

uint32_t perf_json_u32_at(struct json_object *array, size_t index)
{
    return (uint32_t)json_object_get_uint64(json_object_array_get_idx(array, index));
}

void perf_json_append(struct json_object *array, struct json_object *more)
{
    for (size_t i = 0; i < json_object_array_length(more); i++)
        json_object_array_add(array, json_object_get(json_object_array_get_idx(more, i)));
}

struct json_object *perf_message(const char *type)
{
    struct json_object *message = json_object_new_object();

    perf_json_add_text(message, "type", type);
    return message;
}

bool perf_message_is(struct json_object *message, const char *type)
{
    const char *is = perf_json_get_string(message, "type");

    return is && strcmp(is, type) == 0;
}

struct json_object *perf_json_number(double value)
{
    char text[32];

    if (!isfinite(value))
        return NULL;
    snprintf(text, sizeof(text), "%.6g", value);
    return json_object_new_double_s(value, text);
}

void perf_json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_uint64(value));
}

void perf_json_add_bool(struct json_object *object, const char *key, bool value)
{
    json_object_object_add(object, key, json_object_new_boolean(value));
}

void perf_json_add_number(struct json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, perf_json_number(value));
}

void perf_json_add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

struct json_object *perf_json_add_path(struct json_object *paths, unsigned port, uint64_t packets)
{
    struct json_object *path = json_object_new_object();

    perf_json_add_u64(path, "port", port);
    perf_json_add_u64(path, "packets", packets);
    json_object_object_add(path, "lost", NULL);
    json_object_object_add(path, "srtt_us", NULL);
    json_object_object_add(path, "rtt_min_us", NULL);
    json_object_object_add(path, "state", NULL);
    json_object_array_add(paths, path);
    return path;
}
