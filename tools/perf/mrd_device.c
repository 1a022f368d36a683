/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/mrd.h"

int perf_mrd_open_device(const struct perf_options *options, const struct perf_params *p,
                         const struct perf_ibv_port *port, struct mrd_context_attr *attr,
                         struct mrd_context **ctx, char *error)
{
    const char *name = port ? port->device : "udp";
    struct mrd_device **list = mrd_get_device_list(NULL), **device = list;

    if (!list)
        return perf_fail(error, -ENOMEM, "%s", mrd_last_error());
    while (*device && strcmp(name, mrd_get_device_name(*device)) != 0)
        device++;
    if (port) {
        attr->port_num = port->number;
        attr->mtu = p->mtu ? perf_ibv_mtu_payload(p->mtu) : 0;
        attr->entropy = p->entropy[0] ? p->entropy : NULL;
    }
    if (port && options->gid_index >= 0) {
        attr->comp_mask |= MRD_CONTEXT_ATTR_GID_INDEX;
        attr->gid_index = (uint32_t)options->gid_index;
    }
    if (options->key_file[0])
        attr->key_file = options->key_file;
    *ctx = *device ? mrd_open_device(*device, attr) : NULL;
    int rc = *ctx ? 0 : -errno;
    if (!*device)
        rc = perf_fail(error, -ENODEV, "mrd cannot use the device %s: it is not among its devices",
                       name);
    else if (!*ctx)
        perf_fail(error, rc, "cannot open the device: %s", mrd_last_error());
    mrd_free_device_list(list);
    return rc;
}
