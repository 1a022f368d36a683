/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA devices of this machine, by name. Without libibverbs there are none, and
 * perf_ibv_missing() says why.
 */
#ifndef MRD_PERF_IBV_DEVICE_H
#define MRD_PERF_IBV_DEVICE_H

#include "tools/perf/options.h"

/* The port that this end uses. */
struct perf_ibv_port {
    char device[PERF_DEVICE_BYTES];
    uint8_t number;
    uint32_t mtu; /* active */
};

/* NULL, or why this mrd_perf knows no RDMA devices. */
const char *perf_ibv_missing(void);
/* Is there a device of that name? If not, `known` gets the names that there are: "rxe0, rxe1". */
bool perf_ibv_has_device(const char *name, char *known, size_t len);
/*
 * Find the port that -d and -i name; by default the first active one. 0, or -errno with a sentence:
 * there is no such device or port, or it is down.
 */
int perf_ibv_find_port(const struct perf_options *options, struct perf_ibv_port *port, char *error);

#endif
