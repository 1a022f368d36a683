/* SPDX-License-Identifier: BSD-2-Clause */
/* Many peers are active: what concerns one of them takes no look at all. */
#include "core/engine/peer_state.h"
#include "tests/unit/engine_pair.h"

enum { PEERS = 8 * MRD_SWEEP_MOST };

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
        last = pair_third(self, 0, i);
        mrd_peer_rx_begin(&e->peers, last, 1024);
    }
    mrd_recv_state_end(e, last, MRD_SPACE_NONE); /* this one could go */
    for (uint32_t i = 1; i < PEERS / MRD_SWEEP_MOST; i++) {
        assert_null(pair_third(self, 0, PEERS));
        peer = pair_peer(self, 0);
        assert_int_equal(peer->addr.ip[12] | peer->addr.ip[13] << 8, i * MRD_SWEEP_MOST);
        assert_null(pair_third(self, 0, PEERS)); /* too soon: nobody is looked at */
        assert_ptr_equal(pair_peer(self, 0), peer);
        self->now += MRD_FULL_NS;
        mrd_engine_begin(e, self->now);
    }
    assert_non_null(pair_third(self, 0, PEERS));
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
        struct mrd_send_state *tx = mrd_send_state_open(e, pair_third(self, 0, i));

        tx->paths.path[3].wants_ev = i % 2;
    }
    e->turns.wants_path = true;
    for (; mrd_engine_wants_path(e, &id, &index); num++) {
        assert_int_equal(index, 3);
        assert_int_equal(pair_peer(self, 0)->id, id); /* those before it are not looked at again */
        mrd_engine_give_path(e, id, index, -1, self->now);
    }
    assert_int_equal(num, PEERS / 2);
    assert_false(e->turns.wants_path);
}
