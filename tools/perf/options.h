/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command line asks for; options_parse.h reads one.
 */
#ifndef MRD_PERF_OPTIONS_H
#define MRD_PERF_OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "tools/perf/perf.h"

struct perf_options {
    struct perf_params params; /* not settled: sizes come one by one with -a */
    bool compare;
    bool state; /* no test: what a peer costs in memory */
    uint32_t peers;
    bool all_sizes, help, version;
    char transports[PERF_TRANSPORTS_MAX][PERF_NAME_BYTES]; /* of compare and state */
    unsigned num_transports;
    unsigned repeat;

    /* Where this end runs. */
    char host[PERF_HOST_BYTES]; /* empty: server */
    uint16_t port;
    bool local, forever, ipv6;
    char device[PERF_DEVICE_BYTES];        /* empty: the transport's first */
    char server_device[PERF_DEVICE_BYTES]; /* of --local's server */
    int gid_index;                         /* of the RDMA device's port; -1: chosen */
    uint8_t ib_port;                       /* 0: the first active one */
    char bind_address[PERF_HOST_BYTES];    /* empty: any */
    uint16_t source_ports[PERF_PORTS_MAX];
    unsigned num_source_ports;
    int cpus[2]; /* client's, server's; -1: not pinned by --bind */
    unsigned num_cpus;

    /* Output. */
    bool gbits, quiet_cpufreq, out_json;
    char out_json_file[512]; /* empty: none */
};

/* Does `device`, as -d names it, stand for an RDMA device? The others are "udp" and none. */
static inline bool perf_options_rdma_device(const char *device)
{
    return device[0] && strcmp(device, "udp") != 0;
}

#endif
