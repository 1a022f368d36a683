/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd.h"

#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"

/* mrd's device of that name; NULL: there is none. */
static const struct mrd_device *device_named(struct mrd_device **list, const char *name)
{
    for (struct mrd_device **d = list; *d; d++) {
        if (strcmp(name, mrd_get_device_name(*d)) == 0)
            return *d;
    }
    return NULL;
}

int perf_mrd_find_device(const struct perf_options *options, bool rdma,
                         struct perf_mrd_device *device, char *error)
{
    const char *name = "udp";

    *device = (struct perf_mrd_device){0};
    if (rdma) {
        int rc = perf_ibv_find_port(options, &device->port, error);
        if (rc)
            return rc;
        name = device->port.device;
    }
    struct mrd_device **list = mrd_get_device_list(NULL);
    if (!list)
        return perf_fail(error, -ENOMEM, "%s", mrd_last_error());
    const struct mrd_device *found = device_named(list, name);
    if (found)
        device->device = *found;
    mrd_free_device_list(list);
    if (found)
        return 0;
    return perf_fail(error, -ENODEV, "mrd cannot use the device %s: it is not among its devices",
                     name);
}

void perf_mrd_rdma_attr(const struct perf_options *options, const struct perf_mrd_device *device,
                        uint32_t mtu, const char *entropy, struct mrd_context_attr *attr)
{
    attr->port_num = device->port.number;
    attr->mtu = mtu ? perf_ibv_mtu_payload(mtu) : 0;
    attr->entropy = entropy[0] ? entropy : NULL;
    if (options->gid_index < 0)
        return;
    attr->comp_mask |= MRD_CONTEXT_ATTR_GID_INDEX;
    attr->gid_index = (uint32_t)options->gid_index;
}
