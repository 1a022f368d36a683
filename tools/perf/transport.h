/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run is made over, behind one table of operations.
 *
 * Both ends: open(), get_info(); the infos change sides; set_peer(); then client() or server() runs the test to its
 * end. The client, while it waits for the server's findings, calls idle(); then stats() on both ends, close().
 * open(), set_peer(), client() and server() return 0 or -errno, with a sentence in run->error.
 *
 * Adding a transport: one file with its operations, one line in transport.c.
 */
#ifndef MRD_PERF_TRANSPORT_H
#define MRD_PERF_TRANSPORT_H

#include <json-c/json.h>

#include "tools/perf/run.h"
#include "tools/perf/state.h"

struct perf_transport_ops {
    const char *name;
    bool raw;           /* nothing is verified, and each message has at least a byte */
    bool rdma;          /* over the RDMA device of -d; -m is a path MTU */
    size_t state_bytes; /* zeroed memory for run->state */

    int (*open)(struct perf_run *run);
    /* Add what the other end needs to know. */
    void (*get_info)(struct perf_run *run, struct json_object *info);
    int (*set_peer)(struct perf_run *run, struct json_object *info);
    /* Both ends at the same time, before the test; may be NULL. Ends with perf_run_say_met() and run->peer_met. */
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

extern const struct perf_transport_ops perf_mrd_udp_ops;
extern const struct perf_transport_ops perf_mrd_ibv_ops;
extern const struct perf_transport_ops perf_rc_ops;
extern const struct perf_transport_ops perf_raw_ud_ops;
extern const struct perf_transport_ops perf_raw_udp_ops;
extern const struct perf_transport_ops perf_tcp_ops;

/* NULL: no such transport. */
const struct perf_transport_ops *perf_transport_find(const char *name);
/* Is there a device as -d names it? 0, or -ENODEV with a sentence. */
int perf_transport_check_device(const struct perf_options *options, char *error, size_t len);
/* "mrd-udp, mrd-ibv, rc, raw-ud, raw-udp, tcp" */
const char *perf_transport_names(void);

#endif
