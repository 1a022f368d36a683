/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of this machine, and the packet mover behind each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/backend.h"
#include "transport/error.h"
#include "transport/sim/sim_host.h"

enum { DEVICES_MAX = 16 };

/* The array that users see and what it points to, in one block. */
struct device_list {
    struct mrd_device *entry[DEVICES_MAX + 1];
    struct mrd_device device[DEVICES_MAX];
};

struct mrd_device **mrd_get_device_list(int *num_devices)
{
    struct device_list *list = calloc(1, sizeof(*list));

    if (!list) {
        mrd_error_set("no memory for the device list");
        errno = ENOMEM;
        return NULL;
    }

    unsigned n = mrd_udp_devices(list->device, DEVICES_MAX);

    for (unsigned i = 0; i < n; i++)
        list->entry[i] = &list->device[i];
    if (num_devices)
        *num_devices = (int)n;
    return list->entry;
}

void mrd_free_device_list(struct mrd_device **list)
{
    free(list); /* entry[] opens the block */
}

const char *mrd_get_device_name(const struct mrd_device *device)
{
    return device->name;
}

const struct mrd_backend_ops *mrd_backend_find(const struct mrd_device *device)
{
    static const struct mrd_backend_ops *const movers[] = {&mrd_udp_ops, &mrd_sim_ops};

    for (unsigned i = 0; i < sizeof(movers) / sizeof(movers[0]); i++)
        if (!strcmp(device->transport, movers[i]->transport))
            return movers[i];
    return NULL;
}
