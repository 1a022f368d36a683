/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls leave for the user: sentences about errors, for mrd_engine_error(), and events. */
#ifndef MRD_CORE_ENGINE_QUERY_H
#define MRD_CORE_ENGINE_QUERY_H

#include "core/engine/state.h"

/* Where none of the last MRD_EVENTS_MAX was taken, the event is counted and dropped. */
void mrd_event_add(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_event_type type);
/* The queue pair was moved to the error state, and not by its user. */
void mrd_event_add_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* Raises the event of the limit if fewer receives are posted; then there is no limit any more. */
void mrd_event_check_srq(struct mrd_engine *e, struct mrd_srq_impl *srq);
/* The object goes: its events that nobody took are not told. */
void mrd_event_forget(struct mrd_engine *e, const void *object);

/* Keep the sentence about a call that fails. Returns `error`. */
int mrd_error_keep(struct mrd_engine *e, int error, const char *why);

#endif
