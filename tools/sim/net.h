/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric of a run: its topology, what follows from it, and the simulation made of it.
 *
 * simx_net_init() from a configuration; simx_net_create() for each run; simx_net_ideal_us() for what nothing can beat.
 */
#ifndef SIMX_NET_H
#define SIMX_NET_H

#include <stddef.h>

#include "tools/sim/cm.h"
#include "tools/sim/config.h"

struct simx_net {
    struct mrd_sim_topology topology;
    uint64_t host_bps;     /* of a host's link */
    uint32_t data_bytes;   /* overhead of a data packet on the wire */
    uint32_t single_bytes; /* of the only one of a message */
    uint32_t ack_bytes;    /* of an ack on the wire */
    uint32_t packet_bytes; /* of a full data packet on the wire */
    double base_rtt_ns; /* of a full packet and its ack on the longest path, nothing else there */
    double bdp_bytes;   /* host_bps x base RTT */
    struct mrd_sim_link link; /* of all switch ports: queue and marks */
};

/* 0; -EINVAL with a sentence. */
int simx_net_init(struct simx_net *net, const struct simx_config *config, char *error, size_t len);
/* NULL with a sentence. The faults of the configuration are scheduled. */
struct mrd_sim *simx_net_create(const struct simx_net *net, const struct simx_config *config,
                                uint64_t seed, char *error, size_t len);
/* Time of a lone flow of `bytes` on the longest path, until its sender has the last ack. */
double simx_net_lone_us(const struct simx_net *net, const struct simx_config *config,
                        uint64_t bytes);
/* How far apart two hosts are. */
enum simx_distance { SIMX_SAME_LEAF, SIMX_SAME_POD, SIMX_FAR, SIMX_DISTANCES };

/* With two tiers all leaves are of one pod. */
enum simx_distance simx_net_distance(const struct simx_net *net, uint32_t a, uint32_t b);
/* Time of a lone flow of `bytes` over that distance, until the last byte is there. */
double simx_net_way_us(const struct simx_net *net, const struct simx_config *config,
                       enum simx_distance distance, uint64_t bytes);
/* And of an ack back. */
double simx_net_back_us(const struct simx_net *net, enum simx_distance distance);
/*
 * Payload that a host's link carries in messages of `bytes`, their packets back to back. Messages
 * that share a packet, as small ones of mrd do, can beat it.
 */
double simx_net_payload_gbps(const struct simx_net *net, const struct simx_config *config,
                             uint64_t bytes);
/*
 * No run can be faster: the greater of the lone flow on the longest path, for the largest flow, and for each host link
 * the bytes that must cross it at its rate, with the way there and back.
 */
double simx_net_ideal_us(const struct simx_net *net, const struct simx_config *config,
                         const struct simx_cm *cm);

#endif
