/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all parts of mrd_perf share: the parameters of a run, limits, exit codes, errors.
 *
 * options_parse.c fills perf_options from the command line. The client sends its perf_params to the
 * server, whose own are ignored. perf_params_settle() replaces "not given" by numbers once the
 * message size of a run is known.
 */
#ifndef MRD_PERF_H
#define MRD_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mrd/mrd.h>

#include "tools/common/clock.h"
#include "tools/perf/test.h"

enum perf_exit {
    PERF_EXIT_OK = 0,
    PERF_EXIT_FAILED = 1, /* the run failed, or was not verified */
    PERF_EXIT_USAGE = 2,  /* wrong options */
};

enum {
    PERF_ERROR_BYTES = 512, /* room for a sentence wherever one is passed as `error` */
    PERF_NAME_BYTES = 16,
    PERF_DEVICE_BYTES = 32,
    PERF_HOST_BYTES = 128,
    PERF_PORTS_MAX = 256,    /* source ports, and paths */
    PERF_TRANSPORTS_MAX = 8, /* of one comparison */
    PERF_REPEAT_MAX = 1000,
    PERF_DEPTH_MAX = 15000, /* perftest's limit, too */
    PERF_QPS_MAX = 1024,
    PERF_POST_LIST_MAX = 64,
    PERF_THREADS_MAX = 64,
    PERF_PEERS_MIN = 10,
    PERF_PEERS_MAX = 100 * 1000,
    PERF_PEERS_DEFAULT = 1000,
    PERF_SCALE_ROWS_MAX = 16,
    PERF_SCALE_PEERS_MIN = 1,
    PERF_SCALE_PEERS_MAX = 1000 * 1000,
    PERF_SCALE_ACTIVE_MAX = 100 * 1000, /* more peers are measured idle only */
    PERF_SCALE_SIZE_MAX = 64 << 10,
    PERF_SCALE_CONTEXTS_MAX = 256, /* of the other end */
    PERF_ITERATIONS_MIN = 5,
    PERF_MTU_MAX = 16384,
    PERF_INTERVAL_MS_MAX = 60 * 1000,
    PERF_DURATION_S_MAX = 7 * 24 * 3600,
    PERF_SWEEP_FIRST_BIT = 1, /* -a: sizes 2^1 .. 2^23 */
    PERF_SWEEP_LAST_BIT = 23,
    PERF_PATHS_DEFAULT = 32, /* of the raw transports; mrd has its own */
    PERF_PAYLOAD_DEFAULT = 4096,
    PERF_ATOMIC_BYTES = 8,
    PERF_VERIFY_MEMORY_BYTES = 256 << 20, /* most that the slots of a verified run take */
};

#define PERF_MSEC_NS 1000000ull
#define PERF_SEC_NS  1000000000ull

struct json_object;

/* What both ends of a run have to agree on. "0: default" holds until perf_params_settle(). */
struct perf_params {
    enum perf_test test;
    char transport[PERF_NAME_BYTES];
    uint64_t size_bytes;
    uint64_t iterations; /* 0: default, or with duration_s unknown */
    uint32_t duration_s; /* 0: count iterations */
    bool run_infinitely; /* at the client: until a signal comes; duration_s is the most */
    uint32_t tx_depth;   /* 0: default; settled: messages outstanding a QP */
    uint32_t rx_depth;   /* 0: default; settled: receives posted a QP */
    uint32_t qps;
    uint32_t mtu; /* payload bytes a packet; with an RDMA device its path MTU; 0: what fits */
    int32_t inline_bytes; /* -1: default */
    uint32_t cq_mod;      /* 0: default; settled: every cq_mod-th message is signaled */
    uint32_t post_list;   /* work requests of a list that is posted; 0: default */
    uint32_t outs;  /* reads and atomics outstanding a QP; 0: tx_depth, or the device's most */
    uint32_t paths; /* 0: the mover's */
    char spray[PERF_NAME_BYTES];   /* empty: the library's default */
    char cc[PERF_NAME_BYTES];      /* likewise */
    char entropy[PERF_NAME_BYTES]; /* of paths over an RDMA device; likewise */
    char wait[PERF_NAME_BYTES];    /* auto, spin or sleep: for packets, over sockets */
    uint32_t threads;              /* of each end, which have a QP each */
    bool ordered;                  /* --order msg */
    bool histogram;                /* report all latencies, sorted */
    bool unsorted;                 /* report all latencies, as they were measured */
    bool write_with_imm;           /* each write ends with an immediate, which takes a receive */
    bool bidirectional;            /* both ends send at once */
    bool events;                   /* sleep until completions come */
    bool verify;
    uint32_t drop_ppm;
    uint64_t seed;
    uint32_t interval_ms;
    uint32_t warmup; /* settled: iterations ahead of the measured ones (latency) */
    uint32_t slots;  /* settled: verified messages in flight, each with its own place in memory */
};

void perf_params_init(struct perf_params *params);
/* Give every parameter that was left open its value for the size in `params`. */
void perf_params_settle(struct perf_params *params);
/* 0, or -EINVAL with a sentence. The client checks its options, the server what the client sent. */
int perf_params_check(const struct perf_params *params, char *error);
/* Put the parameters into a message to the other end. */
void perf_params_to_json(const struct perf_params *params, struct json_object *object);
/* 0, or -EPROTO: a member is missing. What they say is for perf_params_check() to judge. */
int perf_params_from_json(struct perf_params *params, struct json_object *object);

/* Print "mrd_perf: ...", a line on standard error. Returns `code`. */
enum perf_exit perf_complain(enum perf_exit code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Write a sentence into `error`, which has room for PERF_ERROR_BYTES. Returns `rc`. */
int perf_fail(char *error, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Run it in a child process, which does not outlive this one, and hand back the `bytes` at `result`
 * as they are in the end. Returns what it did; -errno with a sentence if the child died.
 */
int perf_in_child(int (*run)(void *result), void *result, size_t bytes, char *error);
/* Read the first line of a file, without its end. False if there is none. */
bool perf_read_line(const char *path, char *line, size_t len);
/* CPU time that the process has used, all threads, in seconds. */
double perf_cpu_s(void);

#endif
