/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet memory, completion queues, the shared receive queue and queue pairs: creates them, brings
 * queue pairs back after an error, destroys all.
 */
#ifndef MRD_TRANSPORT_IBV_QUEUE_H
#define MRD_TRANSPORT_IBV_QUEUE_H

#include "transport/movers/ibv/ibv_state.h"

/*
 * Makes all queues: 0 or -errno with mrd_error_set(). After failure or success end them by
 * mrd_ibv_qps_fini(), mrd_ibv_remotes_fini(), mrd_ibv_queues_fini(), in this order.
 */
int mrd_ibv_queues_init(struct mrd_ibv *ibv);
void mrd_ibv_qps_fini(struct mrd_ibv *ibv);
void mrd_ibv_queues_fini(struct mrd_ibv *ibv);
int mrd_ibv_qp_add(struct mrd_ibv *ibv);
/* Brings a QP that is in error through RESET to RTS again. What was posted on it counts as done. */
void mrd_ibv_qp_revive(struct mrd_ibv *ibv, uint32_t index);
/*
 * Sets the error sentence for memory that could not be pinned or objects that could not be made;
 * returns -errno, of the errno at the call.
 */
int mrd_ibv_memory_error(const struct mrd_ibv *ibv, const char *what, size_t bytes);

#endif
