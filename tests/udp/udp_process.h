/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes over the loopback, each with the public calls only.
 *
 * process_start() forks a child that runs a function with one end of a channel; start all children
 * before the first context is opened. The ends talk by process_tell() and process_hear();
 * process_join() expects the child to have returned from its function. node_open() makes a context
 * with all that moves messages. A must() that does not hold ends the child, or fails the test of
 * the parent. A child dies with its parent, is ended after its test, and does not outlive its
 * patience.
 */
#ifndef MRD_TESTS_UDP_PROCESS_H
#define MRD_TESTS_UDP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mrd/mrd.h"

#define MSEC_NS 1000000ull
#define SEC_NS  1000000000ull

enum {
    NODE_QPS_MAX = 8,
    COUNTERS_MAX = 256, /* room for all */
    PATIENCE_S = 600,   /* until a test that hangs fails: long, for machines that are busy */
};

struct process {
    pid_t pid;
    int channel;
};

struct node {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp[NODE_QPS_MAX];
    unsigned num_qps;
    struct mrd_mr *mr;
    uint8_t *memory;
};

/* What another needs to send to a node. */
struct node_name {
    char address[MRD_ADDRESS_MAX];
    uint32_t qpn[NODE_QPS_MAX];
};

#define must(condition) must_be((condition) ? true : false, #condition, __FILE__, __LINE__)
void must_be(bool ok, const char *what, const char *file, int line);

uint64_t clock_now_ns(void);
void sleep_ms(unsigned ms);

/* The child has a little more than PATIENCE_S to live. */
void process_start(struct process *p, void (*body)(int channel));
void process_join(struct process *p);
/* SIGKILL, and wait until it is gone. */
void process_kill(struct process *p);
/* SIGSTOP, and wait until it stands. */
void process_stop(const struct process *p);
void process_continue(const struct process *p);

void process_tell(int channel, const void *words, size_t bytes);
/* The next that was told, of exactly that size: true; false if there is none before `until_ns`. */
bool process_hear(int channel, void *words, size_t bytes, uint64_t until_ns);

/* `attr` as given, but at 127.0.0.1 if it names no address. Queues of `depth` work requests. */
void node_open(struct node *n, const struct mrd_context_attr *attr, unsigned num_qps,
               uint32_t depth, size_t memory_bytes);
void node_close(struct node *n);
struct node_name node_name(const struct node *n);

/* A handle to that address. */
struct mrd_ah *node_ah(struct node *n, const char *address);
uint64_t node_counter(const struct node *n, const char *name);

void node_receive(struct node *n, unsigned qp, uint64_t wr_id, size_t offset, uint32_t bytes);
void node_send(struct node *n, unsigned qp, struct mrd_ah *to, uint32_t qpn, uint64_t wr_id,
               size_t offset, uint32_t bytes);
/* The next completion, polling until `until_ns`: false if there is none. */
bool node_poll(struct node *n, struct mrd_wc *wc, uint64_t until_ns);

/* Bytes that follow from `seed`. */
void node_fill(struct node *n, size_t offset, size_t bytes, unsigned seed);
bool node_is_filled(const struct node *n, size_t offset, size_t bytes, unsigned seed);

#endif
