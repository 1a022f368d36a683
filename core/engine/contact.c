/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: first contact, challenges, resets, and to which space a packet belongs.
 *
 * The rules were checked with explicit-state models; WIRE.md states them with the hole that
 * each closes.
 */
#include "core/engine/contact.h"
#include "core/engine/message.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "core/engine/query.h"

/* Queue an answer to a packet; NULL: too many wait already, and it is dropped. */
static struct mrd_answer *add_answer(struct mrd_engine *e, const struct mrd_rx_packet *packet,
                                     const struct mrd_wire_head *asked, uint8_t type)
{
    struct mrd_answer *s;

    if (e->answers.tail - e->answers.head == MRD_STATELESS_MAX)
        return NULL;
    s = &e->answers.ring[e->answers.tail++ % MRD_STATELESS_MAX];
    memset(s, 0, sizeof(*s));
    s->to = packet->from;
    s->to.port = asked->reply;
    s->from = packet->to;
    s->head.type = type;
    s->head.dst_inc = asked->src_inc;
    s->head.epoch = asked->epoch;
    s->head.reply = e->config.self.port;
    return s;
}

/*
 * The packet's space is not known here. The RESET names it, and by live_epoch tells which of our
 * own spaces are over.
 */
static void send_reset(struct mrd_engine *e, const struct mrd_peer *peer,
                       const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    struct mrd_answer *s = add_answer(e, packet, head, MRD_WIRE_RESET);

    e->stats.rx_drop_space++;
    if (!s)
        return;
    s->head.src_inc = head->dst_inc ? head->dst_inc : e->config.incarnation;
    if (s->head.src_inc != e->config.incarnation)
        s->head.live_epoch = MRD_WIRE_EPOCH_NONE; /* that life of ours is over */
    else
        s->head.live_epoch = peer && peer->tx ? peer->tx->contact.epoch : e->lives.epoch_next;
}

/* What a first contact must echo, to show that it comes from its address and was sent lately. */
static uint64_t cookie_for(const struct mrd_engine *e, const struct mrd_addr *addr,
                           const struct mrd_wire_head *head, uint32_t replaced)
{
    struct {
        struct mrd_addr addr;
        uint32_t src_inc, own_inc, replaced, zero;
    } c = {*addr, head->src_inc, e->config.incarnation, replaced, 0};

    return XXH3_64bits_withSeed(&c, sizeof(c), e->answers.cookie_secret);
}

static void send_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_rx_packet *packet, uint64_t cookie)
{
    struct mrd_answer *s = add_answer(e, packet, head, MRD_WIRE_CHALLENGE);
    uint64_t up_usec = (e->clock.now_ns - e->clock.opened_ns) / MRD_USEC;

    e->stats.rx_drop_challenged++;
    if (!s)
        return;
    s->head.src_inc = e->config.incarnation;
    s->head.cookie = cookie;
    s->head.echo_stamp = head->stamp;
    s->head.up_usec = up_usec < UINT32_MAX ? (uint32_t)up_usec : UINT32_MAX;
}

/*
 * There is no room for a peer that showed that it is there. All its packets of this epoch remain
 * valid: there may be room when the next one comes.
 */
static void turn_away(struct mrd_engine *e, const struct mrd_wire_head *head,
                      const struct mrd_rx_packet *packet, const struct mrd_addr *addr)
{
    struct mrd_answer *s = add_answer(e, packet, head, MRD_WIRE_BUSY);

    e->stats.rx_drop_table_full++;
    if (s)
        s->head.src_inc = e->config.incarnation;
    if (e->lives.full_told_ns && e->clock.now_ns - e->lives.full_told_ns < MRD_FULL_EVENT_NS)
        return;
    e->lives.full_told_ns = e->clock.now_ns;
    mrd_engine_add_event(e,
                         &(struct mrd_engine_event){.type = MRD_EVENT_PEERS_FULL, .addr = *addr});
}

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
    struct mrd_tx_half *tx = peer->tx;
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
    mrd_sent_init(&tx->sent, pages, e->config.mover.tracker, e->peers.max);
    mrd_loss_fini(&tx->loss, &e->allocator);
    mrd_loss_init(&tx->loss, e->config.mover.tune, e->clock.now_ns);
    mrd_half_begin_epoch(e, tx, inc);
    tx->told.valid = tx->contact.has_cookie = tx->probes.copy_due = false;
    tx->request.packets = tx->request.psn = tx->probes.due = 0;
    tx->probes.silence_due = true;
    mrd_tx_ready(e, peer);
    return true;
}

/*
 * A first contact of a life that we hold no space of. Returns its peer, or NULL: it was challenged,
 * or the table is full.
 */
static struct mrd_peer *admit(struct mrd_engine *e, struct mrd_peer *peer,
                              const struct mrd_wire_head *head, const struct mrd_rx_packet *packet,
                              const struct mrd_addr *addr)
{
    uint32_t other = 0;
    bool young = e->config.challenge_ns &&
                 e->clock.empty_ns - e->clock.opened_ns <= e->config.challenge_ns &&
                 head->src_inc != e->config.incarnation; /* our own life cannot be an earlier one */
    bool pressed = !peer && mrd_peers_room(&e->peers) <= e->peers.max / 8 &&
                   !mrd_peer_resting(&e->peers, addr);
    uint64_t cookie;

    if (peer && peer->space.state != MRD_SPACE_NONE)
        other = peer->space.inc;
    else if (peer && peer->tx && peer->tx->contact.inc != head->src_inc)
        other = peer->tx->contact.inc;
    cookie = cookie_for(e, addr, head, other);
    if ((young || other || pressed) && !(head->dst_inc == e->config.incarnation &&
                                         head->flags & MRD_WIRE_COOKIE && head->cookie == cookie)) {
        send_challenge(e, head, packet, cookie);
        return NULL;
    }
    if (!peer)
        peer = mrd_half_open_peer(e, addr);
    if (!peer) {
        turn_away(e, head, packet, addr);
        return NULL;
    }
    if (peer->tx && peer->tx->contact.inc && peer->tx->contact.inc != head->src_inc) {
        e->stats.peers_restarted++;
        mrd_half_tell(e, peer, MRD_EVENT_PEER_RESTARTED);
        mrd_half_end_rx(e, peer, MRD_SPACE_NONE);
        mrd_half_end_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
    }
    return peer;
}

static bool is_unknown(const struct mrd_addr *addr)
{
    static const uint8_t zero[sizeof(addr->ip)];

    return !memcmp(addr->ip, zero, sizeof(zero));
}

/*
 * Did we send the packet to ourselves? Then it is of our send half's epoch, and its source is the
 * address that it arrived at, if that is known.
 */
static bool is_own(const struct mrd_peer *peer, const struct mrd_wire_head *head,
                   const struct mrd_rx_packet *packet)
{
    return peer && peer->tx && peer->tx->contact.epoch == head->epoch &&
           (is_unknown(&packet->to) ||
            !memcmp(packet->from.ip, packet->to.ip, sizeof(packet->to.ip)));
}

struct mrd_peer *mrd_contact_identify(struct mrd_engine *e, const struct mrd_wire_head *head,
                                      const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;
    bool fc = head->flags & MRD_WIRE_FIRST_CONTACT;
    struct mrd_peer *peer;
    bool known;

    addr.port = head->reply;
    /* Our own incarnation, but not from ourselves: somebody sends our packets back. */
    peer = mrd_peer_find(&e->peers, &addr);
    if (head->src_inc == e->config.incarnation && !is_own(peer, head, packet)) {
        e->stats.rx_drop_incarnation++;
        return NULL;
    }
    if (head->dst_inc != e->config.incarnation && head->dst_inc) {
        send_reset(e, peer, head, packet);
        return NULL;
    }
    if (peer)
        mrd_half_expire_rx(e, peer);
    known = peer && peer->space.state != MRD_SPACE_NONE && peer->space.inc == head->src_inc;
    if (known && mrd_seq_before(head->epoch, peer->space.epoch)) {
        e->stats.rx_drop_epoch++;
        return NULL;
    }
    if (!known || head->epoch != peer->space.epoch) {
        if (!fc) {
            send_reset(e, peer, head, packet);
            return NULL;
        }
        if (!known)
            peer = admit(e, peer, head, packet, &addr);
        if (!peer)
            return NULL;
        mrd_half_end_rx(e, peer, MRD_SPACE_NONE);
        mrd_peer_rx_begin(&e->peers, peer, e->config.mover.tracker);
        peer->space.inc = head->src_inc;
        peer->space.epoch = head->epoch;
    }
    if (peer->space.state == MRD_SPACE_TOMB) {
        send_reset(e, peer, head, packet);
        return NULL;
    }
    peer->heard_ns = e->clock.now_ns;
    if (fc)
        peer->space.patience_ns = head->patience_ns;
    if (!is_unknown(&packet->to)) {
        peer->local = packet->to;
        peer->local.port = 0;
    }
    if (peer->tx && !peer->tx->contact.inc)
        peer->tx->contact.inc = head->src_inc;
    return peer;
}

static struct mrd_peer *peer_of(struct mrd_engine *e, const struct mrd_wire_head *head,
                                const struct mrd_addr *from)
{
    struct mrd_addr addr = *from;

    addr.port = head->reply;
    return mrd_peer_find(&e->peers, &addr);
}

void mrd_contact_reset(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_tx_half *tx = peer ? peer->tx : NULL;
    bool dropped;

    if (head->dst_inc != e->config.incarnation || !tx || head->epoch != tx->contact.epoch ||
        (tx->contact.inc && tx->contact.inc != head->src_inc)) {
        e->stats.rx_drop_reset++;
        return;
    }
    e->stats.rx_resets++;
    dropped = peer->space.state == MRD_SPACE_KNOWN && peer->space.inc == head->src_inc &&
              mrd_wire_epoch_over(peer->space.epoch, head->live_epoch);
    if (dropped)
        mrd_half_end_rx(e, peer, MRD_SPACE_TOMB);
    if (renew_epoch(e, peer, 0))
        return;
    /* The life that had no room is there: it had none until now, or forgot us. */
    if (tx->contact.busy && !tx->contact.acked_once && !dropped &&
        head->live_epoch != MRD_WIRE_EPOCH_NONE)
        mrd_half_turned_away(e, peer);
    else
        mrd_half_peer_restarted(e, peer, dropped);
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
    struct mrd_tx_contact *contact = peer && peer->tx ? &peer->tx->contact : NULL;

    if (head->dst_inc != e->config.incarnation || !contact || head->epoch != contact->epoch ||
        contact->acked_once || contact->inc != head->src_inc) {
        e->stats.rx_drop_reset++;
        return;
    }
    e->stats.rx_busies++;
    if (!contact->busy)
        mrd_event_add(e, peer, MRD_EVENT_PEER_BUSY);
    contact->busy = true;
}

/*
 * Did our epoch begin before the challenger opened? The CHALLENGE says how long ago it opened when
 * it sent this, which was between the departure of the packet that it echoes and now. An epoch that
 * is OLDER may have been executed by an earlier life, and ends. One that is YOUNGER is safe. If it
 * is IN_DOUBT, because the challenge took long, the next challenge may tell; the life of the
 * first-contact flag bounds that.
 */
enum epoch_age { EPOCH_OLDER, EPOCH_YOUNGER, EPOCH_IN_DOUBT };

static enum epoch_age compare_epoch(const struct mrd_engine *e, const struct mrd_tx_half *tx,
                                    const struct mrd_wire_head *head)
{
    uint64_t up_ns = head->up_usec * MRD_USEC;
    uint32_t flight = mrd_wire_stamp(e->clock.now_ns) - head->echo_stamp;
    uint64_t age_ns = e->clock.now_ns - tx->contact.epoch_ns;
    uint64_t flight_ns = (uint64_t)flight * MRD_WIRE_STAMP_NS;

    if (tx->contact.knew_inc || tx->contact.epoch_ns == MRD_NEVER || age_ns < up_ns ||
        head->up_usec == UINT32_MAX)
        return EPOCH_YOUNGER;
    return flight_ns <= age_ns && age_ns - flight_ns > up_ns + MRD_USEC ? EPOCH_OLDER
                                                                        : EPOCH_IN_DOUBT;
}

/* The challenger executed nothing of the epoch: bind to it, and send all again with the cookie. */
void mrd_contact_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_tx_half *tx = peer ? peer->tx : NULL;

    if (head->dst_inc != e->config.incarnation || !tx || head->epoch != tx->contact.epoch ||
        tx->contact.acked_once || (tx->contact.inc && tx->contact.inc != head->src_inc)) {
        e->stats.rx_drop_reset++;
        return;
    }
    if (tx->contact.has_cookie && tx->contact.cookie == head->cookie)
        return; /* the same as before, and answered already */
    switch (compare_epoch(e, tx, head)) {
    case EPOCH_OLDER:
        if (renew_epoch(e, peer, head->src_inc))
            break;
        e->stats.rx_resets++;
        mrd_half_peer_restarted(e, peer, false);
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
    tx->contact.cookie = head->cookie;
    tx->contact.has_cookie = true;
    peer->heard_ns = e->clock.now_ns;
    mrd_half_answered(e, peer);
    while (tx->sent.inflight.num) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);

        mrd_path_forgot(&tx->paths, rec->path);
        rec->deliberate = true; /* not lost: no path is to blame */
        e->stats.retx_challenge++;
        mrd_sent_lose(&tx->sent, rec, &tx->paths);
    }
    mrd_tx_ready(e, peer);
}
