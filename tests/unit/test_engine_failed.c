/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered messages failed, and copies of them may be on their way: what is posted next by another entry, or to
 * whom the peer says that it is by another name, would be delivered before them. It waits.
 */
#include "tests/unit/engine_waits.h"

enum { AT = 0, BYTES = 64, NAME = 77, ELSEWHERE = 8 };

static struct mrd_qp *kept; /* while another one is in its place at AT */

static void end(struct pair *p)
{
    if (p->end[AT].e)
        hand_restore_qp(p, AT, kept);
    pair_end(p);
}

/* A pair whose queue pair at AT is of that order. */
static void begin_order(struct pair *p, enum mrd_order order)
{
    end(p);
    pair_begin(p);
    kept = hand_swap_qp(p, AT, order);
}

static void begin(struct pair *p)
{
    begin_order(p, MRD_ORDER_MSG);
}

FIXTURE_OF(ordered, pair);
FIXTURE_FROM(ordered, begin, end);

/* Posts a message, which is of that entry, and returns it; if it may go, it was sent. */
static struct mrd_msg *post(struct pair *p, const struct mrd_peer *peer)
{
    pair_post(p, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    struct mrd_msg *msg = last_of(peer);
    pair_tx_lost(p, AT);
    return msg;
}

/* The peer, to which a message was sent. */
static struct mrd_peer *begin_sent(struct pair *p)
{
    struct mrd_peer *peer = hand_tx_peer(p, AT);

    answered(peer, NAME);
    assert_true(post(p, peer)->started);
    return peer;
}

/* The entry only asks, and gives way; returns its message, which is the heir's then. */
static struct mrd_msg *give_way(struct pair *p, struct mrd_peer *peer, struct mrd_peer *heir)
{
    peer->tx->contact.hello = true;
    struct mrd_msg *msg = post(p, peer);
    mrd_peer_give_way(p->end[AT].e, peer, heir);
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

    if (how == UNREACHABLE)
        mrd_peer_unreachable(e, peer);
    if (how == TURNED_AWAY)
        mrd_peer_turned_away(e, peer);
    if (how == GAVE_WAY_ELSEWHERE)
        pair_move_peer(p, AT, peer, ELSEWHERE);
    if (how == GAVE_WAY || how == GAVE_WAY_ELSEWHERE)
        mrd_peer_give_way(e, peer, other);
    if (how == RESTARTED)
        mrd_peer_restarted(e, peer, false);
    assert_null(peer->tx);
}

/* Whatever ended it, but that the peer holds its space no more; and only what is ordered, and was sent. */
TEST_F(ordered, failed__by_another_entry)
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
        begin_order(self, rows[i].order);
        struct mrd_peer *peer = hand_tx_peer(self, AT);
        answered(peer, NAME);
        peer->tx->contact.hello = !rows[i].sent;
        assert_int_equal(post(self, peer)->started, rows[i].sent);
        struct mrd_peer *other = add_beside(self, peer);
        pair_pass(self, AT, MRD_MSEC);
        uint64_t failed_ns = self->now;
        lose(self, peer, other, rows[i].how);
        struct mrd_msg *msg = post(self, other);
        assert_int_equal(msg->started, !rows[i].waits);
        if (rows[i].waits)
            outlives(self, AT, msg, failed_ns);
    }
}

/* By the same entry it goes at once, unless the peer answers by another name than before. */
TEST_F(ordered, failed__by_the_same_entry)
{
    for (uint32_t inc = NAME; inc < NAME + 2; inc++) {
        begin(self);
        struct mrd_peer *peer = begin_sent(self);
        uint64_t failed_ns = self->now;
        mrd_peer_unreachable(self->end[AT].e, peer);
        mrd_send_state_open(self->end[AT].e, peer);
        answered(peer, inc);
        struct mrd_msg *msg = post(self, peer);
        assert_int_equal(msg->started, inc == NAME);
        if (inc != NAME)
            outlives(self, AT, msg, failed_ns);
    }
}

/* Whether the peer is there is asked meanwhile: one that is not is given up in its time. */
TEST_F(ordered, failed__who_is_awaited_is_asked)
{
    enum { TIMEOUT_MS = 400 };
    struct mrd_engine *e = self->end[AT].e;

    e->config.peer_timeout_ns = TIMEOUT_MS * MRD_MSEC;
    struct mrd_peer *first = begin_sent(self), *second = add_beside(self, first);
    mrd_peer_unreachable(e, first);
    uint64_t failed_ns = self->now;
    assert_false(post(self, second)->started);
    while (!second->given_up && self->now < failed_ns + MRD_PACKET_LIFE_NS) {
        self->now += MRD_MSEC;
        pair_turn(self, AT);
        self->end[1 - AT].num_inbox = 0;
    }
    assert_true(second->given_up);
    assert_true(mrd_list_empty(&second->msgs));
    assert_true(self->now < failed_ns + 2 * TIMEOUT_MS * MRD_MSEC);
}

/* From now on it is posted by a new handle, which knows nothing of what was posted before. */
static void renew_handle(struct pair *p)
{
    assert_int_equal(mrd_engine_destroy_ah(p->end[AT].e, p->end[AT].ah), 0);
    p->end[AT].ah = pair_ah(p, AT, &p->end[1 - AT].addr);
}

/*
 * What waits fails, too. What comes after it waits for the same: by the entry that it went by or by a third
 * one, by the same handle or by a new one.
 */
TEST_F(ordered, failed__while_it_waits)
{
    for (unsigned i = 0; i < 4; i++) {
        begin(self);
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_peer *first = begin_sent(self), *second = add_beside(self, first);
        uint64_t failed_ns = self->now;
        mrd_peer_unreachable(e, first);
        pair_pass(self, AT, MRD_SEC);
        assert_false(post(self, second)->started);
        pair_move_peer(self, AT, first, ELSEWHERE);
        struct mrd_peer *third = i & 1 ? second : add_beside(self, first);
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
    }
}

/*
 * The entry only asked, and gave way; its message failed by who spoke in its place, elsewhere. The next one goes by
 * the first entry again, by the same handle or by a new one.
 */
TEST_F(ordered, failed__by_an_heir)
{
    for (unsigned i = 0; i < 4; i++) {
        begin(self);
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_peer *peer = hand_tx_peer(self, AT);
        struct mrd_peer *heir = add_asking(self, AT, ELSEWHERE);
        struct mrd_peer *second = add_asking(self, AT, ELSEWHERE);
        uint64_t failed_ns = self->now + MRD_SEC;
        struct mrd_msg *msg = give_way(self, peer, heir);
        if (i & 1) { /* and that one did, too */
            mrd_peer_give_way(e, heir, second);
            heir = second;
        }
        answered(heir, NAME);
        assert_ptr_equal(msg->peer, heir);
        assert_true(is_sent_at(self, AT, msg, failed_ns));
        mrd_peer_unreachable(e, heir);
        if (i & 2)
            renew_handle(self);
        pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        answered(peer, NAME);
        outlives(self, AT, last_of(peer), failed_ns);
    }
}

/* Is the entry still there, half a packet's life from now? */
static bool is_remembered(struct pair *p, uint32_t id)
{
    sweep(p, AT, MRD_PACKET_LIFE_NS / 2);
    return mrd_peer_by_id(&p->end[AT].e->peers, id);
}

/* Who gave way does not rest before all that its handles have to await is over. */
TEST_F(ordered, failed__heir_is_remembered)
{
    struct mrd_peer *peer = hand_tx_peer(self, AT), *heir = add_asking(self, AT, ELSEWHERE);
    uint32_t id = peer->id;
    struct mrd_msg *msg = give_way(self, peer, heir);
    answered(heir, NAME);
    assert_true(is_sent_at(self, AT, msg, self->now));
    assert_true(is_remembered(self, id));
    mrd_peer_unreachable(self->end[AT].e, heir);
    assert_true(is_remembered(self, id));
    assert_false(is_remembered(self, id));
}

/* The peer was elsewhere: the handle goes back to its own address, or a new one goes there. */
TEST_F(ordered, failed__elsewhere)
{
    for (unsigned renewed = 0; renewed < 2; renewed++) {
        begin(self);
        struct mrd_engine *e = self->end[AT].e;
        struct mrd_peer *peer = begin_sent(self);
        uint64_t failed_ns = self->now;
        pair_move_peer(self, AT, peer, ELSEWHERE);
        mrd_peer_unreachable(e, peer);
        if (renewed)
            renew_handle(self);
        pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
        struct mrd_peer *back = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
        assert_ptr_not_equal(back, peer);
        answered(back, NAME);
        outlives(self, AT, last_of(back), failed_ns);
    }
}

/* A full table needs its entry: then all that begins waits. */
TEST_F(ordered, failed__evicted)
{
    struct mrd_engine *e = self->end[AT].e;
    struct mrd_peer *peer = begin_sent(self);
    uint32_t id = peer->id;
    uint64_t failed_ns = self->now;
    mrd_peer_unreachable(e, peer);
    fill_table(self, AT, self->config.max_peers);
    assert_null(mrd_peer_by_id(&e->peers, id));
    pair_peer(self, AT)->watch.users = 0; /* one may go again */
    pair_post(self, AT, MRD_WR_RDMA_WRITE, 0, BYTES);
    peer = mrd_peer_find(&e->peers, &self->end[1 - AT].addr);
    answered(peer, NAME);
    outlives(self, AT, last_of(peer), failed_ns);
}

/* The entry does not rest for as long. */
TEST_F(ordered, failed__is_remembered)
{
    struct mrd_peer *peer = begin_sent(self);
    uint32_t id = peer->id;

    mrd_peer_unreachable(self->end[AT].e, peer);
    assert_true(is_remembered(self, id));
    assert_false(is_remembered(self, id));
}
