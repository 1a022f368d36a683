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

static inline struct mrd_msg *last_of(const struct mrd_peer *peer)
{
    assert_false(mrd_list_empty(&peer->msgs));
    return mrd_container_of(peer->msgs.prev, struct mrd_msg, peer_node);
}

/* One more entry, which asks who is at that address. */
static inline struct mrd_peer *add_asking(struct mrd_engine *e, const struct mrd_addr *addr)
{
    struct mrd_peer *peer = mrd_peer_add_entry(e, addr);

    mrd_send_state_open(e, peer)->contact.hello = true;
    return peer;
}

static inline bool is_sent_at(struct pair *p, unsigned at, const struct mrd_msg *msg,
                              uint64_t now_ns)
{
    p->now = now_ns;
    mrd_engine_begin(p->end[at].e, p->now);
    mrd_tx_ready(p->end[at].e, msg->peer);
    (void)pair_tx(p, at);
    p->end[1 - at].num_inbox = 0;
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
