/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of messages that are to be sent. */
#ifndef MRD_CORE_ENGINE_TXQ_H
#define MRD_CORE_ENGINE_TXQ_H

#include "core/engine/state.h"

/*
 * The queue from a queue pair to one of the peer's, made if there is none; NULL: the context's
 * table is full. `responses`: the queue of its responses to that one.
 */
struct mrd_txq *mrd_txq_open(struct mrd_engine *e, struct mrd_peer *peer, uint32_t qpn,
                             uint32_t remote_qpn, bool responses);
/* The queue of the message; that of those without one, if the context's table is full. */
struct mrd_txq *mrd_txq_of(struct mrd_engine *e, const struct mrd_msg *msg);
/* The next message to be sent; NULL: none. */
struct mrd_msg *mrd_txq_first(struct mrd_txq *q);
/* Nothing to send: off the peer's list; and given back, unless messages wait for receives. */
void mrd_txq_rest(struct mrd_engine *e, struct mrd_txq *q);
/* Give it back; nothing is on it. */
void mrd_txq_free(struct mrd_engine *e, struct mrd_txq *q);
/* Add a new message: behind those that wait for receives, if it needs one. */
void mrd_txq_enqueue(struct mrd_engine *e, struct mrd_txq *q, struct mrd_msg *msg);
/*
 * Take a message off its queue: all of it was sent, or it is given up. Its state is SENDING then.
 */
void mrd_txq_dequeue(struct mrd_engine *e, struct mrd_msg *msg);
/* It was refused for want of a receive, and holds no id: it waits for its next attempt. */
void mrd_txq_wait(struct mrd_engine *e, struct mrd_msg *msg);
/* Try one message of each queue whose delay is over. */
void mrd_txq_retry(struct mrd_engine *e, struct mrd_peer *peer);
/* The peer says that its queue pair has so many receives. */
void mrd_txq_apply_ready(struct mrd_engine *e, struct mrd_peer *peer, uint32_t remote_qpn,
                         uint32_t receives);
/*
 * A message ended without a receive, for good: all that wait with it go at once. They learn the
 * same within a round trip, or find receives that came meanwhile.
 */
void mrd_txq_end_wait(struct mrd_engine *e, const struct mrd_msg *msg);
/* A message that needed a receive got one: others of its queue may, too. */
void mrd_txq_found_receive(struct mrd_engine *e, const struct mrd_msg *msg);

#endif
