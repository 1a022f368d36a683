/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that moves to an address where an entry of ours asks who is there: for the tests of what becomes of that
 * entry, its work and its handles.
 */
#ifndef MRD_TESTS_UNIT_ENGINE_MOVES_H
#define MRD_TESTS_UNIT_ENGINE_MOVES_H

#include "core/engine/address.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

enum { AT = 1, ELSEWHERE = 9 };

static struct pair pair; /* large, and begun anew by each test */

static inline void pass(struct pair *p, uint64_t ns)
{
    p->now += ns;
    mrd_engine_begin(p->end[AT].e, p->now);
    mrd_engine_drained(p->end[AT].e, p->now);
}

static inline void came(struct pair *p, struct mrd_peer *peer, const struct mrd_wire_head *head,
                        uint8_t host)
{
    struct mrd_rx_packet packet = {.from = p->end[1 - AT].addr, .to = p->end[AT].addr};

    packet.from.ip[15] = host;
    mrd_address_came(p->end[AT].e, peer, head, &packet);
}

/* The peer proves that it is at ELSEWHERE now, and is. */
static inline void moves(struct pair *p, struct mrd_peer *peer)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);
    struct mrd_answers *a = &p->end[AT].e->answers;

    a->head = a->tail;
    pass(p, MRD_MOVED_NS);
    head.stamp = mrd_wire_stamp(p->now);
    peer->place.tried_ns = peer->place.asked_ns = 0;
    came(p, peer, &head, ELSEWHERE);
    assert_int_not_equal(a->tail, a->head);
    head.cookie = a->ring[a->head++ % MRD_STATELESS_MAX].head.cookie;
    head.flags |= MRD_WIRE_COOKIE;
    came(p, peer, &head, ELSEWHERE);
    assert_int_equal(peer->addr.ip[15], ELSEWHERE);
    p->end[1 - AT].addr.ip[15] = ELSEWHERE;
}

FIXTURE(world)
{
    enum mrd_order order; /* of the queue pair that posts */
    struct pair *p;
    struct mrd_engine *e;
    struct mrd_peer *peer, *asks;
    struct mrd_qp *kept;
    struct mrd_ah *ah;
};

/* `peer` at its address, and `asks`, in hello, where it will move to; w.ah is for there. */
static inline struct world begin_order(enum mrd_order order)
{
    struct world w = {.order = order, .p = &pair};
    struct mrd_wire_head head;
    struct mrd_addr there;
    int error;

    pair_begin(w.p);
    w.e = w.p->end[AT].e;
    pass(w.p, MRD_SEC);
    w.peer = hand_rx_peer(w.p, AT);
    head = hand_head(w.p, AT, MRD_WIRE_DATA);
    head.stamp = mrd_wire_stamp(w.p->now);
    came(w.p, w.peer, &head, 0);
    w.peer->space.epoch = mrd_answer_pair(w.p->end[0].e, &w.p->end[AT].addr).epoch_base +
                          w.p->end[0].e->lives.epoch_next - 1;
    w.kept = hand_swap_qp(w.p, AT, order);
    there = w.peer->addr;
    there.ip[15] = ELSEWHERE;
    w.asks = mrd_peer_open(w.e, &there);
    w.ah = mrd_engine_create_ah(w.e, w.p->end[AT].pd, &there, 0, &error);
    return w;
}

static inline void post(struct world *w, struct mrd_ah *ah, enum mrd_wr_opcode opcode, uint64_t id)
{
    struct hand_wr wr;

    hand_wr(w->p, AT, opcode, 64, &wr);
    wr.wr.ud.ah = ah;
    wr.wr.wr_id = id;
    assert_int_equal(hand_post(w->p, AT, &wr.wr), 0);
}

static inline void finish(struct world *w)
{
    assert_int_equal(mrd_engine_destroy_ah(w->e, w->ah), 0);
    hand_restore_qp(w->p, AT, w->kept);
    pair_end(w->p);
}

FIXTURE_SETUP(world)
{
    *self = begin_order(self->order);
}

FIXTURE_TEARDOWN(world)
{
    finish(self);
}

#endif
