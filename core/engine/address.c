/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of peers that change, and our own that fail. */
#include "core/engine/address.h"

#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/contact.h"
#include "core/seq.h"

/*
 * Did the packet leave after all that came from where the peer was? A late copy of a proof would take
 * it back. Stamps wrap: after a long silence there, longer than cookies hold, nothing is as old.
 */
static bool is_newest(const struct mrd_engine *e, const struct mrd_peer *peer,
                      const struct mrd_wire_head *head)
{
    return !peer->place.stamp || mrd_seq_before(peer->place.stamp, head->stamp) ||
           e->clock.now_ns - peer->place.heard_ns > 2 * MRD_COOKIE_NS + MRD_PACKET_LIFE_NS;
}

static void move(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_addr *addr)
{
    mrd_peer_move(&e->peers, peer, addr);
    peer->route_asked = false; /* another route, perhaps */
    peer->place.heard_ns = e->clock.now_ns;
    e->stats.peers_moved++;
    /* Its acks and ours were lost meanwhile. */
    if (peer->rx)
        peer->rx->rcv.now = true;
    mrd_tx_ready(e, peer);
}

void mrd_address_came(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                      const struct mrd_rx_packet *packet)
{
    struct mrd_peer_place *place = &peer->place;
    struct mrd_addr addr = packet->from;
    uint64_t now_ns = e->clock.now_ns;

    addr.port = head->reply;
    if (!memcmp(&addr, &peer->addr, sizeof(addr))) {
        if (is_newest(e, peer, head))
            place->stamp = head->stamp;
        place->heard_ns = now_ns;
        return;
    }
    if (mrd_answer_is_proven(e, 0, head, packet) && is_newest(e, peer, head)) {
        move(e, peer, &addr);
        place->stamp = head->stamp;
        return;
    }
    if (now_ns - place->heard_ns < MRD_MOVED_NS ||
        (place->tried_ns && now_ns - place->tried_ns < MRD_MOVED_NS))
        return;
    place->tried_ns = now_ns;
    mrd_answer_challenge(e, peer->pair.own_inc, 0, head, packet);
}

void mrd_address_prove(struct mrd_engine *e, struct mrd_peer *peer, uint64_t cookie)
{
    struct mrd_tx_half *tx = mrd_half_open_tx(e, peer);

    tx->contact.cookie = cookie;
    tx->contact.has_cookie = tx->contact.proves = true;
    tx->probes.silence_due = true;
    mrd_tx_ready(e, peer);
}

void mrd_address_doubt(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_tx_probes *probes = &peer->tx->probes;
    uint64_t present_ns = mrd_clock_present_ns(&e->clock);
    uint64_t pause_ns = e->config.peer_timeout_ns / MRD_SOURCE_SHARE;
    struct mrd_turns *turns = &e->turns;

    if (pause_ns > MRD_SOURCE_MAX_NS)
        pause_ns = MRD_SOURCE_MAX_NS;
    if (pause_ns < MRD_SOURCE_MIN_NS)
        pause_ns = MRD_SOURCE_MIN_NS;
    if (probes->unanswered < MRD_SOURCE_PROBES || present_ns < probes->patience_ns + pause_ns ||
        (peer->place.tried_ns && e->clock.now_ns - peer->place.tried_ns < pause_ns) ||
        turns->wants_source == MRD_ROUTES_WANTED)
        return;
    peer->place.tried_ns = e->clock.now_ns;
    memset(&peer->local, 0, sizeof(peer->local)); /* the mover chooses */
    turns->sourceless[turns->wants_source++] = peer->id;
}
