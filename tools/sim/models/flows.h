/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of other transports on the simulated fabric, to compare mrd with. Packets have headers and
 * sizes, but no payload.
 *
 *   rc    RoCEv2's reliable connection: go-back-N, one NAK for each gap, a local ack timeout
 *   irn   IRN: selective repeat, and at most a BDP in flight
 *
 * Both run with or without DCQCN. A flow is a queue pair that keeps its source port, so ECMP gives
 * it one path; its acks have another. It is over when its sender has received the last ack.
 *
 * mrd_sim_create(); model_flows_create(), which takes every host; model_flows_start() before or
 * during mrd_sim_run_until(), also from the callbacks; model_flows_destroy()
 * before mrd_sim_destroy().
 *
 * A host sends a data packet when its link is idle. The flows that may send take turns; acks do not
 * wait. Without switches a host has many links: data waits for the link of the last data packet.
 */
#ifndef MODELS_FLOWS_H
#define MODELS_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "mrd/sim.h"
#include "tools/sim/models/tune.h"

enum {
    MODEL_FLOW_PAYLOAD_BYTES = 4096, /* default: the largest MTU of RoCE */
    MODEL_FLOW_WINDOW_MAX = 1 << 23, /* half of the PSNs: InfiniBand specification */
};

struct model_flows_config {
    const char *transport; /* "rc" or "irn"; NULL: "rc" */
    /* Data packets are ECT(0), and marked ones are answered by CNPs. False: they are not ECT. */
    bool dcqcn;
    uint32_t payload_bytes; /* of a packet; 0: MODEL_FLOW_PAYLOAD_BYTES */
    uint64_t seed;          /* a flow's source ports follow from it and the flow's number alone */
    const struct model_tune *tune; /* copied; NULL: the defaults */
    /* Called when the sender of `flow` has received the last ack. Or NULL. */
    void (*done)(void *arg, uint32_t flow, uint64_t now_ns);
    /* Called when the receiver has `bytes` more bytes in order. Or NULL. */
    void (*received)(void *arg, uint32_t flow, uint64_t bytes, uint64_t now_ns);
    void *arg;
};

/* Sums over all flows. */
struct model_flows_stats {
    uint64_t packets;          /* data packets sent, repeated ones included */
    uint64_t retransmitted;    /* data packets sent that had been sent before */
    uint64_t spurious;         /* data packets that came to a receiver that had them */
    uint64_t out_of_order;     /* data packets that came before an earlier one; rc drops them */
    uint64_t broken;           /* packets dropped because they were corrupted */
    uint64_t timeouts;         /* local ack timeouts */
    uint64_t retries_exceeded; /* timeouts in a row beyond `rc.retries`; the flow goes on */
    uint64_t acks, naks, cnps; /* sent */
};

struct model_flows;

/* No host may have a context. NULL with errno ENOMEM, or EINVAL: mrd_last_error() says why. */
struct model_flows *model_flows_create(struct mrd_sim *sim,
                                       const struct model_flows_config *config);
/* Give the hosts back. Flows that are not over end without a callback. */
void model_flows_destroy(struct model_flows *flows);
/*
 * Start a flow of `bytes` bytes; `flow` is the number that callbacks are given. 0; -EINVAL: there
 * are no such hosts, they are the same, or there are too many bytes; -ENOMEM.
 */
int model_flows_start(struct model_flows *flows, uint32_t flow, uint32_t src, uint32_t dst,
                      uint64_t bytes);
struct model_flows_stats model_flows_get_stats(const struct model_flows *flows);
/* Bytes on the wire of packet `psn` of a flow of `bytes` bytes. */
uint32_t model_flows_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn);

#endif
