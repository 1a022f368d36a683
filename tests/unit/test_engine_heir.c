/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry gave way to another one, its heir: how long what is posted to it, and tells of it, goes by that.
 */
#include "core/engine/contact.h"
#include "core/engine/peer_state.h"
#include "tests/unit/engine_moves.h"
#include "tests/unit/engine_waits.h"

static struct mrd_ah *handle_for(struct world *w, const struct mrd_addr *addr)
{
    int error;
    struct mrd_ah *ah = mrd_engine_create_ah(w->e, w->p->end[AT].pd, addr, 0, &error);

    assert_non_null(ah);
    return ah;
}

static void sweep(struct world *w, uint64_t ns)
{
    pass(w->p, ns);
    w->e->peers.swept_ns = 0;
    mrd_peers_sweep(w->e);
}

/*
 * An entry gave way to a peer, which has moved on since. Somebody else is at the entry's address: a new handle
 * for the address speaks with him, by the entry. After 8 s of silence there, what is posted by that handle goes to
 * the peer that moved on.
 */
TEST_F(world, heir__takes_messages_of_others)
{
    struct mrd_addr x = self->asks->addr, further;

    mrd_send_state_open(self->e, self->asks)->contact.hello = true;
    post(self, self->ah, MRD_WR_RDMA_WRITE, 1);
    moves(self->p, self->peer);
    assert_int_equal(self->asks->heir, self->peer->id);
    further = self->peer->addr;
    further.ip[15] ^= 16;
    mrd_peer_move(&self->e->peers, self->peer, &further);
    /* P2 is there. */
    struct mrd_ah *ah = handle_for(self, &x);
    post(self, ah, MRD_WR_RDMA_WRITE, 2);
    assert_false(mrd_list_empty(&self->asks->msgs));
    self->asks->tx->contact.hello = self->asks->tx->probes.silence_due = false;
    self->asks->tx->contact.inc = 4711;
    self->asks->tx->contact.acked_once = true;
    struct mrd_msg *msg = mrd_container_of(self->asks->msgs.prev, struct mrd_msg, peer_node);
    assert_memory_equal(&msg->peer->addr, &x, sizeof(x));
    mrd_send_state_end(self->e, self->asks, MRD_WC_SUCCESS); /* all was done, and 8 s passed */
    self->peer->watch.on = true;                             /* the other one goes on */
    mrd_send_state_open(self->e, self->peer);
    sweep(self, MRD_SEC);
    post(self, ah, MRD_WR_RDMA_WRITE, 3);
    self->asks = mrd_peer_find(&self->e->peers, &x);
    assert_false(mrd_list_empty(&self->asks->msgs));
    self->peer->watch.on = false;
    mrd_send_state_end(self->e, self->peer, MRD_WC_RETRY_EXC_ERR);
    mrd_send_state_end(self->e, self->asks, MRD_WC_RETRY_EXC_ERR);
    mrd_engine_destroy_ah(self->e, ah);
}

/* A peer roams over addresses that we asked. The entries there never rest, and strangers find no room. */
TEST_F(world, heir__strangers_find_no_room)
{
    struct mrd_rx_packet packet = {.from = pair_addr_of(77), .to = self->p->end[AT].addr};
    uint32_t n = self->p->config.max_peers;

    mrd_send_state_open(self->e, self->peer);
    self->peer->watch.on = true;
    self->peer->tx->contact.inc = self->peer->space.inc;
    mrd_send_state_open(self->e, self->asks);
    mrd_address_move(self->e, self->peer, &self->asks->addr);
    for (uint32_t i = 0; i < n - 2; i++) {
        struct mrd_addr addr = self->peer->addr;

        addr.ip[14] = (uint8_t)(i + 1);
        mrd_send_state_open(self->e, mrd_peer_open(self->e, &addr));
        mrd_address_move(self->e, self->peer, &addr);
        mrd_send_state_open(self->e, self->peer);
        sweep(self, MRD_SEC);
    }
    for (unsigned i = 0; i < 600; i++) {
        self->peer->heard_ns = self->p->now;
        sweep(self, MRD_SEC);
    }
    assert_true(self->e->peers.entries.used <= n / 2 + 1);
    packet.from.port = 1000;
    struct mrd_wire_head head = hand_head(self->p, AT, MRD_WIRE_DATA);
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = 1234;
    head.reply = 1000;
    head.dst_inc = mrd_answer_pair(self->e, &packet.from).own_inc;
    self->e->answers.head = self->e->answers.tail;
    (void)mrd_contact_identify(self->e, &head, &packet);
    if (self->e->answers.tail != self->e->answers.head &&
        self->e->answers.ring[self->e->answers.head % MRD_STATELESS_MAX].head.type ==
            MRD_WIRE_CHALLENGE) {
        head.cookie = self->e->answers.ring[self->e->answers.head % MRD_STATELESS_MAX].head.cookie;
        head.flags |= MRD_WIRE_COOKIE;
        self->e->answers.head = self->e->answers.tail;
    }
    assert_non_null(mrd_contact_identify(self->e, &head, &packet));
}

/* Many gave way, one to the other: the handle follows its messages. */
TEST_F_WITH(world, heir__long_chain, self->order = MRD_ORDER_MSG)
{
    enum { NUM = 10 };
    struct mrd_peer *chain[NUM];

    mrd_send_state_open(self->e, self->asks)->contact.hello = true;
    post(self, self->ah, MRD_WR_RDMA_WRITE, 1);
    struct mrd_msg *first = mrd_container_of(self->asks->msgs.prev, struct mrd_msg, peer_node);
    chain[0] = self->asks;
    for (unsigned i = 1; i < NUM; i++) {
        struct mrd_addr addr = self->asks->addr;

        addr.ip[14] = (uint8_t)i;
        chain[i] = add_asking(self->e, &addr);
        mrd_peer_give_way(self->e, chain[i - 1], chain[i]);
    }
    assert_ptr_equal(first->peer, chain[NUM - 1]);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    assert_int_equal(hand_length(&chain[NUM - 1]->msgs), 2);
}

/* The heir went; its id comes again, of a stranger (after as many peers as ids have generations). */
TEST_F(world, heir__id_comes_again)
{
    struct mrd_addr x = self->asks->addr, stranger_at = pair_addr_of(200);
    struct mrd_peers *peers = &self->e->peers;
    uint32_t id = self->peer->id, step = 1u << peers->index_bits;
    struct mrd_ah *ah = handle_for(self, &x);

    mrd_send_state_open(self->e, self->asks)->contact.hello = true;
    mrd_peer_give_way(self->e, self->asks, self->peer);
    mrd_recv_state_end(self->e, self->peer, MRD_SPACE_NONE);
    if (self->peer->tx)
        mrd_send_state_end(self->e, self->peer, MRD_WC_RETRY_EXC_ERR);
    post(self, ah, MRD_WR_RDMA_WRITE, 1); /* the entry goes on, by a new handle */
    assert_false(mrd_list_empty(&self->asks->msgs));
    sweep(self, 3 * MRD_SEC);
    assert_null(mrd_peer_by_id(peers, id));
    assert_true(mrd_peer_forget(peers));
    peers->generation = (id & ~(step - 1)) - step; /* it came round */
    struct mrd_peer *stranger = mrd_peer_open(self->e, &stranger_at);
    assert_int_equal(stranger->id, id);
    mrd_send_state_open(self->e, stranger);
    mrd_send_state_end(self->e, self->asks, MRD_WC_SUCCESS); /* idle for 8 s */
    post(self, ah, MRD_WR_RDMA_WRITE, 2);
    assert_true(mrd_list_empty(&stranger->msgs));
    mrd_engine_destroy_ah(self->e, ah);
}

/* The message that it asks for. */
static struct mrd_msg *post_first(struct world *w)
{
    mrd_send_state_open(w->e, w->asks)->contact.hello = true;
    post(w, w->ah, MRD_WR_RDMA_WRITE, 1);
    return last_of(w->asks);
}

static void clean(struct world *w)
{
    for (struct mrd_node *n = w->e->peers.active.next; n != &w->e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        peer->watch.on = false;
        if (peer->tx)
            mrd_send_state_end(w->e, peer, MRD_WC_RETRY_EXC_ERR);
    }
}

/* The heir failed, and a full table needs the heir's entry; the entry that gave way stays. */
TEST_F_WITH(world, heir__evicted, self->order = MRD_ORDER_MSG)
{
    struct mrd_addr elsewhere = self->asks->addr;
    struct mrd_msg *msg = post_first(self);

    elsewhere.ip[14] = 3;
    struct mrd_peer *heir = add_asking(self->e, &elsewhere);
    mrd_peer_give_way(self->e, self->asks, heir);
    assert_ptr_equal(msg->peer, heir);
    answered(heir, 77);
    assert_true(is_sent_at(self->p, AT, msg, self->p->now));
    mrd_peer_unreachable(self->e, heir);
    uint64_t failed_ns = self->p->now;
    uint32_t id = heir->id;
    /* A sweep looked at those in front, but not at the heir: the heir is in front now. */
    for (unsigned i = 0; i < 2; i++) {
        pass(self->p, MRD_MSEC);
        mrd_engine_expire(self->e, self->p->now);
    }
    for (uint32_t i = 0; i < self->p->config.max_peers; i++) {
        struct mrd_addr addr = pair_addr_of(500 + i);

        if (!mrd_peer_by_id(&self->e->peers, id))
            break;
        struct mrd_peer *peer = mrd_peer_open(self->e, &addr);
        assert_non_null(peer);
        peer->watch.on = true;
    }
    assert_null(mrd_peer_by_id(&self->e->peers, id));
    assert_non_null(mrd_peer_by_id(&self->e->peers, self->asks->id));
    assert_true(self->e->lives.evicted_ns == failed_ns);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    msg = last_of(self->asks);
    answered(self->asks, 77);
    assert_false(is_sent_at(self->p, AT, msg, failed_ns + 3 * MRD_MSEC));
    outlives(self->p, AT, msg, failed_ns);
    clean(self);
}

static void further(struct world *w, uint8_t by)
{
    struct mrd_addr addr = w->peer->addr;

    addr.ip[15] ^= by;
    mrd_peer_move(&w->e->peers, w->peer, &addr);
}

/*
 * w.ah's message went to the heir, which moved on. Somebody asks at the old address by another handle, where
 * nobody is, and gives up. What w.ah posts next goes to where the peer is.
 */
TEST_F_WITH(world, heir__nobody_asked_at_the_old_address, self->order = MRD_ORDER_MSG)
{
    struct mrd_addr x = self->asks->addr;
    struct mrd_msg *first = post_first(self);

    moves(self->p, self->peer);
    assert_int_equal(self->asks->heir, self->peer->id);
    assert_ptr_equal(first->peer, self->peer);
    answered(self->peer, self->peer->space.inc);
    assert_true(is_sent_at(self->p, AT, first, self->p->now));
    further(self, 16);
    struct mrd_ah *ah = handle_for(self, &x);
    post(self, ah, MRD_WR_RDMA_WRITE, 2);
    assert_false(mrd_list_empty(&self->asks->msgs));
    mrd_peer_unreachable(self->e, self->asks); /* nobody there */
    post(self, self->ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, self->peer); /* still in flight */
    assert_true(mrd_list_empty(&self->asks->msgs));
    assert_ptr_equal(last_of(self->peer)->peer, self->peer);
    assert_int_equal(hand_length(&self->peer->msgs), 2);
    clean(self);
    mrd_engine_destroy_ah(self->e, ah);
}

/* The same, but the heir fails, with w.ah's message sent: what w.ah posts next waits. */
TEST_F_WITH(world, heir__failed_after_the_entry_spoke, self->order = MRD_ORDER_MSG)
{
    struct mrd_addr x = self->asks->addr;
    struct mrd_msg *msg = post_first(self);

    moves(self->p, self->peer);
    answered(self->peer, self->peer->space.inc);
    assert_true(is_sent_at(self->p, AT, msg, self->p->now));
    further(self, 16);
    struct mrd_ah *ah = handle_for(self, &x);
    post(self, ah, MRD_WR_RDMA_WRITE, 2);
    mrd_peer_unreachable(self->e, self->asks); /* nobody there; nothing of it was sent */
    uint64_t failed_ns = self->p->now;
    mrd_peer_unreachable(self->e, self->peer); /* the peer is on its way back to x */
    assert_true(self->peer->failed_ns == failed_ns);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 3);
    msg = last_of(self->asks);
    answered(self->asks, 77);
    assert_false(is_sent_at(self->p, AT, msg, failed_ns + MRD_MSEC));
    outlives(self->p, AT, msg, failed_ns);
    clean(self);
    mrd_engine_destroy_ah(self->e, ah);
}

/* The middle of a chain is asked for by others, in vain: the handle of the first follows to the last. */
TEST_F_WITH(world, heir__middle_of_a_chain, self->order = MRD_ORDER_MSG)
{
    struct mrd_addr addr = self->asks->addr;
    struct mrd_msg *first = post_first(self);

    addr.ip[14] = 1;
    struct mrd_peer *b = add_asking(self->e, &addr);
    mrd_peer_give_way(self->e, self->asks, b);
    struct mrd_ah *ah = handle_for(self, &addr);
    addr.ip[14] = 2;
    struct mrd_peer *c = add_asking(self->e, &addr);
    mrd_peer_give_way(self->e, b, c);
    assert_ptr_equal(first->peer, c);
    answered(c, 77);
    assert_true(is_sent_at(self->p, AT, first, self->p->now));
    post(self, ah, MRD_WR_RDMA_WRITE, 2); /* a new handle for b's address */
    assert_int_equal(hand_length(&b->msgs), 1);
    mrd_peer_unreachable(self->e, b);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, c);
    assert_int_equal(hand_length(&self->asks->msgs), 0);
    assert_int_equal(hand_length(&c->msgs), 2);
    clean(self);
    mrd_engine_destroy_ah(self->e, ah);
}

/* The entry that gave way rests, as the table is more than half full, while its heir's failed work may come. */
TEST_F_WITH(world, heir__rests_while_copies_may_come, self->order = MRD_ORDER_MSG)
{
    struct mrd_addr elsewhere = self->asks->addr;
    struct mrd_msg *msg = post_first(self);

    elsewhere.ip[14] = 3;
    struct mrd_peer *heir = add_asking(self->e, &elsewhere);
    mrd_peer_give_way(self->e, self->asks, heir);
    answered(heir, 77);
    assert_true(is_sent_at(self->p, AT, msg, self->p->now));
    for (uint32_t i = 0; i < self->p->config.max_peers / 2; i++) {
        struct mrd_addr addr = pair_addr_of(500 + i);

        mrd_peer_open(self->e, &addr)->watch.on = true;
    }
    uint32_t id = self->asks->id;
    mrd_peer_unreachable(self->e, heir);
    uint64_t failed_ns = self->p->now;
    sweep(self, 500 * MRD_MSEC);
    post(self, self->ah, MRD_WR_RDMA_WRITE, 2);
    self->asks = mrd_peer_by_id(&self->e->peers, id);
    msg = last_of(self->asks);
    answered(self->asks, 77);
    assert_false(is_sent_at(self->p, AT, msg, failed_ns + 501 * MRD_MSEC));
    outlives(self->p, AT, msg, failed_ns);
    clean(self);
}
