/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of what waits, as copies of failed messages may be on their way: whether it is sent. */
#ifndef MRD_TESTS_UNIT_ENGINE_WAITS_H
#define MRD_TESTS_UNIT_ENGINE_WAITS_H

#include "core/engine/peer_state.h"
#include "tests/unit/engine_hand.h"

/* The peer's name is known: what is posted goes. */
static inline void answered(struct mrd_peer *peer, uint32_t inc)
{
    peer->tx->contact.hello = peer->tx->probes.silence_due = false;
    peer->tx->contact.inc = inc;
}

/* One more entry, which asks who is at that host of the peer's. */
static inline struct mrd_peer *add_asking(struct pair *p, unsigned at, uint8_t host)
{
    struct mrd_addr addr = p->end[1 - at].addr;

    addr.ip[15] = host;
    struct mrd_peer *peer = mrd_peer_add_entry(p->end[at].e, &addr);
    mrd_send_state_open(p->end[at].e, peer)->contact.hello = true;
    return peer;
}

/* So many others have entries, which must not go. */
static inline void fill_table(struct pair *p, unsigned at, unsigned num)
{
    for (unsigned i = 0; i < num; i++) {
        struct mrd_peer *peer = pair_third(p, at, 50 + i);

        assert_non_null(peer);
        peer->watch.users = 1;
    }
}

/* What rested for as long as it must is forgotten. */
static inline void sweep(struct pair *p, unsigned at, uint64_t ns)
{
    pair_pass(p, at, ns);
    mrd_engine_drained(p->end[at].e, p->now);
    p->end[at].e->peers.swept_ns = 0;
    mrd_peers_sweep(p->end[at].e);
}

static inline bool is_sent_at(struct pair *p, unsigned at, const struct mrd_msg *msg,
                              uint64_t now_ns)
{
    p->now = now_ns;
    mrd_engine_begin(p->end[at].e, p->now);
    mrd_tx_ready(p->end[at].e, msg->peer);
    pair_tx_lost(p, at);
    return msg->started;
}

/* It goes a packet's life after that, and not before. */
static inline void outlives(struct pair *p, unsigned at, const struct mrd_msg *msg,
                            uint64_t failed_ns)
{
    assert_false(is_sent_at(p, at, msg, failed_ns + MRD_PACKET_LIFE_NS - 1));
    assert_true(is_sent_at(p, at, msg, failed_ns + MRD_PACKET_LIFE_NS));
}

#endif
