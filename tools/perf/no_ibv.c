/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built instead of the files in verbs/ where libibverbs is missing. The RDMA transports keep their
 * names, so that the user is told why they are not there.
 */
#include <errno.h>
#include <stdio.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/transport.h"

const char *perf_ibv_missing(void)
{
    return "this mrd_perf was built without libibverbs (Debian: libibverbs-dev)";
}

bool perf_ibv_has_device(const char *name, char *known, size_t len)
{
    (void)name;
    (void)len;
    known[0] = '\0';
    return false;
}

int perf_ibv_find_port(const struct perf_options *options, struct perf_ibv_port *port, char *error)
{
    (void)options;
    (void)port;
    return perf_fail(error, -ENODEV, "%s", perf_ibv_missing());
}

const struct perf_transport_ops perf_rc_ops = {.name = "rc", .rdma = true};
const struct perf_transport_ops perf_raw_ud_ops = {.name = "raw-ud", .raw = true, .rdma = true};
