/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that wait for receives of ours. */
#ifndef MRD_CORE_ENGINE_WANT_H
#define MRD_CORE_ENGINE_WANT_H

#include "core/engine/state.h"

/*
 * The peer was refused; it is told when receives are posted. A hint: without memory it is left out.
 */
void mrd_want_add(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp);
void mrd_want_free(struct mrd_engine *e, struct mrd_want *want);
/* The queue pair takes no receives any more. */
void mrd_want_forget_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* The queue pair takes messages from now on: those who were refused until now are to be told. */
void mrd_want_admit(struct mrd_engine *e, struct mrd_qp_impl *qp);
/*
 * `num` receives more, or places for completions, are there: those that wait on this list are to be
 * told in turn, each receive to one of them.
 */
void mrd_want_meet(struct mrd_engine *e, struct mrd_node *wants, uint32_t num);
/* Many places more are there: all that wait on this list are to be told of one. */
void mrd_want_meet_each(struct mrd_engine *e, struct mrd_node *wants);
/* A peer was told of receives of queue pair `qpn`. If it left some, the next one is to be told. */
void mrd_want_told(struct mrd_engine *e, uint32_t qpn);
/* They were used up before the peer was told. */
void mrd_want_postpone(struct mrd_want *want);
/* Gives back a place that was reserved for a completion: there is room for others. */
void mrd_want_unreserve(struct mrd_engine *e, struct mrd_cq_impl *cq);

#endif
