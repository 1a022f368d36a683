/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/transport.h"

#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"

extern const struct perf_transport_ops perf_mrd_udp_ops, perf_mrd_ibv_ops, perf_rc_ops,
    perf_raw_ud_ops, perf_raw_udp_ops, perf_tcp_ops;

static const struct perf_transport_ops *const transports[] = {
    &perf_mrd_udp_ops, &perf_mrd_ibv_ops, &perf_rc_ops,
    &perf_raw_ud_ops,  &perf_raw_udp_ops, &perf_tcp_ops,
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

const char *const *perf_transport_names(void)
{
    static const char *names[NUM_TRANSPORTS + 1];

    for (unsigned i = 0; i < NUM_TRANSPORTS; i++)
        names[i] = transports[i]->name;
    return names;
}

int perf_transport_check_device(const char *device, char *error)
{
    char known[256] = "";

    if (!perf_options_rdma_device(device) || perf_ibv_has_device(device, known, sizeof(known)))
        return 0;
    const char *missing = perf_ibv_missing();
    return perf_fail(error, -ENODEV, "-d: there is no device '%s'; there is udp%s%s%s%s", device,
                     known[0] ? ", " : "", known, missing ? ", and no RDMA device: " : "",
                     missing ? missing : "");
}
