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

#include "tools/common/options.h"
#include "tools/perf/perf.h"

struct perf_keygen {
    bool asked; /* no test: a file of keys */
    bool add;   /* to the file that is there */
    uint32_t id;
    bool next_id; /* not `id`, but the next one after that of the file's first key */
    char cipher[24];
    char file[512];
};

struct perf_options {
    struct perf_params params; /* not settled: sizes come one by one with -a. The first member */
    bool compare;
    bool doctor; /* no test: what the network gives */
    bool state;  /* no test: what a peer costs in memory */
    uint32_t peers;
    bool scale; /* no test: what many peers cost */
    uint32_t scale_peers[PERF_SCALE_ROWS_MAX];
    unsigned num_scale_peers;
    bool scale_contexts; /* each peer is a context of its own */
    struct perf_keygen keygen;
    bool all_sizes;
    char transports[PERF_TRANSPORTS_MAX][PERF_NAME_BYTES]; /* of compare and state */
    unsigned num_transports;
    unsigned repeat;

    /* Where this end runs. */
    char host[PERF_HOST_BYTES]; /* empty: server */
    uint16_t port;
    bool local, forever, ipv6;
    char device[PERF_DEVICE_BYTES];        /* empty: the transport's first */
    char server_device[PERF_DEVICE_BYTES]; /* of --local's server */
    bool two_devices;                      /* -d named both */
    int gid_index;                         /* of the RDMA device's port; -1: chosen */
    uint8_t ib_port;                       /* 0: the first active one */
    char bind_address[PERF_HOST_BYTES];    /* empty: any */
    char key_file[512];                    /* empty: that of MRD_KEY_FILE, or none */
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

/* What the program is to do, in the words of its command line: the modes of options. */
enum perf_mode {
    PERF_MODE_TEST,
    PERF_MODE_COMPARE,
    PERF_MODE_DOCTOR,
    PERF_MODE_STATE,
    PERF_MODE_SCALE,
    PERF_MODE_KEYGEN,
};

/* options_table.c: all options, but for those of perftest that are not supported. */
extern const struct option_table perf_option_table;
/* Of key files; the last is NULL. */
extern const char *const perf_cipher_names[];
/* What all options start with. */
void perf_options_init(struct perf_options *options);
/* False: there is no room for one more, or the name is empty or too long. */
bool perf_options_add_transport(struct perf_options *options, const char *name, size_t len);

/*
 * A command line is judged once all options are known: options_check.c. The members are those of
 * struct perf_options.
 */
/* Choose what was left open: the transport by the device, the size by the test. */
void perf_options_default(struct option_line *line);
/* 0, or -EINVAL with a sentence. */
int perf_options_check(const struct option_line *line);

/* The text of --help. */
void perf_options_help(FILE *out);

/* Options of perftest that have no place here, with what to use instead. */
struct perf_unsupported {
    const char *options; /* words apart by blanks: "X:name", or "name" where there is no letter */
    const char *instead; /* a clause that ends "... is not supported: " */
};

/* The last has no options. */
extern const struct perf_unsupported perf_unsupported[];
/* -EINVAL with a sentence if one of them has that name, or letter if that is NULL; else 0. */
int perf_explain_perftest(const char *name, int letter, char *error);

#endif
