/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop that moves packets between the engine and the mover: rx -> expire -> tx. All under the
 * context's lock.
 *
 * mrd_progress_step() is one turn; mrd_progress_send() only sends, for calls that made work.
 * mrd_progress_deadline() tells when the next step is due.
 */
#ifndef MRD_TRANSPORT_PROGRESS_H
#define MRD_TRANSPORT_PROGRESS_H

#include "transport/context.h"

/* Head memory and batch size; -ENOMEM. */
int mrd_progress_init(struct mrd_context_impl *c);
void mrd_progress_fini(struct mrd_context_impl *c);

/* One turn. Packets received and sent. */
unsigned mrd_progress_step(struct mrd_context_impl *c, uint64_t now_ns);
/*
 * One turn; or half of one, if `cq` has a completion then and nothing is to be sent: the answer to
 * a message should not wait for timers. The next call makes up for it.
 */
unsigned mrd_progress_step_for(struct mrd_context_impl *c, const struct mrd_cq *cq,
                               uint64_t now_ns);
/*
 * Send what may go now, after engine calls at now_ns that made work. Packets that the mover took.
 */
unsigned mrd_progress_send(struct mrd_context_impl *c, uint64_t now_ns);
/*
 * Send also what the engine holds back for the caller's next call: an ack that would rather ride on
 * an answer. For when no answer is to be expected.
 */
void mrd_progress_flush(struct mrd_context_impl *c, uint64_t now_ns);
/* The application has just stepped: it keeps the progress thread out for a while. */
static inline void mrd_progress_lease(struct mrd_context_impl *c, uint64_t now_ns)
{
    atomic_store_explicit(&c->thread.lease_until_ns, now_ns + MRD_LEASE_NS, memory_order_relaxed);
}
/* Absolute time of the next step without a packet; 0: now; UINT64_MAX: never. */
uint64_t mrd_progress_deadline(const struct mrd_context_impl *c);

/*
 * Forget packets that point into users' memory: before that memory may go. They count as lost. Then
 * wait until the device reads no more of it. 0, or -EBUSY with mrd_error_set() if the device does
 * not let go of it.
 */
int mrd_progress_quiesce(struct mrd_context_impl *c);

/* The oldest event; -EAGAIN. */
int mrd_progress_take_event(struct mrd_context_impl *c, struct mrd_engine_event *event);

#endif
