/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles. A handle leads to the peer that its messages went to last, wherever that is now. Where the
 * entry that they went by gave way to another one, they go by that.
 */
#ifndef MRD_CORE_ENGINE_HANDLE_H
#define MRD_CORE_ENGINE_HANDLE_H

#include "core/engine/state.h"

/* The peer of a handle, if it is active; NULL: it is not. */
struct mrd_peer *mrd_handle_known(const struct mrd_engine *e, const struct mrd_ah_impl *ah);
/* The entry that its watch is of, also where its own gave way and the other one moved on; NULL: of none. */
struct mrd_peer *mrd_handle_watched(const struct mrd_engine *e, const struct mrd_ah_impl *ah);
/* The entry that its messages go by, made if there is none; NULL: the table is full. */
struct mrd_peer *mrd_handle_open(struct mrd_engine *e, struct mrd_ah_impl *ah);
/*
 * What was posted before, by the handle or to its address, may have gone by other entries, and failed. Copies
 * of it would be delivered after what goes now: that waits until none can come. For what went by the same
 * entry see is_over() in tx_new.c.
 */
void mrd_handle_await(const struct mrd_engine *e, struct mrd_flow_tx *flow, struct mrd_ah_impl *ah);

#endif
