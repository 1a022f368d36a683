/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry gave way to another one, its heir: how long what is posted to it, and tells of it, goes by that.
 */
#include "core/engine/contact.h"
#include "tests/unit/engine_moves.h"

enum { FURTHER = 25, NAME = 77 };

/*
 * An entry gave way to a peer, which has moved on since. Somebody else is at the entry's address: a new handle
 * for the address speaks with him, by the entry. After 8 s of silence there, what is posted by that handle goes to
 * the peer that moved on.
 */
TEST_F(world, heir__takes_messages_of_others)
{
    struct mrd_addr x = self->asks->addr;

    post_asking(self, MRD_WR_RDMA_WRITE);
    moves(self->p, self->peer);
    assert_int_equal(self->asks->heir, self->peer->id);
    pair_move_peer(self->p, AT, self->peer, FURTHER);
    /* P2 is there. */
    self->other = pair_ah(self->p, AT, &x);
    post(self, self->other, MRD_WR_RDMA_WRITE, 2);
    answered(self->asks, 4711);
    self->asks->tx->contact.acked_once = true;
    assert_memory_equal(&last_of(self->asks)->peer->addr, &x, sizeof(x));
    mrd_send_state_end(self->e, self->asks, MRD_WC_SUCCESS); /* all was done, and 8 s passed */
    self->peer->watch.users = 1;                             /* the other one goes on */
    mrd_send_state_open(self->e, self->peer);
    sweep(self->p, AT, MRD_SEC);
    post(self, self->other, MRD_WR_RDMA_WRITE, 3);
    assert_false(mrd_list_empty(&mrd_peer_find(&self->e->peers, &x)->msgs));
}

/* A peer roams over addresses that we asked. The entries there never rest, and strangers find no room. */
TEST_F(world, heir__strangers_find_no_room)
{
    struct mrd_rx_packet packet = {.from = pair_addr_of(77), .to = self->p->end[AT].addr};
    uint32_t n = self->p->config.max_peers;

    mrd_send_state_open(self->e, self->peer);
    self->peer->watch.users = 1;
    self->peer->tx->contact.inc = self->peer->space.inc;
    mrd_send_state_open(self->e, self->asks);
    mrd_address_move(self->e, self->peer, &self->asks->addr);
    for (uint32_t i = 0; i < n - 2; i++) {
        struct mrd_addr addr = self->peer->addr;

        addr.ip[14] = (uint8_t)(i + 1);
        mrd_send_state_open(self->e, mrd_peer_open(self->e, &addr));
        mrd_address_move(self->e, self->peer, &addr);
        mrd_send_state_open(self->e, self->peer);
        sweep(self->p, AT, MRD_SEC);
    }
    for (unsigned i = 0; i < 600; i++) {
        self->peer->heard_ns = self->p->now;
        sweep(self->p, AT, MRD_SEC);
    }
    assert_true(self->e->peers.entries.used <= n / 2 + 1);
    struct mrd_wire_head head = hand_first_contact(self->p, AT, 1234);
    head.reply = packet.from.port;
    head.dst_inc = mrd_answer_pair(self->e, &packet.from).own_inc;
    assert_non_null(mrd_contact_identify(self->e, &head, &packet));
}

/* Many gave way, one to the other: the handle follows its messages. */
TEST_F_WITH(world, heir__long_chain, self->order = MRD_ORDER_MSG)
{
    enum { NUM = 10 };
    struct mrd_msg *first = post_asking(self, MRD_WR_RDMA_WRITE);
    struct mrd_peer *last = self->asks;

    for (uint8_t i = 1; i < NUM; i++) {
        struct mrd_peer *heir = add_asking(self->p, AT, FURTHER + i);

        mrd_peer_give_way(self->e, last, heir);
        last = heir;
    }
    assert_ptr_equal(first->peer, last);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    assert_int_equal(hand_length(&last->msgs), 2);
}

/* The heir went; its id comes again, of a stranger (after as many peers as ids have generations). */
TEST_F(world, heir__id_comes_again)
{
    struct mrd_peers *peers = &self->e->peers;
    uint32_t id = self->peer->id, step = 1u << peers->index_bits;

    self->other = pair_ah(self->p, AT, &self->asks->addr);
    mrd_send_state_open(self->e, self->asks)->contact.hello = true;
    mrd_peer_give_way(self->e, self->asks, self->peer);
    mrd_recv_state_end(self->e, self->peer, MRD_SPACE_NONE);
    if (self->peer->tx)
        mrd_send_state_end(self->e, self->peer, MRD_WC_RETRY_EXC_ERR);
    post(self, self->other, MRD_WR_RDMA_WRITE, 1); /* the entry goes on, by a new handle */
    assert_false(mrd_list_empty(&self->asks->msgs));
    sweep(self->p, AT, 3 * MRD_SEC);
    assert_null(mrd_peer_by_id(peers, id));
    assert_true(mrd_peer_forget(peers));
    peers->generation = (id & ~(step - 1)) - step; /* it came round */
    struct mrd_peer *stranger = pair_third(self->p, AT, 200);
    assert_int_equal(stranger->id, id);
    mrd_send_state_open(self->e, stranger);
    mrd_send_state_end(self->e, self->asks, MRD_WC_SUCCESS); /* idle for 8 s */
    post(self, self->other, MRD_WR_RDMA_WRITE, 2);
    assert_true(mrd_list_empty(&stranger->msgs));
}

/* `asks` gave way to an entry elsewhere, by which its message was sent. */
static struct mrd_peer *begin_heir(struct world *w)
{
    struct mrd_msg *msg = post_asking(w, MRD_WR_RDMA_WRITE);
    struct mrd_peer *heir = add_asking(w->p, AT, FURTHER);

    mrd_peer_give_way(w->e, w->asks, heir);
    assert_ptr_equal(msg->peer, heir);
    answered(heir, NAME);
    assert_true(is_sent_at(w->p, AT, msg, w->p->now));
    return heir;
}

/* What w.ah posts next is of that entry, which answers now; it waits while what failed may live. */
static void expect_wait(struct world *w, uint32_t asks_id, uint64_t failed_ns)
{
    post(w, w->ah, MRD_WR_RDMA_WRITE, 3);
    struct mrd_peer *asks = mrd_peer_by_id(&w->e->peers, asks_id);
    answered(asks, NAME);
    assert_false(is_sent_at(w->p, AT, last_of(asks), w->p->now + MRD_MSEC));
    outlives(w->p, AT, last_of(asks), failed_ns);
}

/* The heir failed, and a full table needs the heir's entry; the entry that gave way stays. */
TEST_F_WITH(world, heir__evicted, self->order = MRD_ORDER_MSG)
{
    struct mrd_peer *heir = begin_heir(self);
    uint64_t failed_ns = self->p->now;
    uint32_t id = heir->id;

    mrd_peer_unreachable(self->e, heir);
    /* A sweep looked at those in front, but not at the heir: the heir is in front now. */
    for (unsigned i = 0; i < 2; i++) {
        pass(self->p, MRD_MSEC);
        mrd_engine_expire(self->e, self->p->now);
    }
    for (uint32_t i = 0; mrd_peer_by_id(&self->e->peers, id); i++) {
        assert_true(i < self->p->config.max_peers);
        pair_third(self->p, AT, 500 + i)->watch.users = 1;
    }
    assert_non_null(mrd_peer_by_id(&self->e->peers, self->asks->id));
    assert_true(self->e->lives.evicted_ns == failed_ns);
    expect_wait(self, self->asks->id, failed_ns);
}

/* w.ah's message was sent by the peer, which moved on; and somebody asks at the old address by another handle. */
static struct mrd_msg *begin_moved_on(struct world *w)
{
    struct mrd_addr x = w->asks->addr;
    struct mrd_msg *first = post_asking(w, MRD_WR_RDMA_WRITE);

    moves(w->p, w->peer);
    assert_int_equal(w->asks->heir, w->peer->id);
    assert_ptr_equal(first->peer, w->peer);
    answered(w->peer, w->peer->space.inc);
    assert_true(is_sent_at(w->p, AT, first, w->p->now));
    pair_move_peer(w->p, AT, w->peer, FURTHER);
    w->other = pair_ah(w->p, AT, &x);
    post(w, w->other, MRD_WR_RDMA_WRITE, 2);
    assert_false(mrd_list_empty(&w->asks->msgs));
    mrd_peer_unreachable(w->e, w->asks); /* nobody there; nothing of it was sent */
    return first;
}

/* What w.ah posts next goes to where the peer is. */
TEST_F_WITH(world, heir__nobody_asked_at_the_old_address, self->order = MRD_ORDER_MSG)
{
    struct mrd_msg *first = begin_moved_on(self);

    post(self, self->ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, self->peer); /* still in flight */
    assert_true(mrd_list_empty(&self->asks->msgs));
    assert_int_equal(hand_length(&self->peer->msgs), 2);
}

/* The same, but the heir fails, with w.ah's message sent: what w.ah posts next waits. */
TEST_F_WITH(world, heir__failed_after_the_entry_spoke, self->order = MRD_ORDER_MSG)
{
    begin_moved_on(self);
    uint64_t failed_ns = self->p->now;
    mrd_peer_unreachable(self->e, self->peer); /* the peer is on its way back to x */
    assert_true(self->peer->failed_ns == failed_ns);
    expect_wait(self, self->asks->id, failed_ns);
}

/* The middle of a chain is asked for by others, in vain: the handle of the first follows to the last. */
TEST_F_WITH(world, heir__middle_of_a_chain, self->order = MRD_ORDER_MSG)
{
    struct mrd_msg *first = post_asking(self, MRD_WR_RDMA_WRITE);
    struct mrd_peer *b = add_asking(self->p, AT, FURTHER);

    mrd_peer_give_way(self->e, self->asks, b);
    self->other = pair_ah(self->p, AT, &b->addr);
    struct mrd_peer *c = add_asking(self->p, AT, FURTHER + 1);
    mrd_peer_give_way(self->e, b, c);
    assert_ptr_equal(first->peer, c);
    answered(c, NAME);
    assert_true(is_sent_at(self->p, AT, first, self->p->now));
    post(self, self->other, MRD_WR_RDMA_WRITE, 2); /* a new handle for b's address */
    assert_int_equal(hand_length(&b->msgs), 1);
    mrd_peer_unreachable(self->e, b);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, c);
    assert_int_equal(hand_length(&self->asks->msgs), 0);
    assert_int_equal(hand_length(&c->msgs), 2);
}

/* The entry that gave way rests, as the table is more than half full, while its heir's failed work may come. */
TEST_F_WITH(world, heir__rests_while_copies_may_come, self->order = MRD_ORDER_MSG)
{
    struct mrd_peer *heir = begin_heir(self);
    uint64_t failed_ns = self->p->now;
    uint32_t id = self->asks->id;

    fill_table(self->p, AT, self->p->config.max_peers / 2);
    mrd_peer_unreachable(self->e, heir);
    sweep(self->p, AT, 500 * MRD_MSEC);
    expect_wait(self, id, failed_ns);
}
