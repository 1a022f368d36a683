/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of a host: which queue pair sends next, and their timers.
 *
 * model_nic_add() for a new queue pair; model_nic_update() after each change of it, then
 * model_nic_run(); model_nic_remove() when its flow is over.
 */
#ifndef MODELS_NIC_H
#define MODELS_NIC_H

#include "tools/sim/models/qp.h"

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
