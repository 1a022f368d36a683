/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages at their sender: queues (txq.c), ordered flows (tx_flow.c), requests and fences
 * (request.c), their life (message.c); and the peers that wait for receives of ours (want.c).
 */
#ifndef MRD_CORE_ENGINE_MESSAGE_H
#define MRD_CORE_ENGINE_MESSAGE_H

#include "core/engine/state.h"

/* --------------------------------------------------------------------------------------- queues */

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

/* ------------------------------------------------------------------ who waits for receives here */

/*
 * The peer was refused; it is told when receives are posted. A hint: without memory it is left out.
 */
void mrd_want_add(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp);
void mrd_want_free(struct mrd_engine *e, struct mrd_want *want);
/* The queue pair takes no receives any more. */
void mrd_want_forget_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* The queue pair takes messages from now on: those who were refused until now are to be told. */
void mrd_want_admit(struct mrd_engine *e, struct mrd_qp_impl *qp);
/*
 * `num` receives more, or places for completions, are there: those that wait on this list are to be
 * told in turn, each receive to one of them.
 */
void mrd_want_meet(struct mrd_engine *e, struct mrd_node *wants, uint32_t num);
/* Many places more are there: all that wait on this list are to be told of one. */
void mrd_want_meet_each(struct mrd_engine *e, struct mrd_node *wants);
/* A peer was told of receives of queue pair `qpn`. If it left some, the next one is to be told. */
void mrd_want_told(struct mrd_engine *e, uint32_t qpn);
/* They were used up before the peer was told. */
void mrd_want_postpone(struct mrd_want *want);
/* Gives back a place that was reserved for a completion: there is room for others. */
void mrd_want_unreserve(struct mrd_engine *e, struct mrd_cq_impl *cq);

/* ---------------------------------------------------------------------------------------- flows */

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

/* ------------------------------------------------------------------------- requests, and fences */

/*
 * Begin a message that was posted: it gets its number and token. False: it is held back, behind a
 * fence or too many reads and atomics of its queue pair, and goes onto its queue later.
 */
bool mrd_msg_begin(struct mrd_engine *e, struct mrd_msg *msg);
/* A message is one of several packets if it is longer than the peer's path takes in one. */
static inline void mrd_msg_measure(struct mrd_msg *msg)
{
    msg->multi = mrd_msg_payload(msg) > msg->peer->tx->pmtu.payload;
    if (msg->multi)
        msg->wr.part_flags |= MRD_PART_MULTI;
    else
        msg->wr.part_flags &= (uint8_t)~MRD_PART_MULTI;
}
/*
 * A message that waits on its queue, or is held back, and was never sent, goes to another entry of the peer
 * instead. Returns false, and leaves it, if a table is full.
 */
bool mrd_msg_move(struct mrd_engine *e, struct mrd_msg *msg, struct mrd_peer *to);
/*
 * It ends without having begun: in ordered mode behind all that have numbers, and without one of
 * its own. What waited behind it may begin.
 */
void mrd_msg_end_held(struct mrd_engine *e, struct mrd_msg *msg);
/* The request of that token that the peer has not answered; NULL: there is none. */
struct mrd_msg *mrd_msg_find_request(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     uint32_t token);
/*
 * Nothing that answers the request is placed from now on. Others may begin in its place. Of a
 * message that is no request, or was forgotten: nothing.
 */
void mrd_msg_forget_request(struct mrd_engine *e, struct mrd_msg *msg);

/* ------------------------------------------------------------------------------------- messages */

/* The whole response is in place: the request completes when it is acked, too. */
void mrd_msg_end_request(struct mrd_engine *e, struct mrd_msg *msg);
/* mrd_msg_check_memory() of a message that was last looked at before some region went. */
bool mrd_msg_find_memory(struct mrd_engine *e, struct mrd_msg *msg);

/* May its bytes be touched? Of a message whose memory was deregistered not: it is given up. */
static inline bool mrd_msg_check_memory(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->state != MRD_MSG_SENDING && msg->state != MRD_MSG_QUEUED)
        return false;
    return msg->memory_seen == e->objects.mrs.removals || mrd_msg_find_memory(e, msg);
}

/* A record was acked: what it carried got there. Releases the record. */
void mrd_msg_record_acked(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec);
/* `n` segments with that id were acked, which carried `bytes` of the message. */
void mrd_msg_segments_acked(struct mrd_engine *e, struct mrd_peer *peer, uint32_t msg_id,
                            uint32_t n, uint32_t bytes);
/* The target refused a part of a record. Returns whether that is a message of it. */
bool mrd_msg_apply_refusal(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                           const struct mrd_wire_refusal_entry *entry, uint32_t rnr_usec);
/* The target's only refusal of the record's parts came: the messages left in it were taken. */
void mrd_msg_rest_taken(struct mrd_engine *e, struct mrd_sent *rec);
/* Give a message up: it completes with `status` when the target was told. */
void mrd_msg_cancel(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
/* It ends now, without telling the target. */
void mrd_msg_abandon(struct mrd_engine *e, struct mrd_msg *msg, enum mrd_wc_status status);
/*
 * All its messages are abandoned: they complete in order, as they are no longer read; then the
 * record goes.
 */
void mrd_msg_end_flow(struct mrd_engine *e, struct mrd_flow_tx *flow);
/* The mover no longer reads one packet of the message. */
void mrd_msg_end_read(struct mrd_engine *e, struct mrd_msg *msg);
/* Free a destroyed queue pair whose messages have all ended. */
void mrd_msg_reap_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);

#endif
