/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated host: its clock, its receive queue, its timer, and the packet mover of the context
 * opened on it.
 *
 * A context opens the host by mrd_backend_ops.open() and calls mrd_sim_attach() once it has its
 * engine. From then on mrd_sim_run_until() calls `progress` when a packet arrived or the time of
 * `deadline_ns` has come. API calls on the context do such a turn by themselves, at the current
 * virtual time. They mark the host as touched: its timer is set anew before time moves on.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_HOST_H
#define MRD_TRANSPORT_SIM_SIM_HOST_H

#include "transport/movers/sim/sim_address.h"
#include "transport/movers/sim/sim_world.h"

/*
 * open.c calls this once after open(), with two functions:
 *   progress(arg)    does one turn of the context's loop. It reads the time by the mover's now_ns()
 *                    and must not run the simulation.
 *   deadline_ns(arg) returns when the next turn is due, by that same (skewed) clock; 0: now;
 *                    UINT64_MAX: never.
 * A turn also comes when the link is idle again after a tx_burst() that did not take all packets,
 * and when tx_reap() has cookies. Neither function is called after close(), nor while the host
 * is stopped.
 */
void mrd_sim_attach(struct mrd_backend *b, void (*progress)(void *arg),
                    uint64_t (*deadline_ns)(void *arg), void *arg);

void mrd_sim_host_init(struct mrd_sim_host *host, struct mrd_sim *sim, uint32_t number,
                       int64_t skew_ppb);
void mrd_sim_host_fini(struct mrd_sim_host *host);
/* Have mrd_sim_host_fire() called at virtual time at_ns. It may be called earlier, too. */
void mrd_sim_host_set_timer(struct mrd_sim_host *host, uint64_t at_ns);
/* When the host's link into the tree will be idle: virtual time; now, if it is or without one. */
uint64_t mrd_sim_host_idle_ns(const struct mrd_sim_host *host);
/* A packet arrived: take it over. */
void mrd_sim_host_receive(struct mrd_sim_host *host, struct mrd_sim_packet *packet);
/* The timer event of that tag has come: do what is due, unless the event is stale. */
void mrd_sim_host_fire(struct mrd_sim_host *host, uint32_t tag);
/* Stop the host like a stopped process, or let it go on. Meanwhile its clock stands still. */
void mrd_sim_host_stop(struct mrd_sim_host *host, bool stopped);
/* The time by the host's clock, with its skew and offset. */
uint64_t mrd_sim_host_now_ns(const struct mrd_sim_host *host);
/* Something calls the context: note that its timer is to be set anew before time moves on. */
void mrd_sim_host_touch(struct mrd_sim_host *host);
/* Set the timers of all touched hosts. */
void mrd_sim_hosts_settle(struct mrd_sim *sim);
/* Drop packets, timer and attachment, as its context opens or closes. */
void mrd_sim_host_reset(struct mrd_sim_host *host);

/* The receiving half of mrd_sim_ops. */
unsigned mrd_sim_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_sim_rx_return(struct mrd_backend *b);

extern const struct mrd_backend_ops mrd_sim_ops;

/* ----------------------------------------------------------------------- for experiments, tests */

/*
 * Set the constants of policies for contexts opened from now on. They are borrowed as long as those
 * live. NULL: the defaults.
 */
void mrd_sim_set_tune(struct mrd_sim *sim, const struct mrd_tune *tune);
/*
 * Have `hook` called after each turn that a host does inside mrd_sim_run_until(), for example to
 * poll its completion queue. It may call all contexts of the host's part.
 */
void mrd_sim_set_turn_hook(struct mrd_sim *sim, void (*hook)(void *arg, uint32_t host), void *arg);

/*
 * Straight receive: offer packets of one sender and path that wait together to the engine's plan as
 * one burst, as UDP_GRO joins them. Contexts opened from now on send runs of packets on a path, so
 * that there is something to join.
 */
void mrd_sim_set_gro(struct mrd_sim *sim, bool gro);
/* Interrupt moderation: a turn comes delay_ns after a packet arrived in an empty queue. */
void mrd_sim_set_rx_delay(struct mrd_sim *sim, uint64_t delay_ns);
/* What a receive queue holds: a packet that finds it full is lost. 0: no limit. */
void mrd_sim_set_rx_packets_max(struct mrd_sim *sim, uint32_t packets);
/* Refuse datagrams longer than this, unless they may be fragmented. 0: no limit. */
void mrd_sim_set_datagram_max(struct mrd_sim *sim, uint32_t bytes);
/* Add offset_ns to the host's clock. No context may be open. */
void mrd_sim_set_clock_offset(struct mrd_sim *sim, uint32_t host, uint64_t offset_ns);
/*
 * With mrd_sim_attr.tx_done_delay_ns: check that buffers have not changed when the device stops
 * reading them. stats.changed_early counts those that have.
 */
void mrd_sim_set_read_check(struct mrd_sim *sim, bool check);
/*
 * Have contexts opened from now on in large pages: see sim_memory.h. Unlike the heap, sanitizers do
 * not see the blocks. None may be open.
 */
void mrd_sim_set_large_pages(struct mrd_sim *sim, bool large_pages);
bool mrd_sim_is_stopped(const struct mrd_sim *sim, uint32_t host);
/* The time of the next event; UINT64_MAX: there is none. */
uint64_t mrd_sim_next_event_ns(struct mrd_sim *sim);

/*
 * Cut the tree into parts of neighbouring leaves with their hosts, for up to so many threads, the
 * caller's included: sim_part.h. The number of parts changes which of two packets that come in the
 * same nanosecond is first, and the draws of losses end to end; that of the threads changes no bit.
 * A simulation without a topology has one part. No context may be open, nothing under way, no tap
 * set: now or later. 0, or -ENOMEM: it still has one part.
 */
int mrd_sim_set_parts(struct mrd_sim *sim, uint32_t num, uint32_t threads);
/* How many parts it may have. */
uint32_t mrd_sim_parts_max(const struct mrd_sim *sim);
/* The number of the part that a host is in. */
uint32_t mrd_sim_part_of(const struct mrd_sim *sim, uint32_t host);
/* mrd_sim_now() of a host: inside mrd_sim_run_until() parts are not at the same time. */
uint64_t mrd_sim_host_time(const struct mrd_sim *sim, uint32_t host);
struct mrd_sim_host_stats mrd_sim_get_host_stats(const struct mrd_sim *sim, uint32_t host);

/* A host's first address: its number + 1, as the network's address and as the port. */
static inline struct mrd_addr mrd_sim_addr(uint32_t number)
{
    return mrd_sim_address(number, 0);
}

#endif
