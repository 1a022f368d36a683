/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run is made over, behind one table of operations.
 *
 * Both ends: open(), get_info(); the infos change sides; set_peer(); then client() or server() runs the test to its
 * end. The client, while it waits for the server's findings, calls idle(); then stats() on both ends, close().
 * open(), set_peer(), client() and server() return 0 or -errno, with a sentence in run->error.
 *
 * Adding a transport: one file with its operations, one line in transports.c.
 */
#ifndef MRD_PERF_TRANSPORT_H
#define MRD_PERF_TRANSPORT_H

#include <json-c/json.h>

#include "tools/perf/peer_state.h"
#include "tools/perf/run.h"

struct perf_transport_ops {
    const char *name;
    bool raw;           /* nothing is verified, and each message has at least a byte */
    bool rdma;          /* over the RDMA device of -d; -m is a path MTU */
    size_t state_bytes; /* zeroed memory for run->state */

    int (*open)(struct perf_run *run);
    /* Add what the other end needs to know. */
    void (*get_info)(struct perf_run *run, struct json_object *info);
    int (*set_peer)(struct perf_run *run, struct json_object *info);
    /* Both ends at the same time, before the test; may be NULL. Ends when both have sent "met". */
    int (*meet)(struct perf_run *run);
    int (*client)(struct perf_run *run);
    int (*server)(struct perf_run *run);
    /* Keep outstanding work going; may be NULL. */
    int (*idle)(struct perf_run *run);
    /* Set keys of the client's report that only the transport knows. */
    void (*stats)(const struct perf_run *run, struct json_object *report);
    void (*close)(struct perf_run *run);
    /* Make the state that s->peers peers need, and leave it there; NULL: a peer needs none. */
    int (*peer_state)(struct perf_state *s);
};

#endif
