/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct perf_transport_ops *const transports[] = {
    &perf_mrd_ops,
    &perf_raw_udp_ops,
    &perf_tcp_ops,
};

enum { NUM_TRANSPORTS = sizeof(transports) / sizeof(transports[0]) };

const struct perf_transport_ops *perf_transport_find(const char *name)
{
    for (unsigned i = 0; i < NUM_TRANSPORTS; i++) {
        if (strcmp(name, transports[i]->name) == 0)
            return transports[i];
    }
    return NULL;
}

const char *perf_transport_names(void)
{
    static char names[NUM_TRANSPORTS * (PERF_NAME_BYTES + 2)];
    size_t used = 0;

    for (unsigned i = 0; i < NUM_TRANSPORTS; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 transports[i]->name);
    return names;
}

int perf_transport_check_device(const struct perf_options *options, char *error, size_t len)
{
    char known[256] = "", all[512] = "";

    if (options->device[0] == '\0')
        return 0;
    for (unsigned i = 0; i < NUM_TRANSPORTS; i++) {
        if (!transports[i]->has_device)
            continue;
        if (transports[i]->has_device(options->device, known, sizeof(known)))
            return 0;
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", known);
    }
    snprintf(error, len, "-d: there is no device '%s'; there is %s", options->device,
             all[0] ? all : "none");
    return -ENODEV;
}
