/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of an experiment: the options of the command line, with defaults filled in.
 */
#ifndef SIMX_CONFIG_H
#define SIMX_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tune.h"
#include "mrd/sim.h"
#include "tools/sim/models/tune.h"

enum {
    SIMX_NAME_BYTES = 16,
    SIMX_PATH_BYTES = 512,
    SIMX_SETS_MAX = 64,
};

/* `--set name=value`: a constant of a policy or of a model. */
struct simx_set {
    char name[48];
    double value;
};

struct simx_config {
    char experiment[SIMX_NAME_BYTES];
    char transport[SIMX_NAME_BYTES]; /* "mrd", "rc", "irn" */
    char spray[SIMX_NAME_BYTES];     /* mrd */
    char cc[SIMX_NAME_BYTES];        /* mrd: of the engine; rc, irn: "none", "dcqcn" */

    /* Traffic. */
    char tm[SIMX_PATH_BYTES]; /* connection matrix; "": the experiment's own */
    uint64_t bytes;           /* of a flow; 0: the experiment's own */

    /* Fabric. */
    char topo[SIMX_PATH_BYTES]; /* "": made from what follows */
    uint32_t hosts, tiers, leaf_hosts;
    double oversubscription, gbps, delay_us;
    uint32_t queue_packets;  /* of a switch's port, full ones */
    double ecn_min, ecn_max; /* BDP; 0, 0: none */
    bool ack_priority;       /* acks overtake data in every queue */
    double loss;             /* end to end; below 0: those of the experiment loss */
    char faults[SIMX_PATH_BYTES];
    char wire_overhead[SIMX_NAME_BYTES]; /* "ethernet", or "htsim": as uet-htsim counts bytes */
    uint32_t skew_ppm;                   /* of host clocks */

    /* Transport. */
    char knows[SIMX_NAME_BYTES]; /* mrd: "sockets", "rdma" or "fabric", as enum mrd_sim_knows */
    uint32_t paths, payload_bytes;
    char key_file[SIMX_PATH_BYTES]; /* mrd: packets are sealed; "": they are in the clear */
    bool check;                     /* mrd: payloads are checked also without `faults` */
    struct simx_set set[SIMX_SETS_MAX];
    unsigned num_sets;
    struct mrd_tune tune;         /* with them applied */
    struct model_tune model_tune; /* the same, of the models */

    /* Options of single experiments. */
    uint32_t senders;              /* incast: to the one; 0: all others; failure: pairs; 0: one */
    uint32_t peers;                /* scale: of each sender; 0: a sweep, or one */
    bool at_once;                  /* alltoall: a host sends to all others at once */
    bool is_all_hosts;             /* scale: all send, not one; set by the experiment */
    bool victim;                   /* incast: a flow beside it */
    char failure[SIMX_NAME_BYTES]; /* failure: "blackhole", "down", "flap", "degrade"; "": each */
    double at_us;                  /* failure: when */
    /* skew: delay of the slowest path above the fastest one's, base RTTs; below 0: those of skew */
    double spread;
    uint32_t mrd_flows, tcp_flows; /* fairness */
    bool tcp_first;                /* fairness */
    double stagger_us;             /* fairness: from the start of a flow to that of the next */
    double duration_s;             /* fairness: since the last start; wan */
    /* fairness, wan: of the narrow link; `gbps` is its rate. */
    double rtt_us;         /* base RTT of its flows; below 0: those of wan */
    double speedup;        /* rate of the hosts' links over that of the narrow one */
    double buffer_bdp;     /* what its queue holds */
    uint64_t buffer_bytes; /* the same; 0: buffer_bdp */

    /* Set by experiments whose fabric no option describes; 0: as the options say. */
    double host_ratio;    /* rate of the hosts' links over `gbps`; the BDP is that of `gbps` */
    uint64_t queue_bytes; /* of a switch's port, in place of queue_packets */
    bool is_one_part;     /* of the simulation, whatever its size */

    uint64_t seed;
    unsigned seeds, jobs;
    unsigned threads; /* of a run; 0: as many as there are processors, if there is one run */
    double limit_s;   /* of virtual time */
    bool json, csv, quiet;
    char plot[SIMX_PATH_BYTES];
};

#endif
