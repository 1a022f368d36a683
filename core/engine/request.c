/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics at their requester; fences: what is held back until they are answered. */
#include "core/engine/request.h"

#include <assert.h>

#include "core/engine/tx_flow.h"
#include "core/engine/txq.h"

static struct mrd_msg *first_held(struct mrd_qp_impl *qp)
{
    struct mrd_node *n = mrd_list_first(&qp->requests.held);

    return n ? mrd_container_of(n, struct mrd_msg, node) : NULL;
}

static bool may_begin(const struct mrd_qp_impl *qp, const struct mrd_msg *msg)
{
    if (msg->wr.fenced && qp->requests.num)
        return false;
    return !mrd_msg_is_request(msg) || qp->requests.num < qp->requests.max_rd_atomic;
}

/* The message gets its place in the order; among those that wait it stands there, too. */
static void number(struct mrd_engine *e, struct mrd_flow_tx *flow, struct mrd_msg *msg)
{
    msg->post_seq = e->calls.msg_seq++;
    mrd_list_remove(&flow->idle_node);
    msg->order.flow = flow;
    msg->order.msn = flow->msn_next++;
    msg->order.rsn = flow->rsn_next;
    if (mrd_msg_consumes(msg))
        flow->rsn_next++;
    mrd_list_append(&flow->msgs, &msg->order.node);
}

/* It gets a number, and a token if it is a request. */
static void begin(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_msg_request *r = &msg->request;

    if (msg->order.flow)
        number(e, msg->order.flow, msg);
    if (mrd_msg_is_request(msg)) {
        do /* the counter may have come round to one that is still waited for */
            r->token = e->requests.token_next++;
        while (mrd_msg_find_request(e, msg->peer, r->token));
        r->live = true;
        mrd_hash_add(&e->requests.by_token, &r->by_token, mrd_hash_mix(r->token));
        msg->qp->requests.num++;
        msg->peer->uses.requests++;
    }
}

/*
 * What is held back holds nothing that others could wait for: no number, token or queue. The peer's
 * turn gives the queue back, and sets the timer to ask the peer.
 */
static void hold(struct mrd_engine *e, struct mrd_msg *msg)
{
    if (msg->order.flow)
        msg->order.flow->num_held++;
    msg->order.flow = NULL;
    msg->state = MRD_MSG_HELD;
    msg->txq = NULL; /* it may be given back meanwhile */
    mrd_list_append(&msg->qp->requests.held, &msg->node);
    msg->qp->requests.num_fenced += msg->wr.fenced;
    msg->peer->uses.held++;
    mrd_tx_ready(e, msg->peer);
}

/* The turn of a response comes, or is no longer waited for. */
static void unhold_response(struct mrd_msg *msg)
{
    struct mrd_response *r = mrd_container_of(msg, struct mrd_response, msg);

    if (!r->entry)
        return;
    r->entry->response = NULL;
    r->entry = NULL;
    msg->peer->uses.turns--;
}

/* Returns the flow of a message that was held back; NULL: it has none. */
static struct mrd_flow_tx *unhold(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_flow_tx *flow;

    mrd_list_remove(&msg->node);
    if (mrd_msg_is_response(msg)) {
        unhold_response(msg);
        return NULL;
    }
    msg->qp->requests.num_fenced -= msg->wr.fenced;
    msg->peer->uses.held--;
    if (!(msg->wr.part_flags & MRD_PART_ORDERED))
        return NULL;
    flow = mrd_tx_flow_open(e, msg->peer, msg->qp, msg->wr.dst_qpn);
    flow->num_held--;
    return flow;
}

/* What the messages of a flow of another entry waited for, `flow` waits for. */
static void await_as(struct mrd_flow_tx *flow, const struct mrd_peer *from,
                     const struct mrd_flow_tx *other)
{
    uint64_t over_ns = from->failed_ns ? from->failed_ns + MRD_PACKET_LIFE_NS : 0;

    flow->start_ns = mrd_later(flow->start_ns, mrd_later(over_ns, other->start_ns));
}

bool mrd_msg_move(struct mrd_engine *e, struct mrd_msg *msg, struct mrd_peer *to)
{
    bool held = msg->state == MRD_MSG_HELD, ordered = msg->wr.part_flags & MRD_PART_ORDERED;
    struct mrd_peer *from = msg->peer;
    struct mrd_flow_tx *flow = NULL;
    struct mrd_txq *q = NULL;

    assert(!msg->started && !mrd_msg_is_response(msg) && (held || msg->state == MRD_MSG_QUEUED));
    if (msg->request.live && mrd_msg_find_request(e, to, msg->request.token))
        return false;
    mrd_tx_ready(e, to); /* drops the queue if it stays empty */
    if (!held && !(q = mrd_txq_open(e, to, msg->qp->pub.qp_num, msg->wr.dst_qpn, false)))
        return false;
    if (ordered && !(flow = mrd_tx_flow_open(e, to, msg->qp, msg->wr.dst_qpn)))
        return false;
    if (ordered)
        await_as(flow, from, mrd_tx_flow_open(e, from, msg->qp, msg->wr.dst_qpn));
    if (!held)
        mrd_txq_dequeue(e, msg);
    else if (ordered)
        mrd_tx_flow_open(e, from, msg->qp, msg->wr.dst_qpn)->num_held--;
    from->uses.held -= held;
    to->uses.held += held;
    from->uses.requests -= msg->request.live;
    to->uses.requests += msg->request.live;
    mrd_list_remove(&msg->order.node);
    mrd_list_remove(&msg->peer_node);
    mrd_list_append(&to->msgs, &msg->peer_node);
    msg->peer = to;
    msg->peer_id = to->id;
    mrd_msg_measure(msg);
    if (held && flow)
        flow->num_held++;
    else if (flow)
        number(e, flow, msg);
    if (!held)
        mrd_txq_enqueue(e, q, msg);
    return true;
}

bool mrd_msg_begin(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_qp_impl *qp = msg->qp;
    bool behind = !mrd_list_empty(&qp->requests.held);

    /*
     * What is behind a fence waits with it, a read also for reads that wait already. In ordered
     * mode all waits: it could take the receives that those need for which the first one waits.
     */
    if (!may_begin(qp, msg) || qp->requests.num_fenced ||
        (behind && (mrd_msg_is_request(msg) || msg->order.flow))) {
        hold(e, msg);
        return false;
    }
    begin(e, msg);
    return true;
}

/* Begin what was held back, as far as it may go now. */
static void begin_held(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_msg *msg;

    while (qp->pub.state == MRD_QPS_RTS && (msg = first_held(qp)) && may_begin(qp, msg)) {
        msg->order.flow = unhold(e, msg);
        begin(e, msg);
        mrd_txq_enqueue(e, mrd_txq_of(e, msg), msg);
    }
}

void mrd_msg_end_held(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_flow_tx *flow = unhold(e, msg);

    if (flow) {
        mrd_list_remove(&flow->idle_node);
        msg->order.flow = flow;
        msg->order.msn = flow->msn_next;
        msg->order.rsn = flow->rsn_next;
        mrd_list_append(&flow->msgs, &msg->order.node);
    }
    begin_held(e, msg->qp);
}

struct mrd_msg *mrd_msg_find_request(const struct mrd_engine *e, const struct mrd_peer *peer,
                                     uint32_t token)
{
    struct mrd_hash_node *n = mrd_hash_first(&e->requests.by_token, mrd_hash_mix(token));

    for (; n; n = n->next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, request.by_token);

        if (msg->request.token == token && msg->peer == peer)
            return msg;
    }
    return NULL;
}

void mrd_msg_forget_request(struct mrd_engine *e, struct mrd_msg *msg)
{
    struct mrd_msg_request *r = &msg->request;

    if (!r->live)
        return;
    r->live = false;
    mrd_hash_del(&e->requests.by_token, &r->by_token);
    if (r->slot)
        mrd_slots_end(&msg->peer->rx->slots, r->slot, MRD_SLOT_CLOSED);
    r->slot = NULL;
    msg->peer->uses.requests--;
    msg->qp->requests.num--;
    begin_held(e, msg->qp);
}
