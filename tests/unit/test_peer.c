/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/peer.h"
#include "core/rng.h"

enum { PEERS = 4, PATHS = 8, TRACKER = 256 };

FIXTURE(peer_fixture)
{
    struct unit_alloc alloc;
    struct mrd_peers peers;
};

static void begin(struct peer_fixture *f)
{
    memset(f, 0, sizeof(*f));
    unit_alloc_init(&f->alloc);
    assert_true(mrd_peers_init(&f->peers, &f->alloc.ops, PEERS, PATHS, TRACKER, true));
}

static void end(struct peer_fixture *f)
{
    mrd_peers_fini(&f->peers);
    assert_int_equal(f->alloc.live_bytes, 0);
}

FIXTURE_FROM(peer_fixture, begin, end);

static struct mrd_addr addr_of(uint32_t host)
{
    struct mrd_addr addr = {.port = 4793};

    memcpy(&addr.ip[12], &host, 4);
    return addr;
}

static struct mrd_peer *add(struct peer_fixture *f, uint32_t host)
{
    struct mrd_addr addr = addr_of(host);

    return mrd_peer_add(&f->peers, &addr);
}

TEST(mrd_peers_init__gives_back_what_it_got)
{
    struct peer_fixture whole;

    begin(&whole);
    for (uint32_t at = 1; at <= whole.alloc.requests; at++) {
        struct unit_alloc alloc;
        struct mrd_peers peers;

        unit_alloc_init(&alloc);
        alloc.fail_at = at;
        assert_false(mrd_peers_init(&peers, &alloc.ops, PEERS, PATHS, TRACKER, true));
        mrd_peers_fini(&peers);
        assert_int_equal(alloc.live_bytes, 0);
    }
    end(&whole);
}

/* Address, scope and port all tell peers apart: two contexts on one host are two peers. */
TEST_F(peer_fixture, mrd_peer_find__by_the_whole_address)
{
    struct mrd_addr addr[4];

    for (int i = 0; i < 4; i++)
        addr[i] = addr_of(1);
    addr[1].port++;
    addr[2].scope++;
    addr[3].ip[0]++;
    for (int i = 0; i < 4; i++) {
        assert_null(mrd_peer_find(&self->peers, &addr[i]));
        struct mrd_peer *peer = mrd_peer_add(&self->peers, &addr[i]);
        for (int k = 0; k < 4; k++)
            assert_int_equal(mrd_peer_find(&self->peers, &addr[k]) == peer, i == k);
    }
}

/* A number of a former peer names nobody, also when another has the place. */
TEST_F(peer_fixture, mrd_peer_by_id__not_the_next_tenant)
{
    assert_null(mrd_peer_by_id(&self->peers, 0));
    for (uint32_t i = 0; i < 10000; i++) {
        struct mrd_peer *peer = add(self, i);
        uint32_t id = peer->id;

        assert_int_not_equal(id, 0);
        assert_ptr_equal(mrd_peer_by_id(&self->peers, id), peer);
        mrd_peer_remove(&self->peers, peer);
        assert_null(mrd_peer_by_id(&self->peers, id));
        peer = add(self, i);
        assert_null(mrd_peer_by_id(&self->peers, id));
        mrd_peer_remove(&self->peers, peer);
    }
    assert_null(mrd_peer_by_id(&self->peers, UINT32_MAX));
}

TEST_F(peer_fixture, mrd_peer_add__null_when_full)
{
    struct mrd_peer *peer[PEERS];

    for (uint32_t i = 0; i < PEERS; i++) {
        peer[i] = add(self, i);
        assert_non_null(peer[i]);
    }
    assert_null(add(self, PEERS));
    mrd_peer_remove(&self->peers, peer[2]);
    peer[2] = add(self, PEERS);
    assert_non_null(peer[2]);
}

/* An idle peer costs its entry and no timer. */
TEST_F(peer_fixture, mrd_peer_add__is_idle)
{
    struct mrd_peer *peer = add(self, 1);

    assert_null(peer->tx);
    assert_null(peer->rx);
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    assert_true(peer->timer.at_ns == MRD_NEVER);
    assert_true(mrd_list_empty(&peer->ready));
    assert_true(mrd_list_empty(&peer->msgs));
    assert_int_equal(self->peers.send_states.used, 0);
    assert_int_equal(self->peers.recv_states.used, 0);
    assert_int_equal(self->peers.pages.used, 0);
}

TEST_F(peer_fixture, mrd_peer_remove__is_not_found_again)
{
    const struct mrd_addr addr = addr_of(1);

    add(self, 2);
    mrd_peer_remove(&self->peers, add(self, 1));
    assert_null(mrd_peer_find(&self->peers, &addr));
    assert_int_equal(self->peers.entries.used, 1);
    assert_ptr_equal(self->peers.active.next->next, &self->peers.active);
}

TEST_F(peer_fixture, mrd_peer_tx_begin__nothing_sent)
{
    /* As an earlier tenant leaves it. */
    memset(self->peers.send_states.items, 0xff, self->peers.send_states.item_bytes);
    struct mrd_send_state *tx = mrd_peer_tx_begin(&self->peers, add(self, 1), PATHS, NULL, 1000);
    assert_int_equal(tx->sent.next, 0);
    assert_int_equal(tx->sent.una, 0);
    assert_int_equal(tx->sent.tracker, MRD_TRACKER_WIDEST);
    assert_int_equal(tx->paths.num, PATHS);
    assert_true(tx->contact.epoch_ns == MRD_NEVER);
    assert_true(tx->rnr.next_ns == MRD_NEVER);
    assert_int_equal(tx->loss.last_send_ns, 1000);
    assert_false(tx->contact.acked_once || tx->told.valid || tx->contact.has_cookie);
    assert_int_equal(tx->contact.inc, 0);
    for (uint32_t i = 0; i < PATHS; i++)
        assert_int_equal(tx->paths.path[i].packets, 0);
    assert_int_equal(tx->ids.fresh, 0);
    assert_int_equal(tx->ids.free, 0);
}

/* Records that nobody will ack go with their half. */
TEST_F(peer_fixture, mrd_peer_tx_end__gives_pages_back)
{
    struct mrd_peer *peer = add(self, 1);

    mrd_peer_tx_begin(&self->peers, peer, PATHS, NULL, 0);
    for (int i = 0; i < 100; i++)
        assert_non_null(mrd_sent_add(&peer->tx->sent, MRD_SENT_EMPTY));
    assert_int_equal(self->peers.pages.used, 100 / MRD_SENT_PAGE + 1);
    mrd_peer_tx_end(&self->peers, peer);
    assert_null(peer->tx);
    assert_int_equal(self->peers.pages.used, 0);
    assert_int_equal(self->peers.send_states.used, 0);
}

/* There is a half of each kind for every entry: neither can be wanting. */
TEST_F(peer_fixture, mrd_peer_rx_begin__one_for_each_entry)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        struct mrd_peer *peer = add(self, i);

        assert_non_null(mrd_peer_tx_begin(&self->peers, peer, PATHS, NULL, 0));
        assert_non_null(mrd_peer_rx_begin(&self->peers, peer, TRACKER));
        assert_int_equal(peer->space.state, MRD_SPACE_KNOWN);
        assert_int_equal(peer->rx->rcv.limit, TRACKER);
        assert_true(peer->rx->probe_at_ns == MRD_NEVER);
    }
}

/* A life's number tells a refusal of an earlier half from one of this. */
TEST_F(peer_fixture, mrd_peer_rx_begin__counts_lives)
{
    struct mrd_peer *peer = add(self, 1);

    mrd_peer_rx_begin(&self->peers, peer, TRACKER);
    uint8_t life = peer->space.life;
    mrd_rcv_add(&peer->rx->rcv, 5, false);
    mrd_slots_shut(&peer->rx->slots, 3);
    mrd_peer_rx_end(&self->peers, peer, MRD_SPACE_NONE);
    mrd_peer_rx_begin(&self->peers, peer, TRACKER);
    assert_int_not_equal(peer->space.life, life);
    assert_int_equal(mrd_rcv_check(&peer->rx->rcv, 5), MRD_RCV_NEW);
    assert_int_equal(peer->rx->slots.word[3], MRD_SLOT_EMPTY);
}

/* A tombstone remembers the space and has no half. */
TEST_F(peer_fixture, mrd_peer_rx_end__tombstone)
{
    struct mrd_peer *peer = add(self, 1);

    mrd_peer_rx_begin(&self->peers, peer, TRACKER);
    mrd_peer_rx_end(&self->peers, peer, MRD_SPACE_TOMB);
    assert_int_equal(peer->space.state, MRD_SPACE_TOMB);
    assert_null(peer->rx);
    assert_int_equal(self->peers.recv_states.used, 0);
    mrd_peer_rx_end(&self->peers, peer, MRD_SPACE_NONE); /* also without a half */
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    assert_int_equal(self->peers.recv_states.used, 0);
}

/* A peer that rests is found by address and id, with what was counted; woken, it has all that. */
TEST_F(peer_fixture, mrd_peer_activate__knows_what_it_knew)
{
    const struct mrd_idle_peer *rest;
    struct mrd_peer *peer;
    struct mrd_addr addr[PEERS];
    uint32_t id[PEERS];

    for (uint32_t i = 0; i < PEERS; i++) {
        peer = add(self, i);
        addr[i] = peer->addr;
        id[i] = peer->id;
        peer->local = addr_of(100 + i);
        peer->count.packets_sent = 7 + i;
        peer->payload_bytes = (uint16_t)(1000 + i);
        peer->dscp = (uint8_t)i;
        peer->given_up = i & 1;
        peer->heard_ns = 50 + i;
        mrd_peer_make_idle(&self->peers, peer);
        assert_null(mrd_peer_find(&self->peers, &addr[i]));
        assert_null(mrd_peer_by_id(&self->peers, id[i]));
    }
    assert_int_equal(self->peers.entries.used, 0);
    assert_null(add(self, PEERS)); /* they are known, and full is full */
    for (uint32_t i = 0; i < PEERS; i++) {
        rest = mrd_peer_find_idle(&self->peers, &addr[i]);
        assert_non_null(rest);
        assert_ptr_equal(mrd_peer_idle_by_id(&self->peers, id[i]), rest);
        assert_int_equal(rest->count.packets_sent, 7 + i);
        peer = mrd_peer_activate(&self->peers, &addr[i]);
        assert_null(mrd_peer_find_idle(&self->peers, &addr[i]));
        assert_null(mrd_peer_idle_by_id(&self->peers, id[i]));
        assert_null(mrd_peer_activate(&self->peers, &addr[i]));
        assert_ptr_equal(mrd_peer_find(&self->peers, &addr[i]), peer);
        assert_ptr_equal(mrd_peer_by_id(&self->peers, id[i]), peer);
        assert_int_equal(peer->id, id[i]);
        assert_int_equal(peer->count.packets_sent, 7 + i);
        assert_int_equal(peer->payload_bytes, 1000 + i);
        assert_int_equal(peer->dscp, i);
        assert_int_equal(peer->given_up, i & 1);
        assert_true(peer->heard_ns == 50 + i);
        assert_int_equal(peer->local.ip[12], 100 + i);
    }
}

/* Those that rest make room for others, one at a time; those that are active stay. */
TEST_F(peer_fixture, mrd_peer_forget__only_who_rests)
{
    struct mrd_addr addr[PEERS];
    uint32_t resting = 0, id[PEERS];

    assert_false(mrd_peer_forget(&self->peers));
    for (uint32_t i = 0; i < PEERS; i++) {
        struct mrd_peer *peer = add(self, i);

        addr[i] = peer->addr;
        id[i] = peer->id;
        if (i % 2) {
            mrd_peer_make_idle(&self->peers, peer);
            resting++;
        }
    }
    for (uint32_t i = 0; i < resting; i++) {
        assert_true(mrd_peer_forget(&self->peers));
        assert_int_equal(self->peers.num_idle, resting - i - 1);
        assert_non_null(add(self, PEERS + i));
    }
    assert_false(mrd_peer_forget(&self->peers));
    assert_null(add(self, 1000));
    for (uint32_t i = 0; i < PEERS; i++) {
        assert_int_equal(mrd_peer_find(&self->peers, &addr[i]) != NULL, i % 2 == 0);
        assert_null(mrd_peer_find_idle(&self->peers, &addr[i]));
        assert_null(mrd_peer_idle_by_id(&self->peers, id[i]));
    }
}

/* At random, against a table that is a list: nobody is lost, found twice or taken for another. */
TEST_F(peer_fixture, mrd_peer_make_idle__random_walk)
{
    uint32_t known[PEERS] = {0}; /* id of the peer with the i-th address; 0: not known */
    bool active[PEERS] = {0};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 5);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t i = mrd_rng_below(&rng, PEERS);
        const struct mrd_addr addr = addr_of(i);
        struct mrd_peer *peer = mrd_peer_find(&self->peers, &addr);

        assert_int_equal(peer != NULL, active[i]);
        assert_int_equal(mrd_peer_find_idle(&self->peers, &addr) != NULL, known[i] && !active[i]);
        assert_int_equal(mrd_peer_idle_by_id(&self->peers, known[i]) != NULL,
                         known[i] && !active[i]);
        if (!known[i])
            known[i] = add(self, i)->id;
        else if (active[i] && mrd_rng_below(&rng, 4))
            mrd_peer_make_idle(&self->peers, peer);
        else if (active[i]) {
            mrd_peer_remove(&self->peers, peer);
            known[i] = 0;
        } else
            assert_int_equal(mrd_peer_activate(&self->peers, &addr)->id, known[i]);
        active[i] = known[i] && !active[i];
    }
}

/* An active peer costs its entry and two halves; with few packets, MRD_PATHS_FIRST paths. */
TEST(mrd_peer_bytes__active)
{
    static const struct {
        uint32_t paths;
        bool both_ways;
        uint64_t most;
    } table[] = {{1, false, 2176}, {1, true, 2176}, {32, false, 3200}, {32, true, 3200}};
    struct unit_alloc alloc;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct mrd_addr addr = {.port = 1};
        struct mrd_peers peers;

        unit_alloc_init(&alloc);
        assert_true(mrd_peers_init(&peers, &alloc.ops, 1, table[i].paths, TRACKER, false));
        struct mrd_peer *peer = mrd_peer_add(&peers, &addr);
        mrd_peer_tx_begin(&peers, peer, table[i].paths, NULL, 0);
        if (table[i].both_ways)
            mrd_peer_rx_begin(&peers, peer, TRACKER);
        assert_in_range(peers.entries.item_bytes + mrd_peer_bytes(&peers, peer), 1024,
                        table[i].most);
        mrd_peers_fini(&peers);
        assert_int_equal(alloc.live_bytes, 0);
    }
}
