/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles: which entry their messages go by, and what they await. */
#include "core/engine/handle.h"

#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/peer_state.h"

/* mrd_ah_impl.start_ns and mrd_flow_tx.start_ns from the first message on. */
enum { BEGUN = 1 };

/*
 * Ask for the cache lines of a record that is about to be read. A message to a peer reads nearly all
 * of its entry and its send state, about 25 lines, one after another. Where there are more peers than
 * the caches hold, each is a wait for memory; these waits overlap then.
 */
static void prefetch(const void *record, size_t bytes)
{
    enum { LINE = 64 };

    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const char *)record + i, 1);
}

/* The entry that a handle's messages went by last; NULL: the peer is not active. */
static struct mrd_peer *last_entry(const struct mrd_engine *e, const struct mrd_ah_impl *ah)
{
    struct mrd_peer *peer = ah->peer_id ? mrd_peer_by_id(&e->peers, ah->peer_id) : NULL;

    /* An id may come again after thousands of peers: then the name is another. */
    return peer && peer->pair.own_inc == ah->own_inc ? peer : NULL;
}

struct mrd_peer *mrd_handle_known(const struct mrd_engine *e, const struct mrd_ah_impl *ah)
{
    struct mrd_peer *peer = last_entry(e, ah), *heir;

    if (!peer)
        return mrd_peer_find(&e->peers, &ah->addr);
    if (mrd_peer_has_state(peer))
        return peer;
    /* One that gave way has neither state: another entry speaks with the peer. */
    heir = mrd_peer_heir(e, peer);
    return heir ? heir : mrd_peer_find(&e->peers, &peer->addr);
}

struct mrd_peer *mrd_handle_watched(const struct mrd_engine *e, const struct mrd_ah_impl *ah)
{
    struct mrd_peer *peer = mrd_handle_known(e, ah), *last, *heir;

    if (!peer || peer->watch.users)
        return peer;
    last = last_entry(e, ah);
    heir = last ? mrd_peer_successor(e, last) : NULL;
    return heir && heir->watch.users ? heir : NULL;
}

/*
 * Where the peer of a handle was last is not where the handle says. It may be back there: if nobody
 * answers where it was last, or somebody speaks from there.
 */
static bool may_be_back(const struct mrd_engine *e, const struct mrd_ah_impl *ah, bool given_up,
                        const struct mrd_addr *last)
{
    return memcmp(last, &ah->addr, sizeof(*last)) != 0 &&
           (given_up || mrd_peer_find(&e->peers, &ah->addr));
}

/* When no copy of what failed at that time, or earlier, can come any more. */
static uint64_t over_ns(uint64_t failed_ns)
{
    return failed_ns ? failed_ns + MRD_PACKET_LIFE_NS : 0;
}

/* The same of what failed by an entry that is not known: one that went, or is at another address now. */
static uint64_t unknown_over_ns(const struct mrd_engine *e, const struct mrd_ah_impl *ah,
                                const struct mrd_peer *peer)
{
    uint64_t failed_ns = e->lives.evicted_ns;

    /* Who had that name at the handle's address is elsewhere, and may be the one that failed. */
    if (!mrd_answer_is_usual(e, &ah->addr, peer->pair.own_inc))
        failed_ns = e->lives.failed_ns;
    return over_ns(failed_ns);
}

struct mrd_peer *mrd_handle_open(struct mrd_engine *e, struct mrd_ah_impl *ah)
{
    struct mrd_peer *last = last_entry(e, ah), *peer = last;
    const struct mrd_idle_peer *idle = last ? NULL : mrd_peer_idle_by_id(&e->peers, ah->peer_id);
    bool lost = ah->peer_id && !last && !idle;
    uint64_t failed_ns = 0;

    if (last && !mrd_peer_has_state(last) && mrd_peer_heir(e, last))
        peer = mrd_peer_heir(e, last);
    if (peer && !peer->tx && may_be_back(e, ah, peer->given_up, &peer->addr))
        peer = NULL;
    /* Whoever answers there answers as the one with a state: two may not speak as the same. */
    if (peer && !mrd_peer_has_state(peer) && mrd_peer_find(&e->peers, &peer->addr) != peer)
        peer = NULL;
    if (last && peer != last)
        failed_ns = mrd_later(last->failed_ns, mrd_peer_heirs_failed_ns(e, last));
    if (!peer) {
        struct mrd_addr to = ah->addr;

        if (idle && idle->pair.own_inc == ah->own_inc &&
            !may_be_back(e, ah, idle->given_up, &idle->addr))
            to = idle->addr;
        peer = mrd_peer_open(e, &to); /* `last` may have to go */
        if (!peer)
            return NULL;
        peer->one_way = ah->one_way;
        mrd_send_state_limit_payload(e, peer, ah->payload_bytes);
    }
    /* Did ordered messages fail by another entry? */
    if (peer->id != ah->peer_id)
        ah->start_ns = mrd_later(ah->start_ns, over_ns(failed_ns));
    if (lost)
        ah->start_ns = mrd_later(ah->start_ns, unknown_over_ns(e, ah, peer));
    ah->peer_id = peer->id;
    ah->own_inc = peer->pair.own_inc;
    peer->dscp = ah->dscp;
    peer->one_way = ah->one_way;
    if (peer->id == e->calls.peer_id)
        return peer;
    e->calls.peer_id = peer->id;
    prefetch(peer, sizeof(*peer));
    if (peer->tx)
        prefetch(peer->tx, sizeof(*peer->tx));
    return peer;
}

/* The latest mrd_peer.failed_ns of the other entries at that address; 0: none failed. */
static uint64_t others_failed_ns(const struct mrd_engine *e, const struct mrd_peer *peer,
                                 const struct mrd_addr *addr)
{
    uint64_t failed_ns = 0;

    for (const struct mrd_peer *p = mrd_peer_first(&e->peers, addr); p; p = mrd_peer_next(p))
        if (p != peer)
            failed_ns = mrd_later(failed_ns, p->failed_ns);
    return failed_ns;
}

void mrd_handle_await(const struct mrd_engine *e, struct mrd_flow_tx *flow, struct mrd_ah_impl *ah)
{
    bool begun = ah->start_ns != 0 || flow->start_ns != 0;
    const struct mrd_peer *peer = flow->peer;

    if (e->lives.failed_ns && e->clock.now_ns - e->lives.failed_ns <= MRD_PACKET_LIFE_NS) {
        uint64_t failed_ns = mrd_peer_heirs_failed_ns(e, peer);

        failed_ns = mrd_later(failed_ns, others_failed_ns(e, peer, &ah->addr));
        failed_ns = mrd_later(failed_ns, others_failed_ns(e, peer, &peer->addr));
        ah->start_ns = mrd_later(ah->start_ns, over_ns(failed_ns));
        if (!begun)
            ah->start_ns = mrd_later(ah->start_ns, unknown_over_ns(e, ah, peer));
    }
    ah->start_ns = mrd_later(ah->start_ns, BEGUN);
    flow->start_ns = mrd_later(flow->start_ns, ah->start_ns);
}
