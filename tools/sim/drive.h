/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What carries the flows of a run over its fabric: mrd's engine, or a model of another transport,
 * behind one interface.
 *
 * open(); start() for each flow when its time comes; `done` is called from inside
 * mrd_sim_run_until(); close().
 */
#ifndef SIMX_DRIVE_H
#define SIMX_DRIVE_H

#include <stddef.h>

#include "tools/sim/cm.h"
#include "tools/sim/config.h"
#include "tools/sim/net.h"

/* Events of a flow. */
enum simx_flow_event {
    SIMX_SENT,     /* its sender has the completion */
    SIMX_RECEIVED, /* its last byte is at the target; only for flows that fire a trigger by it */
    SIMX_FAILED,
};

struct simx_drive_env {
    const struct simx_config *config;
    const struct simx_net *net;
    const struct simx_cm *cm;
    struct mrd_sim *sim;
    /* In the thread that runs the host at which it happens; `why` is static. */
    void (*event)(void *arg, uint32_t flow, enum simx_flow_event event, const char *why);
    void *arg;
};

/* Sums over all hosts. */
struct simx_totals {
    uint64_t packets; /* data packets sent, each transmission */
    uint64_t retransmitted;
    uint64_t spurious; /* data packets that came to a receiver that had them */
    uint64_t acks;
    uint64_t timeouts;
    uint64_t cuts; /* of windows or rates; UINT64_MAX: not counted */
    uint64_t paths_suspended, paths_replaced;
    /* Where they are counted; 0: they are not. */
    uint64_t state_bytes; /* of peers or connections, in use now */
    /*
     * What a host holds for a peer or connection: that was used once; that data goes to and comes
     * from.
     */
    uint64_t idle_peer_bytes, active_peer_bytes;
};

struct simx_drive;

struct simx_drive_ops {
    /* NULL with a sentence. */
    struct simx_drive *(*open)(const struct simx_drive_env *env);
    /* Starts the flow now. Returns 0 or -errno. */
    int (*start)(struct simx_drive *drive, uint32_t flow);
    void (*totals)(struct simx_drive *drive, struct simx_totals *totals);
    /* Returns the payload that a host has received so far, each byte once. */
    uint64_t (*received)(struct simx_drive *drive, uint32_t host);
    /* Returns the window of a flow's sender in bytes. NULL: the transport does not expose one. */
    uint64_t (*window)(struct simx_drive *drive, uint32_t flow);
    void (*close)(struct simx_drive *drive);
};

/* The model: rc and irn. */
extern const struct simx_drive_ops simx_drive_mrd, simx_drive_model;

#endif
