/* SPDX-License-Identifier: BSD-2-Clause */
/* New data. tx.c, which is above, decides whose turn it is. */
#ifndef MRD_CORE_ENGINE_TX_NEW_H
#define MRD_CORE_ENGINE_TX_NEW_H

#include "core/engine/tx_emit.h"

/*
 * One packet of new data, or the probe of a path in its place. false: there is none, or none may
 * go now.
 */
bool mrd_tx_new_data(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o);

#endif
