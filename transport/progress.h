/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop that moves packets between the engine and the mover. Call all of it under the
 * context's lock.
 *
 * mrd_progress_step() makes one turn: it receives, acts on deadlines, and sends.
 * mrd_progress_send() only sends, after calls that made work. mrd_progress_deadline() says when the
 * next turn is due.
 */
#ifndef MRD_TRANSPORT_PROGRESS_H
#define MRD_TRANSPORT_PROGRESS_H

#include "transport/context.h"

/* Allocates the outbox's head memory and chooses the batch size. 0 or -ENOMEM. */
int mrd_progress_init(struct mrd_context_impl *c);
void mrd_progress_fini(struct mrd_context_impl *c);

/* Makes one turn. Returns the number of packets received and sent. */
unsigned mrd_progress_step(struct mrd_context_impl *c, uint64_t now_ns);
/*
 * Makes one turn, or half of one: receiving only, if it gave `cq` a completion and nothing is to be
 * sent. The answer to a message should not wait for timers; the next call acts on these. Returns
 * the number of packets received and sent.
 */
unsigned mrd_progress_step_for(struct mrd_context_impl *c, const struct mrd_cq *cq,
                               uint64_t now_ns);
/*
 * Begins a call of the engine that makes work, and returns the time. Where nobody looked at the receive queue for
 * long, it is read first: what waits there tells who the peers are, and which of them are there.
 */
uint64_t mrd_progress_begin_call(struct mrd_context_impl *c);
/*
 * Sends what may leave now, after calls of the engine at now_ns. Returns the number of packets that
 * the mover took.
 */
unsigned mrd_progress_send(struct mrd_context_impl *c, uint64_t now_ns);
/*
 * Sends also the acks that the engine holds back until the caller's next call, so that they can
 * ride on an answer. For callers that expect no answer.
 */
void mrd_progress_flush(struct mrd_context_impl *c, uint64_t now_ns);
/* When the next turn is due if no packet comes, on the mover's clock; 0: now; UINT64_MAX: never. */
uint64_t mrd_progress_deadline(const struct mrd_context_impl *c);

/*
 * Call before users' memory may go. Drops unsent packets that point into such memory, which count
 * as lost; then waits until the device reads no more of it. 0, or -EBUSY with mrd_error_set() if
 * the device still reads after QUIESCE_NS.
 */
int mrd_progress_quiesce(struct mrd_context_impl *c);

/* Moves events of the device and the engine to the ring, and counts each in async_fd. */
void mrd_progress_collect_events(struct mrd_context_impl *c);
/* The object was destroyed: nobody is told of it. */
void mrd_progress_forget_events(struct mrd_context_impl *c, const void *object);
/* Takes the oldest event of the ring. 0; -EAGAIN: there is none. */
int mrd_progress_take_event(struct mrd_context_impl *c, struct mrd_engine_event *event);

#endif
