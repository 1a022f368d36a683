/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated host: its clock, its receive queue, its timer, and the packet mover of the context
 * opened on it.
 *
 * mrd_backend_ops.open() takes the host; mrd_sim_attach() follows once the context has its engine.
 * From then on mrd_sim_run_until() calls `progress` when a packet arrived or the time of
 * `deadline_ns` came. API calls on the context do the same loop step by themselves, at the current
 * virtual time; they mark the host as touched, and its timer is set anew when time is about to
 * move.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_HOST_H
#define MRD_TRANSPORT_SIM_SIM_HOST_H

#include "mrd/sim.h"
#include "transport/backend.h"
#include "transport/sim/sim_packet.h"

struct mrd_sim;
struct mrd_sim_stack_ops;

/*
 * Contract with context.c, which calls this once after open() of a mover whose `threaded` is false:
 *   progress(arg)    one turn of the loop: begin, rx until nothing is left, drained, expire,
 *                    tx_reap, tx. It reads the time by the mover's now_ns(). It must not run the
 *                    simulation.
 *   deadline_ns(arg) mrd_engine_deadline(): a time of that same (skewed) clock; 0: now; UINT64_MAX:
 *                    never.
 * Neither is called after the mover's close(), nor for a stopped host. The next turn comes also
 * when the transmit ring has room again after a partial tx_burst(), and when cookies wait in
 * tx_reap().
 */
void mrd_sim_attach(struct mrd_backend *b, void (*progress)(void *arg),
                    uint64_t (*deadline_ns)(void *arg), void *arg);

/* A packet whose buffers the "device" still reads. */
struct mrd_sim_sent {
    uint64_t at_ns; /* when it stops reading: virtual time */
    uint64_t cookie;
    uint64_t hash; /* of the payload when it was sent; with read_check only */
    uint32_t num_iov;
    struct iovec iov[MRD_SEGMENT_PIECES_MAX];
};

struct mrd_sim_host_stats {
    uint64_t received;         /* packets that the context took */
    uint64_t dead_drops;       /* packets that came while no context was open */
    uint64_t unroutable;       /* packets sent to an address that no host has */
    uint64_t plans;            /* bursts that straight receive was planned for */
    uint64_t planned_segments; /* packets whose payload went straight to its place */
    uint64_t partial_bursts;   /* tx_burst() calls that did not take all */
    uint64_t changed_early;    /* packets whose buffers changed while the device read them */
    uint64_t too_big;          /* packets above the fabric's MTU */
};

/* A destination that packets were too big for. */
struct mrd_sim_too_big {
    struct mrd_addr to;
    uint32_t payload_bytes;
};

enum { MRD_SIM_TOO_BIG_MAX = 16 };

struct mrd_sim_host {
    struct mrd_backend backend; /* first: the ops get a pointer to it */
    struct mrd_device device;
    struct mrd_sim *sim;
    uint32_t number;
    bool open, stopped, touched, in_progress;
    struct mrd_sim_host *touched_next;
    int64_t skew_ppb;
    uint64_t clock_offset_ns;
    uint64_t stopped_at_ns;

    /* Set by mrd_sim_attach(). */
    void (*progress)(void *arg);
    uint64_t (*deadline_ns)(void *arg);
    void *arg;

    /* A transport in place of a context: sim_stack.h. */
    const struct mrd_sim_stack_ops *stack; /* NULL: none */
    void *stack_arg;
    uint64_t wake_ns; /* when its timer() is due; NEVER: it is not */

    /* The timer event that counts, and a later one that counts when that has fired; others in the queue are stale. */
    uint64_t timer_at_ns, timer_after_ns;
    uint32_t timer_tag, timer_after_tag, timer_tag_last;
    uint32_t turns_in_place; /* turns of the loop without virtual time moving on */
    uint64_t turn_at_ns;

    /* Received packets, oldest first, and those lent to the engine until rx_return(). */
    struct mrd_sim_packet *rx_head, *rx_last, *rx_lent;
    uint64_t rx_ready_ns; /* when the loop is to be called for them */

    uint64_t tx_retry_ns;      /* when the ring has room again after a partial burst */
    struct mrd_sim_sent *sent; /* ring of sent_cap, a power of two; owned */
    uint32_t sent_head, sent_tail, sent_cap; /* free-running */
    uint32_t path_next;                      /* for new_path() */
    struct mrd_sim_too_big too_big[MRD_SIM_TOO_BIG_MAX];
    uint32_t num_too_big;
    struct mrd_sim_host_stats stats;
};

void mrd_sim_host_init(struct mrd_sim_host *host, struct mrd_sim *sim, uint32_t number,
                       int64_t skew_ppb);
void mrd_sim_host_fini(struct mrd_sim_host *host);
/* Have mrd_sim_host_timer() called at virtual time at_ns, or earlier: it looks again what is due. */
void mrd_sim_host_set_timer(struct mrd_sim_host *host, uint64_t at_ns);
/* When all that the host sent has left it: virtual time. */
uint64_t mrd_sim_host_idle_ns(const struct mrd_sim_host *host);
/* Takes the packet. */
void mrd_sim_host_receive(struct mrd_sim_host *host, struct mrd_sim_packet *packet);
void mrd_sim_host_timer(struct mrd_sim_host *host, uint32_t tag);
void mrd_sim_host_stop(struct mrd_sim_host *host, bool stopped);
/* Time by the host's clock. */
uint64_t mrd_sim_host_now_ns(const struct mrd_sim_host *host);
/* The context is being called from outside the run loop: set its timer anew before time moves. */
void mrd_sim_host_touch(struct mrd_sim_host *host);
/* Set the timers of all touched hosts. */
void mrd_sim_hosts_settle(struct mrd_sim *sim);
/* Forget packets, timer and attachment: the context is closing. */
void mrd_sim_host_reset(struct mrd_sim_host *host);

/* The receiving half of mrd_sim_ops. */
unsigned mrd_sim_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_sim_rx_return(struct mrd_backend *b);

extern const struct mrd_backend_ops mrd_sim_ops;

/* -------------------------------------------------------------------------- for experiments, tests */

/* Constants of the policies for contexts opened from now on; borrowed, outlives them. NULL: the defaults. */
void mrd_sim_set_tune(struct mrd_sim *sim, const struct mrd_tune *tune);
/*
 * Called after each turn of a host's loop inside mrd_sim_run_until(), for example to poll its completion queue. It may
 * use all contexts.
 */
void mrd_sim_set_turn_hook(struct mrd_sim *sim, void (*hook)(void *arg, uint32_t host), void *arg);

/*
 * Straight receive: packets of one sender and path that wait together are offered to the engine's
 * plan as a burst, as UDP_GRO does. Contexts opened from now on send runs of 16 packets a path, so
 * that there is something to join.
 */
void mrd_sim_set_gro(struct mrd_sim *sim, bool gro);
/* Interrupt moderation: a host is called so long after the first packet came to its empty queue. */
void mrd_sim_set_rx_delay(struct mrd_sim *sim, uint64_t delay_ns);
/* Datagrams longer than this are refused as too big, unless they may be fragmented. 0: no limit. */
void mrd_sim_set_datagram_max(struct mrd_sim *sim, uint32_t bytes);
/* The host's clock reads so much more; set it while no context is open. */
void mrd_sim_set_clock_offset(struct mrd_sim *sim, uint32_t host, uint64_t offset_ns);
/*
 * With tx_done_delay_ns: look at the buffers again when the device stops reading;
 * stats.changed_early counts.
 */
void mrd_sim_set_read_check(struct mrd_sim *sim, bool check);
bool mrd_sim_is_stopped(const struct mrd_sim *sim, uint32_t host);
/* When something happens next; UINT64_MAX: never. */
uint64_t mrd_sim_next_event_ns(struct mrd_sim *sim);
struct mrd_sim_host_stats mrd_sim_get_host_stats(const struct mrd_sim *sim, uint32_t host);

/* A host's address: its number + 1, as the network's address and as the port. */
static inline struct mrd_addr mrd_sim_addr(uint32_t number)
{
    uint32_t n = number + 1;

    return (struct mrd_addr){.ip = {[12] = (uint8_t)(n >> 24),
                                    [13] = (uint8_t)(n >> 16),
                                    [14] = (uint8_t)(n >> 8),
                                    [15] = (uint8_t)n},
                             .port = n};
}

#endif
