/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: consecutive packets of one queue pair are posted together.
 *
 * The header is copied into our memory, or goes inline; the device reads payload where it lies in
 * the user's memory. A slot is free again when a completion of its queue pair, its own or a later
 * one, has come and its cookie was reported.
 */
#ifndef MRD_TRANSPORT_IBV_TX_H
#define MRD_TRANSPORT_IBV_TX_H

#include "transport/movers/ibv/ibv_state.h"

unsigned mrd_ibv_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);
unsigned mrd_ibv_tx_reap(struct mrd_backend *b, uint64_t *cookies, unsigned max);
/* Takes completions of sends, and revives QPs that failed. */
void mrd_ibv_tx_poll(struct mrd_ibv *ibv);

#endif
