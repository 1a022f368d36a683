/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run is made over, behind one table of operations.
 *
 * Both ends: open(), get_info(); the infos change sides; set_peer(), connect_qps(). Then bw.c or
 * lat.c runs the test: post_recv(), post_send(), poll_cq(). The client calls stats() for its
 * report, both ends close(). All that return an int return -errno with a sentence in run->error if
 * they fail.
 *
 * Adding a transport: one file with its operations, and one line in transports.c.
 */
#ifndef MRD_PERF_TRANSPORT_H
#define MRD_PERF_TRANSPORT_H

#include <json-c/json.h>

#include "tools/perf/run.h"
#include "tools/perf/state.h"

struct perf_transport_ops {
    const char *name;
    bool raw;             /* nothing is verified, and each message has at least a byte */
    bool lossy;           /* what is lost is not repeated */
    bool rdma;            /* over the RDMA device of -d; -m is a path MTU */
    bool ordered;         /* messages arrive in order, whatever --order says */
    bool manual_progress; /* only polling keeps its packets going */
    bool requests;        /* it has reads and atomics */
    bool mutual;          /* both ends can send at once */
    size_t state_bytes;   /* zeroed memory for run->state */

    int (*open)(struct perf_run *run);
    /* Add what the other end needs to know. */
    void (*get_info)(struct perf_run *run, struct json_object *info);
    /* Connect with the other end, and post the first receives. */
    int (*set_peer)(struct perf_run *run, struct json_object *info);
    /*
     * Both ends at once, before the test: exchange first packets, so that it measures peers that
     * know each other. Ends when both have sent "met". May be NULL.
     */
    int (*connect_qps)(struct perf_run *run);

    /* Messages n .. n + count - 1 of a queue pair: how many were posted, fewer if it is full. */
    int (*post_send)(struct perf_run *run, uint32_t qp, uint64_t n, uint32_t count);
    /* Receives first .. first + count - 1 of a queue pair. NULL: messages need none. */
    int (*post_recv)(struct perf_run *run, uint32_t qp, uint32_t first, uint32_t count);
    /* The number of completions, up to `max`; a failed one is an error. */
    int (*poll_cq)(struct perf_run *run, struct perf_wc *wcs, int max);
    /* Tell the client that messages below `credit` are checked: 1, or 0 if the queue is full. */
    int (*post_credit)(struct perf_run *run, uint64_t credit);
    /* Have a completion come when all messages of a queue pair are acknowledged. May be NULL. */
    int (*post_flush)(struct perf_run *run, uint32_t qp);
    /* After each poll; `busy`: it found something. May sleep, or give the peer up. May be NULL. */
    int (*wait)(struct perf_run *run, uint64_t now_ns, bool busy);
    /* What the device has counted; NULL: it does not count. */
    uint64_t (*count_received_bytes)(struct perf_run *run);
    uint64_t (*count_retransmissions)(struct perf_run *run);

    /* Set keys of the client's report that only the transport knows. */
    void (*stats)(const struct perf_run *run, struct json_object *report);
    void (*close)(struct perf_run *run);
    /* Make the state that s->peers peers need, and leave it there; NULL: a peer needs none. */
    int (*peer_state)(struct perf_state *s);
};

/* transports.c: all of them. */
/* NULL: no such transport. */
const struct perf_transport_ops *perf_transport_find(const char *name);
/* Is there a device as -d names it? 0, or -ENODEV with a sentence. */
int perf_transport_check_device(const char *device, char *error);
/* Ends with NULL. */
const char *const *perf_transport_names(void);

#endif
