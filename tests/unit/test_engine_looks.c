/* SPDX-License-Identifier: BSD-2-Clause */
/* Many peers are active: what concerns one of them takes no look at all. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

enum { PEERS = 8 * MRD_SWEEP_MOST };

static struct mrd_peer *add(struct mrd_engine *e, uint32_t host)
{
    struct mrd_addr addr = pair_addr_of(host);

    return mrd_peer_open(e, &addr);
}

static struct mrd_peer *first(struct mrd_engine *e)
{
    return mrd_container_of(e->peers.active.next, struct mrd_peer, node);
}

static struct mrd_engine *begin(struct pair *p)
{
    pair_config(p);
    p->config.max_peers = PEERS;
    pair_open(p);
    mrd_engine_begin(p->end[0].e, p->now);
    return p->end[0].e;
}

/*
 * The table is full of peers that are needed. Each time a few are looked at, others than the last
 * time, until one is found that is not.
 */
TEST_F(pair, open_peer__looks_at_few_of_a_full_table)
{
    struct mrd_peer *peer, *last = NULL;
    struct mrd_engine *e = begin(self);

    for (uint32_t i = 0; i < PEERS; i++) {
        last = add(e, i);
        mrd_peer_rx_begin(&e->peers, last, 1024);
    }
    mrd_recv_state_end(e, last, MRD_SPACE_NONE); /* this one could go */
    for (uint32_t i = 1; i < PEERS / MRD_SWEEP_MOST; i++) {
        assert_null(add(e, PEERS));
        peer = first(e);
        assert_int_equal(peer->addr.ip[12] | peer->addr.ip[13] << 8, i * MRD_SWEEP_MOST);
        assert_null(add(e, PEERS)); /* too soon: nobody is looked at */
        assert_ptr_equal(first(e), peer);
        self->now += MRD_FULL_NS;
        mrd_engine_begin(e, self->now);
    }
    assert_non_null(add(e, PEERS));
    assert_int_equal(e->stats.peers_evicted, 1);
    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next)
        mrd_recv_state_end(e, mrd_container_of(n, struct mrd_peer, node), MRD_SPACE_NONE);
}

/* As when a link dies under all of them. Who wants a path comes first, or is looked for once. */
TEST_F(pair, wants_path__is_found_at_once)
{
    uint32_t id, index, num = 0;
    struct mrd_engine *e = begin(self);

    for (uint32_t i = 0; i < PEERS; i++) {
        struct mrd_send_state *tx = mrd_send_state_open(e, add(e, i));

        tx->paths.path[3].wants_ev = i % 2;
    }
    e->turns.wants_path = true;
    for (; mrd_engine_wants_path(e, &id, &index); num++) {
        assert_int_equal(index, 3);
        assert_int_equal(first(e)->id, id); /* those before it are not looked at again */
        mrd_engine_give_path(e, id, index, -1, self->now);
    }
    assert_int_equal(num, PEERS / 2);
    assert_false(e->turns.wants_path);
}
