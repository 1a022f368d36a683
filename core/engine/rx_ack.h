/* SPDX-License-Identifier: BSD-2-Clause */
/* Acks that come, and what is lost by them. */
#ifndef MRD_CORE_ENGINE_RX_ACK_H
#define MRD_CORE_ENGINE_RX_ACK_H

#include "core/engine/state.h"

/* An ACK packet came. */
void mrd_rx_ack(struct mrd_engine *e, const struct mrd_wire_head *head,
                const struct mrd_rx_packet *packet);
/* An ack that rode on a data packet. */
void mrd_rx_ackblock(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head);
/* The packet is lost, or sent again by a probe: do none above the base come through any more? */
void mrd_rx_count_large_loss(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec);
/* Declare lost what is lost by now. */
void mrd_rx_judge_losses(struct mrd_engine *e, struct mrd_peer *peer);

#endif
