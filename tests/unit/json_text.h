/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON objects of a test, freed after it. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/common/json.h"

static inline void json_text_put(void *object)
{
    json_object_put(object);
}

static inline struct json_object *json_text_own(struct json_object *object)
{
    assert_non_null(object);
    kit_own(object, json_text_put);
    return object;
}

/* Written with ' for ". The caller's. */
static inline struct json_object *json_text_parse(const char *text)
{
    char *copy = strdup(text);

    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    struct json_object *object = json_tokener_parse(copy);
    free(copy);
    assert_non_null(object);
    return object;
}

/* The same, the test's. */
static inline struct json_object *json_text(const char *text)
{
    return json_text_own(json_text_parse(text));
}

#endif
