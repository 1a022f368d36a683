/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of a host: which queue pair sends next, and the timers of those that wait.
 *
 * model_nic_add() for a new queue pair; model_nic_update() after each change of it, then
 * model_nic_run(); model_nic_remove() when its flow is over.
 *
 * Queue pairs that may send take turns in a list. Those that wait for a time, which is a timeout or
 * that of the next paced packet, are in a heap by that time. A queue pair whose time moves later
 * stays where it is in the heap, and is looked at again when the old time has come.
 */
#ifndef MODELS_NIC_H
#define MODELS_NIC_H

#include "tools/sim/models/qp.h"

struct model_nic {
    struct model_flows *flows;
    uint32_t host;                             /* number of the host */
    struct model_qp *ready_first, *ready_last; /* list of those that may send */
    struct model_qp **timers;                  /* heap by timer_ns; owned */
    uint32_t num_timers, cap_timers;
    uint32_t num_qps;
    uint64_t link_idle_ns; /* when the first link of the last data packet will have sent it */
};

void model_nic_init(struct model_nic *nic, struct model_flows *flows, uint32_t host);
void model_nic_fini(struct model_nic *nic);
/* Make room for one more queue pair. 0 or -ENOMEM. */
int model_nic_add(struct model_nic *nic);
/* Put the queue pair among those that may send, if it may, and set its timer. */
void model_nic_update(struct model_nic *nic, struct model_qp *qp);
/* Forget the queue pair. model_qp_free() is called now, or when its turn comes. */
void model_nic_remove(struct model_nic *nic, struct model_qp *qp);
/* Send what can be sent now, and set the timer of the host for what cannot. */
void model_nic_run(struct model_nic *nic);
/* The timer of the host has come: do what is due. */
void model_nic_expire(struct model_nic *nic);

#endif
