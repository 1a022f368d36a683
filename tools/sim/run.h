/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run: a transport carries flows over a fabric until the last one completes.
 *
 * simx_run_create(); simx_run_until() to stop and look, or simx_run_all(); the results
 * stand in the struct; simx_run_destroy().
 */
#ifndef SIMX_RUN_H
#define SIMX_RUN_H

#include "tools/sim/drive.h"
#include "tools/sim/jobs.h"
#include "transport/movers/sim/sim_part.h"

struct simx_run_flow {
    uint64_t start_ns;
    uint64_t done_ns;    /* UINT64_MAX: not yet */
    const char *failure; /* or NULL */
};

enum { SIMX_WHY_BYTES = 128 };

/* What happened in a part of the simulation: one thread at a time counts here. */
struct simx_run_part {
    _Alignas(MRD_SIM_APART_BYTES) uint32_t num_done;
    uint32_t num_failed;
    uint64_t last_done_ns;
    int error; /* of starting a flow */
    char why[SIMX_WHY_BYTES];
};

struct simx_run {
    const struct simx_config *config;
    struct simx_net net;
    const struct simx_cm *cm;
    struct mrd_sim *sim;
    const struct simx_drive_ops *ops;
    struct simx_drive *drive;
    struct simx_run_flow *flows; /* of the matrix */
    uint32_t *by_start;          /* flows that start at a time, the earliest first */
    uint32_t num_by_start, next_start;
    uint32_t *fired; /* events of each trigger so far */
    struct simx_waiting waiting;
    uint32_t num_done, num_failed;
    uint64_t last_done_ns;
    /* Of the machine's clock, from simx_wall_start() to the slice with the last completion. */
    uint64_t wall_ns;
    int error; /* of starting a flow */
    struct simx_run_part parts[MRD_SIM_PARTS_MAX];
    void *memo;                     /* what the experiment remembers of it; owned */
    struct simx_progress *progress; /* receives progress now and then; or NULL */
};

/*
 * Borrows config and cm, copies the net. 0, or -errno with a sentence; -EINVAL: the matrix and the fabric do not
 * fit.
 */
int simx_run_create(struct simx_run *run, const struct simx_config *config,
                    const struct simx_net *net, const struct simx_cm *cm);
/* Runs until virtual time `ns` or until all flows are done. True: all are done. */
bool simx_run_until(struct simx_run *run, uint64_t ns);
/* Stops the machine's clock of a run that goes no further. 0, or -errno with a sentence. */
int simx_run_end(struct simx_run *run);
/* Runs until all flows are done or to the limit of virtual time. 0, or -errno with a sentence. */
int simx_run_all(struct simx_run *run);
void simx_run_destroy(struct simx_run *run);
/* Starts the machine's clock, at the begin of the process or of the run. */
void simx_wall_start(void);
uint64_t simx_wall_ns(void);

/* --------------------------------------------------------------------------------------- bounds */

/*
 * Times that no run can beat, by the links that bytes must cross and their least headers. A flow
 * may spray: parallel links between switches count together. Faults that make links faster are not
 * known.
 */
/* How far apart two hosts are; with two tiers all leaves are of one pod. */
enum simx_distance { SIMX_SAME_LEAF, SIMX_SAME_POD, SIMX_FAR, SIMX_DISTANCES };

enum simx_distance simx_bound_distance(const struct simx_net *net, uint32_t a, uint32_t b);
/* A lone flow of `bytes` over that distance, until its last full packet is there. */
double simx_bound_way_us(const struct simx_net *net, const struct simx_config *config,
                         enum simx_distance distance, uint64_t bytes);
/* An ack back. */
double simx_bound_back_us(const struct simx_net *net, const struct simx_config *config,
                          enum simx_distance distance);
/* A lone flow from `src` to `dst`, until its sender has the last ack. */
double simx_bound_flow_us(const struct simx_net *net, const struct simx_config *config,
                          uint32_t src, uint32_t dst, uint64_t bytes);

struct simx_bounds {
    double fct_us;        /* the longest completion time is at least this */
    double completion_us; /* the last flow does not end before this time */
};

/*
 * Computes the bounds of a run, which need not have begun. False: no memory.
 *
 * fct_us is the greatest of two: the time of each flow alone; and for each host's link, each way,
 * the longest wait in a queue that the flows with a given start join when they start.
 * completion_us takes all flows. Each starts no earlier than the flows that trigger it can end.
 */
bool simx_bounds_init(struct simx_bounds *bounds, const struct simx_run *run);

#endif
