/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a received message is for, and the receive that it takes: in ordered mode by its number. */
#include "core/engine/rx_bind.h"

#include <string.h>

#include "core/engine/complete.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/receive.h"
#include "core/engine/request.h"
#include "core/engine/rx_flow.h"
#include "core/seq.h"

/* Pending records, and records of responses, kept for messages that are next in order. */
enum { ENTRIES_FOR_NEXT = 32, RESPONSES_FOR_NEXT = 32 };

/* ---------------------------------------------------------------------------------------- flows */

/* A peer alone may have max_flows; all peers together have at most twice as many. */
static bool may_make(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint32_t used = e->flows_rx.pool.used, most = 2 * e->config.max_flows;

    return used < most && peer->uses.flows < most - used;
}

/*
 * A new record. The last third of the pool is for ABORTs: their news is wanted even if messages
 * find no record. If an ABORT finds none, too, the next message says how far its sender is.
 */
static struct mrd_flow_rx *make_flow(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, const struct mrd_wire_part *part)
{
    struct mrd_flow_rx *flow;

    if (part->op != MRD_OP_ABORT && !may_make(e, peer))
        mrd_peers_reclaim(e);
    if (part->op != MRD_OP_ABORT && !may_make(e, peer))
        return NULL;
    flow = mrd_table_alloc(&e->flows_rx);
    if (!flow)
        return NULL;
    peer->uses.flows++;
    mrd_flow_rx_init(flow, peer, qp, part->src_qpn, (uint16_t)(part->msn - part->msn_behind),
                     (uint16_t)(part->rsn - part->rsn_behind), &peer->uses.gone);
    mrd_hash_add(&e->flows_rx.by_key, &flow->by_key,
                 mrd_flow_hash(peer->id, qp->pub.qp_num, part->src_qpn));
    mrd_list_append(&peer->flows_rx, &flow->peer_node);
    return flow;
}

/*
 * The sender owes nothing older than (msn, rsn). Older messages that never came will not come, and
 * receives reserved for them go back to their queue.
 */
static void catch_up(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t msn, uint32_t rsn)
{
    struct mrd_node done, *n;

    mrd_rx_deliver(e, flow);
    while (mrd_seq_before(flow->msn_next, msn) && !mrd_flow_rx_find(flow, flow->msn_next)) {
        mrd_flow_rx_skip(flow, msn);
        mrd_rx_deliver(e, flow);
    }
    mrd_list_init(&done);
    mrd_flow_rx_pass_rsn(flow, rsn, &done);
    while ((n = mrd_list_pop(&done))) {
        struct mrd_reorder_entry *entry = mrd_container_of(n, struct mrd_reorder_entry, node);

        mrd_rx_return_recv(e, flow->qp, entry->recv);
        mrd_rx_release_entry(e, flow->peer, entry);
    }
}

struct mrd_flow_rx *mrd_rx_open_flow(struct mrd_engine *e, struct mrd_peer *peer,
                                     struct mrd_qp_impl *qp, const struct mrd_wire_part *part,
                                     uint32_t *msn, uint32_t *rsn)
{
    struct mrd_flow_rx *flow = mrd_rx_find_flow(e, peer, qp, part->src_qpn);

    if (!flow)
        flow = make_flow(e, peer, qp, part);
    if (!flow)
        return NULL;
    /* 16 bits are enough: both ends are at most MRD_MSN_WINDOW apart. */
    *msn = flow->msn_next + (uint32_t)(int32_t)(int16_t)(uint16_t)(part->msn - flow->msn_next);
    *rsn = flow->rsn_next + (uint32_t)(int32_t)(int16_t)(uint16_t)(part->rsn - flow->rsn_next);
    catch_up(e, flow, *msn - part->msn_behind, *rsn - part->rsn_behind);
    return flow;
}

/* -------------------------------------------------------------------------------------- binding */

uint8_t mrd_rx_check_source(const struct mrd_qp_impl *qp, const struct mrd_peer *peer,
                            uint32_t src_qpn)
{
    if (!qp || qp->pub.state == MRD_QPS_ERR)
        return MRD_REFUSE_QPN;
    if (qp->pub.state == MRD_QPS_INIT)
        return MRD_REFUSE_RNR;
    /* A peer that moved is still whom its first address was for. */
    if (qp->dest.only &&
        (qp->dest.qpn != src_qpn || (qp->dest.own_inc != peer->pair.own_inc &&
                                     memcmp(&qp->dest.addr, &peer->addr, sizeof(peer->addr)))))
        return MRD_REFUSE_QPN;
    return MRD_RX_TAKEN;
}

uint8_t mrd_rx_check_target(struct mrd_engine *e, const struct mrd_wire_part *part,
                            struct mrd_qp_impl *qp)
{
    if (part->op == MRD_OP_SEND && part->qkey != qp->qkey)
        return MRD_REFUSE_QKEY;
    if (part->op == MRD_OP_SEND || !part->total)
        return MRD_RX_TAKEN;
    if ((part->op == MRD_OP_READ && part->total > MRD_MESSAGE_BYTES_MAX) ||
        (part->op >= MRD_OP_CMP_SWAP && part->addr % MRD_WIRE_ATOMIC_BYTES))
        return MRD_REFUSE_INVALID;
    return mrd_mr_remote(&e->objects.mrs, qp->pub.pd, part->rkey, part->addr, part->total,
                         mrd_rx_access(part->op)) == MRD_MR_OK
               ? MRD_RX_TAKEN
               : MRD_REFUSE_ACCESS;
}

/* May a RESPONSE be placed? *request: what it answers; NULL: nobody waits for it. */
static uint8_t check_answer(struct mrd_engine *e, struct mrd_peer *peer,
                            const struct mrd_wire_part *part, struct mrd_msg **request)
{
    struct mrd_msg *msg = mrd_msg_find_request(e, peer, part->token);

    *request = msg;
    if (!msg)
        return MRD_REFUSE_OPERATION;
    /* An answer is on its way already, or the number that answers an atomic comes in pieces. */
    if (msg->wr.length != part->total || msg->request.slot ||
        (msg->wr.op != MRD_OP_READ && part->flags & MRD_PART_MULTI))
        return MRD_REFUSE_INVALID;
    return mrd_mr_list_stays(&e->objects.mrs, msg->qp->pub.pd, msg->wr.sge, msg->wr.num_sge,
                             MRD_ACCESS_LOCAL_WRITE, &msg->memory_seen)
               ? MRD_RX_TAKEN
               : MRD_REFUSE_ACCESS;
}

/*
 * May the message take so many pending records? The one that is next in order may take any, because
 * all behind it wait for it. The others leave ENTRIES_FOR_NEXT of them, and keep to their
 * peer's share.
 */
static bool may_take_entries(const struct mrd_engine *e, const struct mrd_peer *peer, uint32_t num,
                             bool next)
{
    uint32_t free = mrd_pool_free(&e->reorder_entries);

    return next ? free >= num
                : free >= num + ENTRIES_FOR_NEXT && peer->uses.reorder_entries + num < free - num;
}

/*
 * May a request have a record for its response? One that is executed at once may if its peer has no
 * more under way than are free: these will be free again soon. One that waits for its turn must
 * leave some for others, among them those that it waits for.
 */
static bool may_take_response(const struct mrd_engine *e, const struct mrd_peer *peer, bool waits)
{
    uint32_t free = mrd_pool_free(&e->responses), mine = peer->uses.responses;

    return waits ? mine + RESPONSES_FOR_NEXT < free : mine - peer->uses.turns < free;
}

/*
 * Bind a receive to each RSN up to this one, in order, or to none of them: a later message must not
 * take the only receive that an earlier one needs.
 */
static uint8_t bind_by_rsn(struct mrd_engine *e, struct mrd_flow_rx *flow, uint32_t rsn, bool next,
                           struct mrd_reorder_entry **entry)
{
    uint32_t need = mrd_flow_rx_needs(flow, rsn);

    if (need > mrd_qp_receives(flow->qp))
        return MRD_REFUSE_RNR;
    if (!may_take_entries(e, flow->peer, need, next))
        return MRD_REFUSE_RESOURCES;
    while (!mrd_seq_before(rsn, flow->rsn_next))
        mrd_flow_rx_reserve(flow, mrd_rx_take_entry(e, flow->peer), mrd_rx_take_recv(e, flow->qp));
    *entry = mrd_flow_rx_claim(flow, rsn);
    return *entry ? MRD_RX_TAKEN : MRD_REFUSE_INVALID;
}

static uint8_t bind_ordered(struct mrd_engine *e, struct mrd_peer *peer,
                            const struct mrd_wire_part *part, struct mrd_bound *b, bool *old)
{
    uint32_t msn, rsn;
    uint8_t code;
    bool next;

    b->flow = mrd_rx_open_flow(e, peer, b->qp, part, &msn, &rsn);
    if (!b->flow)
        return MRD_REFUSE_RESOURCES;
    switch (mrd_flow_rx_judge(b->flow, msn, mrd_wire_consumes(part), rsn)) {
    case MRD_MSN_OLD:
        *old = true;
        return MRD_RX_TAKEN;
    case MRD_MSN_BEYOND:
        return MRD_REFUSE_INVALID;
    case MRD_MSN_NEW:
        break;
    }
    next = msn == b->flow->msn_next;
    code = mrd_rx_check_target(e, part, b->qp);
    if (code) {
        mrd_rx_skip_message(e, b->flow, msn, mrd_wire_consumes(part), rsn);
        return code;
    }
    if (!may_take_entries(e, peer, mrd_wire_consumes(part) ? 0 : 1, next) ||
        (mrd_wire_is_request(part->op) && !may_take_response(e, peer, !next)))
        return MRD_REFUSE_RESOURCES;
    if (mrd_wire_consumes(part)) {
        code = bind_by_rsn(e, b->flow, rsn, next, &b->entry);
        if (code)
            return code;
        b->recv = b->entry->recv;
    } else {
        b->entry = mrd_rx_take_entry(e, peer);
    }
    memset(b->entry, 0, sizeof(*b->entry));
    mrd_list_init(&b->entry->node);
    b->entry->msn = msn;
    b->entry->recv = b->recv;
    return MRD_RX_TAKEN;
}

/* ---------------------------------------------------------------------------- judge, then commit */

/* Does the receive hold the message? Only a send's bytes go there. */
static inline uint8_t check_recv(const struct mrd_engine *e, const struct mrd_qp_impl *qp,
                                 struct mrd_recv *recv, const struct mrd_wire_part *part)
{
    if (part->op != MRD_OP_SEND)
        return MRD_RX_TAKEN;
    if (recv->length < part->total)
        return MRD_REFUSE_TOO_LONG;
    return mrd_rx_recv_valid(e, qp, recv) ? MRD_RX_TAKEN : MRD_REFUSE_OPERATION;
}

/*
 * Is there a receive that holds the message, if up to `before` others are taken first? *recv: the
 * last one that was looked at.
 */
static inline uint8_t check_receives(const struct mrd_engine *e, const struct mrd_qp_impl *qp,
                                     const struct mrd_wire_part *part, uint32_t before,
                                     struct mrd_recv **recv)
{
    const struct mrd_node *n = &qp->recvq->posted;
    uint8_t code = MRD_RX_TAKEN;

    if (mrd_qp_receives(qp) <= before)
        return MRD_REFUSE_RNR;
    for (uint32_t i = 0; i <= before && code == MRD_RX_TAKEN; i++) {
        n = n->next;
        *recv = mrd_container_of(n, struct mrd_recv, node);
        code = check_recv(e, qp, *recv, part);
    }
    return code;
}

/* As mrd_rx_judge(). Each message passes mrd_rx_bind(): there it is inline. */
__attribute__((always_inline)) static inline uint8_t judge(struct mrd_engine *e,
                                                           struct mrd_peer *peer,
                                                           const struct mrd_wire_part *part,
                                                           uint32_t before, struct mrd_bound *b)
{
    uint8_t code;

    memset(b, 0, sizeof(*b));
    if (part->op == MRD_OP_RESPONSE) {
        code = check_answer(e, peer, part, &b->request);
        b->qp = b->request ? b->request->qp : NULL;
        return code;
    }
    b->qp = mrd_qp_find(&e->objects.qps, part->dst_qpn);
    code = mrd_rx_check_source(b->qp, peer, part->src_qpn);
    if (code || part->flags & MRD_PART_ORDERED)
        return code;
    code = mrd_rx_check_target(e, part, b->qp);
    if (!code && mrd_wire_is_request(part->op) && !may_take_response(e, peer, false))
        code = MRD_REFUSE_RESOURCES;
    if (!code && mrd_wire_consumes(part))
        code = check_receives(e, b->qp, part, before, &b->recv);
    return code;
}

uint8_t mrd_rx_judge(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                     uint32_t before, struct mrd_bound *b)
{
    return judge(e, peer, part, before, b);
}

/* A request that its response cannot answer fails. */
static void fail_request(struct mrd_engine *e, struct mrd_msg *request, uint8_t code)
{
    mrd_msg_cancel(e, request, code == MRD_REFUSE_ACCESS ? MRD_WC_LOC_PROT_ERR : MRD_WC_REM_OP_ERR);
}

/* A receive that does not hold its message is taken all the same, and completes in error. */
static void fail_recv(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                      uint8_t code, struct mrd_bound *b)
{
    struct mrd_wc wc = mrd_rx_wc(peer, part->op, part->flags, 0, part->imm, part->src_qpn);

    wc.status = code == MRD_REFUSE_TOO_LONG ? MRD_WC_LOC_LEN_ERR : MRD_WC_LOC_PROT_ERR;
    mrd_rx_end_message(e, b, &wc);
}

uint8_t mrd_rx_bind(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                    struct mrd_bound *b, bool *old)
{
    uint8_t code = judge(e, peer, part, 0, b);

    *old = false;
    if (part->op == MRD_OP_RESPONSE) {
        if (code && b->request)
            fail_request(e, b->request, code);
        return code;
    }
    if (!code && part->flags & MRD_PART_ORDERED) {
        code = bind_ordered(e, peer, part, b, old);
        if (code || *old)
            return code;
        code = check_recv(e, b->qp, b->recv, part);
    } else if (b->recv) {
        mrd_rx_take_recv(e, b->qp);
    }
    if (code && b->recv)
        fail_recv(e, peer, part, code, b);
    return code;
}
