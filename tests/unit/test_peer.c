/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

#include "core/peer.h"
#include "core/rng.h"

enum { PEERS = 4, PATHS = 8, TRACKER = 256 };

struct peer_fixture {
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
TEST(mrd_peer_find__by_the_whole_address)
{
    struct peer_fixture f;
    struct mrd_addr addr[4];

    begin(&f);
    for (int i = 0; i < 4; i++)
        addr[i] = addr_of(1);
    addr[1].port++;
    addr[2].scope++;
    addr[3].ip[0]++;
    for (int i = 0; i < 4; i++) {
        struct mrd_peer *peer;

        assert_null(mrd_peer_find(&f.peers, &addr[i]));
        peer = mrd_peer_add(&f.peers, &addr[i]);
        for (int k = 0; k < 4; k++)
            assert_int_equal(mrd_peer_find(&f.peers, &addr[k]) == peer, i == k);
    }
    end(&f);
}

/* A number of a former peer names nobody, also when another has the place. */
TEST(mrd_peer_by_id__not_the_next_tenant)
{
    struct peer_fixture f;

    begin(&f);
    assert_null(mrd_peer_by_id(&f.peers, 0));
    for (uint32_t i = 0; i < 10000; i++) {
        struct mrd_peer *peer = add(&f, i);
        uint32_t id = peer->id;

        assert_int_not_equal(id, 0);
        assert_ptr_equal(mrd_peer_by_id(&f.peers, id), peer);
        mrd_peer_remove(&f.peers, peer);
        assert_null(mrd_peer_by_id(&f.peers, id));
        peer = add(&f, i);
        assert_null(mrd_peer_by_id(&f.peers, id));
        mrd_peer_remove(&f.peers, peer);
    }
    assert_null(mrd_peer_by_id(&f.peers, UINT32_MAX));
    end(&f);
}

TEST(mrd_peer_add__null_when_full)
{
    struct peer_fixture f;
    struct mrd_peer *peer[PEERS];

    begin(&f);
    for (uint32_t i = 0; i < PEERS; i++) {
        peer[i] = add(&f, i);
        assert_non_null(peer[i]);
    }
    assert_null(add(&f, PEERS));
    mrd_peer_remove(&f.peers, peer[2]);
    peer[2] = add(&f, PEERS);
    assert_non_null(peer[2]);
    end(&f);
}

/* An idle peer costs its entry and no timer. */
TEST(mrd_peer_add__is_idle)
{
    struct peer_fixture f;
    struct mrd_peer *peer;

    begin(&f);
    peer = add(&f, 1);
    assert_null(peer->tx);
    assert_null(peer->rx);
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    assert_true(peer->timer.at_ns == MRD_NEVER);
    assert_true(mrd_list_empty(&peer->ready));
    assert_true(mrd_list_empty(&peer->msgs));
    assert_int_equal(f.peers.tx_halves.used, 0);
    assert_int_equal(f.peers.rx_halves.used, 0);
    assert_int_equal(f.peers.pages.used, 0);
    end(&f);
}

TEST(mrd_peer_remove__is_not_found_again)
{
    const struct mrd_addr addr = addr_of(1);
    struct peer_fixture f;

    begin(&f);
    add(&f, 2);
    mrd_peer_remove(&f.peers, add(&f, 1));
    assert_null(mrd_peer_find(&f.peers, &addr));
    assert_int_equal(f.peers.entries.used, 1);
    assert_ptr_equal(f.peers.awake.next->next, &f.peers.awake);
    end(&f);
}

TEST(mrd_peer_tx_begin__nothing_sent)
{
    struct peer_fixture f;
    struct mrd_tx_half *tx;

    begin(&f);
    memset(f.peers.tx_halves.items, 0xff,
           f.peers.tx_halves.item_bytes); /* as an earlier tenant leaves it */
    tx = mrd_peer_tx_begin(&f.peers, add(&f, 1), PATHS, NULL, 1000);
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
    end(&f);
}

/* Records that nobody will ack go with their half. */
TEST(mrd_peer_tx_end__gives_pages_back)
{
    struct peer_fixture f;
    struct mrd_peer *peer;

    begin(&f);
    peer = add(&f, 1);
    mrd_peer_tx_begin(&f.peers, peer, PATHS, NULL, 0);
    for (int i = 0; i < 100; i++)
        assert_non_null(mrd_sent_add(&peer->tx->sent, MRD_SENT_EMPTY));
    assert_int_equal(f.peers.pages.used, 100 / MRD_SENT_PAGE + 1);
    mrd_peer_tx_end(&f.peers, peer);
    assert_null(peer->tx);
    assert_int_equal(f.peers.pages.used, 0);
    assert_int_equal(f.peers.tx_halves.used, 0);
    end(&f);
}

/* There is a half of each kind for every entry: neither can be wanting. */
TEST(mrd_peer_rx_begin__one_for_each_entry)
{
    struct peer_fixture f;

    begin(&f);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct mrd_peer *peer = add(&f, i);

        assert_non_null(mrd_peer_tx_begin(&f.peers, peer, PATHS, NULL, 0));
        assert_non_null(mrd_peer_rx_begin(&f.peers, peer, TRACKER));
        assert_int_equal(peer->space.state, MRD_SPACE_KNOWN);
        assert_int_equal(peer->rx->rcv.limit, TRACKER);
        assert_true(peer->rx->probe_at_ns == MRD_NEVER);
    }
    end(&f);
}

/* A life's number tells a refusal of an earlier half from one of this. */
TEST(mrd_peer_rx_begin__counts_lives)
{
    struct peer_fixture f;
    struct mrd_peer *peer;
    uint8_t life;

    begin(&f);
    peer = add(&f, 1);
    mrd_peer_rx_begin(&f.peers, peer, TRACKER);
    life = peer->space.life;
    mrd_rcv_add(&peer->rx->rcv, 5, false);
    mrd_slots_shut(&peer->rx->slots, 3);
    mrd_peer_rx_end(&f.peers, peer, MRD_SPACE_NONE);
    mrd_peer_rx_begin(&f.peers, peer, TRACKER);
    assert_int_not_equal(peer->space.life, life);
    assert_int_equal(mrd_rcv_check(&peer->rx->rcv, 5), MRD_RCV_NEW);
    assert_int_equal(peer->rx->slots.word[3], MRD_SLOT_EMPTY);
    end(&f);
}

/* A tombstone remembers the space and has no half. */
TEST(mrd_peer_rx_end__tombstone)
{
    struct peer_fixture f;
    struct mrd_peer *peer;

    begin(&f);
    peer = add(&f, 1);
    mrd_peer_rx_begin(&f.peers, peer, TRACKER);
    mrd_peer_rx_end(&f.peers, peer, MRD_SPACE_TOMB);
    assert_int_equal(peer->space.state, MRD_SPACE_TOMB);
    assert_null(peer->rx);
    assert_int_equal(f.peers.rx_halves.used, 0);
    mrd_peer_rx_end(&f.peers, peer, MRD_SPACE_NONE); /* also without a half */
    assert_int_equal(peer->space.state, MRD_SPACE_NONE);
    assert_int_equal(f.peers.rx_halves.used, 0);
    end(&f);
}

/* A peer that rests is found by address and id, with what was counted; woken, it has all that. */
TEST(mrd_peer_wake__knows_what_it_knew)
{
    struct peer_fixture f;
    const struct mrd_rest *rest;
    struct mrd_peer *peer;
    struct mrd_addr addr[PEERS];
    uint32_t id[PEERS];

    begin(&f);
    for (uint32_t i = 0; i < PEERS; i++) {
        peer = add(&f, i);
        addr[i] = peer->addr;
        id[i] = peer->id;
        peer->local = addr_of(100 + i);
        peer->count.packets_sent = 7 + i;
        peer->payload_bytes = (uint16_t)(1000 + i);
        peer->dscp = (uint8_t)i;
        peer->given_up = i & 1;
        peer->heard_ns = 50 + i;
        mrd_peer_rest(&f.peers, peer);
        assert_null(mrd_peer_find(&f.peers, &addr[i]));
        assert_null(mrd_peer_by_id(&f.peers, id[i]));
    }
    assert_int_equal(f.peers.entries.used, 0);
    assert_null(add(&f, PEERS)); /* they are known, and full is full */
    for (uint32_t i = 0; i < PEERS; i++) {
        rest = mrd_peer_resting(&f.peers, &addr[i]);
        assert_non_null(rest);
        assert_ptr_equal(mrd_peer_resting_id(&f.peers, id[i]), rest);
        assert_int_equal(rest->count.packets_sent, 7 + i);
        peer = mrd_peer_wake(&f.peers, &addr[i]);
        assert_null(mrd_peer_resting(&f.peers, &addr[i]));
        assert_null(mrd_peer_resting_id(&f.peers, id[i]));
        assert_null(mrd_peer_wake(&f.peers, &addr[i]));
        assert_ptr_equal(mrd_peer_find(&f.peers, &addr[i]), peer);
        assert_ptr_equal(mrd_peer_by_id(&f.peers, id[i]), peer);
        assert_int_equal(peer->id, id[i]);
        assert_int_equal(peer->count.packets_sent, 7 + i);
        assert_int_equal(peer->payload_bytes, 1000 + i);
        assert_int_equal(peer->dscp, i);
        assert_int_equal(peer->given_up, i & 1);
        assert_true(peer->heard_ns == 50 + i);
        assert_int_equal(peer->local.ip[12], 100 + i);
    }
    end(&f);
}

/* Those that rest make room for others, one at a time; those that are awake stay. */
TEST(mrd_peer_forget__only_who_rests)
{
    struct peer_fixture f;
    struct mrd_addr addr[PEERS];
    uint32_t resting = 0, id[PEERS];

    begin(&f);
    assert_false(mrd_peer_forget(&f.peers));
    for (uint32_t i = 0; i < PEERS; i++) {
        struct mrd_peer *peer = add(&f, i);

        addr[i] = peer->addr;
        id[i] = peer->id;
        if (i % 2) {
            mrd_peer_rest(&f.peers, peer);
            resting++;
        }
    }
    for (uint32_t i = 0; i < resting; i++) {
        assert_true(mrd_peer_forget(&f.peers));
        assert_int_equal(f.peers.num_resting, resting - i - 1);
        assert_non_null(add(&f, PEERS + i));
    }
    assert_false(mrd_peer_forget(&f.peers));
    assert_null(add(&f, 1000));
    for (uint32_t i = 0; i < PEERS; i++) {
        assert_int_equal(mrd_peer_find(&f.peers, &addr[i]) != NULL, i % 2 == 0);
        assert_null(mrd_peer_resting(&f.peers, &addr[i]));
        assert_null(mrd_peer_resting_id(&f.peers, id[i]));
    }
    end(&f);
}

/* At random, against a table that is a list: nobody is lost, found twice or taken for another. */
TEST(mrd_peer_rest__random_walk)
{
    struct peer_fixture f;
    uint32_t known[PEERS] = {0}; /* id of the peer with the i-th address; 0: not known */
    bool awake[PEERS] = {0};
    struct mrd_rng rng;

    begin(&f);
    mrd_rng_init(&rng, 5);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t i = mrd_rng_below(&rng, PEERS);
        const struct mrd_addr addr = addr_of(i);
        struct mrd_peer *peer = mrd_peer_find(&f.peers, &addr);

        assert_int_equal(peer != NULL, awake[i]);
        assert_int_equal(mrd_peer_resting(&f.peers, &addr) != NULL, known[i] && !awake[i]);
        assert_int_equal(mrd_peer_resting_id(&f.peers, known[i]) != NULL, known[i] && !awake[i]);
        if (!known[i])
            known[i] = add(&f, i)->id;
        else if (awake[i] && mrd_rng_below(&rng, 4))
            mrd_peer_rest(&f.peers, peer);
        else if (awake[i]) {
            mrd_peer_remove(&f.peers, peer);
            known[i] = 0;
        } else
            assert_int_equal(mrd_peer_wake(&f.peers, &addr)->id, known[i]);
        awake[i] = known[i] && !awake[i];
    }
    end(&f);
}

/*
 * What an active peer costs beside its packets in flight: its entry and a half for each way. The
 * paths of one with few packets in flight are MRD_PATHS_FIRST.
 */
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
        struct mrd_peer *peer;

        unit_alloc_init(&alloc);
        assert_true(mrd_peers_init(&peers, &alloc.ops, 1, table[i].paths, TRACKER, false));
        peer = mrd_peer_add(&peers, &addr);
        mrd_peer_tx_begin(&peers, peer, table[i].paths, NULL, 0);
        if (table[i].both_ways)
            mrd_peer_rx_begin(&peers, peer, TRACKER);
        assert_in_range(peers.entries.item_bytes + mrd_peer_bytes(&peers, peer), 1024,
                        table[i].most);
        mrd_peers_fini(&peers);
        assert_int_equal(alloc.live_bytes, 0);
    }
}
