/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated fabric in virtual time: control of its hosts, links and faults.
 *
 * mrd_sim_create(); mrd_open_device(mrd_sim_device(sim, 0), ...) for each host; use the contexts as ever; time moves
 * only by mrd_sim_run_until(). Same seed and same calls: same bytes. Calls on simulated contexts never block, and
 * neither they nor these are thread-safe.
 */
#ifndef MRD_SIM_H
#define MRD_SIM_H

#include "mrd/mrd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mrd_sim;

/* A link in one direction. All shares are parts per million, each packet judged on its own. */
struct mrd_sim_link {
    uint64_t rate_bps;      /* 0: infinite */
    uint64_t delay_ns;      /* propagation; in a topology also switch_ns of the switch at its end */
    uint64_t jitter_ns;     /* uniform extra delay of 0 .. jitter_ns a packet: may reorder */
    uint64_t queue_bytes;   /* tail drop above this backlog; 0: no limit */
    uint64_t ecn_min_bytes; /* CE with probability 0 .. 1 between these backlogs; 0, 0: never */
    uint64_t ecn_max_bytes;
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t corrupt_ppm;     /* flip one bit somewhere in the datagram */
    uint32_t burst_enter_ppm; /* Gilbert-Elliott: a packet finds the link turning bad; 0: never */
    uint32_t burst_leave_ppm; /* turning good again */
    uint32_t burst_loss_ppm;  /* loss while bad */
    uint64_t flap_period_ns;  /* down for the first flap_down_ns of each period; 0: never */
    uint64_t flap_down_ns;
    int blackhole; /* swallow everything, and nobody knows */
    int down;      /* no carrier: switches send what they can another way, and drop the rest */
};

enum { MRD_SIM_TIERS_MAX = 3 };

/* All switches of one tier, which are alike, and the links below them. Tier 0 has the hosts below it. */
struct mrd_sim_tier {
    uint32_t radix_down; /* links of a switch towards the hosts */
    uint32_t radix_up;   /* and away from them; 0 in the top tier */
    uint32_t bundle;    /* parallel links to each neighbour below; 0: 1. Both radixes count links */
    uint64_t rate_bps;  /* of a link below, in each direction */
    uint64_t delay_ns;  /* its propagation */
    uint64_t switch_ns; /* what a packet spends in the switch besides its queue */
};

/* A leaf-spine fabric (2 tiers) or a fat tree of pods (3 tiers: leaf, agg, core). */
struct mrd_sim_topology {
    uint32_t hosts;
    uint32_t tiers;
    uint32_t pod_hosts; /* hosts below one set of aggs; 2 tiers: all hosts, or 0 */
    struct mrd_sim_tier tier[MRD_SIM_TIERS_MAX];
};

/* How the bytes of a datagram on the wire are counted. */
enum mrd_sim_wire_overhead {
    MRD_SIM_WIRE_ETHERNET =
        0,              /* ours, and preamble, Ethernet, IPv4, UDP, check sequence, gap: 66 */
    MRD_SIM_WIRE_HTSIM, /* as uet-htsim: payload + 64 a data packet, 88 an ack */
};

struct mrd_sim_attr {
    uint64_t comp_mask; /* 0 */
    uint64_t seed;
    uint32_t hosts; /* default 2; with a topology its hosts, or 0 */
    /* Parallel links between each pair of hosts; default 4. Path p of a context uses p mod links. Not in a topology. */
    uint32_t links;
    /* What every link starts as; all zero: 100 Gb/s, 5 us, 1 MiB queue. In a topology rate and delay are its tiers'. */
    struct mrd_sim_link link;
    uint32_t paths; /* path numbers a context may use; default 64 */
    uint64_t
        tx_done_delay_ns;    /* buffers of a sent packet are read until so long after; default 0 */
    uint32_t tx_burst_max;   /* a mover takes at most so many packets a call; 0: no limit */
    uint32_t clock_skew_ppm; /* host clocks run off by up to +- this much; default 0 */
    /*
     * Switches in tiers in place of links between hosts: path p is UDP source port 49152 + p, and each switch spreads
     * packets over its ways up, and over parallel links, by XXH3 of (source, destination, protocol, ports) with a seed
     * of its own. Copied; NULL: none.
     */
    const struct mrd_sim_topology *topology;
    uint32_t wire_overhead; /* enum mrd_sim_wire_overhead */
    uint32_t loss_ppb;      /* end to end: parts in 10^9 of all packets sent */
    /*
     * Payloads are read where they lie when they arrive, not when they are sent: sources must live and stay unchanged
     * until the simulation ends. It makes experiments with one source for all several times faster.
     */
    int payload_by_reference;
    /* Acks overtake data in every queue: strict priority. An ack waits for the packet in service and for other acks. */
    int ack_priority;
};

/* NULL with errno EINVAL, ENOMEM. */
MRD_EXPORT struct mrd_sim *mrd_sim_create(const struct mrd_sim_attr *attr);
/* Close all contexts first. */
MRD_EXPORT void mrd_sim_destroy(struct mrd_sim *sim);
/* Device of host 0 .. hosts-1; owned by the simulation. At most one open context a host at a time. */
MRD_EXPORT const struct mrd_device *mrd_sim_device(struct mrd_sim *sim, uint32_t host);
MRD_EXPORT uint64_t mrd_sim_now(const struct mrd_sim *sim);
/* Run everything that happens up to and including virtual time `ns`. */
MRD_EXPORT void mrd_sim_run_until(struct mrd_sim *sim, uint64_t ns);

/*
 * In a simulation without a topology: change link `link` from host to host; link -1: all of them; host -1: every host.
 * -EINVAL: no such.
 */
MRD_EXPORT int mrd_sim_set_link(struct mrd_sim *sim, int from, int to, int link,
                                const struct mrd_sim_link *attr);
MRD_EXPORT int mrd_sim_get_link(const struct mrd_sim *sim, int from, int to, int link,
                                struct mrd_sim_link *attr);
/* Lose exactly the packets of from -> to whose bit is set: bit 0 is the next packet. Without a topology only. */
MRD_EXPORT int mrd_sim_set_loss_mask(struct mrd_sim *sim, int from, int to, uint64_t mask);
/* Stop a host's process: it neither reads nor sends nor keeps time until it is resumed; its packets queue up. */
MRD_EXPORT void mrd_sim_stop_host(struct mrd_sim *sim, uint32_t host, int stopped);

/* Look at, and change, every datagram that is about to be queued on a link. */
struct mrd_sim_datagram {
    uint32_t from, to; /* hosts */
    uint32_t path;     /* the sender's path number */
    uint8_t *data;
    uint32_t len;
};
enum mrd_sim_verdict { MRD_SIM_PASS = 0, MRD_SIM_DROP };
typedef enum mrd_sim_verdict mrd_sim_tap(void *arg, struct mrd_sim_datagram *datagram);
MRD_EXPORT void mrd_sim_set_tap(struct mrd_sim *sim, mrd_sim_tap *tap, void *arg);
/* Deliver a datagram to host `to` at virtual time `at_ns` as if it came from host `from`: replay and forgery. */
MRD_EXPORT int mrd_sim_inject(struct mrd_sim *sim, uint32_t from, uint32_t to, const void *data,
                              uint32_t len, uint64_t at_ns);

struct mrd_sim_stats {
    uint64_t packets, lost, queue_drops, duplicated, corrupted, blackholed, ce, bytes;
};
MRD_EXPORT int mrd_sim_link_stats(const struct mrd_sim *sim, int from, int to, int link,
                                  struct mrd_sim_stats *stats);

/*
 * All links by number, 0 .. mrd_sim_num_links() - 1. Names: "host3>leaf0", "leaf0>spine1" or "agg2>core5", with ".K"
 * where several are parallel; "host0>host1.2" without a topology. -EINVAL: no such; -ENOSPC: the name does not fit.
 */
MRD_EXPORT uint32_t mrd_sim_num_links(const struct mrd_sim *sim);
MRD_EXPORT int mrd_sim_link_name(const struct mrd_sim *sim, uint32_t link, char *name, size_t len);
/* What a link is now and what it carried; either pointer may be NULL. */
MRD_EXPORT int mrd_sim_query_link(const struct mrd_sim *sim, uint32_t link,
                                  struct mrd_sim_link *attr, struct mrd_sim_stats *stats);
/* Packets lost end to end, by loss_ppb. */
MRD_EXPORT uint64_t mrd_sim_lost(const struct mrd_sim *sim);
/*
 * Change links at virtual time at_ns. `links` is a pattern of names as of fnmatch(3); with '-' in place of '>' it
 * takes both directions. Actions and their values:
 *
 *   rate GBPS   degrade FACTOR (of the rate it started with)   delay US   jitter US
 *   queue BYTES   ecn MIN,MAX (bytes; 0,0: none)   loss SHARE   corrupt SHARE   duplicate SHARE
 *   burst ENTER,LEAVE,LOSS (shares: Gilbert-Elliott; 0,0,0: none)
 *   blackhole on|off   down on|off   flap PERIOD_US,DOWN_US (0,0: stop)   heal (any value, or NULL: as it started)
 *
 * -EINVAL: no such action or value, -ENOENT: no link has such a name, both with mrd_last_error(); -ENOMEM.
 */
MRD_EXPORT int mrd_sim_schedule(struct mrd_sim *sim, uint64_t at_ns, const char *links,
                                const char *action, const char *value);

#ifdef __cplusplus
}
#endif

#endif
