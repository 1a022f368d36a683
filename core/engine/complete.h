/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives: taken, returned, completed. */
#ifndef MRD_CORE_ENGINE_COMPLETE_H
#define MRD_CORE_ENGINE_COMPLETE_H

#include "core/engine/state.h"

/* Takes a receive for a message to the queue pair: mrd_qp_receives() found one. */
struct mrd_recv *mrd_rx_take_recv(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* The message never came: the receive is the next to be taken. */
void mrd_rx_return_recv(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv);
/* A receive completes; `wc` without wr_id and qp_num, which are filled in. */
void mrd_rx_complete(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv,
                     const struct mrd_wc *wc);
/* The completion of a message of that op and those flags, with status SUCCESS. */
struct mrd_wc mrd_rx_wc(const struct mrd_peer *peer, uint8_t op, uint8_t flags, uint32_t len,
                        uint32_t imm, uint32_t src_qpn);

/* Is the memory of a receive of this queue pair's still valid? */
static inline bool mrd_rx_recv_valid(const struct mrd_engine *e, const struct mrd_qp_impl *qp,
                                     struct mrd_recv *recv)
{
    return mrd_mr_list_stays(&e->objects.mrs, qp->recvq->pd, recv->sge, recv->num_sge,
                             MRD_ACCESS_LOCAL_WRITE, &recv->memory_seen);
}

#endif
