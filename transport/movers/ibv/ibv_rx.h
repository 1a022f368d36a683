/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: the engine reads datagrams where the device put them. Their slots are posted again
 * when it has returned them.
 */
#ifndef MRD_TRANSPORT_IBV_RX_H
#define MRD_TRANSPORT_IBV_RX_H

#include "transport/movers/ibv/ibv_state.h"

unsigned mrd_ibv_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_ibv_learn(struct mrd_backend *b, const struct mrd_rx_packet *packet);
void mrd_ibv_rx_return(struct mrd_backend *b);

#endif
