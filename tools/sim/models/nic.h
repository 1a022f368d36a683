/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's adapter in a model: whose turn it is to send, and the timers of its flows.
 *
 * model_nic_add() before a queue pair's first model_nic_update(), which follows each change of it;
 * model_nic_run() after those; model_nic_remove() when the flow is over.
 *
 * Queue pairs that may send form a ring. The others have a place in a heap if something happens to them without a
 * packet: a timeout, or their pace lets them send again. A timeout that moves later leaves its place in the heap alone
 * and is looked at again when the old time has come.
 */
#ifndef MODELS_NIC_H
#define MODELS_NIC_H

#include "tools/sim/models/qp.h"

struct model_nic {
    struct model_flows *flows;
    uint32_t host;                             /* its number */
    struct model_qp *ready_first, *ready_last; /* may send; in turn */
    struct model_qp **timers;                  /* heap by timer_ns; owned */
    uint32_t num_timers, cap_timers;
    uint32_t num_qps;
    uint64_t link_idle_ns; /* when the link of the last data packet has sent all up to it */
};

void model_nic_init(struct model_nic *nic, struct model_flows *flows, uint32_t host);
void model_nic_fini(struct model_nic *nic);
/* Room for a queue pair more: 0 or -ENOMEM. */
int model_nic_add(struct model_nic *nic);
/* Let it take its turn if it may send, and set its timer. */
void model_nic_update(struct model_nic *nic, struct model_qp *qp);
/* model_qp_free() follows, at once or when its turn comes. */
void model_nic_remove(struct model_nic *nic, struct model_qp *qp);
/* Send what can be sent now, and be woken for the rest. */
void model_nic_run(struct model_nic *nic);
/* The host's timer: expire what is due. */
void model_nic_timer(struct model_nic *nic);

#endif
