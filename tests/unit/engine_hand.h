/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of single files of the engine: work requests, heads, parts and packets by hand.
 *
 * A test begins a pair (engine_pair.h) and uses one of its ends. hand_tx_peer() and hand_rx_peer()
 * give that end an entry of the other with a send state or a receive state, as a post or a first
 * contact would make it.
 */
#ifndef MRD_UNIT_ENGINE_HAND_H
#define MRD_UNIT_ENGINE_HAND_H

#include "core/engine/handle.h"
#include "core/engine/peer_state.h"
#include "core/engine/receive.h"
#include "core/engine/rx_place.h"
#include "tests/unit/engine_pair.h"

enum { HAND_EPOCH = 7 }; /* of what the other end sends by hand */

static inline struct mrd_qp_impl *hand_qp(const struct pair *p, unsigned at)
{
    return mrd_qp_impl(p->end[at].qp);
}

/* ------------------------------------------------------------------------------------- requests */

struct hand_wr {
    struct mrd_sge sge;
    struct mrd_send_wr wr;
};

/* A request of end `at`, of the first `len` bytes of its memory. */
static inline void hand_wr(const struct pair *p, unsigned at, enum mrd_wr_opcode opcode,
                           uint32_t len, struct hand_wr *w)
{
    const struct pair_end *a = &p->end[at], *b = &p->end[1 - at];

    *w = (struct hand_wr){
        .sge = {.addr = (uint64_t)(uintptr_t)a->memory, .length = len, .lkey = a->mr->lkey},
        .wr = {
            .num_sge = 1,
            .opcode = opcode,
            .send_flags = MRD_SEND_SIGNALED,
            .ud = {.ah = a->ah, .remote_qpn = b->qp->qp_num, .remote_qkey = PAIR_QKEY},
            .wr = {.rdma = {.remote_addr = (uint64_t)(uintptr_t)b->memory, .rkey = b->mr->rkey}}}};
    w->wr.sg_list = &w->sge;
}

/* The end's memory is no longer registered. */
static inline void hand_dereg(struct pair *p, unsigned at)
{
    assert_int_equal(mrd_engine_dereg_mr(p->end[at].e, p->end[at].mr, p->now), 0);
    p->end[at].mr = NULL;
}

/* The end's queue pair goes to the error state. */
static inline void hand_flush(struct pair *p, unsigned at)
{
    struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    assert_int_equal(mrd_engine_modify_qp(p->end[at].e, p->end[at].qp, &attr, MRD_QP_STATE, p->now),
                     0);
}

static inline int hand_post(struct pair *p, unsigned at, struct mrd_send_wr *wr)
{
    struct mrd_send_wr *bad = NULL;
    int error;

    mrd_engine_begin(p->end[at].e, p->now);
    error = mrd_engine_post_send(p->end[at].e, p->end[at].qp, wr, &bad, p->now);
    assert_true(error == 0 || bad != NULL);
    return error;
}

/* Another queue pair in the end's place; the one that it had is to be given back to it. */
static inline struct mrd_qp *hand_swap_qp(struct pair *p, unsigned at, enum mrd_order order)
{
    struct mrd_qp_init_attr attr = {
        .send_cq = p->end[at].cq,
        .recv_cq = p->end[at].cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4},
        .qkey = PAIR_QKEY,
        .order = order};
    struct mrd_qp *kept = p->end[at].qp;
    int error;

    p->end[at].qp = mrd_engine_create_qp(p->end[at].e, p->end[at].pd, &attr, &error);
    assert_non_null(p->end[at].qp);
    return kept;
}

/* The queue pair made by hand_swap_qp() goes, and `kept` takes its place again. */
static inline void hand_restore_qp(struct pair *p, unsigned at, struct mrd_qp *kept)
{
    assert_int_equal(mrd_engine_destroy_qp(p->end[at].e, p->end[at].qp, p->now), 0);
    p->end[at].qp = kept;
}

/* What requests hold at an end. */
struct hand_holdings {
    uint32_t reserved, msgs, sends, flows, queues, peers, receives;
};

static inline struct hand_holdings hand_holdings(const struct pair *p, unsigned at)
{
    const struct mrd_engine *e = p->end[at].e;
    const struct mrd_qp_impl *qp = hand_qp(p, at);

    return (struct hand_holdings){.reserved = mrd_cq_impl(p->end[at].cq)->reserved,
                                  .msgs = qp->live_msgs,
                                  .sends = e->calls.msg_seq,
                                  .flows = e->flows_tx.pool.used,
                                  .queues = e->txqs.pool.used,
                                  .peers = e->peers.entries.used,
                                  .receives = qp->recvq->num_posted};
}

/* The call failed for the reason that the sentence names, and what is held is what was. */
static inline void hand_expect_refused(const struct pair *p, unsigned at,
                                       const struct hand_holdings *before, const char *why)
{
    struct hand_holdings after = hand_holdings(p, at);

    assert_memory_equal(before, &after, sizeof(after));
    assert_non_null(strstr(mrd_engine_error(p->end[at].e), why));
}

/* No completion can be reserved until hand_empty_cq(). */
static inline void hand_fill_cq(struct mrd_cq_impl *cq)
{
    while (mrd_cq_reserve(cq))
        ;
}

static inline void hand_empty_cq(struct mrd_cq_impl *cq)
{
    while (cq->reserved)
        mrd_cq_unreserve(cq);
}

/* ---------------------------------------------------------------------------------------- peers */

/* The entry of the other end, with a send state. */
static inline struct mrd_peer *hand_tx_peer(struct pair *p, unsigned at)
{
    struct mrd_peer *peer = mrd_peer_open(p->end[at].e, &p->end[1 - at].addr);

    mrd_send_state_open(p->end[at].e, peer);
    return peer;
}

/* The entry of the other end, with a receive state for HAND_EPOCH. */
static inline struct mrd_peer *hand_rx_peer(struct pair *p, unsigned at)
{
    struct mrd_engine *e = p->end[at].e;
    struct mrd_peer *peer = mrd_peer_open(e, &p->end[1 - at].addr);

    mrd_peer_rx_begin(&e->peers, peer, e->config.mover.tracker);
    peer->space.inc = pair_inc(p, 1 - at);
    peer->space.epoch = HAND_EPOCH;
    return peer;
}

/* The peer's message that was posted last. */
static inline struct mrd_msg *last_of(const struct mrd_peer *peer)
{
    assert_false(mrd_list_empty(&peer->msgs));
    return mrd_container_of(peer->msgs.prev, struct mrd_msg, peer_node);
}

static inline uint32_t hand_length(const struct mrd_node *list)
{
    uint32_t num = 0;

    for (const struct mrd_node *n = list->next; n != list; n = n->next)
        num++;
    return num;
}

/* -------------------------------------------------------------------------------------- packets */

/* A packet of the other end to `at`. */
static inline struct mrd_wire_head hand_head(const struct pair *p, unsigned at, uint8_t type)
{
    return (struct mrd_wire_head){.type = type,
                                  .src_inc = pair_inc(p, 1 - at),
                                  .dst_inc = pair_inc(p, at),
                                  .epoch = HAND_EPOCH,
                                  .reply = p->end[1 - at].addr.port};
}

static inline struct mrd_wire_part hand_send(const struct pair *p, unsigned at, uint16_t len)
{
    return (struct mrd_wire_part){.op = MRD_OP_SEND,
                                  .len = len,
                                  .total = len,
                                  .dst_qpn = p->end[at].qp->qp_num,
                                  .src_qpn = p->end[1 - at].qp->qp_num,
                                  .qkey = PAIR_QKEY};
}

/* A write to the memory of `at`, from its first byte on. */
static inline struct mrd_wire_part hand_write(const struct pair *p, unsigned at, uint16_t len)
{
    return (struct mrd_wire_part){.op = MRD_OP_WRITE,
                                  .len = len,
                                  .total = len,
                                  .dst_qpn = p->end[at].qp->qp_num,
                                  .src_qpn = p->end[1 - at].qp->qp_num,
                                  .rkey = p->end[at].mr->rkey,
                                  .addr = (uint64_t)(uintptr_t)p->end[at].memory};
}

/* A first packet of a life that knows nothing of ours. */
static inline struct mrd_wire_head hand_first_contact(const struct pair *p, unsigned at,
                                                      uint32_t src_inc)
{
    struct mrd_wire_head head = hand_head(p, at, MRD_WIRE_DATA);

    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = src_inc;
    head.dst_inc = 0;
    return head;
}

/* That packet again, with the cookie that a challenge brought. */
static inline struct mrd_wire_head hand_with_cookie(struct mrd_wire_head head, uint64_t cookie)
{
    head.flags |= MRD_WIRE_COOKIE;
    head.cookie = cookie;
    return head;
}

/* A packet of the other end's host `host`, to the address `ours` of the end. */
static inline struct mrd_rx_packet hand_packet(const struct pair *p, unsigned at, uint8_t host,
                                               uint8_t ours)
{
    struct mrd_rx_packet packet = {.from = p->end[1 - at].addr, .to = p->end[at].addr};

    packet.from.ip[15] = host;
    packet.to.ip[15] = ours;
    return packet;
}

/* How many answers to packets of no space wait. */
static inline uint32_t hand_answers(const struct pair *p, unsigned at)
{
    return p->end[at].e->answers.tail - p->end[at].e->answers.head;
}

/* The answer that waits alone, which has that type; it leaves the ring. */
static inline struct mrd_answer hand_answer(const struct pair *p, unsigned at, uint8_t type)
{
    struct mrd_answers *a = &p->end[at].e->answers;

    assert_int_equal(hand_answers(p, at), 1);
    assert_int_equal(a->ring[a->head % MRD_STATELESS_MAX].head.type, type);
    return a->ring[a->head++ % MRD_STATELESS_MAX];
}

/* ------------------------------------------------------------------------------------ placement */

/* What became of a packet, and how many parts of it were refused, the last with `code`. */
struct hand_placed {
    enum mrd_place_verdict verdict;
    enum mrd_place_end end;
    unsigned num_refused;
    uint8_t index, code; /* of the last one */
    uint32_t rnr_usec;
};

/*
 * A packet of these parts comes to `at`, with the other end's first bytes as payload. `psn`: of it.
 * The refusal is looked at and dropped.
 */
static inline struct hand_placed hand_place(struct pair *p, unsigned at, struct mrd_peer *peer,
                                            uint32_t psn, const struct mrd_wire_part *part,
                                            unsigned num)
{
    struct mrd_rx_packet packet = {.from = p->end[1 - at].addr};
    struct mrd_rx_in in = {.packet = &packet,
                           .head = hand_head(p, at, MRD_WIRE_DATA),
                           .payload = p->end[1 - at].memory,
                           .num_parts = num};
    struct hand_placed got = {0};
    struct mrd_refusal *refusal;

    in.head.psn = psn;
    for (unsigned i = 0; i < num; i++) {
        in.part[i] = part[i];
        in.payload_len += part[i].len;
    }
    got.verdict = mrd_rx_place(p->end[at].e, peer, &in, &refusal, &got.end);
    assert_int_equal(got.verdict == MRD_PLACE_REFUSED, refusal != NULL);
    if (refusal) {
        got.num_refused = refusal->num;
        got.index = refusal->entry[refusal->num - 1].index;
        got.code = refusal->entry[refusal->num - 1].code;
        got.rnr_usec = refusal->rnr_usec;
        mrd_refusal_release(p->end[at].e, peer, refusal);
    }
    return got;
}

/* A piece of the message that `part` says as a whole. */
static inline struct mrd_wire_part hand_piece(struct mrd_wire_part part, uint32_t id,
                                              uint32_t offset, uint16_t len, uint32_t total)
{
    part.flags |= MRD_PART_MULTI;
    part.id = id;
    part.offset = offset;
    part.len = len;
    part.total = total;
    return part;
}

/* All items of a pool are taken, into `taken`, until hand_refill(). */
static inline void hand_exhaust(struct mrd_pool *pool, void **taken)
{
    while ((*taken = mrd_pool_alloc(pool)))
        taken++;
}

static inline void hand_refill(struct mrd_pool *pool, void **taken)
{
    for (; *taken; taken++)
        mrd_pool_release(pool, *taken);
}

#endif
