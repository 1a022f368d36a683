/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry gave way to another one, its heir: how long what is posted to it, and tells of it, goes by that.
 */
#include "core/engine/contact.h"
#include "core/engine/half.h"
#include "tests/unit/engine_moves.h"

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
    mrd_half_sweep(w->e);
}

/*
 * An entry gave way to a peer, which has moved on since. Somebody else is at the entry's address: a new handle
 * for the address speaks with him, by the entry. After 8 s of silence there, what is posted by that handle goes to
 * the peer that moved on.
 */
TEST(heir__takes_messages_of_others)
{
    struct world w = begin_order(MRD_ORDER_NONE);
    struct mrd_addr x = w.asks->addr, further;
    struct mrd_ah *ah;
    struct mrd_msg *msg;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    moves(w.p, w.peer);
    assert_int_equal(w.asks->heir, w.peer->id);
    further = w.peer->addr;
    further.ip[15] ^= 16;
    mrd_peer_move(&w.e->peers, w.peer, &further);
    /* P2 is there. */
    ah = handle_for(&w, &x);
    post(&w, ah, MRD_WR_RDMA_WRITE, 2);
    assert_false(mrd_list_empty(&w.asks->msgs));
    w.asks->tx->contact.hello = w.asks->tx->probes.silence_due = false;
    w.asks->tx->contact.inc = 4711;
    w.asks->tx->contact.acked_once = true;
    msg = mrd_container_of(w.asks->msgs.prev, struct mrd_msg, peer_node);
    assert_memory_equal(&msg->peer->addr, &x, sizeof(x));
    mrd_half_end_tx(w.e, w.asks, MRD_WC_SUCCESS); /* all was done, and 8 s passed */
    w.peer->watch.on = true;                      /* the other one goes on */
    mrd_half_open_tx(w.e, w.peer);
    sweep(&w, MRD_SEC);
    post(&w, ah, MRD_WR_RDMA_WRITE, 3);
    w.asks = mrd_peer_find(&w.e->peers, &x);
    assert_false(mrd_list_empty(&w.asks->msgs));
    w.peer->watch.on = false;
    mrd_half_end_tx(w.e, w.peer, MRD_WC_RETRY_EXC_ERR);
    mrd_half_end_tx(w.e, w.asks, MRD_WC_RETRY_EXC_ERR);
    mrd_engine_destroy_ah(w.e, ah);
    finish(&w);
}

/* A peer roams over addresses that we asked. The entries there never rest, and strangers find no room. */
TEST(heir__strangers_find_no_room)
{
    struct world w = begin_order(MRD_ORDER_NONE);
    struct mrd_wire_head head;
    struct mrd_rx_packet packet = {.from = pair_addr_of(77), .to = w.p->end[AT].addr};
    uint32_t n = w.p->config.max_peers;

    mrd_half_open_tx(w.e, w.peer);
    w.peer->watch.on = true;
    w.peer->tx->contact.inc = w.peer->space.inc;
    mrd_half_open_tx(w.e, w.asks);
    mrd_address_move(w.e, w.peer, &w.asks->addr);
    for (uint32_t i = 0; i < n - 2; i++) {
        struct mrd_addr addr = w.peer->addr;

        addr.ip[14] = (uint8_t)(i + 1);
        mrd_half_open_tx(w.e, mrd_half_open_peer(w.e, &addr));
        mrd_address_move(w.e, w.peer, &addr);
        mrd_half_open_tx(w.e, w.peer);
        sweep(&w, MRD_SEC);
    }
    for (unsigned i = 0; i < 600; i++) {
        w.peer->heard_ns = w.p->now;
        sweep(&w, MRD_SEC);
    }
    assert_true(w.e->peers.entries.used <= n / 2 + 1);
    packet.from.port = 1000;
    head = hand_head(w.p, AT, MRD_WIRE_DATA);
    head.flags = MRD_WIRE_FIRST_CONTACT;
    head.src_inc = 1234;
    head.reply = 1000;
    head.dst_inc = mrd_answer_pair(w.e, &packet.from).own_inc;
    w.e->answers.head = w.e->answers.tail;
    (void)mrd_contact_identify(w.e, &head, &packet);
    if (w.e->answers.tail != w.e->answers.head &&
        w.e->answers.ring[w.e->answers.head % MRD_STATELESS_MAX].head.type == MRD_WIRE_CHALLENGE) {
        head.cookie = w.e->answers.ring[w.e->answers.head % MRD_STATELESS_MAX].head.cookie;
        head.flags |= MRD_WIRE_COOKIE;
        w.e->answers.head = w.e->answers.tail;
    }
    assert_non_null(mrd_contact_identify(w.e, &head, &packet));
    finish(&w);
}

/* Many gave way, one to the other: the handle follows its messages. */
TEST(heir__long_chain)
{
    enum { NUM = 10 };
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_peer *chain[NUM];
    struct mrd_msg *first;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    first = mrd_container_of(w.asks->msgs.prev, struct mrd_msg, peer_node);
    chain[0] = w.asks;
    for (unsigned i = 1; i < NUM; i++) {
        struct mrd_addr addr = w.asks->addr;

        addr.ip[14] = (uint8_t)i;
        chain[i] = mrd_half_add_peer(w.e, &addr);
        mrd_half_open_tx(w.e, chain[i])->contact.hello = true;
        mrd_half_give_way(w.e, chain[i - 1], chain[i]);
    }
    assert_ptr_equal(first->peer, chain[NUM - 1]);
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 2);
    assert_int_equal(hand_length(&chain[NUM - 1]->msgs), 2);
    finish(&w);
}

/* The heir went; its id comes again, of a stranger (after as many peers as ids have generations). */
TEST(heir__id_comes_again)
{
    struct world w = begin_order(MRD_ORDER_NONE);
    struct mrd_addr x = w.asks->addr, stranger_at = pair_addr_of(200);
    struct mrd_peers *peers = &w.e->peers;
    struct mrd_peer *stranger;
    uint32_t id = w.peer->id, step = 1u << peers->index_bits;
    struct mrd_ah *ah = handle_for(&w, &x);

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    mrd_half_give_way(w.e, w.asks, w.peer);
    mrd_half_end_rx(w.e, w.peer, MRD_SPACE_NONE);
    if (w.peer->tx)
        mrd_half_end_tx(w.e, w.peer, MRD_WC_RETRY_EXC_ERR);
    post(&w, ah, MRD_WR_RDMA_WRITE, 1); /* the entry goes on, by a new handle */
    assert_false(mrd_list_empty(&w.asks->msgs));
    sweep(&w, 3 * MRD_SEC);
    assert_null(mrd_peer_by_id(peers, id));
    assert_true(mrd_peer_forget(peers));
    peers->generation = (id & ~(step - 1)) - step; /* it came round */
    stranger = mrd_half_open_peer(w.e, &stranger_at);
    assert_int_equal(stranger->id, id);
    mrd_half_open_tx(w.e, stranger);
    mrd_half_end_tx(w.e, w.asks, MRD_WC_SUCCESS); /* idle for 8 s */
    post(&w, ah, MRD_WR_RDMA_WRITE, 2);
    assert_true(mrd_list_empty(&stranger->msgs));
    mrd_engine_destroy_ah(w.e, ah);
    finish(&w);
}

static void answered(struct mrd_peer *peer, uint32_t inc)
{
    peer->tx->contact.hello = peer->tx->probes.silence_due = false;
    peer->tx->contact.inc = inc;
}

static bool is_sent_at(struct pair *p, const struct mrd_msg *msg, uint64_t now_ns)
{
    p->now = now_ns;
    mrd_engine_begin(p->end[AT].e, p->now);
    mrd_tx_ready(p->end[AT].e, msg->peer);
    (void)pair_tx(p, AT);
    p->end[1 - AT].num_inbox = 0;
    return msg->started;
}

static struct mrd_msg *last_of(const struct mrd_peer *peer)
{
    assert_false(mrd_list_empty(&peer->msgs));
    return mrd_container_of(peer->msgs.prev, struct mrd_msg, peer_node);
}

static void clean(struct world *w)
{
    for (struct mrd_node *n = w->e->peers.awake.next; n != &w->e->peers.awake; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        peer->watch.on = false;
        if (peer->tx)
            mrd_half_end_tx(w->e, peer, MRD_WC_RETRY_EXC_ERR);
    }
}

/* The heir failed, and a full table needs the heir's entry; the entry that gave way stays. */
TEST(heir__evicted)
{
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_peer *heir;
    struct mrd_addr elsewhere = w.asks->addr;
    uint64_t failed_ns;
    uint32_t id;
    struct mrd_msg *msg;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    msg = last_of(w.asks);
    elsewhere.ip[14] = 3;
    heir = mrd_half_add_peer(w.e, &elsewhere);
    mrd_half_open_tx(w.e, heir)->contact.hello = true;
    mrd_half_give_way(w.e, w.asks, heir);
    assert_ptr_equal(msg->peer, heir);
    answered(heir, 77);
    assert_true(is_sent_at(w.p, msg, w.p->now));
    mrd_half_peer_unreachable(w.e, heir);
    failed_ns = w.p->now;
    id = heir->id;
    /* A sweep looked at those in front, but not at the heir: the heir is in front now. */
    for (unsigned i = 0; i < 2; i++) {
        pass(w.p, MRD_MSEC);
        mrd_engine_expire(w.e, w.p->now);
    }
    for (uint32_t i = 0; i < w.p->config.max_peers; i++) {
        struct mrd_addr addr = pair_addr_of(500 + i);
        struct mrd_peer *peer;

        if (!mrd_peer_by_id(&w.e->peers, id))
            break;
        peer = mrd_half_open_peer(w.e, &addr);
        assert_non_null(peer);
        peer->watch.on = true;
    }
    assert_null(mrd_peer_by_id(&w.e->peers, id));
    assert_non_null(mrd_peer_by_id(&w.e->peers, w.asks->id));
    assert_true(w.e->lives.evicted_ns == failed_ns);
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 2);
    msg = last_of(w.asks);
    answered(w.asks, 77);
    assert_false(is_sent_at(w.p, msg, failed_ns + 3 * MRD_MSEC));
    assert_false(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS - 1));
    assert_true(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS));
    clean(&w);
    finish(&w);
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
TEST(heir__nobody_asked_at_the_old_address)
{
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_addr x = w.asks->addr;
    struct mrd_ah *ah;
    struct mrd_msg *first;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    first = last_of(w.asks);
    moves(w.p, w.peer);
    assert_int_equal(w.asks->heir, w.peer->id);
    assert_ptr_equal(first->peer, w.peer);
    answered(w.peer, w.peer->space.inc);
    assert_true(is_sent_at(w.p, first, w.p->now));
    further(&w, 16);
    ah = handle_for(&w, &x);
    post(&w, ah, MRD_WR_RDMA_WRITE, 2);
    assert_false(mrd_list_empty(&w.asks->msgs));
    mrd_half_peer_unreachable(w.e, w.asks); /* nobody there */
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, w.peer); /* still in flight */
    assert_true(mrd_list_empty(&w.asks->msgs));
    assert_ptr_equal(last_of(w.peer)->peer, w.peer);
    assert_int_equal(hand_length(&w.peer->msgs), 2);
    clean(&w);
    mrd_engine_destroy_ah(w.e, ah);
    finish(&w);
}

/* The same, but the heir fails, with w.ah's message sent: what w.ah posts next waits. */
TEST(heir__failed_after_the_entry_spoke)
{
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_addr x = w.asks->addr;
    struct mrd_ah *ah;
    struct mrd_msg *msg;
    uint64_t failed_ns;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    msg = last_of(w.asks);
    moves(w.p, w.peer);
    answered(w.peer, w.peer->space.inc);
    assert_true(is_sent_at(w.p, msg, w.p->now));
    further(&w, 16);
    ah = handle_for(&w, &x);
    post(&w, ah, MRD_WR_RDMA_WRITE, 2);
    mrd_half_peer_unreachable(w.e, w.asks); /* nobody there; nothing of it was sent */
    failed_ns = w.p->now;
    mrd_half_peer_unreachable(w.e, w.peer); /* the peer is on its way back to x */
    assert_true(w.peer->failed_ns == failed_ns);
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 3);
    msg = last_of(w.asks);
    answered(w.asks, 77);
    assert_false(is_sent_at(w.p, msg, failed_ns + MRD_MSEC));
    assert_false(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS - 1));
    assert_true(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS));
    clean(&w);
    mrd_engine_destroy_ah(w.e, ah);
    finish(&w);
}

/* The middle of a chain is asked for by others, in vain: the handle of the first follows to the last. */
TEST(heir__middle_of_a_chain)
{
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_addr addr = w.asks->addr;
    struct mrd_peer *b, *c;
    struct mrd_ah *ah;
    struct mrd_msg *first;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    first = last_of(w.asks);
    addr.ip[14] = 1;
    b = mrd_half_add_peer(w.e, &addr);
    mrd_half_open_tx(w.e, b)->contact.hello = true;
    mrd_half_give_way(w.e, w.asks, b);
    ah = handle_for(&w, &addr);
    addr.ip[14] = 2;
    c = mrd_half_add_peer(w.e, &addr);
    mrd_half_open_tx(w.e, c)->contact.hello = true;
    mrd_half_give_way(w.e, b, c);
    assert_ptr_equal(first->peer, c);
    answered(c, 77);
    assert_true(is_sent_at(w.p, first, w.p->now));
    post(&w, ah, MRD_WR_RDMA_WRITE, 2); /* a new handle for b's address */
    assert_int_equal(hand_length(&b->msgs), 1);
    mrd_half_peer_unreachable(w.e, b);
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 3);
    assert_ptr_equal(first->peer, c);
    assert_int_equal(hand_length(&w.asks->msgs), 0);
    assert_int_equal(hand_length(&c->msgs), 2);
    clean(&w);
    mrd_engine_destroy_ah(w.e, ah);
    finish(&w);
}

/* The entry that gave way rests, as the table is more than half full, while its heir's failed work may come. */
TEST(heir__rests_while_copies_may_come)
{
    struct world w = begin_order(MRD_ORDER_MSG);
    struct mrd_peer *heir;
    struct mrd_addr elsewhere = w.asks->addr;
    uint64_t failed_ns;
    uint32_t id;
    struct mrd_msg *msg;

    mrd_half_open_tx(w.e, w.asks)->contact.hello = true;
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 1);
    msg = last_of(w.asks);
    elsewhere.ip[14] = 3;
    heir = mrd_half_add_peer(w.e, &elsewhere);
    mrd_half_open_tx(w.e, heir)->contact.hello = true;
    mrd_half_give_way(w.e, w.asks, heir);
    answered(heir, 77);
    assert_true(is_sent_at(w.p, msg, w.p->now));
    for (uint32_t i = 0; i < w.p->config.max_peers / 2; i++) {
        struct mrd_addr addr = pair_addr_of(500 + i);

        mrd_half_open_peer(w.e, &addr)->watch.on = true;
    }
    id = w.asks->id;
    mrd_half_peer_unreachable(w.e, heir);
    failed_ns = w.p->now;
    sweep(&w, 500 * MRD_MSEC);
    post(&w, w.ah, MRD_WR_RDMA_WRITE, 2);
    w.asks = mrd_peer_by_id(&w.e->peers, id);
    msg = last_of(w.asks);
    answered(w.asks, 77);
    assert_false(is_sent_at(w.p, msg, failed_ns + 501 * MRD_MSEC));
    assert_false(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS - 1));
    assert_true(is_sent_at(w.p, msg, failed_ns + MRD_PACKET_LIFE_NS));
    clean(&w);
    finish(&w);
}
