/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered flows at their sender. */
#ifndef MRD_CORE_ENGINE_TX_FLOW_H
#define MRD_CORE_ENGINE_TX_FLOW_H

#include "core/engine/state.h"

/*
 * The flow from a queue pair to one of the peer's, made if there is none; NULL: the context's table
 * is full.
 */
struct mrd_flow_tx *mrd_tx_flow_open(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, uint32_t remote_qpn);
/*
 * A message ended. Without messages a flow is only two records, here and at the target: they go
 * when it was idle for long, or at once when its queue pair is gone. One CLOSE at a time is
 * in flight.
 */
void mrd_tx_flow_rest(struct mrd_engine *e, struct mrd_flow_tx *flow);
/* The first flow after that node of a queue pair's list that goes to a queue pair of that number. */
struct mrd_flow_tx *mrd_tx_flow_first(const struct mrd_node *after, const struct mrd_node *list,
                                      uint32_t remote_qpn);
/* Its CLOSE was acked: the record goes, unless something was posted meanwhile. */
void mrd_tx_flow_close_acked(struct mrd_engine *e, struct mrd_flow_tx *flow);
/* The peer's flows that were idle for so long are to be closed. */
void mrd_tx_flow_close_idle(struct mrd_engine *e, struct mrd_peer *peer, uint64_t idle_ns);

#endif
