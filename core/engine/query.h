/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls leave for the user: sentences about errors, for mrd_engine_error(), and events. */
#ifndef MRD_CORE_ENGINE_QUERY_H
#define MRD_CORE_ENGINE_QUERY_H

#include "core/engine/state.h"

/* Where none of the last MRD_EVENTS_MAX was taken, the event is counted and dropped. */
void mrd_event_add(struct mrd_engine *e, const struct mrd_peer *peer, enum mrd_event_type type);
/* The queue pair refused a request of the peer for good: its user is told if he wants that. */
void mrd_event_refused(struct mrd_engine *e, const struct mrd_peer *peer, struct mrd_qp_impl *qp);
/* Queues an event of the object, unless one is queued already. */
void mrd_event_raise(struct mrd_engine *e, struct mrd_event_source *source);
/* Raises the event of the limit if fewer receives are posted; then there is no limit any more. */
void mrd_event_check_srq(struct mrd_engine *e, struct mrd_srq_impl *srq);

/* Keep the sentence about a call that fails. Returns `error`. */
int mrd_error_keep(struct mrd_engine *e, int error, const char *why);

#endif
