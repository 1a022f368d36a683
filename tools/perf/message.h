/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON objects that both ends of mrd_perf, or several transports, make alike. */
#ifndef MRD_PERF_MESSAGE_H
#define MRD_PERF_MESSAGE_H

#include "tools/common/json.h"

/* A new message of that type for the control connection. */
struct json_object *perf_message(const char *type);
bool perf_message_is(struct json_object *message, const char *type);
/* Add a member of paths_used[] to `paths`: what is not known of it is null. */
struct json_object *perf_add_path(struct json_object *paths, unsigned port, uint64_t packets);

#endif
