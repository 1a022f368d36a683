/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests at their target: reads and atomics that peers ask for.
 *
 * mrd_respond_admit() reserves the response before the request is executed, so that an executed
 * request is always answered. mrd_respond_begin() executes it, once: an atomic touches the memory
 * there, a read as its packets leave. In ordered mode a request waits for its turn
 * (mrd_turns.responses).
 */
#include "core/engine/respond.h"

#include <assert.h>
#include <string.h>

#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/receive.h"
#include "core/engine/txq.h"

static bool is_read(const struct mrd_response *r)
{
    return r->request_op == MRD_OP_READ;
}

struct mrd_response *mrd_respond_admit(struct mrd_engine *e, struct mrd_peer *peer,
                                       struct mrd_qp_impl *qp, const struct mrd_wire_part *part)
{
    struct mrd_response *r = mrd_pool_alloc(&e->responses);
    struct mrd_msg *msg = &r->msg;

    assert(r);
    memset(r, 0, sizeof(*r));
    mrd_send_state_open(e, peer);
    msg->qp = qp;
    msg->peer = peer;
    msg->peer_id = peer->id;
    msg->state = MRD_MSG_HELD;
    msg->status = MRD_WC_SUCCESS;
    msg->rnr.left = MRD_RNR_RETRY_FOREVER;
    msg->request.token = part->token;
    msg->wr = (struct mrd_msg_wr){.remote_addr = part->addr,
                                  .rkey = part->rkey,
                                  .compare_add = part->compare_add,
                                  .swap = part->swap,
                                  .dst_qpn = part->src_qpn,
                                  .length = part->total,
                                  .op = MRD_OP_RESPONSE,
                                  .sge = &r->sge,
                                  .inline_data = r->result};
    r->request_op = part->op;
    mrd_list_init(&msg->node);
    mrd_list_init(&msg->order.node);
    mrd_list_append(&peer->msgs, &msg->peer_node);
    mrd_list_append(&qp->responses, &r->node);
    qp->live_msgs++;
    peer->uses.responses++;
    e->stats.rx_requests++;
    return r;
}

/* The memory may have been deregistered since the request came. */
static bool memory_valid(const struct mrd_engine *e, const struct mrd_response *r)
{
    const struct mrd_msg *msg = &r->msg;

    return !msg->wr.length ||
           mrd_mr_remote(&e->objects.mrs, msg->qp->pub.pd, msg->wr.rkey, msg->wr.remote_addr,
                         msg->wr.length, mrd_rx_access(r->request_op)) == MRD_MR_OK;
}

/* Atomic against all that uses the compiler's atomics on the same word, here or elsewhere. */
static uint64_t run_atomic(const struct mrd_response *r)
{
    uint64_t *word = (uint64_t *)(uintptr_t)r->msg.wr.remote_addr;
    uint64_t was = r->msg.wr.compare_add;

    if (r->request_op == MRD_OP_FETCH_ADD)
        return __atomic_fetch_add(word, r->msg.wr.compare_add, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(word, &was, r->msg.wr.swap, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return was;
}

/*
 * The response is long, and the peer known only by its requests: without an address handle nobody
 * has asked yet what the route to it takes.
 */
static void ask_for_route(struct mrd_engine *e, struct mrd_peer *peer, uint32_t length)
{
    const uint32_t limit = mrd_send_state_pmtu_range(e, peer).limit;

    if (peer->payload_bytes || peer->route_asked || e->turns.wants_route == MRD_ROUTES_WANTED ||
        length <= limit || limit >= e->config.mover.payload_bytes)
        return;
    peer->route_asked = true;
    e->turns.route_of[e->turns.wants_route++] = peer->id;
}

void mrd_respond_begin(struct mrd_engine *e, struct mrd_response *r)
{
    struct mrd_msg *msg = &r->msg;

    if (r->failed || !memory_valid(e, r)) {
        mrd_msg_cancel(e, msg, r->failed ? MRD_WC_WR_FLUSH_ERR : MRD_WC_LOC_PROT_ERR);
        return;
    }
    if (is_read(r) && msg->wr.length) {
        r->sge = (struct mrd_sge){.addr = msg->wr.remote_addr,
                                  .length = msg->wr.length,
                                  .lkey = mrd_mr_lkey(&e->objects.mrs, msg->wr.rkey)};
        msg->wr.num_sge = 1;
        msg->memory_seen = 0;
    } else if (!is_read(r)) {
        mrd_wire_put_u64(r->result, run_atomic(r));
        msg->wr.is_inline = true;
    }
    ask_for_route(e, msg->peer, msg->wr.length);
    msg->multi = msg->wr.length > msg->peer->tx->pmtu.payload;
    if (msg->multi)
        msg->wr.part_flags |= MRD_PART_MULTI;
    msg->post_seq = e->calls.msg_seq++;
    mrd_txq_enqueue(e, mrd_txq_of(e, msg), msg);
}

void mrd_respond_run(struct mrd_engine *e)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&e->turns.responses)))
        mrd_respond_begin(e, mrd_container_of(mrd_container_of(n, struct mrd_msg, node),
                                              struct mrd_response, msg));
}

void mrd_respond_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *qp)
{
    struct mrd_node *n, *next;

    for (n = qp->responses.next; n != &qp->responses; n = next) {
        next = n->next;
        mrd_msg_cancel(e, &mrd_container_of(n, struct mrd_response, node)->msg,
                       MRD_WC_WR_FLUSH_ERR);
    }
}
