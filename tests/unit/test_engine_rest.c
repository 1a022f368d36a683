/* SPDX-License-Identifier: BSD-2-Clause */
/* Idle peers: their halves end, they rest, and are woken again. */
#include <errno.h>

#include "core/engine/half.h"
#include "core/engine/query.h"
#include "tests/unit/engine_pair.h"

enum { MANY = 20000, STEP_MS = 5 };

static struct mrd_peer *contact(struct mrd_engine *e, uint32_t host)
{
    struct mrd_addr addr = pair_addr_of(host);
    struct mrd_peer *peer = mrd_half_open_peer(e, &addr);

    mrd_half_open_tx(e, peer);
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

/*
 * What an idle peer costs: a record, its number, its buckets, and the user's address handle with
 * what malloc() adds.
 */
TEST(rest__bytes)
{
    assert_true((sizeof(struct mrd_rest) + 15) / 16 * 16 + sizeof(struct mrd_peer *) +
                    2 * sizeof(uint32_t) + sizeof(struct mrd_ah_impl) + 16 <=
                256);
}

/* Many rest soon after they were used, few after MRD_SEND_IDLE_LIFE_NS; nothing is armed then. */
TEST(rest__many_sooner_than_few)
{
    struct pair p;
    struct mrd_peers *peers;

    open_many(&p);
    peers = &p.end[0].e->peers;
    assert_int_equal(peers->tx_halves.used, MANY);
    idle(&p, 2 * MRD_SEC);
    assert_true(peers->tx_halves.used < 5 * MRD_SEND_HALVES_KEPT);
    idle(&p, MRD_SEND_IDLE_LIFE_NS / 2);
    assert_in_range(peers->tx_halves.used, 1, 2 * MRD_SEND_HALVES_KEPT);
    idle(&p, MRD_SEND_IDLE_LIFE_NS + 2 * MRD_SWEEP_NS);
    assert_int_equal(peers->tx_halves.used, 0);
    assert_int_equal(peers->entries.used, 0);
    assert_int_equal(peers->num_resting, MANY);
    assert_int_equal(p.end[0].e->stats.peers, MANY);
    assert_int_equal(p.end[0].e->stats.peers_rested, MANY);
    assert_true(mrd_engine_deadline(p.end[0].e) == MRD_NEVER);
    pair_end(&p);
}

/* A stranger takes the place of one that rests, not of one that is awake. */
TEST(rest__makes_room)
{
    struct pair p;
    struct mrd_addr other = pair_addr_of(MANY);
    struct mrd_peers *peers;

    open_many(&p);
    peers = &p.end[0].e->peers;
    assert_null(mrd_half_open_peer(p.end[0].e, &other));
    idle(&p, 3 * MRD_SEC);
    for (uint32_t i = 0; i < MANY; i += 2)
        assert_non_null(contact(p.end[0].e, i));
    assert_non_null(mrd_half_open_peer(p.end[0].e, &other));
    assert_int_equal(p.end[0].e->stats.peers_evicted, 1);
    assert_int_equal(p.end[0].e->stats.peers, MANY);
    for (uint32_t i = 0; i < MANY; i += 2) {
        struct mrd_addr addr = pair_addr_of(i);

        assert_non_null(mrd_peer_find(peers, &addr));
    }
    pair_end(&p);
}

/*
 * Two that talked: both ends rest when nothing of the other's space can be on its way, not before.
 * Then they talk again, with the same ids, counts that go on, and no event.
 */
TEST(rest__after_talking)
{
    struct mrd_engine_event event;
    struct mrd_peer_attr before, after;
    struct mrd_addr addr;
    struct pair p;

    pair_begin(&p);
    for (unsigned round = 0; round < 3; round++) {
        struct mrd_peers *peers = &p.end[0].e->peers;

        pair_post(&p, 0, MRD_WR_RDMA_WRITE, 0, 100);
        pair_post(&p, 1, MRD_WR_RDMA_WRITE, PAIR_MEMORY / 2, 3 * PAIR_PAYLOAD);
        pair_settle(&p, p.now + MRD_SEC);
        assert_int_equal(mrd_engine_query_peer(p.end[0].e, &p.end[1].addr, &before), 0);
        assert_int_equal(before.paths, 8);
        idle(&p, MRD_SEND_IDLE_LIFE_NS + MRD_SEC);
        assert_int_equal(peers->tx_halves.used, 0);
        assert_int_equal(peers->rx_halves.used, 1);
        assert_int_equal(peers->num_resting, 0);
        idle(&p, 30 * MRD_SEC);
        assert_int_equal(peers->rx_halves.used, 0);
        assert_int_equal(peers->num_resting, 1);
        assert_null(mrd_peer_find(peers, &p.end[1].addr));
        assert_int_equal(mrd_engine_query_peer(p.end[0].e, &p.end[1].addr, &after), 0);
        assert_int_equal(after.peer_id, before.peer_id);
        assert_int_equal(after.packets_sent, before.packets_sent);
        assert_int_equal(after.bytes_received, before.bytes_received);
        assert_int_equal(after.paths, 0);
        assert_int_equal(mrd_engine_peer_addr(p.end[0].e, after.peer_id, &addr), 0);
        assert_memory_equal(&addr, &p.end[1].addr, sizeof(addr));
        assert_true(before.packets_sent > round);
    }
    pair_post(&p, 1, MRD_WR_RDMA_WRITE, 0, 100);
    pair_settle(&p, p.now + MRD_SEC);
    mrd_engine_give_route(p.end[0].e, pair_peer(&p, 0)->id, PAIR_PAYLOAD, true);
    assert_true(pair_peer(&p, 0)->one_way);
    idle(&p, 40 * MRD_SEC);
    assert_int_equal(p.end[0].e->peers.num_resting, 1);
    pair_post(&p, 1, MRD_WR_RDMA_WRITE, 0, 100);
    pair_settle(&p, p.now + MRD_SEC);
    assert_int_equal(pair_peer(&p, 0)->payload_bytes, PAIR_PAYLOAD);
    assert_true(pair_peer(&p, 0)->one_way);
    assert_int_equal(mrd_engine_get_event(p.end[0].e, &event), -EAGAIN);
    pair_end(&p);
}

/* A watched peer stays awake: it is asked from time to time. */
TEST(rest__not_while_watched)
{
    struct pair p;

    pair_begin(&p);
    assert_int_equal(mrd_engine_watch_peer(p.end[0].e, p.end[0].ah, true, p.now), 0);
    for (unsigned i = 0; i < 100; i++) {
        pair_settle(&p, p.now + 500 * MRD_MSEC);
        idle(&p, 500 * MRD_MSEC);
    }
    assert_int_equal(p.end[0].e->peers.entries.used, 1);
    assert_non_null(mrd_peer_find(&p.end[0].e->peers, &p.end[1].addr)->tx);
    assert_int_equal(mrd_engine_watch_peer(p.end[0].e, p.end[0].ah, false, p.now), 0);
    idle(&p, 60 * MRD_SEC);
    assert_int_equal(p.end[0].e->peers.num_resting, 1);
    pair_end(&p);
}
