/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/ibv_device.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

const char *perf_ibv_missing(void)
{
    return NULL;
}

bool perf_ibv_has_device(const char *name, char *known, size_t len)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool found = false;

    known[0] = '\0';
    for (struct ibv_device **d = list; d && *d; d++) {
        size_t used = strlen(known);
        found = found || strcmp(name, ibv_get_device_name(*d)) == 0;
        snprintf(known + used, len - used, "%s%s", used ? ", " : "", ibv_get_device_name(*d));
    }
    if (list)
        ibv_free_device_list(list);
    return found;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu; /* IBV_MTU_256 is 1 */
}

/* The port to use of a device: true, or false with a sentence. */
static bool take_port(struct ibv_device *device, uint8_t wanted, struct perf_ibv_port *port,
                      char *error)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_context *ctx = ibv_open_device(device);
    struct ibv_device_attr limits;
    struct ibv_port_attr attr;

    if (!ctx || ibv_query_device(ctx, &limits)) {
        snprintf(
            error, PERF_ERROR_BYTES,
            "cannot open the RDMA device %s: %s; /dev/infiniband must be readable and writable",
            name, strerror(errno));
        if (ctx)
            ibv_close_device(ctx);
        return false;
    }
    bool found = false;
    uint8_t first = wanted ? wanted : 1, last = wanted ? wanted : limits.phys_port_cnt;
    snprintf(error, PERF_ERROR_BYTES, "-i %u: %s has %u port%s", wanted, name, limits.phys_port_cnt,
             limits.phys_port_cnt == 1 ? "" : "s");
    for (unsigned i = first; i <= last && i <= limits.phys_port_cnt && !found; i++) {
        if (ibv_query_port(ctx, (uint8_t)i, &attr)) {
            snprintf(error, PERF_ERROR_BYTES, "cannot query port %u of %s: %s", i, name,
                     strerror(errno));
            continue;
        }
        found = attr.state == IBV_PORT_ACTIVE;
        if (found)
            *port = (struct perf_ibv_port){.number = (uint8_t)i, .mtu = mtu_bytes(attr.active_mtu)};
        else
            snprintf(error, PERF_ERROR_BYTES,
                     "port %u of %s is down (%s): set its interface up and check the cable", i,
                     name, ibv_port_state_str(attr.state));
    }
    snprintf(port->device, sizeof(port->device), "%.31s", name);
    ibv_close_device(ctx);
    return found;
}

int perf_ibv_find_port(const struct perf_options *options, struct perf_ibv_port *port, char *error)
{
    bool any = !perf_options_rdma_device(options->device), found = false, seen = false;
    struct ibv_device **list = ibv_get_device_list(NULL);
    char known[256];

    for (struct ibv_device **d = list; d && *d && !found; d++) {
        if (!any && strcmp(options->device, ibv_get_device_name(*d)) != 0)
            continue;
        seen = true;
        found = take_port(*d, options->ib_port, port, error);
    }
    if (list)
        ibv_free_device_list(list);
    if (found)
        error[0] = '\0'; /* what a port that is not taken left there would hide later errors */
    if (seen)
        return found ? 0 : -ENETDOWN;
    if (any)
        return perf_fail(error, -ENODEV,
                         "there is no RDMA device: 'rdma link' shows those of this machine");
    perf_ibv_has_device(options->device, known, sizeof(known));
    return perf_fail(error, -ENODEV, "there is no RDMA device '%s'; there is %s", options->device,
                     known[0] ? known : "none");
}
