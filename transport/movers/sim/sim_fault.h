/* SPDX-License-Identifier: BSD-2-Clause */
/* Scheduled changes of links, mrd_sim_schedule(), and of hosts' addresses. */
#ifndef MRD_TRANSPORT_SIM_SIM_FAULT_H
#define MRD_TRANSPORT_SIM_SIM_FAULT_H

#include <stdint.h>

#include "transport/movers/sim/sim_address.h"

/*
 * Schedules a change of address `id` at virtual time `at_ns`; at once, if that has come. Changes of
 * the same time come in the order of the calls. 0 or -ENOMEM.
 */
int mrd_sim_change_address(struct mrd_sim *sim, uint64_t at_ns, uint32_t host, uint32_t id,
                           enum mrd_sim_address_change change);
/* The host's address `id` becomes `new_id`. */
int mrd_sim_move_address(struct mrd_sim *sim, uint64_t at_ns, uint32_t host, uint32_t id,
                         uint32_t new_id);
/* When the next scheduled change is due; NEVER: there is none. */
uint64_t mrd_sim_faults_next_ns(const struct mrd_sim *sim);
/* Apply the scheduled changes that are due, in the order in which they were scheduled. */
void mrd_sim_faults_apply(struct mrd_sim *sim);
void mrd_sim_faults_fini(struct mrd_sim *sim);

#endif
