/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered messages failed, and copies of them may be on their way: what is posted next by another entry, or to
 * whom the peer says that it is by another name, would be delivered before them. It waits.
 */
#include "tests/unit/engine_waits.h"

enum { AT = 0, BYTES = 64, NAME = 77 };

/* A pair whose queue pair at AT is of that order. */
static struct mrd_qp *begin(struct pair *p, enum mrd_order order)
{
    pair_begin(p);
    return hand_swap_qp(p, AT, order);
}

static void end(struct pair *p, struct mrd_qp *kept)
{
    hand_restore_qp(p, AT, kept);
    pair_end(p);
}

/* Posts a message, which is of that entry, and returns it; if it may go, it was sent. */
static struct mrd_msg *post(struct pair *p, const struct mrd_peer *peer)
{
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct mrd_msg *msg = last_of(peer);
    pair_tx_lost(p, AT);
    return msg;
}

/* One more entry of the peer, found by who posts to its address. */
static struct mrd_peer *add_beside(struct pair *p, const struct mrd_peer *other)
{
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_peer *peer = mrd_peer_add_entry(e, &p->end[1 - AT].addr);

    mrd_peer_name(&e->peers, peer, other->pair);
    mrd_send_state_open(e, peer);
    answered(peer, NAME);
    return peer;
}

enum how { UNREACHABLE, TURNED_AWAY, GAVE_WAY, GAVE_WAY_ELSEWHERE, RESTARTED };

static void lose(struct pair *p, struct mrd_peer *peer, struct mrd_peer *other, enum how how)
{
    struct mrd_engine *e = p->end[AT].e;
    struct mrd_addr elsewhere = peer->addr;

    switch (how) {
    case UNREACHABLE:
        mrd_peer_unreachable(e, peer);
        break;
    case TURNED_AWAY:
        mrd_peer_turned_away(e, peer);
        break;
    case GAVE_WAY_ELSEWHERE:
        elsewhere.ip[15] ^= 8;
        mrd_peer_move(&e->peers, peer, &elsewhere);
        /* fall through */
    case GAVE_WAY:
        mrd_peer_give_way(e, peer, other);
        break;
    case RESTARTED:
        mrd_peer_restarted(e, peer, false);
        break;
    }
    assert_null(peer->tx);
}

/* Whatever ended it, but that the peer holds its space no more; and only what is ordered, and was sent. */
TEST_F(pair, failed__by_another_entry)
{
    static const struct {
        enum how how;
        enum mrd_order order;
        bool sent, waits;
    } rows[] = {{UNREACHABLE, MRD_ORDER_MSG, true, true},
                {TURNED_AWAY, MRD_ORDER_MSG, true, true},
                {GAVE_WAY, MRD_ORDER_MSG, true, true},
                {UNREACHABLE, MRD_ORDER_DATA, true, true},
                {GAVE_WAY_ELSEWHERE, MRD_ORDER_MSG, true, true},
                {RESTARTED, MRD_ORDER_MSG, true, false},
                {UNREACHABLE, MRD_ORDER_MSG, false, false},
                {UNREACHABLE, MRD_ORDER_NONE, true, false}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_qp *kept = begin(self, rows[i].order);
        struct mrd_peer *peer = hand_tx_peer(self, AT), *other;
        uint64_t failed_ns = self->now + MRD_MSEC;

        answered(peer, NAME);
        peer->tx->contact.hello = !rows[i].sent;
        struct mrd_msg *msg = post(self, peer);
        assert_int_equal(msg->started, rows[i].sent);
        other = add_beside(self, peer);
        mrd_engine_begin(self->end[AT].e, self->now = failed_ns);
        lose(self, peer, other, rows[i].how);
        msg = post(self, other);
        assert_int_equal(msg->started, !rows[i].waits);
        if (rows[i].waits) {
            outlives(self, AT, msg, failed_ns);
        }
        end(self, kept);
    }
}

/* By the same entry it goes at once, unless the peer answers by another name than before. */
TEST_F(pair, failed__by_the_same_entry)
{
    for (uint32_t inc = NAME; inc < NAME + 2; inc++) {
        struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
        struct mrd_peer *peer = hand_tx_peer(self, AT);
        uint64_t failed_ns = self->now;

        answered(peer, NAME);
        post(self, peer);
        mrd_peer_unreachable(self->end[AT].e, peer);
        mrd_send_state_open(self->end[AT].e, peer);
        answered(peer, inc);
        struct mrd_msg *msg = post(self, peer);
        assert_int_equal(msg->started, inc == NAME);
        if (inc != NAME) {
            outlives(self, AT, msg, failed_ns);
        }
        end(self, kept);
    }
}

/* Whether the peer is there is asked meanwhile: one that is not is given up in its time. */
TEST_F(pair, failed__who_is_awaited_is_asked)
{
    enum { TIMEOUT_MS = 400 };

    pair_config(self);
    self->config.peer_timeout_ns = TIMEOUT_MS * MRD_MSEC;
    pair_open(self);
    struct mrd_qp *kept = hand_swap_qp(self, AT, MRD_ORDER_MSG);
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *first = hand_tx_peer(self, AT);
    answered(first, NAME);
    post(self, first);
    struct mrd_peer *second = add_beside(self, first);
    mrd_peer_unreachable(e, first);
    uint64_t failed_ns = self->now;
    assert_false(post(self, second)->started);
    while (!second->given_up && self->now < failed_ns + MRD_PACKET_LIFE_NS) {
        pair_pass(self, AT, MRD_MSEC);
        mrd_engine_drained(e, self->now);
        mrd_engine_expire(e, self->now);
        pair_tx_lost(self, AT);
    }
    assert_true(second->given_up);
    assert_true(mrd_list_empty(&second->msgs));
    assert_true(self->now < failed_ns + 2 * TIMEOUT_MS * MRD_MSEC);
    end(self, kept);
}

/* From now on it is posted by a new handle, which knows nothing of what was posted before. */
static void renew_handle(struct pair *p)
{
    struct pair_end *end = &p->end[AT];
    int error;

    assert_int_equal(mrd_engine_destroy_ah(end->e, end->ah), 0);
    end->ah = mrd_engine_create_ah(end->e, end->pd, &p->end[1 - AT].addr, 0, &error);
    assert_non_null(end->ah);
}

/*
 * What waits fails, too. What comes after it waits for the same: by the entry that it went by or by a third
 * one, by the same handle or by a new one.
 */
TEST_F(pair, failed__while_it_waits)
{
    for (unsigned i = 0; i < 4; i++) {
        struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
        struct mrd_peer *first = hand_tx_peer(self, AT), *second, *third;
        struct mrd_addr elsewhere = first->addr;
        struct mrd_engine *e = self->end[AT].e;
        uint64_t failed_ns = self->now;

        answered(first, NAME);
        post(self, first);
        second = add_beside(self, first);
        mrd_peer_unreachable(e, first);
        pair_pass(self, AT, MRD_SEC);
        assert_false(post(self, second)->started);
        elsewhere.ip[15] ^= 8;
        mrd_peer_move(&e->peers, first, &elsewhere);
        third = i & 1 ? second : add_beside(self, first);
        mrd_peer_unreachable(e, second);
        if (third == second) {
            mrd_send_state_open(e, second);
            answered(second, NAME);
        }
        if (i & 2)
            renew_handle(self);
        struct mrd_msg *msg = post(self, third);
        assert_false(msg->started);
        outlives(self, AT, msg, failed_ns);
        end(self, kept);
    }
}

/*
 * The entry only asked, and gave way; its message failed by who spoke in its place, elsewhere. The next one goes by
 * the first entry again, by the same handle or by a new one.
 */
TEST_F(pair, failed__by_an_heir)
{
    for (unsigned i = 0; i < 4; i++) {
        struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
        struct mrd_peer *peer = hand_tx_peer(self, AT), *heir[2];
        struct mrd_addr elsewhere = peer->addr;
        struct mrd_engine *e = self->end[AT].e;
        uint64_t failed_ns = self->now + MRD_SEC;

        peer->tx->contact.hello = true;
        struct mrd_msg *msg = post(self, peer);
        elsewhere.ip[15] ^= 8;
        for (unsigned h = 0; h < 2; h++) {
            heir[h] = add_asking(e, &elsewhere);
        }
        mrd_peer_give_way(e, peer, heir[0]);
        if (i & 1) /* and that one did, too */
            mrd_peer_give_way(e, heir[0], heir[1]);
        answered(heir[i & 1], NAME);
        assert_ptr_equal(msg->peer, heir[i & 1]);
        assert_true(is_sent_at(self, AT, msg, failed_ns));
        mrd_peer_unreachable(e, heir[i & 1]);
        if (i & 2)
            renew_handle(self);
        pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        answered(peer, NAME);
        msg = last_of(peer);
        outlives(self, AT, msg, failed_ns);
        end(self, kept);
    }
}

/* Who gave way does not rest before all that its handles have to await is over. */
TEST_F(pair, failed__heir_is_remembered)
{
    struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
    struct mrd_peer *peer = hand_tx_peer(self, AT), *heir;
    struct mrd_addr elsewhere = peer->addr;
    struct mrd_engine *e = self->end[AT].e;
    uint32_t id = peer->id;

    peer->tx->contact.hello = true;
    struct mrd_msg *msg = post(self, peer);
    elsewhere.ip[15] ^= 8;
    heir = add_asking(e, &elsewhere);
    mrd_peer_give_way(e, peer, heir);
    answered(heir, NAME);
    assert_true(is_sent_at(self, AT, msg, self->now));
    for (unsigned i = 0; i < 4; i++) {
        if (i == 1)
            mrd_peer_unreachable(e, heir);
        pair_pass(self, AT, MRD_PACKET_LIFE_NS / 2);
        e->peers.swept_ns = 0;
        mrd_peers_sweep(e);
        assert_int_equal(mrd_peer_by_id(&e->peers, id) != NULL, i < 2);
    }
    end(self, kept);
}

/* The peer was elsewhere: the handle goes back to its own address, or a new one goes there. */
TEST_F(pair, failed__elsewhere)
{
    for (unsigned renewed = 0; renewed < 2; renewed++) {
        struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
        struct mrd_peer *peer = hand_tx_peer(self, AT), *back;
        struct mrd_addr elsewhere = peer->addr;
        uint64_t failed_ns = self->now;
        struct mrd_engine *e = self->end[AT].e;

        answered(peer, NAME);
        post(self, peer);
        elsewhere.ip[15] ^= 8;
        mrd_peer_move(&e->peers, peer, &elsewhere);
        mrd_peer_unreachable(e, peer);
        if (renewed)
            renew_handle(self);
        pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        back = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
        assert_ptr_not_equal(back, peer);
        answered(back, NAME);
        struct mrd_msg *msg = last_of(back);
        outlives(self, AT, msg, failed_ns);
        end(self, kept);
    }
}

/* A full table needs its entry: then all that begins waits. */
TEST_F(pair, failed__evicted)
{
    struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
    struct mrd_peer *peer = hand_tx_peer(self, AT);
    struct mrd_engine *e = self->end[AT].e;
    uint32_t id = peer->id;
    uint64_t failed_ns = self->now;

    answered(peer, NAME);
    post(self, peer);
    mrd_peer_unreachable(e, peer);
    for (uint32_t i = 0; i < self->config.max_peers; i++) {
        struct mrd_addr addr = pair_addr_of(50 + i);

        peer = mrd_peer_open(e, &addr);
        assert_non_null(peer);
        peer->watch.on = i > 0; /* one may go again */
    }
    assert_null(mrd_peer_by_id(&e->peers, id));
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    peer = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
    answered(peer, NAME);
    struct mrd_msg *msg = last_of(peer);
    outlives(self, AT, msg, failed_ns);
    end(self, kept);
}

/* The entry does not rest for as long. */
TEST_F(pair, failed__is_remembered)
{
    struct mrd_qp *kept = begin(self, MRD_ORDER_MSG);
    struct mrd_peer *peer = hand_tx_peer(self, AT);
    struct mrd_engine *e = self->end[AT].e;
    uint32_t id = peer->id;

    answered(peer, NAME);
    post(self, peer);
    mrd_peer_unreachable(e, peer);
    for (unsigned i = 0; i < 2; i++) {
        pair_pass(self, AT, MRD_PACKET_LIFE_NS / 2);
        e->peers.swept_ns = 0;
        mrd_peers_sweep(e);
        assert_int_equal(mrd_peer_by_id(&e->peers, id) != NULL, i == 0);
    }
    end(self, kept);
}
