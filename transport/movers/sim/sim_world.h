/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation as a whole: its parts, fabric and hosts. See mrd/sim.h. */
#ifndef MRD_TRANSPORT_SIM_SIM_WORLD_H
#define MRD_TRANSPORT_SIM_SIM_WORLD_H

#include "mrd/sim.h"
#include "transport/backend.h"
#include "transport/movers/sim/sim_address.h"
#include "transport/movers/sim/sim_fabric.h"
#include "transport/movers/sim/sim_part.h"
#include "transport/movers/sim/sim_stack_ops.h"

struct mrd_sim_crew;
struct mrd_sim_fault;

/* What only experiments and tests set, by calls of sim_host.h that say what each means. */
struct mrd_sim_options {
    const struct mrd_tune *tune;
    void (*turn_hook)(void *arg, uint32_t host);
    void *turn_hook_arg;
    void (*stray_hook)(void *arg, const struct mrd_sim_stray *stray);
    void *stray_hook_arg;
    uint64_t rx_delay_ns;
    uint32_t rx_packets_max;     /* 0: no limit */
    uint32_t datagram_bytes_max; /* 0: no limit */
    uint32_t quantum;
    bool gro;
    bool read_check;
    bool large_pages;
};

/* A packet sent whose buffers the simulated device still reads. */
struct mrd_sim_sent {
    uint64_t at_ns; /* when it stops reading: virtual time */
    uint64_t cookie;
    uint64_t hash; /* of the payload when it was sent; only with options.read_check */
    uint32_t num_iov;
    struct iovec iov[MRD_SEGMENT_PIECES_MAX];
};

struct mrd_sim_host_stats {
    uint64_t received;         /* packets that the context took */
    uint64_t dead_drops;       /* packets that came while no context was open */
    uint64_t overflows;        /* packets that found the receive queue full */
    uint64_t unroutable;       /* packets sent to an address that no host has */
    uint64_t plans;            /* bursts for which the engine made a plan */
    uint64_t planned_segments; /* packets whose payload was put in place by a plan */
    uint64_t partial_bursts;   /* tx_burst() calls that did not take all */
    uint64_t changed_early;    /* packets whose buffers changed while the device read them */
    uint64_t too_big;          /* packets above options.datagram_bytes_max */
    uint64_t no_source;        /* packets sent from an address that the host has not */
    uint64_t failed_source;    /* packets sent from an address whose link is down */
    uint64_t not_there;        /* packets that came to an address that is lost, or down */
};

/* A destination for which packets were too big, and the payload that would fit. */
struct mrd_sim_too_big {
    struct mrd_addr to;
    uint32_t payload_bytes;
};

enum { MRD_SIM_TOO_BIG_MAX = 16 };

/* A host, and the packet mover of the context that is open on it: sim_host.h. */
struct mrd_sim_host {
    struct mrd_backend backend; /* first: the ops get a pointer to it */
    struct mrd_device device;
    struct mrd_sim *sim;
    struct mrd_sim_part *part; /* borrowed; set by mrd_sim_run_init(), mrd_sim_set_parts() */
    struct mrd_sim_addresses *addresses; /* owned; NULL: its first, as every host */
    uint32_t number;
    bool open, stopped, touched, in_progress;
    struct mrd_sim_host *touched_next;
    int64_t skew_ppb;
    uint64_t clock_offset_ns;
    uint64_t stopped_at_ns;

    /* As given to mrd_sim_attach(); NULL before. */
    void (*progress)(void *arg);
    uint64_t (*deadline_ns)(void *arg);
    void *arg;

    /* A transport in place of a context: sim_stack.h. */
    const struct mrd_sim_stack_ops *stack; /* NULL: none */
    void *stack_arg;
    uint64_t wake_ns; /* when its timer() is due; NEVER: it is not */

    /*
     * Two timer events are valid: the next one, and a later one that becomes the next when that has
     * fired. Others in the event queue are stale, which their tags tell.
     */
    uint64_t timer_at_ns, timer_after_ns;
    uint32_t timer_tag, timer_after_tag, timer_tag_last;
    uint32_t turns_in_place; /* turns since turn_at_ns, while time hardly moved on */
    uint64_t turn_at_ns;

    /* Received packets, oldest first, and those lent to the engine until rx_return(). */
    struct mrd_sim_packet *rx_head, *rx_last, *rx_lent;
    uint32_t rx_waiting;  /* packets received, and not lent yet */
    uint64_t rx_ready_ns; /* when a turn is due for them */

    uint64_t tx_retry_ns;      /* when a turn is due for packets that were not taken */
    struct mrd_sim_sent *sent; /* ring of sent_cap, a power of two; owned */
    uint32_t sent_head, sent_tail, sent_cap; /* free-running */
    uint32_t path_next;                      /* what new_path() returns next */
    struct mrd_sim_too_big too_big[MRD_SIM_TOO_BIG_MAX];
    uint32_t num_too_big;
    struct mrd_sim_host_stats stats;
};

struct mrd_sim {
    struct mrd_sim_attr attr; /* with defaults filled in */
    struct mrd_sim_options options;
    struct mrd_sim_part *parts; /* num_parts of them, owned */
    uint32_t num_parts;
    uint64_t lookahead_ns;     /* of a window; only with several parts */
    struct mrd_sim_crew *crew; /* owned; NULL: one part */
    struct mrd_sim_fabric fabric;
    struct mrd_sim_host *hosts;      /* attr.hosts of them, owned */
    struct mrd_sim_fault **faults;   /* num_faults of them by time and insertion, owned */
    uint32_t num_faults, next_fault; /* those before it have been applied */
    bool has_addresses;              /* some host has several, or they change */
};

/* mrd_sim_now(), for what stands below it: between runs all parts have the same time. */
static inline uint64_t mrd_sim_time(const struct mrd_sim *sim)
{
    return sim->parts[0].now_ns;
}

#endif
