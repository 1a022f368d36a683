/* SPDX-License-Identifier: BSD-2-Clause */
/* Straight receive: packets that the mover received at predicted places. */
#ifndef MRD_CORE_ENGINE_RX_PLAN_H
#define MRD_CORE_ENGINE_RX_PLAN_H

#include "core/engine/receive.h"

/*
 * in->packet is a segment whose payload was received at a predicted place. If it is the one that
 * was predicted there, it is decoded, part and all. Else in->packet becomes the packet put together
 * in e->plan.scratch, to be decoded as any. false: no plan is like that, or no memory; it was
 * counted, and is to be dropped.
 */
bool mrd_rx_check_plan(struct mrd_engine *e, struct mrd_rx_in *in);
/*
 * How many of `n` packets, all of one datagram, are the next segments of the message that were
 * predicted at their places, new, whole and undamaged, with nothing else to tell and not the
 * message's end? Nothing changes.
 */
uint32_t mrd_rx_plan_run(struct mrd_engine *e, const struct mrd_rx_packet *packets, uint32_t n,
                         struct mrd_run *run);

#endif
