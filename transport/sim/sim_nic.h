/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's adapter in a model: whose turn it is to send, and the timers of its flows.
 *
 * mrd_sim_nic_add() before a queue pair's first mrd_sim_nic_update(), which follows each change of it;
 * mrd_sim_nic_run() after those; mrd_sim_nic_remove() when the flow is over.
 *
 * Queue pairs that may send form a ring. The others have a place in a heap if something happens to them without a
 * packet: a timeout, or their pace lets them send again. A timeout that moves later leaves its place in the heap alone
 * and is looked at again when the old time has come.
 */
#ifndef MRD_TRANSPORT_SIM_SIM_NIC_H
#define MRD_TRANSPORT_SIM_SIM_NIC_H

#include "transport/sim/sim_qp.h"

struct mrd_sim_nic {
    struct mrd_sim_flows *flows;
    uint32_t host;                               /* its number */
    struct mrd_sim_qp *ready_first, *ready_last; /* may send; in turn */
    struct mrd_sim_qp **timers;                  /* heap by timer_ns; owned */
    uint32_t num_timers, cap_timers;
    uint32_t num_qps;
    uint64_t link_idle_ns; /* when the link of the last data packet has sent all up to it */
};

void mrd_sim_nic_init(struct mrd_sim_nic *nic, struct mrd_sim_flows *flows, uint32_t host);
void mrd_sim_nic_fini(struct mrd_sim_nic *nic);
/* Room for a queue pair more: 0 or -ENOMEM. */
int mrd_sim_nic_add(struct mrd_sim_nic *nic);
/* Let it take its turn if it may send, and set its timer. */
void mrd_sim_nic_update(struct mrd_sim_nic *nic, struct mrd_sim_qp *qp);
/* mrd_sim_qp_free() follows, at once or when its turn comes. */
void mrd_sim_nic_remove(struct mrd_sim_nic *nic, struct mrd_sim_qp *qp);
/* Send what can be sent now, and be woken for the rest. */
void mrd_sim_nic_run(struct mrd_sim_nic *nic);
/* The host's timer: expire what is due. */
void mrd_sim_nic_timer(struct mrd_sim_nic *nic);

#endif
