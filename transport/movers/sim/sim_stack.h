/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a simulated host offers to a transport other than mrd: a stack that runs on it in place of
 * a context.
 *
 * mrd_sim_stack_attach() gives a host to a stack. From then on the host calls ops->receive() for
 * each packet that arrives, and ops->timer() at the time that mrd_sim_stack_wake() set. To send,
 * the stack fills a packet of mrd_sim_stack_alloc() and passes it to mrd_sim_stack_send().
 * mrd_sim_stack_detach() gives the host back, before mrd_sim_destroy().
 *
 * A host's queue in front of its own link has no limit in a tree. A stack that wants no queue there
 * sends only when mrd_sim_stack_idle_ns() has come, and sets its timer to that time. Time is
 * virtual time, mrd_sim_now(): the skew of host clocks does not concern a stack. No call here calls
 * the stack back.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_STACK_H
#define MRD_TRANSPORT_SIM_SIM_STACK_H

#include "mrd/sim.h"
#include "transport/movers/sim/sim_packet.h"
#include "transport/movers/sim/sim_stack_ops.h"

/* Both pointers are borrowed until mrd_sim_stack_detach(). -EBUSY: a context or stack has it. */
int mrd_sim_stack_attach(struct mrd_sim *sim, uint32_t host, const struct mrd_sim_stack_ops *ops,
                         void *arg);
void mrd_sim_stack_detach(struct mrd_sim *sim, uint32_t host);

/* A packet with `bytes` bytes at data[], which only the stacks read. NULL: no memory. */
struct mrd_sim_packet *mrd_sim_stack_alloc(struct mrd_sim *sim, uint32_t bytes);
void mrd_sim_stack_release(struct mrd_sim *sim, struct mrd_sim_packet *packet);
/*
 * Send a packet from `host` and release it. The stack has set to, path, ecn and wire_bytes, and
 * `urgent` in an ack. Returns when the first link on its way will have sent all that is queued
 * there, this packet included.
 */
uint64_t mrd_sim_stack_send(struct mrd_sim *sim, uint32_t host, struct mrd_sim_packet *packet);
/* Call ops->timer() at virtual time at_ns. A later call replaces the time; UINT64_MAX: never. */
void mrd_sim_stack_wake(struct mrd_sim *sim, uint32_t host, uint64_t at_ns);
/* When the host's link into the tree will have sent what is queued. Without a tree: now. */
uint64_t mrd_sim_stack_idle_ns(const struct mrd_sim *sim, uint32_t host);

/* The attributes of the simulation, defaults filled in; `topology` is NULL. */
const struct mrd_sim_attr *mrd_sim_stack_attr(const struct mrd_sim *sim);
/* The first link on the way between two hosts, as it is now. */
const struct mrd_sim_link *mrd_sim_stack_link(const struct mrd_sim *sim, uint32_t from,
                                              uint32_t to);
/* How long a packet takes from host to host if it never waits in a queue. */
uint64_t mrd_sim_stack_latency_ns(const struct mrd_sim *sim, uint32_t from, uint32_t to,
                                  uint32_t wire_bytes);

#endif
