/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of other transports on the simulated fabric: models without payload, to compare with.
 *
 *   rc    RoCEv2's reliable connection: go-back-N, one NAK a gap, a local ack timeout
 *   irn   IRN: selective repeat, and no more than a BDP in flight
 *
 * each with DCQCN or without. A flow is a queue pair with one source port for life, so ECMP gives it one path; its acks
 * have another. It is over when its sender has the last ack.
 *
 * mrd_sim_create(); model_flows_create(), which takes every host; model_flows_start() before or during
 * mrd_sim_run_until(), also from the callbacks; model_flows_destroy() before mrd_sim_destroy().
 *
 * A host sends one packet at a time, when its link is idle: the flows that may send take turns, and acks go first.
 * Between pairs of hosts, without switches, data waits for the link of the host's last data packet, and acks for none.
 */
#ifndef MODELS_FLOWS_H
#define MODELS_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "mrd/sim.h"
#include "tools/sim/models/tune.h"

enum {
    MODEL_FLOW_PAYLOAD_BYTES = 4096, /* default: the largest MTU of RoCE */
    MODEL_FLOW_WINDOW_MAX = 1 << 23, /* half of the PSNs, as the specification has it */
};

struct model_flows_config {
    const char *transport; /* "rc" or "irn"; NULL: "rc" */
    /* Data packets are ECT(0) and answered by CNPs if they come marked; else they are not ECT at all. */
    bool dcqcn;
    uint32_t payload_bytes; /* of a packet; 0: MODEL_FLOW_PAYLOAD_BYTES */
    uint64_t
        seed; /* a flow's source ports follow from it and the flow's number, and from nothing else */
    const struct mrd_sim_tune *tune; /* copied; NULL: the defaults */
    /* The sender has the last ack of `flow`, a number given to model_flows_start(). NULL: not told. */
    void (*done)(void *arg, uint32_t flow, uint64_t now_ns);
    /* The receiver has so many more bytes in order. NULL: not told. */
    void (*received)(void *arg, uint32_t flow, uint64_t bytes, uint64_t now_ns);
    void *arg;
};

/* X(name, what it counts), of all flows together. */
#define MODEL_FLOWS_STATS(X)                                                                       \
    X(packets, "data packets sent, repeated ones included")                                        \
    X(retransmitted, "data packets sent that had been sent before")                                \
    X(spurious, "data packets that came to a receiver that had them")                              \
    X(out_of_order, "data packets that came before an earlier one; rc drops them")                 \
    X(broken, "packets dropped because they were corrupted")                                       \
    X(timeouts, "local ack timeouts")                                                              \
    X(retries_exceeded, "more timeouts in a row than a connection outlives; the flow goes on")     \
    X(acks, "acks sent")                                                                           \
    X(naks, "NAKs sent")                                                                           \
    X(cnps, "CNPs sent")

struct model_flows_stats {
#define X(name, help) uint64_t name;
    MODEL_FLOWS_STATS(X)
#undef X
};

struct model_flows;

/* No context may be open. NULL with errno EINVAL (mrd_last_error() says why), ENOMEM. */
struct model_flows *model_flows_create(struct mrd_sim *sim,
                                       const struct model_flows_config *config);
/* Gives the hosts back; flows that were not over are forgotten. */
void model_flows_destroy(struct model_flows *flows);
/*
 * Send so many bytes from now on. `flow` is the caller's number of it. 0; -EINVAL: no such hosts, or one and the same,
 * or too long; -ENOMEM.
 */
int model_flows_start(struct model_flows *flows, uint32_t flow, uint32_t src, uint32_t dst,
                      uint64_t bytes);
struct model_flows_stats model_flows_get_stats(const struct model_flows *flows);
/*
 * W: a flow has at most so many packets in flight. In the formulas it is the lesser of that and the packets that
 * model_flows_base_rtt_ns() takes at line rate, unless queues make the round trip longer.
 */
uint32_t model_flows_window(const struct model_flows *flows);
/* From a full packet's first bit to the ack of it, between the hosts furthest apart, with all queues empty. */
uint64_t model_flows_base_rtt_ns(const struct model_flows *flows);
/* The timeout; irn's longer one. */
uint64_t model_flows_rto_ns(const struct model_flows *flows);
/* Bytes on the wire of packet `psn` of a flow of so many bytes. */
uint32_t model_flows_wire_bytes(const struct model_flows *flows, uint64_t bytes, uint32_t psn);
uint32_t model_flows_ack_bytes(const struct model_flows *flows);

#endif
