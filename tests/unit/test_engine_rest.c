/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle peers: their halves end, they rest, and are woken again. */
#include <errno.h>

#include "core/engine/peer_state.h"
#include "core/engine/query.h"
#include "tests/unit/engine_pair.h"

enum { MANY = 20000, STEP_MS = 5 };

static struct mrd_peer *contact(struct mrd_engine *e, uint32_t host)
{
    struct mrd_addr addr = pair_addr_of(host);
    struct mrd_peer *peer = mrd_peer_open(e, &addr);

    mrd_send_state_open(e, peer);
    return peer;
}

/* There was contact with as many peers as the table holds. */
static void open_many(struct pair *p)
{
    pair_config(p);
    p->config.max_peers = MANY;
    p->config.paths = 1;
    pair_open(p);
    mrd_engine_begin(p->end[0].e, p->now);
    for (uint32_t i = 0; i < MANY; i++)
        contact(p->end[0].e, i);
}

/* Turns of a caller who has nothing to do, for `ns`. */
static void idle(struct pair *p, uint64_t ns)
{
    struct mrd_engine *e = p->end[0].e;

    for (uint64_t end_ns = p->now + ns; p->now < end_ns; p->now += STEP_MS * MRD_MSEC) {
        mrd_engine_begin(e, p->now);
        mrd_engine_drained(e, p->now);
        mrd_engine_expire(e, p->now);
    }
}

/* An idle peer costs a record, its number, its buckets, and the user's address handle. */
TEST(rest__bytes)
{
    assert_true((sizeof(struct mrd_idle_peer) + 15) / 16 * 16 + sizeof(struct mrd_peer *) +
                    2 * sizeof(uint32_t) + sizeof(struct mrd_ah_impl) + 16 <=
                256);
}

/* Many rest soon after they were used, few after MRD_SEND_IDLE_LIFE_NS; nothing is armed then. */
TEST_F(pair, rest__many_sooner_than_few)
{
    open_many(self);
    struct mrd_peers *peers = &self->end[0].e->peers;
    assert_int_equal(peers->send_states.used, MANY);
    idle(self, 2 * MRD_SEC);
    assert_true(peers->send_states.used < 5 * MRD_SEND_STATES_KEPT);
    idle(self, MRD_SEND_IDLE_LIFE_NS / 2);
    assert_in_range(peers->send_states.used, 1, 2 * MRD_SEND_STATES_KEPT);
    idle(self, MRD_SEND_IDLE_LIFE_NS + 2 * MRD_SWEEP_NS);
    assert_int_equal(peers->send_states.used, 0);
    assert_int_equal(peers->entries.used, 0);
    assert_int_equal(peers->num_idle, MANY);
    assert_int_equal(self->end[0].e->stats.peers, MANY);
    assert_int_equal(self->end[0].e->stats.peers_rested, MANY);
    assert_true(mrd_engine_deadline(self->end[0].e) == MRD_NEVER);
}

/* A stranger takes the place of one that rests, not of one that is active. */
TEST_F(pair, rest__makes_room)
{
    struct mrd_addr other = pair_addr_of(MANY);

    open_many(self);
    struct mrd_peers *peers = &self->end[0].e->peers;
    assert_null(mrd_peer_open(self->end[0].e, &other));
    idle(self, 3 * MRD_SEC);
    for (uint32_t i = 0; i < MANY; i += 2)
        assert_non_null(contact(self->end[0].e, i));
    assert_non_null(mrd_peer_open(self->end[0].e, &other));
    assert_int_equal(self->end[0].e->stats.peers_evicted, 1);
    assert_int_equal(self->end[0].e->stats.peers, MANY);
    for (uint32_t i = 0; i < MANY; i += 2) {
        struct mrd_addr addr = pair_addr_of(i);

        assert_non_null(mrd_peer_find(peers, &addr));
    }
}

/*
 * Two that talked: both ends rest when nothing of the other's space can be on its way, not before.
 * Then they talk again, with the same ids, counts that go on, and no event.
 */
TEST_F(pair, rest__after_talking)
{
    struct mrd_peer_attr before, after;
    struct mrd_addr addr;

    for (unsigned round = 0; round < 3; round++) {
        struct mrd_peers *peers = &self->end[0].e->peers;

        pair_post(self, 0, MRD_WR_RDMA_WRITE, 0, 100);
        pair_post(self, 1, MRD_WR_RDMA_WRITE, PAIR_MEMORY / 2, 3 * PAIR_PAYLOAD);
        pair_settle(self, self->now + MRD_SEC);
        assert_int_equal(mrd_engine_query_peer(self->end[0].e, &self->end[1].addr, &before), 0);
        assert_int_equal(before.paths, 8);
        idle(self, MRD_SEND_IDLE_LIFE_NS + MRD_SEC);
        assert_int_equal(peers->send_states.used, 0);
        assert_int_equal(peers->recv_states.used, 1);
        assert_int_equal(peers->num_idle, 0);
        idle(self, 30 * MRD_SEC);
        assert_int_equal(peers->recv_states.used, 0);
        assert_int_equal(peers->num_idle, 1);
        assert_null(mrd_peer_find(peers, &self->end[1].addr));
        assert_int_equal(mrd_engine_query_peer(self->end[0].e, &self->end[1].addr, &after), 0);
        assert_int_equal(after.peer_id, before.peer_id);
        assert_int_equal(after.packets_sent, before.packets_sent);
        assert_int_equal(after.bytes_received, before.bytes_received);
        assert_int_equal(after.paths, 0);
        assert_int_equal(mrd_engine_peer_addr(self->end[0].e, after.peer_id, &addr), 0);
        assert_memory_equal(&addr, &self->end[1].addr, sizeof(addr));
        assert_true(before.packets_sent > round);
    }
    pair_post(self, 1, MRD_WR_RDMA_WRITE, 0, 100);
    pair_settle(self, self->now + MRD_SEC);
    mrd_engine_give_route(self->end[0].e, pair_peer(self, 0)->id, PAIR_PAYLOAD, true);
    assert_true(pair_peer(self, 0)->one_way);
    idle(self, 40 * MRD_SEC);
    assert_int_equal(self->end[0].e->peers.num_idle, 1);
    pair_post(self, 1, MRD_WR_RDMA_WRITE, 0, 100);
    pair_settle(self, self->now + MRD_SEC);
    assert_int_equal(pair_peer(self, 0)->payload_bytes, PAIR_PAYLOAD);
    assert_true(pair_peer(self, 0)->one_way);
    pair_expect_no_event(self, 0);
}

/* A watched peer stays active: it is asked from time to time. */
TEST_F(pair, rest__not_while_watched)
{
    assert_int_equal(mrd_engine_watch_peer(self->end[0].e, self->end[0].ah, true, self->now), 0);
    for (unsigned i = 0; i < 100; i++) {
        pair_settle(self, self->now + 500 * MRD_MSEC);
        idle(self, 500 * MRD_MSEC);
    }
    assert_int_equal(self->end[0].e->peers.entries.used, 1);
    assert_non_null(mrd_peer_find(&self->end[0].e->peers, &self->end[1].addr)->tx);
    assert_int_equal(mrd_engine_watch_peer(self->end[0].e, self->end[0].ah, false, self->now), 0);
    idle(self, 60 * MRD_SEC);
    assert_int_equal(self->end[0].e->peers.num_idle, 1);
}
