/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated fabric in virtual time: its hosts, links and faults.
 *
 * Call mrd_sim_create(), then mrd_open_device(mrd_sim_device(sim, 0), ...) for each host, and use
 * the contexts as any other. Time moves only in mrd_sim_run_until(). The same seed and the same
 * calls give the same bytes.
 *
 * No call blocks, and none is thread-safe; this includes calls on simulated contexts. Calls that
 * return int return 0 or -errno, which is -EINVAL where there is no such host or link. All ranges
 * are in mrd_sim_create(3).
 */
#ifndef MRD_SIM_H
#define MRD_SIM_H

#include "mrd/mrd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mrd_sim;

/* A link in one direction. Shares are parts per million, and each packet is judged by itself. */
enum mrd_sim_blackhole {
    MRD_SIM_BLACKHOLE_NONE = 0,
    MRD_SIM_BLACKHOLE_ALL,
    MRD_SIM_BLACKHOLE_ECT, /* only packets that can be marked */
};

struct mrd_sim_link {
    uint64_t rate_bps;      /* bit/s; 0: infinite */
    uint64_t delay_ns;      /* propagation; in a topology also switch_ns of the switch at its end */
    uint64_t jitter_ns;     /* extra delay of each packet, uniform from 0 on: may reorder */
    uint64_t queue_bytes;   /* a packet is dropped above this backlog; 0: no limit */
    uint64_t ecn_min_bytes; /* from here to ecn_max_bytes, the share marked CE rises from 0 to 1 */
    uint64_t ecn_max_bytes; /* both 0: no marks */
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t corrupt_ppm;     /* one bit of the datagram is flipped */
    uint32_t burst_enter_ppm; /* Gilbert-Elliott: with each packet a good link may turn bad */
    uint32_t burst_leave_ppm; /* with each packet a bad link may turn good */
    uint32_t burst_loss_ppm;  /* loss while the link is bad */
    uint64_t flap_period_ns;  /* 0: does not flap */
    uint64_t flap_down_ns;    /* the first part of each period, in which the link is down */
    int blackhole;            /* enum mrd_sim_blackhole: loses packets, unnoticed */
    int down;                 /* no carrier: switches use other links, or drop */
};

enum { MRD_SIM_TIERS_MAX = 3 };

/* The switches of a tier, which are alike, and the links below them. Hosts are below tier 0. */
struct mrd_sim_tier {
    uint32_t radix_down; /* links of a switch towards the hosts */
    uint32_t radix_up;   /* links away from the hosts; 0 in the top tier */
    uint32_t bundle;     /* parallel links to each neighbour below, of those counted; 0: 1 */
    uint64_t rate_bps;   /* of each link below, in each direction */
    uint64_t delay_ns;   /* propagation of each link below */
    uint64_t switch_ns;  /* time of a packet in the switch besides its queue */
};

/* A leaf-spine fabric (2 tiers) or a fat tree of pods (3 tiers: leaf, agg, core). */
struct mrd_sim_topology {
    uint32_t hosts;
    uint32_t tiers;
    uint32_t pod_hosts; /* hosts below one set of aggs; with 2 tiers: all hosts, or 0 */
    struct mrd_sim_tier tier[MRD_SIM_TIERS_MAX];
};

/* How many bytes a datagram takes on the wire. */
enum mrd_sim_wire_overhead {
    /* Its own, and 66 for preamble, Ethernet, IPv4, UDP, check sequence and gap. */
    MRD_SIM_WIRE_ETHERNET = 0,
    MRD_SIM_WIRE_HTSIM, /* as uet-htsim: payload + 64 of a data packet, 88 of an ack */
};

/*
 * What hosts know of the network, and so the figures of their contexts: timers, bursts, how often
 * acks leave. A link_bps of struct mrd_context_attr is the known rate with each of them.
 */
enum mrd_sim_knows {
    /* As over UDP sockets: neither rate nor RTT; acks are rare, and packets leave in bursts. */
    MRD_SIM_KNOWS_SOCKETS = 0,
    /* As over an RDMA device: the rate of the host's link at the start, and no RTT. */
    MRD_SIM_KNOWS_RDMA,
    /* That rate, and in a topology the RTT of the longest way. No real host knows so much. */
    MRD_SIM_KNOWS_FABRIC,
};

struct mrd_sim_attr {
    uint64_t comp_mask; /* 0 */
    uint64_t seed;
    uint32_t hosts; /* default: 2; with a topology its hosts, or 0 */
    /* Parallel links from host to host; default: 4. Path p uses link p mod links. No topology. */
    uint32_t links;
    /* How each link starts; all zero: 100 Gb/s, 5 us, 1 MiB. A topology sets rate and delay. */
    struct mrd_sim_link link;
    uint32_t paths;            /* path numbers of a context; default: 64 */
    uint64_t tx_done_delay_ns; /* a sent packet's buffers are read for so long; default: 0 */
    uint32_t tx_burst_max;     /* most packets that a context sends at a time; 0: no limit */
    uint32_t clock_skew_ppm;   /* hosts' clocks run fast or slow by up to this; default: 0 */
    /*
     * Switches in place of links between hosts; NULL: none. It is copied. Path p is UDP source port
     * 49152 + p. Each switch chooses among its links up, and among parallel ones, by XXH3 of
     * (source, destination, protocol, ports) with a seed of its own.
     */
    const struct mrd_sim_topology *topology;
    uint32_t wire_overhead; /* enum mrd_sim_wire_overhead */
    uint32_t loss_ppb;      /* share of all packets lost end to end; parts in 10^9 */
    /*
     * Payloads are not copied when sent, but read from the sender's memory at arrival. This memory
     * must live unchanged until the simulation ends. Experiments in which all send from one source
     * are several times faster.
     */
    int payload_by_reference;
    /* In each queue, acks overtake data; they wait for the packet in service and earlier acks. */
    int ack_priority;
    /* enum mrd_sim_knows. Callers compiled without this field have MRD_SIM_KNOWS_FABRIC. */
    uint32_t knows;
    uint32_t reserved; /* 0 */
};

/* `attr` may be NULL. NULL with errno EINVAL or ENOMEM. */
MRD_EXPORT struct mrd_sim *mrd_sim_create(const struct mrd_sim_attr *attr);
MRD_EXPORT struct mrd_sim *mrd_sim_create_sized(const struct mrd_sim_attr *attr, size_t size);
#define mrd_sim_create(...) mrd_sim_create_sized(__VA_ARGS__, sizeof(struct mrd_sim_attr))
MRD_EXPORT void mrd_sim_destroy(struct mrd_sim *sim); /* close all contexts first */
/* The device of a host, or NULL; the simulation owns it. It can have one open context at a time. */
MRD_EXPORT const struct mrd_device *mrd_sim_device(struct mrd_sim *sim, uint32_t host);
/* The virtual time, from 0. */
MRD_EXPORT uint64_t mrd_sim_now(const struct mrd_sim *sim);
/* Runs everything that happens up to and including virtual time `ns`. */
MRD_EXPORT void mrd_sim_run_until(struct mrd_sim *sim, uint64_t ns);

/*
 * Change or read link `link` from host to host. -1 stands for all links, or for every host; reading
 * takes the first of several. -EINVAL with a topology.
 */
MRD_EXPORT int mrd_sim_set_link(struct mrd_sim *sim, int from, int to, int link,
                                const struct mrd_sim_link *attr);
MRD_EXPORT int mrd_sim_get_link(const struct mrd_sim *sim, int from, int to, int link,
                                struct mrd_sim_link *attr);
/*
 * Loses those of the next 64 packets from host to host whose bit is set; bit 0 is the next packet.
 * -EINVAL with a topology.
 */
MRD_EXPORT int mrd_sim_set_loss_mask(struct mrd_sim *sim, int from, int to, uint64_t mask);
/* A stopped process neither reads nor sends nor sees time; its packets queue up. 0: goes on. */
MRD_EXPORT void mrd_sim_stop_host(struct mrd_sim *sim, uint32_t host, int stopped);

/* A datagram that is about to enter its first link. */
struct mrd_sim_datagram {
    uint32_t from, to; /* hosts */
    uint32_t path;     /* the sender's path number */
    uint8_t *data;     /* valid during the call only; the tap may change it */
    uint32_t len;      /* the tap may reduce it */
    uint8_t alone;     /* 1: its sender keeps it out of bursts that a device would split */
};
enum mrd_sim_verdict { MRD_SIM_PASS = 0, MRD_SIM_DROP };
typedef enum mrd_sim_verdict mrd_sim_tap(void *arg, struct mrd_sim_datagram *datagram);
/* Shows every datagram to `tap`; NULL: to nobody. */
MRD_EXPORT void mrd_sim_set_tap(struct mrd_sim *sim, mrd_sim_tap *tap, void *arg);
/* Delivers a copy of a datagram to host `to` at virtual time `at_ns`, as if host `from` sent it. */
MRD_EXPORT int mrd_sim_inject(struct mrd_sim *sim, uint32_t from, uint32_t to, const void *data,
                              uint32_t len, uint64_t at_ns);

/* What links carried: packets, and bytes on the wire. */
struct mrd_sim_stats {
    uint64_t packets, lost, queue_drops, duplicated, corrupted, blackholed, ce, bytes;
};
/* The sum over the links named, as by mrd_sim_set_link(). */
MRD_EXPORT int mrd_sim_link_stats(const struct mrd_sim *sim, int from, int to, int link,
                                  struct mrd_sim_stats *stats);
MRD_EXPORT int mrd_sim_link_stats_sized(const struct mrd_sim *sim, int from, int to, int link,
                                        struct mrd_sim_stats *stats, size_t size);
#define mrd_sim_link_stats(...) mrd_sim_link_stats_sized(__VA_ARGS__, sizeof(struct mrd_sim_stats))

/* The number of links. They are numbered from 0. */
MRD_EXPORT uint32_t mrd_sim_num_links(const struct mrd_sim *sim);
/*
 * Writes a link's name: "host3>leaf0", "leaf0>spine1" or "agg2>core5", with ".K" behind it where
 * several are parallel; without a topology "host0>host1.2". -ENOSPC: it does not fit.
 */
MRD_EXPORT int mrd_sim_link_name(const struct mrd_sim *sim, uint32_t link, char *name, size_t len);
/* What a link is now, and what it carried; either pointer may be NULL. */
MRD_EXPORT int mrd_sim_query_link(const struct mrd_sim *sim, uint32_t link,
                                  struct mrd_sim_link *attr, struct mrd_sim_stats *stats);
MRD_EXPORT int mrd_sim_query_link_sized(const struct mrd_sim *sim, uint32_t link,
                                        struct mrd_sim_link *attr, struct mrd_sim_stats *stats,
                                        size_t size);
#define mrd_sim_query_link(...) mrd_sim_query_link_sized(__VA_ARGS__, sizeof(struct mrd_sim_stats))
/* Packets lost by loss_ppb. */
MRD_EXPORT uint64_t mrd_sim_lost(const struct mrd_sim *sim);
/*
 * Changes links at virtual time at_ns. `links` is a pattern of names as of fnmatch(3); '-' in place
 * of '>' takes both directions. Actions and their values, with shares from 0 to 1:
 *
 *   rate GBPS              degrade FACTOR (of the rate it started with)
 *   delay US               jitter US
 *   queue BYTES            ecn MIN,MAX (bytes; 0,0: none)
 *   loss SHARE             corrupt SHARE
 *   duplicate SHARE        burst ENTER,LEAVE,LOSS (shares: Gilbert-Elliott; 0,0,0: none)
 *   blackhole on|ect|off   flap PERIOD_US,DOWN_US (0,0: stop)
 *   down on|off            heal (any value, or NULL: as it started)
 *
 * -EINVAL: no such action or value; -ENOENT: no link has such a name; -ENOMEM.
 */
MRD_EXPORT int mrd_sim_schedule(struct mrd_sim *sim, uint64_t at_ns, const char *links,
                                const char *action, const char *value);

#ifdef __cplusplus
}
#endif

#endif
