/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a received message is for, and whether it may be taken. */
#ifndef MRD_CORE_ENGINE_RX_BIND_H
#define MRD_CORE_ENGINE_RX_BIND_H

#include "core/engine/state.h"

/*
 * May the queue pair, if there is one, take messages of that source? Returns MRD_RX_TAKEN, or why
 * not.
 */
uint8_t mrd_rx_check_source(const struct mrd_qp_impl *qp, const struct mrd_peer *peer,
                            uint32_t src_qpn);
/* May the message reach the queue pair and, if it is a write, its memory? */
uint8_t mrd_rx_check_target(struct mrd_engine *e, const struct mrd_wire_part *part,
                            struct mrd_qp_impl *qp);
/*
 * What becomes of a new message: MRD_RX_TAKEN, or why it is refused. Nothing is changed. Up to
 * `before` receives may go to parts before it. `b` has the queue pair, the receive and the request
 * that were found. Of an ordered part only the source is judged: its flow decides the rest.
 */
uint8_t mrd_rx_judge(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                     uint32_t before, struct mrd_bound *b);
/*
 * Judges a new message, and commits it: it has its receive, if it takes one, and its place in its
 * flow. What a refusal ends, a request or a receive, fails. *old: it came before, and is to be
 * dropped.
 */
uint8_t mrd_rx_bind(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                    struct mrd_bound *b, bool *old);
/*
 * The flow of an ordered part, caught up with its sender, and the part's numbers in full; NULL: no
 * record is free.
 */
struct mrd_flow_rx *mrd_rx_open_flow(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, const struct mrd_wire_part *part,
                                     uint32_t *msn, uint32_t *rsn);

#endif
