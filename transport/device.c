/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of this machine, and the packet mover behind each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/backend.h"
#include "transport/error.h"
#include "transport/movers/sim/sim_host.h"

enum { DEVICES_MAX = 1024 };

/* In the order of mrd_get_device_list(); mrd_open_device(NULL) opens the first device. */
static const struct mover {
    const struct mrd_backend_ops *ops;
    /* NULL: not listed, users make them. */
    unsigned (*devices)(struct mrd_device *list, unsigned max);
} movers[] = {
    {&mrd_udp_ops, mrd_udp_devices},
#ifdef MRD_HAVE_IBV
    {&mrd_ibv_ops, mrd_ibv_devices},
#endif
    {&mrd_sim_ops, NULL},
};
enum { NUM_MOVERS = sizeof(movers) / sizeof(movers[0]) };

/* What mrd_get_device_list() returns, in one block: the array of pointers and the devices. */
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

    unsigned n = 0;

    for (unsigned i = 0; i < NUM_MOVERS; i++)
        if (movers[i].devices)
            n += movers[i].devices(list->device + n, DEVICES_MAX - n);
    for (unsigned i = 0; i < n; i++)
        list->entry[i] = &list->device[i];
    if (num_devices)
        *num_devices = (int)n;
    return list->entry;
}

void mrd_free_device_list(struct mrd_device **list)
{
    free(list); /* entry[] is the beginning of the block */
}

const char *mrd_get_device_name(const struct mrd_device *device)
{
    return device->name;
}

const struct mrd_backend_ops *mrd_backend_find(const struct mrd_device *device)
{
    for (unsigned i = 0; i < NUM_MOVERS; i++)
        if (!strcmp(device->transport, movers[i].ops->transport))
            return movers[i].ops;
    return NULL;
}
