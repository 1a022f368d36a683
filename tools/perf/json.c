/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int perf_json_get_u64(struct json_object *object, const char *key, uint64_t *value)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, key, &member) ||
        !json_object_is_type(member, json_type_int))
        return -EPROTO;
    *value = json_object_get_uint64(member);
    return 0;
}

int perf_json_get_double(struct json_object *object, const char *key, double *value)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, key, &member) ||
        !(json_object_is_type(member, json_type_double) ||
          json_object_is_type(member, json_type_int)))
        return -EPROTO;
    *value = json_object_get_double(member);
    return 0;
}

const char *perf_json_get_string(struct json_object *object, const char *key)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, key, &member) ||
        !json_object_is_type(member, json_type_string))
        return NULL;
    return json_object_get_string(member);
}

struct json_object *perf_json_get_array(struct json_object *object, const char *key, size_t length)
{
    struct json_object *array;

    if (!json_object_object_get_ex(object, key, &array) ||
        !json_object_is_type(array, json_type_array) || json_object_array_length(array) != length)
        return NULL;
    return array;
}

uint32_t perf_json_u32_at(struct json_object *array, size_t index)
{
    return (uint32_t)json_object_get_uint64(json_object_array_get_idx(array, index));
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

void perf_json_add_double(struct json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, json_object_new_double(value));
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
