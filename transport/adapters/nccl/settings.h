/* SPDX-License-Identifier: BSD-2-Clause */
/* What the environment says, and the network devices that NCCL is told of. */
#ifndef MRD_NCCL_SETTINGS_H
#define MRD_NCCL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SETTINGS_DEVICES_MAX = 8,
    SETTINGS_LANES_MAX = 32,
    SETTINGS_GROUP_MAX = 8, /* receives of a group: as many as NCCL ever asks for */
};

struct settings {
    unsigned lanes;     /* MRD_NCCL_CONTEXTS: contexts of a device, each with its thread */
    unsigned group_max; /* MRD_NCCL_MAX_RECVS */
    uint32_t
        eager_bytes;  /* MRD_NCCL_EAGER_KB: sends up to this need not wait for a receive; 0: none */
    uint64_t spin_ns; /* MRD_NCCL_SPIN_US: so long a thread without work looks for some */
    uint64_t timeout_ns;  /* MRD_NCCL_TIMEOUT: of a silent peer */
    uint32_t speed_mbps;  /* MRD_NCCL_SPEED; 0: what the interface says */
    uint32_t rx_drop_ppm; /* MRD_NCCL_DROP_PPM: for tests */
};

struct settings_device {
    char name[32];    /* of the interface */
    char address[64]; /* numeric; empty: the library chooses */
    char pci[256];    /* folder in /sys; empty: it is not of PCI */
    int speed_mbps;   /* 0: unknown */
};

/* Reads the variables. False: one of them is malformed; *error says which. */
bool settings_read(struct settings *s, char *error, size_t len);

/*
 * The interfaces that are up and have an address, as NCCL chooses them: NCCL_SOCKET_IFNAME is a
 * list of prefixes, after '^' of those that are not wanted, after '=' of whole names. Without it
 * neither the loopback nor docker's, unless there are no others. NCCL_SOCKET_FAMILY is AF_INET or
 * AF_INET6. Where MRD_DEVICE names a device it is the only one. Returns their number.
 */
int settings_devices(struct settings_device *devices, int max);

#endif
