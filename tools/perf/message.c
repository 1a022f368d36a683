/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/message.h"

#include <string.h>

struct json_object *perf_message(const char *type)
{
    struct json_object *message = json_object_new_object();

    json_add_string(message, "type", type);
    return message;
}

bool perf_message_is(struct json_object *message, const char *type)
{
    const char *is = json_get_string(message, "type");

    return is && strcmp(is, type) == 0;
}

struct json_object *perf_add_path(struct json_object *paths, unsigned port, uint64_t packets)
{
    static const char *const unknown[] = {"lost", "srtt_us", "rtt_min_us", "state"};
    struct json_object *path = json_object_new_object();

    json_add_u64(path, "port", port);
    json_add_u64(path, "packets", packets);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        json_object_object_add(path, unknown[i], NULL);
    json_object_array_add(paths, path);
    return path;
}
