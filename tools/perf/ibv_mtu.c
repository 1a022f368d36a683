/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/ibv_device.h"

#include <errno.h>
#include <stdio.h>

#include "tools/perf/message.h"

enum {
    MTU_MIN = 256,
    MTU_MAX = 4096,
    MRD_HEADER_BYTES = 96,
    MRD_PAYLOAD_STEP = 64,
};

bool perf_ibv_mtu_valid(uint32_t mtu)
{
    return mtu >= MTU_MIN && mtu <= MTU_MAX && (mtu & (mtu - 1)) == 0;
}

uint32_t perf_ibv_mtu_payload(uint32_t mtu)
{
    return (mtu - MRD_HEADER_BYTES) / MRD_PAYLOAD_STEP * MRD_PAYLOAD_STEP;
}

int perf_ibv_mtu_check(uint32_t given, const struct perf_ibv_port *port, char *error)
{
    if (given <= port->mtu)
        return 0;
    return perf_fail(error, -EMSGSIZE,
                     "-m %u is more than the MTU %u of port %u of %s: give -m %u or less, or set "
                     "its interface to a larger MTU",
                     given, port->mtu, port->number, port->device, port->mtu);
}

int perf_ibv_mtu_agree(uint32_t given, const char *here, uint32_t here_mtu, const char *there,
                       uint32_t there_mtu, uint32_t *mtu, char *error)
{
    uint32_t least = here_mtu < there_mtu ? here_mtu : there_mtu;

    if (given > least)
        return perf_fail(error, -EMSGSIZE,
                         "-m %u is more than the MTU of a port: %s has %u and %s has %u; give -m "
                         "%u or less, or set both interfaces to a larger MTU",
                         given, here, here_mtu, there, there_mtu, least);
    if (given == 0 && here_mtu != there_mtu)
        return perf_fail(error, -EMSGSIZE,
                         "the ports' MTUs differ: %s has %u and %s has %u; set both interfaces to "
                         "the same MTU, or give -m %u",
                         here, here_mtu, there, there_mtu, least);
    *mtu = given ? given : least;
    return 0;
}

void perf_ibv_mtu_tell(const struct perf_ibv_port *port, struct json_object *info)
{
    json_add_string(info, "port_device", port->device);
    json_add_u64(info, "port_mtu", port->mtu);
}

int perf_ibv_mtu_hear(struct perf_run *run, const struct perf_ibv_port *port,
                      struct json_object *info, uint32_t *mtu)
{
    const char *device = json_get_string(info, "port_device");
    char here[PERF_DEVICE_BYTES + PERF_HOST_BYTES + 4], there[sizeof(here)];
    uint64_t port_mtu;

    if (!device || json_get_u64(info, "port_mtu", &port_mtu) || port_mtu > UINT32_MAX)
        return perf_run_fail(run, -EPROTO, "the other end does not tell the MTU of its port");
    snprintf(here, sizeof(here), "%s at %s", port->device, run->control->local);
    snprintf(there, sizeof(there), "%.31s at %s", device, run->control->peer);
    return perf_ibv_mtu_agree(run->params.mtu, here, port->mtu, there, (uint32_t)port_mtu, mtu,
                              run->error);
}
