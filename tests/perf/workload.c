/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/perf/workload.h"

#include <string.h>

const struct workload workload_list[] = {
    {.name = "bulk",
     .message_bytes = 1 << 20,
     .payload_bytes = 4096,
     .peers = 1,
     .outstanding = 8,
     .warmup = 16,
     .messages = 32},
    {.name = "bulk_1408",
     .message_bytes = 1 << 20,
     .payload_bytes = 1408,
     .peers = 1,
     .outstanding = 8,
     .warmup = 16,
     .messages = 16},
    {.name = "lossy",
     .message_bytes = 1 << 20,
     .payload_bytes = 4096,
     .peers = 1,
     .outstanding = 8,
     .warmup = 32,
     .messages = 96,
     .drop_ppm = 10000},
    {.name = "peers64",
     .message_bytes = 64 << 10,
     .payload_bytes = 4096,
     .peers = WORKLOAD_PEERS_MAX,
     .outstanding = 16,
     .warmup = 512,
     .messages = 512},
    {.name = "small",
     .message_bytes = 64,
     .payload_bytes = 4096,
     .peers = 1,
     .outstanding = 128,
     .warmup = 4096,
     .messages = 16384,
     .is_send = true},
    {.name = "latency",
     .message_bytes = 64,
     .payload_bytes = 4096,
     .peers = 1,
     .outstanding = 1,
     .warmup = 512,
     .messages = 4096,
     .is_send = true,
     .is_answered = true},
    {.name = NULL},
};

const struct workload *workload_find(const char *name)
{
    for (const struct workload *w = workload_list; w->name; w++)
        if (!strcmp(w->name, name))
            return w;
    return NULL;
}
