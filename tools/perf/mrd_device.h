/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which device of mrd a transport stands for: mrd-udp has the one, mrd-ibv one for each RDMA device.
 */
#ifndef MRD_PERF_MRD_DEVICE_H
#define MRD_PERF_MRD_DEVICE_H

#include "tools/perf/ibv_device.h"

struct perf_mrd_device {
    struct mrd_device device;
    struct perf_ibv_port port; /* of an RDMA device */
};

/* The device for mrd-udp, or with `rdma` for mrd-ibv. 0, or -errno with a sentence. */
int perf_mrd_find_device(const struct perf_options *options, bool rdma,
                         struct perf_mrd_device *device, char *error, size_t len);
/* What -m, -x, -i and --entropy mean to an RDMA device's context. `mtu` is the path's, 0: the device's. */
void perf_mrd_rdma_attr(const struct perf_options *options, const struct perf_mrd_device *device,
                        uint32_t mtu, const char *entropy, struct mrd_context_attr *attr);

#endif
