/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many peers of one context cost: mrd_perf scale. Memory a peer, and messages a second.
 *
 * Each figure is made in a network namespace of its own, whose loopback device answers for all of
 * 10.0.0.0/8: what is sent to such an address leaves from the same one. So two contexts that are
 * bound to no address are N peers of each other, one for each of N addresses. Each peer is a whole
 * one at both ends: an entry, sequence numbers, windows, paths, packets through the kernel. With
 * --contexts each of the N peers is a context of its own instead, bound to one of the addresses.
 *
 * scale.c takes the numbers of peers one by one, scale_world.c makes the namespace and the two
 * processes, scale_client.c has the context that is measured, scale_idle.c gives it idle peers, and
 * scale_server.c is the other end.
 */
#ifndef MRD_PERF_SCALE_H
#define MRD_PERF_SCALE_H

#include <stdint.h>
#include <sys/types.h>

#include <mrd/mrd.h>

#include "tools/perf/measure.h"
#include "tools/perf/options.h"

enum {
    SCALE_SIZE_DEFAULT = 64, /* bytes a message */
    SCALE_BATCH = 64,        /* work requests posted, and completions polled, at a time */
    SCALE_ADDRESS_FIRST = 1, /* the second byte of the first address: 10.1.0.0 */
};

/* Messages to all peers in turn. Packets are those with data, `again` those of them repeated. */
struct scale_rate {
    uint64_t messages, packets, again;
    double seconds, cpu_s, server_cpu_s;
};

/* One measurement: made in a process of its own, which hands it back. */
struct scale_run {
    const struct perf_options *options;
    uint32_t peers;
    uint32_t paths; /* asked for; 0: the library's default */
    bool idle;      /* nothing is ever heard of the peers */

    char error[PERF_ERROR_BYTES];
    uint32_t paths_used; /* in force */
    char cipher[32];     /* likewise; empty: packets are in the clear */
    /* Memory of the process since the context was to be opened: with no peer, and with all. */
    int64_t empty_bytes, bytes;
    int64_t handle_bytes; /* of these, of all address handles */
    int64_t server_bytes; /* the same with all peers at the other end */
    /* Idle peers: how many were made at a time, and memory with the first of them. */
    uint32_t at_once;
    int64_t first_bytes;
    uint32_t even_depth; /* messages outstanding, in all, for `even` */
    struct scale_rate rate, even;
    struct perf_cpu_load load; /* of the machine, meanwhile */
    bool no_network;           /* there can be no network namespace here */
};

/* Where messages go. */
struct scale_place {
    uint16_t port;
    uint32_t qpn;
    uint64_t addr; /* of the memory that writes go to */
    uint32_t rkey;
};

/* What the server tells of each context when all are ready, and once when it has ended. */
struct scale_word {
    int rc;
    char error[PERF_ERROR_BYTES];
    struct scale_place place;
    int64_t bytes;
    uint64_t messages;
    double user_s; /* user time of the server */
};

/* What both ends have. */
struct scale_end {
    struct scale_run *run;
    struct mrd_context *ctx;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    struct mrd_ah **ahs;
    int64_t before_bytes; /* memory of the process */
    uint64_t busy_ns;     /* when the last completion came */
    char *error;          /* room for a sentence */
};

/* ------------------------------------------------------------------------- scale_options.c */

/* Take the words after "scale": numbers of peers. 0, or -EINVAL with a sentence. */
int perf_scale_take(struct option_line *line, int count, char **words);
/* 0, or -EINVAL with a sentence. */
int perf_scale_check(const struct option_line *line);

/* ------------------------------------------------------------------------- scale.c */

/* mrd_perf scale: the exit code. */
int perf_scale_run(const struct perf_options *options);

/* ------------------------------------------------------------------------- scale_world.c */

/* Fill in the results. 0, or -errno with run->error. */
int scale_measure(struct scale_run *run);
/* Give this process a network namespace as above. 0, or -errno with a sentence. */
int scale_own_network(char *error);

/* ------------------------------------------------------------------------- scale_end.c */

/*
 * Open the context for all peers, unless `more` says how many, with a queue pair of these depths
 * over `bytes` of memory at `at`. 0, or -errno with a sentence.
 */
int scale_open(struct scale_end *end, const struct mrd_context_attr *more,
               const struct mrd_qp_cap *cap, void *at, size_t bytes);
/* A library call failed: -errno with a sentence. */
int scale_fail(const struct scale_end *end, int rc, const char *what);
/* Memory of the process since scale_open() began. */
int scale_memory(const struct scale_end *end, int64_t *bytes);
/*
 * After each poll of these `count` ends; `busy`: it found something. If nothing has come for a
 * while, sleeps until a packet comes or a timer is due: where others want the cores, who polls on is
 * late when it counts.
 */
void scale_wait(struct scale_end *const *ends, unsigned count, bool busy);
/* A counter of the context. */
uint64_t scale_counter(const struct scale_end *end, const char *name);
enum { SCALE_ADDRESS_BYTES = 16 };
/* The address of the peer of that number. */
void scale_address(char address[SCALE_ADDRESS_BYTES], uint32_t peer);
/* Contexts of the other end: one of all peers, or of each. */
uint32_t scale_contexts(const struct scale_run *run);
/* Room for a handle of each peer; before scale_open(). Then the handles, for the places in turn. */
int scale_alloc_handles(struct scale_end *end);
int scale_make_handles(struct scale_end *end, const struct scale_place *places,
                       uint32_t num_places);
/* 0, or -EPROTO with a sentence: the context has not an entry for each peer. */
int scale_check_peers(const struct scale_end *end);
/* Messages outstanding, over all peers. */
uint32_t scale_depth(const struct perf_options *options);

/* ------------------------------------------------------------------------- the ends */

/* Serve until `fd` is closed at the other side; says words on it. */
void scale_server(struct scale_run *run, int fd);
/* Measure; `fd` leads to the server, a process `server`. 0, or -errno with run->error. */
int scale_client(struct scale_run *run, int fd, pid_t server);
int scale_idle(struct scale_run *run);

#endif
