/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: first contact, challenges, resets, and to which space a packet belongs.
 *
 * The rules were checked with explicit-state models; WIRE.md states them with the hole that
 * each closes.
 */
#include "core/engine/contact.h"

#include <assert.h>
#include <string.h>

#include "core/engine/address.h"
#include "core/engine/answer.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/query.h"
#include "core/seq.h"

/* A packet with the flag of first contact is no older than that; the same in units of stamps. */
#define FLAG_LIFE_NS (MRD_FIRST_CONTACT_LIFE_NS + MRD_PACKET_LIFE_NS)
enum { FLAG_LIFE_STAMPS = FLAG_LIFE_NS / MRD_WIRE_STAMP_NS };

/* The space that asked is over. During `hello` nothing was sent of the responses. */
static void drop_responses(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_node *n, *next;

    for (n = peer->msgs.next; n != &peer->msgs; n = next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, peer_node);

        next = n->next;
        if (mrd_msg_is_response(msg))
            mrd_msg_abandon(e, msg, MRD_WC_RETRY_EXC_ERR);
    }
}

/*
 * End an epoch in which only empty packets were sent: all work goes on in the next one, but for
 * responses to a space that is over, which another life could take for its own. Returns false if it
 * was another epoch, or after MRD_RENEWALS_MAX of them.
 */
static bool renew_epoch(struct mrd_engine *e, struct mrd_peer *peer, uint32_t inc)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_pool *pages = tx->sent.pages;

    if (!tx->contact.hello || tx->contact.renewals++ == MRD_RENEWALS_MAX)
        return false;
    if (peer->space.state == MRD_SPACE_KNOWN)
        inc = peer->space.inc;
    else
        drop_responses(e, peer);
    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->state == MRD_SENT_INFLIGHT) {
            assert(rec->kind == MRD_SENT_EMPTY);
            mrd_path_forgot(&tx->paths, rec->path);
            mrd_sent_lose(&tx->sent, rec, &tx->paths);
        }
    }
    mrd_sent_fini(&tx->sent);
    mrd_sent_init(&tx->sent, pages, MRD_TRACKER_WIDEST, e->peers.max);
    mrd_loss_fini(&tx->loss, &e->allocator);
    mrd_loss_init(&tx->loss, e->config.mover.tune, e->clock.now_ns);
    mrd_send_state_begin_epoch(e, peer, inc);
    tx->told.valid = tx->contact.has_cookie = tx->probes.copy_due = false;
    tx->request.packets = tx->request.psn = tx->probes.due = 0;
    tx->probes.silence_due = true;
    mrd_tx_ready(e, peer);
    return true;
}

/*
 * Does the peer at that address reach us at another one of ours than the packet did? A context that
 * has two handles for two addresses of ours speaks to us as two, and both go on.
 */
static bool is_apart(const struct mrd_peer *peer, const struct mrd_rx_packet *packet)
{
    bool bound = peer->space.state != MRD_SPACE_NONE || (peer->tx && peer->tx->contact.inc);

    return bound && !mrd_address_is_unknown(peer->place.own_ip) &&
           !mrd_address_is_unknown(packet->to.ip) &&
           memcmp(peer->place.own_ip, packet->to.ip, sizeof(packet->to.ip)) != 0;
}

/*
 * Of the entries at the address that call us by that name, the one whose place the packet's sender
 * would take; NULL: it is another peer than all of them.
 */
static struct mrd_peer *find_replaced(const struct mrd_engine *e, const struct mrd_addr *addr,
                                      uint32_t own_inc, const struct mrd_rx_packet *packet)
{
    struct mrd_peer *peer = mrd_peer_first(&e->peers, addr);

    while (peer && (peer->pair.own_inc != own_inc || is_apart(peer, packet)))
        peer = mrd_peer_next(peer);
    return peer;
}

/*
 * May the host take one more entry? One host alone cannot fill the table: of the last eighth each may
 * have as much as it leaves free. (The rule of mrd_pool_share().)
 */
static bool has_share(const struct mrd_engine *e, const struct mrd_addr *addr)
{
    uint32_t room = mrd_peers_room(&e->peers);

    return room > e->peers.max / 8 || mrd_peers_of_host(&e->peers, addr) < room;
}

/*
 * One more peer at the other's address, which calls us by the same name. NULL: there is no room. All of a
 * name are looked at for each first contact by it, so a host that speaks as many may not have many.
 */
static struct mrd_peer *add_beside(struct mrd_engine *e, const struct mrd_peer *other)
{
    bool many = mrd_peers_named(&e->peers, other->pair.own_inc) >= MRD_NAMESAKES_MAX;
    struct mrd_peer *peer = many ? NULL : mrd_peer_add_entry(e, &other->addr);

    if (peer)
        mrd_peer_name(&e->peers, peer, other->pair);
    return peer;
}

/*
 * A first contact that we hold no space of, or that does not call us by our name. `peer`: at its
 * address; NULL: none. Returns its peer, or NULL: it was challenged, or there is no room for it.
 */
static struct mrd_peer *admit(struct mrd_engine *e, struct mrd_peer *peer, uint32_t own_inc,
                              const struct mrd_wire_head *head, const struct mrd_rx_packet *packet,
                              const struct mrd_addr *addr)
{
    const struct mrd_peer *apart = NULL;
    bool pressed = !peer && mrd_peers_room(&e->peers) <= e->peers.max / 8 &&
                   !mrd_peer_find_idle(&e->peers, addr);
    bool trusted = (e->config.trusting && !pressed) || head->src_inc == own_inc;
    uint32_t lives, other = 0;

    if (mrd_peer_has_name(&e->peers, head->src_inc) && head->src_inc != own_inc) {
        e->stats.rx_drop_incarnation++; /* as ourselves to another one, who sends it back */
        return NULL;
    }
    if (peer && !mrd_peer_speaks_as(peer, head->src_inc) && is_apart(peer, packet)) {
        apart = peer;
        peer = find_replaced(e, addr, own_inc, packet);
    }
    if (peer && peer->space.state != MRD_SPACE_NONE && peer->space.inc != head->src_inc)
        other = peer->space.inc;
    else if (peer && peer->tx && peer->tx->contact.inc != head->src_inc)
        other = peer->tx->contact.inc;
    lives = mrd_peer_lives(&e->peers, own_inc, other);
    if ((!trusted || other) &&
        !(head->dst_inc == own_inc && mrd_answer_is_proven(e, lives, head, packet))) {
        e->stats.rx_drop_challenged++;
        mrd_answer_challenge(e, own_inc, lives, head, packet);
        return NULL;
    }
    if (!peer && has_share(e, addr))
        peer = apart ? add_beside(e, apart) : mrd_peer_open(e, addr);
    if (!peer) {
        mrd_answer_busy(e, own_inc, head, packet);
        return NULL;
    }
    if (peer->tx && peer->tx->contact.inc && peer->tx->contact.inc != head->src_inc) {
        e->stats.peers_restarted++;
        mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_RESTARTED);
        mrd_recv_state_end(e, peer, MRD_SPACE_NONE);
        mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    }
    if (other)
        peer->space.replaced = ++e->lives.replaced;
    return peer;
}

/*
 * Did we send the packet to ourselves? Then it is of our send state's epoch, and its source is the
 * address that it arrived at, if that is known.
 */
static bool is_own(const struct mrd_peer *peer, const struct mrd_wire_head *head,
                   const struct mrd_rx_packet *packet)
{
    return peer && peer->tx && peer->tx->contact.epoch == head->epoch &&
           (mrd_address_is_unknown(packet->to.ip) ||
            !memcmp(packet->from.ip, packet->to.ip, sizeof(packet->to.ip)));
}

/*
 * The peer begins an epoch, and holds no space of ours: what it once acked of our send state's it gave
 * up, and nothing in there will be answered. That comes before what the new epoch brings. But it may
 * have said so before it learned of that space: then an ack of it is newer.
 */
static void end_forgotten(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_head *head)
{
    const struct mrd_send_state *tx = peer->tx;

    if (!(head->flags & MRD_WIRE_FORGOTTEN) || !tx || !tx->contact.acked_once)
        return;
    /* Stamps come round: what was acked longer ago than the flag can be old is older. */
    if (tx->told.stamp - head->stamp <= FLAG_LIFE_STAMPS &&
        e->clock.now_ns - tx->told.stamp_ns <= FLAG_LIFE_NS)
        return;
    mrd_peer_restarted(e, peer, false);
}

/*
 * The peer's host speaks by two names, that of the space which is over and that to which our send state
 * is bound: these are two peers from now on. The space goes into an entry of its own, which is
 * returned; NULL: there is no room for it.
 */
static struct mrd_peer *split(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_peer *other = has_share(e, &peer->addr) ? add_beside(e, peer) : NULL;

    if (!other)
        return NULL;
    other->space = peer->space;
    other->heard_ns = peer->heard_ns;
    other->place = peer->place;
    peer->space.state = MRD_SPACE_NONE;
    return other;
}

/*
 * Whom a first contact is from that comes by the name of a space that we hold: refusals and responses
 * must not go to another name. NULL: there is no room.
 */
static struct mrd_peer *readmit(struct mrd_engine *e, struct mrd_peer *peer, uint32_t own_inc,
                                const struct mrd_wire_head *head,
                                const struct mrd_rx_packet *packet)
{
    if (peer->space.state == MRD_SPACE_TOMB && peer->tx && peer->tx->contact.inc &&
        peer->tx->contact.inc != head->src_inc)
        peer = split(e, peer);
    if (!peer)
        mrd_answer_busy(e, own_inc, head, packet);
    return peer;
}

/* The packet begins a space. */
static void begin_space(struct mrd_engine *e, struct mrd_peer *peer,
                        const struct mrd_wire_head *head)
{
    end_forgotten(e, peer, head);
    mrd_recv_state_end(e, peer, MRD_SPACE_NONE);
    mrd_peer_rx_begin(&e->peers, peer, e->config.mover.tracker);
    peer->space.inc = head->src_inc;
    peer->space.epoch = head->epoch;
}

struct mrd_peer *mrd_contact_identify(struct mrd_engine *e, const struct mrd_wire_head *head,
                                      const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;
    bool fc = head->flags & MRD_WIRE_FIRST_CONTACT, known, named;
    struct mrd_peer *peer;
    uint32_t own_inc;

    addr.port = head->reply;
    peer = mrd_peer_find_pair(&e->peers, &addr, head->dst_inc, head->src_inc);
    own_inc = peer ? peer->pair.own_inc : mrd_answer_pair(e, &addr).own_inc;
    /* As ourselves, but not from ourselves: somebody sends our packets back. */
    if (head->src_inc == own_inc && !is_own(peer, head, packet)) {
        e->stats.rx_drop_incarnation++;
        return NULL;
    }
    if (head->dst_inc && head->dst_inc != own_inc) {
        mrd_answer_reset(e, peer, head, packet);
        return NULL;
    }
    if (peer)
        mrd_recv_state_expire(e, peer);
    named = head->dst_inc || e->config.trusting || head->src_inc == own_inc;
    known = peer && peer->space.state != MRD_SPACE_NONE && peer->space.inc == head->src_inc;
    if (known && mrd_seq_before(head->epoch, peer->space.epoch)) {
        e->stats.rx_drop_epoch++;
        return NULL;
    }
    if (!known || !named || head->epoch != peer->space.epoch) {
        if (!fc) {
            mrd_answer_reset(e, peer, head, packet);
            return NULL;
        }
        if (!known || !named)
            peer = admit(e, peer, own_inc, head, packet, &addr);
        else
            peer = readmit(e, peer, own_inc, head, packet);
        if (!peer)
            return NULL;
        begin_space(e, peer, head);
    }
    if (peer->space.state == MRD_SPACE_TOMB) {
        mrd_answer_reset(e, peer, head, packet);
        return NULL;
    }
    peer->heard_ns = e->clock.now_ns;
    if (fc)
        peer->space.max_unacked_ns = head->peer_timeout_ns;
    mrd_address_came(e, peer, head, packet);
    if (peer->tx && !peer->tx->contact.inc)
        peer->tx->contact.inc = head->src_inc;
    if (!peer->tx || peer->tx->contact.inc == head->src_inc)
        mrd_peer_set_life(e, peer, packet->life);
    return peer;
}

/*
 * Whom an answer is from. A host with several addresses may answer from another one than was asked:
 * it shows that it was by our name and epoch.
 */
static struct mrd_peer *peer_of(struct mrd_engine *e, const struct mrd_wire_head *head,
                                const struct mrd_addr *from)
{
    struct mrd_addr addr = *from;
    struct mrd_peer *peer;

    addr.port = head->reply;
    peer = mrd_peer_find_asked(&e->peers, head->dst_inc, head->epoch);
    return peer ? peer : mrd_peer_find_pair(&e->peers, &addr, head->dst_inc, head->src_inc);
}

/*
 * Our send state, if it is about that, from whom that speaks to, or from anybody if nobody answered yet.
 * NULL: it is not.
 */
static struct mrd_send_state *half_meant(const struct mrd_peer *peer,
                                         const struct mrd_wire_head *head)
{
    struct mrd_send_state *tx = peer ? peer->tx : NULL;
    bool meant;

    if (!tx)
        return NULL;
    meant = head->dst_inc == peer->pair.own_inc && head->epoch == tx->contact.epoch &&
            (!tx->contact.inc || tx->contact.inc == head->src_inc);
    return meant ? tx : NULL;
}

void mrd_contact_reset(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_send_state *tx = half_meant(peer, head);
    bool dropped;

    if (!tx) {
        e->stats.rx_drop_reset++;
        return;
    }
    e->stats.rx_resets++;
    dropped = peer->space.state == MRD_SPACE_KNOWN && peer->space.inc == head->src_inc &&
              mrd_wire_epoch_over(peer->space.epoch, head->live_epoch);
    if (dropped)
        mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
    if (renew_epoch(e, peer, 0))
        return;
    /* The life that had no room is there: it had none until now, or forgot us. */
    if (tx->contact.busy && !tx->contact.acked_once && !dropped &&
        head->live_epoch != MRD_WIRE_EPOCH_NONE)
        mrd_peer_turned_away(e, peer);
    else
        mrd_peer_restarted(e, peer, dropped);
}

/*
 * The peer executed nothing, and has no room for us. Whoever sent the same in a new epoch could
 * have it executed twice: copies of what was sent may still find room. So all goes on as it was,
 * until first contact ends; but the user is told.
 */
void mrd_contact_busy(struct mrd_engine *e, const struct mrd_wire_head *head,
                      const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_send_state *tx = half_meant(peer, head);
    struct mrd_tx_contact *contact;

    if (!tx || tx->contact.acked_once || !tx->contact.inc) {
        e->stats.rx_drop_reset++;
        return;
    }
    contact = &tx->contact;
    e->stats.rx_busies++;
    if (!contact->busy)
        mrd_event_add(e, peer, MRD_EVENT_PEER_BUSY);
    contact->busy = true;
}

/* How long ago the packet left that the challenge answers. */
static uint64_t question_age_ns(const struct mrd_engine *e, const struct mrd_wire_head *head)
{
    uint32_t age = mrd_wire_stamp(e->clock.now_ns) - head->echo_stamp;

    return (uint64_t)age * MRD_WIRE_STAMP_NS;
}

/*
 * Did our epoch begin before the challenger opened? The CHALLENGE says how long ago it opened when
 * it sent this, which was between the departure of the packet that it echoes and now. An epoch that
 * is OLDER may have been executed by an earlier life, and ends. One that is YOUNGER is safe. If it
 * is IN_DOUBT, because the challenge took long, the next challenge may tell; the life of the
 * first-contact flag bounds that.
 */
enum epoch_age { EPOCH_OLDER, EPOCH_YOUNGER, EPOCH_IN_DOUBT };

static enum epoch_age compare_epoch(const struct mrd_engine *e, const struct mrd_send_state *tx,
                                    const struct mrd_wire_head *head)
{
    uint64_t up_ns = head->up_usec * MRD_USEC;
    uint64_t age_ns = e->clock.now_ns - tx->contact.epoch_ns;
    uint64_t flight_ns = question_age_ns(e, head);

    if (tx->contact.knew_inc || tx->contact.epoch_ns == MRD_NEVER || age_ns < up_ns ||
        head->up_usec == UINT32_MAX)
        return EPOCH_YOUNGER;
    return flight_ns <= age_ns && age_ns - flight_ns > up_ns + MRD_USEC ? EPOCH_OLDER
                                                                        : EPOCH_IN_DOUBT;
}

/* Does the challenge come from a peer that knows us, about a packet or an ack of ours? */
static bool asks_where_we_are(const struct mrd_engine *e, const struct mrd_peer *peer,
                              const struct mrd_wire_head *head)
{
    const struct mrd_send_state *tx = half_meant(peer, head);

    if (tx && !tx->contact.hello && tx->contact.epoch_ns != MRD_NEVER &&
        e->clock.now_ns - tx->contact.epoch_ns > MRD_FIRST_CONTACT_LIFE_NS)
        return true; /* only first contacts ask for a cookie otherwise */
    if (tx)
        return tx->contact.acked_once;
    return head->dst_inc == peer->pair.own_inc && peer->space.state == MRD_SPACE_KNOWN &&
           peer->space.inc == head->src_inc && peer->space.epoch == head->epoch;
}

/*
 * Did the peer reach us after the packet left that the challenge answers? Then it knows where we are. A
 * late copy would have us wait for the answer to a proof that nobody asked for.
 */
static bool was_heard_since(const struct mrd_engine *e, const struct mrd_peer *peer,
                            const struct mrd_wire_head *head)
{
    return e->clock.now_ns - peer->heard_ns < question_age_ns(e, head);
}

/*
 * The send state will be bound to that name. If another entry is of it, its packets would be taken for
 * one or the other entry's: a space that is over goes with the name. false: there is more than that.
 */
static bool take_name(struct mrd_engine *e, struct mrd_peer *peer, uint32_t inc)
{
    struct mrd_peer *other = mrd_peer_namesake(&e->peers, peer, inc);
    struct mrd_peer_space space = peer->space;
    struct mrd_peer_place place = peer->place;
    uint64_t heard_ns = peer->heard_ns;

    if (!other)
        return true;
    if (other->tx || other->space.state != MRD_SPACE_TOMB || space.state == MRD_SPACE_KNOWN)
        return false;
    peer->space = other->space;
    peer->place = other->place;
    peer->heard_ns = other->heard_ns;
    other->space = space;
    other->place = place;
    other->heard_ns = heard_ns;
    return true;
}

/*
 * The peer answers here as the one that another entry is of, wherever it was when that heard of it. But not if
 * it has spoken from elsewhere since our question.
 */
static void leave_to_namesake(struct mrd_engine *e, struct mrd_peer *peer,
                              const struct mrd_wire_head *head)
{
    struct mrd_peer *other = mrd_peer_namesake(&e->peers, peer, head->src_inc);
    uint64_t age_ns = question_age_ns(e, head);

    if (memcmp(&other->addr, &peer->addr, sizeof(other->addr)) != 0 &&
        (!other->place.asked_ns || e->clock.now_ns - other->place.asked_ns >= age_ns))
        mrd_address_move(e, other, &peer->addr);
    if (peer->tx)
        mrd_peer_give_way(e, peer, other);
}

/* The challenger executed nothing of the epoch: bind to it, and send all again with the cookie. */
void mrd_contact_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_rx_packet *packet)
{
    struct mrd_peer *peer = peer_of(e, head, &packet->from);
    struct mrd_send_state *tx = half_meant(peer, head);

    if (peer && asks_where_we_are(e, peer, head)) {
        e->stats.rx_challenges++;
        if (!was_heard_since(e, peer, head))
            mrd_address_prove(e, peer, head->cookie);
        return;
    }
    if (!peer || !tx) {
        e->stats.rx_drop_reset++;
        return;
    }
    if (tx->contact.has_cookie && tx->contact.cookie == head->cookie)
        return; /* the same as before, and answered already */
    if (!tx->contact.inc && !take_name(e, peer, head->src_inc)) {
        leave_to_namesake(e, peer, head);
        return;
    }
    /* Data goes in an epoch of its own, with a first contact of its own. */
    if (tx->contact.hello && renew_epoch(e, peer, head->src_inc))
        tx->contact.knew_inc = true;
    switch (compare_epoch(e, tx, head)) {
    case EPOCH_OLDER:
        if (renew_epoch(e, peer, head->src_inc))
            break;
        e->stats.rx_resets++;
        mrd_peer_restarted(e, peer, false);
        return;
    case EPOCH_IN_DOUBT:
        if (renew_epoch(e, peer, head->src_inc))
            break;
        return;
    case EPOCH_YOUNGER:
        break;
    }
    /* From here on the epoch is younger than the challenger, and what was held back may go. */
    tx->contact.hello = tx->probes.silence_due = false;
    e->stats.rx_challenges++;
    tx->contact.inc = head->src_inc;
    mrd_peer_set_life(e, peer, packet->life);
    tx->contact.cookie = head->cookie;
    tx->contact.has_cookie = true;
    if (peer->space.state == MRD_SPACE_TOMB && peer->space.inc != head->src_inc &&
        is_apart(peer, packet))
        (void)split(e, peer);
    /* The cookie is for the address that the first packet left from: all others leave from there. */
    mrd_address_of_ours(peer, &packet->to);
    peer->heard_ns = e->clock.now_ns;
    mrd_send_state_answered(e, peer);
    while (tx->sent.inflight.num) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);

        mrd_path_forgot(&tx->paths, rec->path);
        rec->deliberate = true; /* not lost: no path is to blame */
        e->stats.retx_challenge++;
        mrd_sent_lose(&tx->sent, rec, &tx->paths);
    }
    mrd_tx_ready(e, peer);
}
