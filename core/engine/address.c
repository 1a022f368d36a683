/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of peers that change, and our own that fail. */
#include "core/engine/address.h"

#include "core/engine/answer.h"
#include "core/engine/peer_state.h"
#include "core/seq.h"

/*
 * Did the packet leave after all of its life that came from where the peer was? A late copy of a
 * proof would take it back. Stamps wrap: after a long silence there, longer than cookies hold, nothing
 * is as old.
 */
static bool is_newest(const struct mrd_engine *e, const struct mrd_peer *peer,
                      const struct mrd_wire_head *head)
{
    return !peer->place.stamp || peer->place.inc != head->src_inc ||
           mrd_seq_before(peer->place.stamp, head->stamp) ||
           e->clock.now_ns - peer->place.heard_ns > 2 * MRD_COOKIE_NS + MRD_PACKET_LIFE_NS;
}

/*
 * Is it a first contact with the peer by another name of ours, which it did not take yet? Once it does where
 * it also knows us by the other name, it takes that for another life of ours, and gives this one up.
 */
static bool would_replace(const struct mrd_peer *other, const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = other->tx;

    if (!tx || tx->contact.acked_once || other->pair.own_inc == peer->pair.own_inc)
        return false;
    if (other->space.state != MRD_SPACE_NONE && mrd_peer_speaks_as(peer, other->space.inc))
        return false; /* it knows us by that name */
    return !tx->contact.inc || mrd_peer_speaks_as(peer, tx->contact.inc);
}

/* The peer is at the address of others now. */
static void take_place(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_peer *other, *next;

    for (other = mrd_peer_first(&e->peers, &peer->addr); other; other = next) {
        next = mrd_peer_next(other);
        if (would_replace(other, peer))
            mrd_peer_give_way(e, other, peer);
    }
}

void mrd_address_move(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_addr *addr)
{
    mrd_peer_move(&e->peers, peer, addr);
    peer->route_asked = false; /* another route, perhaps */
    peer->place.heard_ns = e->clock.now_ns;
    e->stats.peers_moved++;
    /* Its acks and ours were lost meanwhile. */
    if (peer->rx)
        peer->rx->rcv.now = true;
    mrd_tx_ready(e, peer);
    take_place(e, peer);
}

void mrd_address_of_ours(struct mrd_peer *peer, const struct mrd_addr *to)
{
    if (mrd_address_is_unknown(to->ip))
        return;
    peer->local = *to;
    peer->local.port = 0;
    memcpy(peer->place.own_ip, to->ip, sizeof(to->ip));
}

/* For how long another source of ours is tried. */
static uint64_t source_pause_ns(const struct mrd_engine *e)
{
    uint64_t pause_ns = e->config.peer_timeout_ns / MRD_SOURCE_SHARE;

    if (pause_ns > MRD_SOURCE_MAX_NS)
        pause_ns = MRD_SOURCE_MAX_NS;
    return pause_ns < MRD_SOURCE_MIN_NS ? MRD_SOURCE_MIN_NS : pause_ns;
}

/* The newest packet of the peer. While we try another source, the peer still sends to the old one. */
static void note(const struct mrd_engine *e, struct mrd_peer *peer,
                 const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    struct mrd_peer_place *place = &peer->place;

    place->stamp = head->stamp;
    place->inc = head->src_inc;
    if (!place->tried_ns || e->clock.now_ns - place->tried_ns >= source_pause_ns(e))
        mrd_address_of_ours(peer, &packet->to);
    else if (!mrd_address_is_unknown(packet->to.ip))
        memcpy(place->own_ip, packet->to.ip, sizeof(place->own_ip));
}

void mrd_address_came(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                      const struct mrd_rx_packet *packet)
{
    struct mrd_peer_place *place = &peer->place;
    struct mrd_addr addr = packet->from;
    uint64_t now_ns = e->clock.now_ns;
    bool newest = is_newest(e, peer, head);

    addr.port = head->reply;
    if (!memcmp(&addr, &peer->addr, sizeof(addr))) {
        place->heard_ns = now_ns;
        if (newest)
            note(e, peer, head, packet);
        return;
    }
    if (newest && mrd_answer_is_proven(e, 0, head, packet)) {
        mrd_address_move(e, peer, &addr);
        place->asked_ns = now_ns;
        note(e, peer, head, packet);
        return;
    }
    if (now_ns - place->heard_ns < MRD_MOVED_NS ||
        (place->asked_ns && now_ns - place->asked_ns < MRD_MOVED_NS))
        return;
    place->asked_ns = now_ns;
    mrd_answer_challenge(e, peer->pair.own_inc, 0, head, packet);
}

void mrd_address_prove(struct mrd_engine *e, struct mrd_peer *peer, uint64_t cookie)
{
    struct mrd_send_state *tx = mrd_send_state_open(e, peer);

    tx->contact.cookie = cookie;
    tx->contact.has_cookie = tx->contact.proves = true;
    tx->probes.silence_due = true;
    mrd_tx_ready(e, peer);
}

void mrd_address_doubt(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_tx_probes *probes = &peer->tx->probes;
    const struct mrd_tx_contact *contact = &peer->tx->contact;
    uint64_t present_ns = mrd_clock_present_ns(&e->clock);
    uint64_t pause_ns = source_pause_ns(e);
    struct mrd_turns *turns = &e->turns;

    /* The cookie of a first contact is for the source that was challenged. */
    if (contact->has_cookie && !contact->acked_once &&
        e->clock.now_ns - contact->epoch_ns <= MRD_FIRST_CONTACT_LIFE_NS)
        return;
    if (probes->unanswered < MRD_SOURCE_PROBES || present_ns < probes->silent_since_ns + pause_ns ||
        (peer->place.tried_ns && e->clock.now_ns - peer->place.tried_ns < pause_ns) ||
        turns->wants_source == MRD_ROUTES_WANTED)
        return;
    peer->place.tried_ns = e->clock.now_ns;
    memset(&peer->local, 0, sizeof(peer->local)); /* the mover chooses */
    turns->sourceless[turns->wants_source++] = peer->id;
}
