/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that wait for receives of ours. */
#ifndef MRD_CORE_ENGINE_RNR_H
#define MRD_CORE_ENGINE_RNR_H

#include "core/engine/state.h"

/*
 * The peer was refused; it is told when receives are posted. A hint: without memory it is left out.
 */
void mrd_rnr_add(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp);
void mrd_rnr_free(struct mrd_engine *e, struct mrd_rnr_waiter *waiter);
/* The queue pair takes no receives any more. */
void mrd_rnr_forget_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* The queue pair takes messages from now on: those who were refused until now are to be told. */
void mrd_rnr_admit(struct mrd_engine *e, struct mrd_qp_impl *qp);
/*
 * `num` receives more, or places for completions, are there: those that wait on this list are to be
 * told in turn, each receive to one of them.
 */
void mrd_rnr_notify(struct mrd_engine *e, struct mrd_node *waiters, uint32_t num);
/* Many places more are there: all that wait on this list are to be told of one. */
void mrd_rnr_notify_all(struct mrd_engine *e, struct mrd_node *waiters);
/* A peer was told of receives of queue pair `qpn`. If it left some, the next one is to be told. */
void mrd_rnr_notified(struct mrd_engine *e, uint32_t qpn);
/* They were used up before the peer was told. */
void mrd_rnr_postpone(struct mrd_rnr_waiter *waiter);
/* Gives back a place that was reserved for a completion: there is room for others. */
void mrd_rnr_unreserve(struct mrd_engine *e, struct mrd_cq_impl *cq);

#endif
