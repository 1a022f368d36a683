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

struct simx_run_flow {
    uint64_t start_ns;
    uint64_t done_ns;    /* UINT64_MAX: not yet */
    const char *failure; /* or NULL */
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
    uint64_t wall_ns; /* of the machine's clock, from simx_wall_start() to the last completion */
    int error;        /* of starting a flow */
    void *memo;       /* what the experiment remembers of it; owned */
    struct simx_progress *progress; /* receives progress now and then; or NULL */
};

/*
 * Borrows config and cm. 0, or -errno with a sentence; -EINVAL: the matrix and the fabric do not
 * fit.
 */
int simx_run_create(struct simx_run *run, const struct simx_config *config,
                    const struct simx_cm *cm);
/* Runs until virtual time `ns` or until all flows are done. True: all are done. */
bool simx_run_until(struct simx_run *run, uint64_t ns);
/* Runs until all flows are done or to the limit of virtual time. 0, or -errno with a sentence. */
int simx_run_all(struct simx_run *run);
void simx_run_destroy(struct simx_run *run);
/* Starts the machine's clock, at the begin of the process or of the run. */
void simx_wall_start(void);
uint64_t simx_wall_ns(void);

#endif
