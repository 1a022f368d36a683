/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric of a run: its topology, what follows from it, and the simulation made of it.
 *
 * simx_net_init() from a configuration; simx_net_create() for each run. run.h has the times that no
 * run can beat.
 */
#ifndef SIMX_NET_H
#define SIMX_NET_H

#include <stddef.h>

#include "tools/sim/cm.h"
#include "tools/sim/config.h"

struct simx_net {
    struct mrd_sim_topology topology;
    bool is_htsim;         /* bytes on the wire are counted as uet-htsim does */
    uint64_t host_bps;     /* of a host's link */
    uint32_t data_bytes;   /* overhead of a data packet on the wire */
    uint32_t single_bytes; /* of the only one of a message */
    uint32_t ack_bytes;    /* of an ack on the wire */
    uint32_t packet_bytes; /* of a full data packet on the wire */
    double base_rtt_ns; /* of a full packet and its ack on the longest path, nothing else there */
    double bdp_bytes;   /* host_bps x base RTT; with a host_ratio that of the links above */
    struct mrd_sim_link link; /* of all switch ports: queue and marks */
};

/* 0; -EINVAL with a sentence. */
int simx_net_init(struct simx_net *net, const struct simx_config *config);
/* NULL with a sentence. The faults of the configuration are scheduled. */
struct mrd_sim *simx_net_create(const struct simx_net *net, const struct simx_config *config,
                                uint64_t seed);
/*
 * Payload that a host's link carries in messages of `bytes`, their packets back to back. Messages
 * that share a packet, as small ones of mrd do, can beat it.
 */
double simx_net_payload_gbps(const struct simx_net *net, const struct simx_config *config,
                             uint64_t bytes);
/* Does a link of that name lead from a switch to one above it? */
bool simx_net_is_uplink(const char *link);

#endif
