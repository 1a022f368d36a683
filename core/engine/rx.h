/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is received: parts of messages (rx_plan.c, rx_place.c, rx_bind.c, rx_flow.c, complete.c),
 * and acks (rx_ack.c).
 *
 * Receiving changes state and marks peers as ready; it sends nothing.
 */
#ifndef MRD_CORE_ENGINE_RX_H
#define MRD_CORE_ENGINE_RX_H

#include "core/engine/state.h"

/* A received packet, decoded: once, and handed on. */
struct mrd_rx_in {
    const struct mrd_rx_packet *packet;
    struct mrd_wire_head head;
    const uint8_t *payload; /* where it is; with packet->placed, where it belongs */
    uint32_t payload_len;
    unsigned num_parts; /* 0: they were not decoded yet */
    struct mrd_wire_part part[MRD_PARTS_MAX];
    struct mrd_rx_packet whole; /* mrd_rx_check_plan() */
};

/* ------------------------------------------------------------------------------------- receives */

/* Takes a receive for a message to the queue pair: mrd_qp_receives() found one. */
struct mrd_recv *mrd_rx_take_recv(struct mrd_engine *e, struct mrd_qp_impl *qp);
/* The message never came: the receive is the next to be taken. */
void mrd_rx_return_recv(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv);
/* A receive completes; `wc` without wr_id and qp_num, which are filled in. */
void mrd_rx_complete(struct mrd_engine *e, struct mrd_qp_impl *qp, struct mrd_recv *recv,
                     const struct mrd_wc *wc);
/* The completion of a message of that op and those flags, with status SUCCESS. */
struct mrd_wc mrd_rx_wc(const struct mrd_peer *peer, uint8_t op, uint8_t flags, uint32_t len,
                        uint32_t imm, uint32_t src_qpn);

enum { MRD_RX_TAKEN = 0 }; /* what became of a part: this, or an enum mrd_refusal_code */
/*
 * May the queue pair, if there is one, take messages of that source? Returns MRD_RX_TAKEN, or why
 * not.
 */
uint8_t mrd_rx_check_source(const struct mrd_qp_impl *qp, const struct mrd_peer *peer,
                            uint32_t src_qpn);

/* ---------------------------------------------------------------------- ends of messages, order */

/* An ordered message ends: it completes when its turn comes. */
void mrd_rx_end_in_order(struct mrd_engine *e, const struct mrd_bound *b, const struct mrd_wc *wc);

/* A RESPONSE ends its request: with its status, or as one that the target cannot answer. */
void mrd_rx_end_answer(struct mrd_engine *e, struct mrd_msg *request, const struct mrd_wc *wc);
/*
 * A bound message ends: its receive completes, in ordered mode in its turn; or the request that it
 * answers.
 */
static inline void mrd_rx_end_message(struct mrd_engine *e, const struct mrd_bound *b,
                                      const struct mrd_wc *wc)
{
    if (b->request)
        mrd_rx_end_answer(e, b->request, wc);
    else if (b->flow)
        mrd_rx_end_in_order(e, b, wc);
    else if (b->recv)
        mrd_rx_complete(e, b->qp, b->recv, wc);
}
/*
 * A half-received message ends: its receive completes with `status`. `state`: of its slot from
 * now on.
 */
void mrd_rx_fail_slot(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_slot *slot,
                      enum mrd_slot_state state, enum mrd_wc_status status);
/* A record of a message that waits for its turn, counted for its peer; NULL: there is none. */
struct mrd_pend *mrd_rx_take_pend(struct mrd_engine *e, struct mrd_peer *peer);
void mrd_rx_release_pend(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_pend *pend);
/* Complete what is in order. */
void mrd_rx_deliver(struct mrd_engine *e, struct mrd_flow_rx *flow);
/* The flow from a peer's queue pair to one of ours; NULL: there is none. */
struct mrd_flow_rx *mrd_rx_find_flow(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     const struct mrd_qp_impl *qp, uint32_t remote_qpn);
/* A message of the flow will never be delivered: its places in MSN and RSN are free. */
void mrd_rx_skip_message(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn, bool has_rsn,
                         uint32_t rsn);
/* The sender closes the flow: the record goes, unless it was used since. */
void mrd_rx_close_flow(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_qp_impl *qp,
                       const struct mrd_wire_part *part);
/*
 * Earlier messages of the flow will never be here: those behind them that are here, and wait for
 * their turn, will complete with `status`.
 */
void mrd_rx_spoil_flow(struct mrd_flow_rx *flow, enum mrd_wc_status status);
/*
 * The record goes. What waits there completes with `status`; reserved receives go back to
 * their queue.
 */
void mrd_rx_free_flow(struct mrd_engine *e, struct mrd_flow_rx *flow, enum mrd_wc_status status);

/* -------------------------------------------------------------------------------------- binding */

/* Returns the access that an op needs to the memory that it names. */
static inline int mrd_rx_access(uint8_t op)
{
    if (op == MRD_OP_READ)
        return MRD_ACCESS_REMOTE_READ;
    return op == MRD_OP_WRITE ? MRD_ACCESS_REMOTE_WRITE : MRD_ACCESS_REMOTE_ATOMIC;
}
/* May the message reach the queue pair and, if it is a write, its memory? */
uint8_t mrd_rx_check_target(struct mrd_engine *e, const struct mrd_wire_part *part,
                            struct mrd_qp_impl *qp);
/* May a RESPONSE be placed? *request: what it answers; NULL: nobody waits for it. */
uint8_t mrd_rx_check_answer(struct mrd_engine *e, struct mrd_peer *peer,
                            const struct mrd_wire_part *part, struct mrd_msg **request);
/*
 * Whom a new message is for, with a receive if it takes one. *old: it came before, and is to
 * be dropped.
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

/* -------------------------------------------------------------------------------------- requests */

/* Reserve the response to a request that mrd_rx_bind() took: there is room. */
struct mrd_response *mrd_respond_admit(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, const struct mrd_wire_part *part);
/* Execute the request, and send the response. */
void mrd_respond_begin(struct mrd_engine *e, struct mrd_response *r);
/* Begin those whose turn in the order came, and tell those whose turn will never come. */
void mrd_respond_run(struct mrd_engine *e);
/* A queue pair answers nothing any more: its requesters are told. */
void mrd_respond_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *qp);

/* ------------------------------------------------------------------------------------ placement */

enum mrd_place_verdict {
    MRD_PLACED,
    MRD_PLACE_REFUSED,   /* some parts: *refusal names them */
    MRD_PLACE_MALFORMED, /* nothing was done */
    MRD_PLACE_GUESS,     /* nothing was done: the peer names too many wrong keys */
    MRD_PLACE_NO_ROOM,   /* nothing was done: not even a refusal can be kept */
};
/* What a packet completed. */
enum mrd_place_end {
    MRD_PLACE_END_NONE,
    MRD_PLACE_END_SMALL, /* whole messages: the ack may ride on an answer */
    MRD_PLACE_END_LONG,  /* a message of several packets: its sender waits for this ack */
    MRD_PLACE_END_VERY_LONG,
};
/* Place all parts of a new packet, decoding those that were not yet. */
enum mrd_place_verdict mrd_rx_place(struct mrd_engine *e, struct mrd_peer *peer,
                                    struct mrd_rx_in *in, struct mrd_refusal **refusal,
                                    enum mrd_place_end *end);
/*
 * Where a message's bytes from `offset` on belong. Returns how many of them lie there in one piece;
 * 0: its memory is not valid any more, or they have no place yet.
 */
uint32_t mrd_rx_place_at(struct mrd_engine *e, struct mrd_slot *slot, uint32_t offset,
                         uint8_t **place);
/*
 * Where the bytes of a write belong whose first packet this is. Returns how many of them lie there
 * in one piece; 0: it will perhaps not be taken, or in its turn only.
 */
uint32_t mrd_rx_place_new(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_part *part, uint8_t **place);
/* Is the memory of a receive of this queue pair's still valid? */
static inline bool mrd_rx_recv_valid(const struct mrd_engine *e, const struct mrd_qp_impl *qp,
                                     struct mrd_recv *recv)
{
    return mrd_mr_list_stays(&e->objects.mrs, qp->recvq->pd, recv->sge, recv->num_sge,
                             MRD_ACCESS_LOCAL_WRITE, &recv->memory_seen);
}
/*
 * All that the queue pair half-received or reserved, on every peer, fails. NULL: that of all queue
 * pairs in error, in one walk.
 */
void mrd_rx_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *only, enum mrd_wc_status status);
/* Is it of nobody, as the network has no such port? By it one peer would have many names. */
static inline bool mrd_rx_names_no_port(const struct mrd_engine *e,
                                        const struct mrd_wire_head *head)
{
    uint32_t max = e->config.mover.reply_max;

    return max && (head->reply == 0 || head->reply > max);
}

/*
 * in->packet is a segment whose payload was received at a predicted place. If it is the one that
 * was predicted there, it is decoded, part and all. Else in->packet becomes the packet put together
 * in e->plan.scratch, to be decoded as any. false: no plan is like that, or no memory; it was
 * counted, and is to be dropped.
 */
bool mrd_rx_check_plan(struct mrd_engine *e, struct mrd_rx_in *in);

/* Packets that came as they were planned, one behind the other. */
struct mrd_run {
    struct mrd_peer *peer;
    struct mrd_slot *slot;
    struct mrd_wire_head head; /* of the first one */
    struct mrd_wire_part part;
};
/*
 * How many of `n` packets, all of one datagram, are the next segments of the message that were
 * predicted at their places, new, whole and undamaged, with nothing else to tell and not the
 * message's end? Nothing changes.
 */
uint32_t mrd_rx_plan_run(struct mrd_engine *e, const struct mrd_rx_packet *packets, uint32_t n,
                         struct mrd_run *run);
/*
 * The first `n` segments of the run are in their places, and more of the message are to come. false:
 * its memory is not valid any more, and nothing changed.
 */
bool mrd_rx_place_run(const struct mrd_engine *e, const struct mrd_run *run, uint32_t n);

/* ------------------------------------------------------------------------------ acks and losses */

/* An ACK packet came. */
void mrd_rx_ack(struct mrd_engine *e, const struct mrd_wire_head *head,
                const struct mrd_rx_packet *packet);
/* An ack that rode on a data packet. */
void mrd_rx_ackblock(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head);
/* The packet is lost, or sent again by a probe: do none above the base come through any more? */
void mrd_rx_count_large_loss(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec);
/* Declare lost what is lost by now. */
void mrd_rx_judge_losses(struct mrd_engine *e, struct mrd_peer *peer);

#endif
