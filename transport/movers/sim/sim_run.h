/* SPDX-License-Identifier: BSD-2-Clause */
/* What makes a simulation run: its parts, see sim_part.h, and the threads that run them. */
#ifndef MRD_TRANSPORT_SIM_SIM_RUN_H
#define MRD_TRANSPORT_SIM_SIM_RUN_H

struct mrd_sim;

/* One part with all hosts, which have been made. 0 or -ENOMEM. */
int mrd_sim_run_init(struct mrd_sim *sim);
void mrd_sim_run_fini(struct mrd_sim *sim);

#endif
