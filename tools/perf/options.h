/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line, and what it asks for.
 *
 * perf_options_parse() fills perf_options or says what is wrong with the arguments; it prints
 * nothing and does not exit.
 */
#ifndef MRD_PERF_OPTIONS_H
#define MRD_PERF_OPTIONS_H

#include <stdio.h>
#include <string.h>

#include "tools/perf/perf.h"

struct perf_options {
    struct perf_params params; /* not settled: sizes come one by one with -a */
    bool compare;
    bool doctor; /* no test: what the network gives */
    bool state;  /* no test: what a peer costs in memory */
    uint32_t peers;
    bool scale; /* no test: what many peers cost */
    uint32_t scale_peers[PERF_SCALE_ROWS_MAX];
    unsigned num_scale_peers;
    bool scale_contexts; /* each peer is a context of its own */
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
    uint16_t cpus[2]; /* of --bind: client's, server's */
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

enum perf_parse {
    PERF_PARSE_RUN = 0,
    PERF_PARSE_HELP,
    PERF_PARSE_VERSION,
};

/* What to do (enum perf_parse), or -EINVAL with a sentence in `error`. */
int perf_options_parse(struct perf_options *options, int argc, char **argv, char *error);

/* A command line that is being read; options_check.c judges it once all options are known. */
struct perf_cli {
    struct perf_options *o;
    /* What is given, beyond the values: for conflicts that defaults would hide. */
    struct perf_given {
        bool size, transport, repeat, two_devices, peers;
    } given;
    char *error;
};

/* Choose what was left open: the transport by the device, the size by the test. */
void perf_options_default(struct perf_cli *c);
/* 0, or -EINVAL with a sentence. */
int perf_options_check(const struct perf_cli *c);

/* The text of --help. */
void perf_options_help(FILE *out);

/* An option of perftest that has no place here, with what to use instead. */
struct perf_unsupported {
    char letter;         /* 0: none */
    const char *name;    /* long option, without dashes */
    int has_arg;         /* as in struct option */
    const char *instead; /* a clause that ends "... is not supported: " */
};

/* All of them; ends with a NULL name. */
const struct perf_unsupported *perf_unsupported(void);

#endif
