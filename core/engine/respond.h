/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses to requests that peers sent. */
#ifndef MRD_CORE_ENGINE_RESPOND_H
#define MRD_CORE_ENGINE_RESPOND_H

#include "core/engine/state.h"

/* Reserve the response to a request that mrd_rx_bind() took: there is room. */
struct mrd_response *mrd_respond_admit(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, const struct mrd_wire_part *part);
/* Execute the request, and send the response. */
void mrd_respond_begin(struct mrd_engine *e, struct mrd_response *r);
/* Begin those whose turn in the order came, and tell those whose turn will never come. */
void mrd_respond_run(struct mrd_engine *e);
/* A queue pair answers nothing any more: its requesters are told. */
void mrd_respond_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);

#endif
