/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that moves to an address where an entry of ours asks who is there: for the tests of what becomes of that
 * entry, its work and its handles.
 */
#ifndef MRD_TESTS_UNIT_ENGINE_MOVES_H
#define MRD_TESTS_UNIT_ENGINE_MOVES_H

#include "core/engine/address.h"
#include "tests/unit/engine_waits.h"

enum { AT = 1, ELSEWHERE = 9 };

static struct pair pair; /* large, and begun anew by each test */

static inline void pass(struct pair *p, uint64_t ns)
{
    pair_pass(p, AT, ns);
    mrd_engine_drained(p->end[AT].e, p->now);
}

/* A packet of the peer comes from its address, or from another one of its host. */
static inline void came(struct pair *p, struct mrd_peer *peer, const struct mrd_wire_head *head,
                        uint8_t host)
{
    struct mrd_rx_packet packet = hand_packet(p, AT, host, 0);

    mrd_address_came(p->end[AT].e, peer, head, &packet);
}

/* The peer, which was heard by a packet that left at `stamp`. */
static inline struct mrd_peer *known_peer(struct pair *p, uint32_t stamp)
{
    struct mrd_peer *peer = hand_rx_peer(p, AT);
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.stamp = stamp;
    came(p, peer, &head, 0);
    return peer;
}

/* A packet that left at `stamp`; with the cookie for ELSEWHERE, where it comes from. */
static inline struct mrd_wire_head proof(struct pair *p, struct mrd_peer *peer, uint32_t stamp)
{
    struct mrd_wire_head head = hand_head(p, AT, MRD_WIRE_DATA);

    head.stamp = stamp;
    pass(p, MRD_MOVED_NS);
    peer->place.tried_ns = 0;
    came(p, peer, &head, ELSEWHERE);
    return hand_with_cookie(head, hand_answer(p, AT, MRD_WIRE_CHALLENGE).head.cookie);
}

/* The peer proves that it is at ELSEWHERE now, and is. */
static inline void moves(struct pair *p, struct mrd_peer *peer)
{
    struct mrd_answers *a = &p->end[AT].e->answers;

    a->head = a->tail;
    peer->place.asked_ns = 0;
    struct mrd_wire_head head = proof(p, peer, mrd_wire_stamp(p->now + MRD_MOVED_NS));
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
    struct mrd_ah *ah, *other; /* the other one may be made by a test */
};

/* `peer` at its address, and `asks`, in hello, where it will move to; w.ah is for there. */
static inline struct world begin_order(enum mrd_order order)
{
    struct world w = {.order = order, .p = &pair};

    pair_begin(w.p);
    w.e = w.p->end[AT].e;
    pass(w.p, MRD_SEC);
    w.peer = known_peer(w.p, mrd_wire_stamp(w.p->now));
    w.peer->space.epoch = mrd_answer_pair(w.p->end[0].e, &w.p->end[AT].addr).epoch_base +
                          w.p->end[0].e->lives.epoch_next - 1;
    w.kept = hand_swap_qp(w.p, AT, order);
    struct mrd_addr there = w.peer->addr;
    there.ip[15] = ELSEWHERE;
    w.asks = mrd_peer_open(w.e, &there);
    w.ah = pair_ah(w.p, AT, &there);
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

/* A message by w.ah, while `asks` only asks; returns it. */
static inline struct mrd_msg *post_asking(struct world *w, enum mrd_wr_opcode opcode)
{
    mrd_send_state_open(w->e, w->asks)->contact.hello = true;
    post(w, w->ah, opcode, 1);
    return last_of(w->asks);
}

static inline void finish(struct world *w)
{
    for (struct mrd_node *n = w->e->peers.active.next; n != &w->e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        peer->watch.users = 0;
        if (peer->tx)
            mrd_send_state_end(w->e, peer, MRD_WC_RETRY_EXC_ERR);
    }
    assert_int_equal(mrd_engine_destroy_ah(w->e, w->ah), 0);
    if (w->other)
        assert_int_equal(mrd_engine_destroy_ah(w->e, w->other), 0);
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
