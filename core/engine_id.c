/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who: first contact, challenges, resets, the life and death of PSN spaces and peers.
 *
 * The rules were checked with explicit-state models; WIRE.md states them with the hole that each closes.
 */
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "core/engine_impl.h"

enum { FIRST_GRANT = 2 * MRD_TRACKER_MIN / 16 * MRD_PSN_DATA }; /* data fills half of it */

void mrd_engine_answered(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (!peer->tx)
        return;
    peer->given_up = false;
    peer->tx->unanswered = 0;
    peer->tx->patience_ns = mrd_engine_present(e);
}

static struct mrd_stateless *stateless(struct mrd_engine *e, const struct mrd_rx_packet *packet,
                                       const struct mrd_wire_head *asked, uint8_t type)
{
    struct mrd_stateless *s;

    if (e->stateless_tail - e->stateless_head == MRD_STATELESS_MAX)
        return NULL;
    s = &e->stateless[e->stateless_tail++ % MRD_STATELESS_MAX];
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

/* Echoes what was asked; its live_epoch tells the asker which of our older spaces are over as well. */
static void send_reset(struct mrd_engine *e, const struct mrd_peer *peer,
                       const struct mrd_wire_head *head, const struct mrd_rx_packet *packet)
{
    struct mrd_stateless *s = stateless(e, packet, head, MRD_WIRE_RESET);

    e->stats.rx_drop_space++;
    if (!s)
        return;
    s->head.src_inc = head->dst_inc ? head->dst_inc : e->config.incarnation;
    if (s->head.src_inc != e->config.incarnation)
        s->head.live_epoch = UINT32_MAX; /* that life is over, and all its spaces */
    else
        s->head.live_epoch = peer && peer->tx ? peer->tx->epoch : e->epoch_next;
}

static uint64_t cookie_for(const struct mrd_engine *e, const struct mrd_addr *addr,
                           const struct mrd_wire_head *head, uint32_t replaced)
{
    struct {
        struct mrd_addr addr;
        uint32_t src_inc, own_inc, replaced, zero;
    } c = {*addr, head->src_inc, e->config.incarnation, replaced, 0};

    return XXH3_64bits_withSeed(&c, sizeof(c), e->cookie_secret);
}

static void send_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                           const struct mrd_rx_packet *packet, uint64_t cookie)
{
    struct mrd_stateless *s = stateless(e, packet, head, MRD_WIRE_CHALLENGE);
    uint64_t up_usec = (e->now - e->opened_ns) / MRD_USEC;

    e->stats.rx_drop_challenged++;
    if (!s)
        return;
    s->head.src_inc = e->config.incarnation;
    s->head.cookie = cookie;
    s->head.echo_stamp = head->stamp;
    s->head.up_usec = up_usec < UINT32_MAX ? (uint32_t)up_usec : UINT32_MAX;
}

/* ---------------------------------------------------------------------------------------- expiry */

/* After such a silence nothing of the peer's space can still be on its way: it gave it up or let it idle away. */
static bool rx_expired(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint64_t a = MRD_FIRST_CONTACT_LIFE_NS + MRD_PACKET_LIFE_NS;
    uint64_t patience_ns = peer->rx_patience_ns > e->config.peer_timeout_ns
                               ? peer->rx_patience_ns
                               : e->config.peer_timeout_ns;
    uint64_t b = MRD_SEND_IDLE_LIFE_NS + patience_ns + 2 * MRD_PACKET_LIFE_NS;

    return peer->rx_state != MRD_RX_NONE && e->empty_ns > peer->heard_ns + (a > b ? a : b);
}

static void expire_rx(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (rx_expired(e, peer))
        mrd_engine_drop_rx(e, peer, MRD_RX_NONE);
}

/* Ending a send half early is always safe, late is not: this counts our own absence too. */
static bool tx_idle(const struct mrd_engine *e, const struct mrd_peer *peer, uint64_t idle_ns)
{
    const struct mrd_tx_half *tx = peer->tx;

    return tx->sent.una == tx->sent.next && mrd_list_empty(&peer->msgs) &&
           tx->refusals.next == &tx->refusals && tx->closes.next == &tx->closes &&
           e->now - tx->active_ns >= idle_ns;
}

static bool evictable(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    if (peer->tx && !tx_idle(e, peer, MRD_SEND_IDLE_LIFE_NS))
        return false;
    return peer->rx_state == MRD_RX_NONE || rx_expired(e, peer);
}

static void evict(struct mrd_engine *e, struct mrd_peer *peer)
{
    mrd_engine_drop_rx(e, peer, MRD_RX_NONE);
    if (peer->tx)
        mrd_engine_flush_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
    mrd_engine_disarm(e, peer);
    mrd_list_remove(&peer->ready);
    mrd_list_remove(&peer->suspect);
    mrd_list_remove(&peer->touched);
    mrd_peer_remove(&e->peers, peer);
    e->stats.peers_evicted++;
    e->stats.peers--;
}

struct mrd_peer *mrd_engine_peer_for(struct mrd_engine *e, const struct mrd_addr *addr)
{
    struct mrd_peer *peer = mrd_peer_find(&e->peers, addr);

    if (peer)
        return peer;
    if (!mrd_pool_free(&e->peers.entries)) {
        struct mrd_node *n = e->peers.all.next;

        while (n != &e->peers.all && !evictable(e, mrd_container_of(n, struct mrd_peer, node)))
            n = n->next;
        if (n == &e->peers.all)
            return NULL;
        evict(e, mrd_container_of(n, struct mrd_peer, node));
    }
    peer = mrd_peer_add(&e->peers, addr);
    assert(peer);
    peer->heard_ns = e->now;
    e->stats.peers++;
    return peer;
}

/* ---------------------------------------------------------------------------------------- send halves */

/* A space without packets, under the next epoch. `inc`: whom it speaks to; 0: whoever answers first. */
static void begin_epoch(struct mrd_engine *e, struct mrd_tx_half *tx, uint32_t inc)
{
    tx->epoch = e->epoch_next++;
    tx->epoch_ns = MRD_NEVER;
    tx->bound_inc = inc;
    tx->knew_inc = inc != 0;
    /* Of the peer's tracker nothing is known yet: what the smallest one's share of data allows. */
    tx->psn_limit =
        e->config.mover.tracker / 4 < FIRST_GRANT ? e->config.mover.tracker / 4 : FIRST_GRANT;
}

/*
 * Does an empty packet go first? While we are young, both ends may have opened at the same time, and a challenge could not
 * tell whether our epoch began before the peer did; and a peer that was given up may be down now and answer as another
 * life. Else data goes at once.
 */
static bool begins_with_hello(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    if (peer->rx_state == MRD_RX_HELD)
        return false;
    return peer->given_up ||
           (e->config.challenge_ns && e->now - e->opened_ns <= e->config.challenge_ns);
}

struct mrd_tx_half *mrd_engine_tx_half(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_cc_config cc = {.link_bps = m->link_bps,
                               .base_rtt_ns = m->base_rtt_ns,
                               .base_rtt_max_ns = m->base_rtt_max_ns,
                               .cwnd_cap_bytes = m->cwnd_cap_bytes,
                               .cwnd_start_bytes = m->cwnd_start_bytes,
                               .tune = m->tune};

    if (tx && !tx_idle(e, peer, MRD_SEND_IDLE_LIFE_NS))
        return tx;
    if (tx)
        mrd_engine_flush_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
    expire_rx(e, peer);
    tx = mrd_peer_tx_begin(&e->peers, peer, e->config.paths, m->tracker, m->tune, e->now);
    /* Not to a life that a tombstone remembers: whoever answers now is another, or begins anew. */
    begin_epoch(e, tx, peer->rx_state == MRD_RX_HELD ? peer->rx_inc : 0);
    tx->hello = tx->silence_probe = begins_with_hello(e, peer);
    tx->active_ns = e->now;
    tx->payload_bytes = peer->payload_bytes ? peer->payload_bytes : m->payload_bytes;
    cc.packet_bytes = tx->payload_bytes + MRD_HEAD_PEEK_BYTES + m->header_bytes;
    mrd_cc_init(&tx->cc, e->cc, &cc);
    tx->spray.ops = e->spray;
    e->spray->init(&tx->spray, &tx->paths, &e->rng);
    return tx;
}

/* The epoch ends, and nothing but empty packets went out in it: all work goes on in the next one. */
static bool renew_epoch(struct mrd_engine *e, struct mrd_peer *peer, uint32_t inc)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_pool *pages = tx->sent.pages;

    if (!tx->hello || tx->renewals++ == MRD_RENEWALS_MAX)
        return false;
    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->state == MRD_SENT_INFLIGHT) {
            assert(rec->kind == MRD_SENT_EMPTY);
            mrd_path_forgot(&tx->paths, rec->path);
            mrd_sent_lose(&tx->sent, rec, tx->path);
        }
    }
    mrd_sent_fini(&tx->sent);
    mrd_sent_init(&tx->sent, pages, e->config.mover.tracker, e->peers.max);
    mrd_loss_init(&tx->loss, e->config.mover.tune, e->now);
    begin_epoch(e, tx, inc);
    tx->ack_seen = tx->has_cookie = tx->copy_due = false;
    tx->since_request = tx->request_psn = tx->probes_due = 0;
    tx->silence_probe = true;
    mrd_engine_ready(e, peer);
    return true;
}

void mrd_engine_refusal_free(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_refusal *r)
{
    peer->num_refusals--;
    mrd_pool_release(&e->refusal_pool, r);
}

void mrd_engine_reclaim(struct mrd_engine *e)
{
    if (e->reclaimed_ns && e->now - e->reclaimed_ns < MRD_RECLAIM_NS)
        return;
    e->reclaimed_ns = e->now;
    for (struct mrd_node *n = e->peers.all.next; n != &e->peers.all; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        expire_rx(e, peer);
        if (peer->tx)
            mrd_engine_flows_close(e, peer, 0);
    }
}

/* Refusals outlive the space: their PSNs stay unreportable until the peer knows. All of them, into `list`. */
static void collect_refusals(struct mrd_tx_half *tx, struct mrd_node *list)
{
    mrd_list_splice(list, &tx->refusals);
    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->kind == MRD_SENT_REFUSAL && rec->state != MRD_SENT_ACKED)
            mrd_list_append(list, &rec->u.refusal->node);
    }
}

void mrd_engine_flush_tx(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_wc_status status)
{
    struct mrd_tx_half *tx = peer->tx;
    struct mrd_node refusals, *n;

    mrd_list_init(&refusals);
    collect_refusals(tx, &refusals);
    while ((n = mrd_list_first(&peer->msgs)))
        mrd_engine_abandon(e, mrd_container_of(n, struct mrd_msg, peer_node), status);
    while ((n = mrd_list_first(&peer->flows_tx)))
        mrd_engine_flow_tx_end(e, mrd_container_of(n, struct mrd_flow_tx, peer_node));
    while ((n = mrd_list_first(&tx->rnr)))
        mrd_engine_txq_free(e, mrd_container_of(n, struct mrd_txq, rnr_node));
    while ((n = mrd_list_first(&tx->txqs)))
        mrd_engine_txq_free(e, mrd_container_of(n, struct mrd_txq, peer_node));
    mrd_peer_tx_end(&e->peers, peer);
    while ((n = mrd_list_pop(&refusals))) {
        struct mrd_refusal *r = mrd_container_of(n, struct mrd_refusal, node);

        if (!peer->rx || r->rx_life != peer->rx_life) {
            mrd_engine_refusal_free(e, peer, r);
            continue;
        }
        mrd_list_append(&mrd_engine_tx_half(e, peer)->refusals, &r->node);
        mrd_engine_ready(e, peer);
    }
}

void mrd_engine_drop_rx(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_rx_state state)
{
    struct mrd_node *n, *next;

    while (peer->rx && (n = mrd_list_first(&peer->rx->slots.open)))
        mrd_engine_slot_fail(e, peer, mrd_container_of(n, struct mrd_slot, node), MRD_SLOT_CLOSED,
                             MRD_WC_REM_ABORT_ERR);
    mrd_list_splice(&peer->wants, &peer->readies);
    while ((n = mrd_list_first(&peer->wants)))
        mrd_engine_want_free(e, mrd_container_of(n, struct mrd_want, peer_node));
    while ((n = mrd_list_first(&peer->flows_rx)))
        mrd_engine_flow_rx_free(e, mrd_container_of(n, struct mrd_flow_rx, peer_node),
                                MRD_WC_REM_ABORT_ERR);
    for (n = peer->tx ? peer->tx->refusals.next : NULL; n && n != &peer->tx->refusals; n = next) {
        next = n->next;
        mrd_list_remove(n);
        mrd_engine_refusal_free(e, peer, mrd_container_of(n, struct mrd_refusal, node));
    }
    mrd_peer_rx_end(&e->peers, peer, state);
}

void mrd_engine_unreachable(struct mrd_engine *e, struct mrd_peer *peer)
{
    e->stats.peers_unreachable++;
    mrd_engine_event(e, peer, MRD_EVENT_PEER_UNREACHABLE);
    peer->given_up = true;
    /* Both directions end: what the peer still sends into its space is answered by resets. */
    mrd_engine_drop_rx(e, peer, peer->rx_state == MRD_RX_NONE ? MRD_RX_NONE : MRD_RX_TOMB);
    mrd_engine_flush_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
}

/* ---------------------------------------------------------------------------------------- received */

/* A first contact of a life that we hold no space of: may it in? */
static struct mrd_peer *admit(struct mrd_engine *e, struct mrd_peer *peer,
                              const struct mrd_wire_head *head, const struct mrd_rx_packet *packet,
                              const struct mrd_addr *addr)
{
    uint32_t other = 0;
    bool young = e->config.challenge_ns && e->empty_ns - e->opened_ns <= e->config.challenge_ns &&
                 head->src_inc != e->config.incarnation; /* our own life cannot be an earlier one */
    bool pressed = !peer && mrd_pool_free(&e->peers.entries) <= e->peers.max / 8;
    uint64_t cookie;

    if (peer && peer->rx_state != MRD_RX_NONE)
        other = peer->rx_inc;
    else if (peer && peer->tx && peer->tx->bound_inc != head->src_inc)
        other = peer->tx->bound_inc;
    cookie = cookie_for(e, addr, head, other);
    if ((young || other || pressed) && !(head->dst_inc == e->config.incarnation &&
                                         head->flags & MRD_WIRE_COOKIE && head->cookie == cookie)) {
        send_challenge(e, head, packet, cookie);
        return NULL;
    }
    if (!peer)
        peer = mrd_engine_peer_for(e, addr);
    if (!peer) {
        e->stats.rx_drop_table_full++;
        return NULL;
    }
    if (peer->tx && peer->tx->bound_inc && peer->tx->bound_inc != head->src_inc) {
        e->stats.peers_restarted++;
        mrd_engine_event(e, peer, MRD_EVENT_PEER_RESTARTED);
        mrd_engine_drop_rx(e, peer, MRD_RX_NONE);
        mrd_engine_flush_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
    }
    return peer;
}

static bool is_unknown(const struct mrd_addr *addr)
{
    static const uint8_t zero[sizeof(addr->ip)];

    return !memcmp(addr->ip, zero, sizeof(zero));
}

/* What we send to ourselves is of our send half's epoch and comes from the address that it hits, if that is known. */
static bool is_own(const struct mrd_peer *peer, const struct mrd_wire_head *head,
                   const struct mrd_rx_packet *packet)
{
    return peer && peer->tx && peer->tx->epoch == head->epoch &&
           (is_unknown(&packet->to) ||
            !memcmp(packet->from.ip, packet->to.ip, sizeof(packet->to.ip)));
}

struct mrd_peer *mrd_engine_identify(struct mrd_engine *e, const struct mrd_wire_head *head,
                                     const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;
    bool fc = head->flags & MRD_WIRE_FIRST_CONTACT;
    struct mrd_peer *peer;
    bool known;

    addr.port = head->reply;
    /* Our own words from another place: somebody sends them back. */
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
        expire_rx(e, peer);
    known = peer && peer->rx_state != MRD_RX_NONE && peer->rx_inc == head->src_inc;
    if (known && head->epoch < peer->rx_epoch) {
        e->stats.rx_drop_epoch++;
        return NULL;
    }
    if (!known || head->epoch != peer->rx_epoch) {
        if (!fc) {
            send_reset(e, peer, head, packet);
            return NULL;
        }
        if (!known)
            peer = admit(e, peer, head, packet, &addr);
        if (!peer)
            return NULL;
        mrd_engine_drop_rx(e, peer, MRD_RX_NONE);
        mrd_peer_rx_begin(&e->peers, peer, e->config.mover.tracker, e->config.mover.tracker);
        peer->rx_inc = head->src_inc;
        peer->rx_epoch = head->epoch;
    }
    if (peer->rx_state == MRD_RX_TOMB) {
        send_reset(e, peer, head, packet);
        return NULL;
    }
    peer->heard_ns = e->now;
    if (fc)
        peer->rx_patience_ns = head->patience_ns;
    if (!is_unknown(&packet->to)) {
        peer->local = packet->to;
        peer->local.port = 0;
    }
    if (peer->tx && !peer->tx->bound_inc)
        peer->tx->bound_inc = head->src_inc;
    return peer;
}

static struct mrd_peer *peer_of(struct mrd_engine *e, const struct mrd_wire_head *head,
                                const struct mrd_addr *from)
{
    struct mrd_addr addr = *from;

    addr.port = head->reply;
    return mrd_peer_find(&e->peers, &addr);
}

/* The peer does not know our space any more: our work to it ends. Told only if anything was lost by that. */
static void peer_restarted(struct mrd_engine *e, struct mrd_peer *peer, bool receives_lost)
{
    if (receives_lost || !mrd_list_empty(&peer->msgs)) {
        e->stats.peers_restarted++;
        mrd_engine_event(e, peer, MRD_EVENT_PEER_RESTARTED);
    }
    peer->given_up = true;
    mrd_engine_flush_tx(e, peer, MRD_WC_RETRY_EXC_ERR);
}

void mrd_engine_life_over(struct mrd_engine *e, struct mrd_peer *peer)
{
    peer->rx_patience_ns = 0; /* it waits for nothing any more */
    peer_restarted(e, peer, false);
}

void mrd_engine_rx_reset(struct mrd_engine *e, const struct mrd_wire_head *head,
                         const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_tx_half *tx = peer ? peer->tx : NULL;
    bool dropped;

    if (head->dst_inc != e->config.incarnation || !tx || head->epoch != tx->epoch ||
        (tx->bound_inc && tx->bound_inc != head->src_inc)) {
        e->stats.rx_drop_reset++;
        return;
    }
    e->stats.rx_resets++;
    dropped = peer->rx_state == MRD_RX_HELD && peer->rx_inc == head->src_inc &&
              peer->rx_epoch < head->live_epoch;
    if (dropped)
        mrd_engine_drop_rx(e, peer, MRD_RX_TOMB);
    if (!renew_epoch(e, peer, 0))
        peer_restarted(e, peer, dropped);
}

/*
 * When did the challenger open? Between the echoed packet's departure and now, less the time that it tells. An epoch that
 * began before may have been executed by an earlier life, and ends; one that began after is safe. In doubt (the challenge
 * was long on its way) nothing is done: the next one may tell, and the flag's life bounds the doubt.
 */
enum epoch_age { EPOCH_OLDER, EPOCH_YOUNGER, EPOCH_IN_DOUBT };

static enum epoch_age compare_epoch(const struct mrd_engine *e, const struct mrd_tx_half *tx,
                                    const struct mrd_wire_head *head)
{
    uint64_t up_ns = head->up_usec * MRD_USEC;
    uint32_t flight = mrd_engine_stamp(e->now) - head->echo_stamp;
    uint64_t age_ns = e->now - tx->epoch_ns;
    uint64_t flight_ns = (uint64_t)flight * MRD_WIRE_STAMP_NS;

    if (tx->knew_inc || tx->epoch_ns == MRD_NEVER || age_ns < up_ns || head->up_usec == UINT32_MAX)
        return EPOCH_YOUNGER;
    return flight_ns <= age_ns && age_ns - flight_ns > up_ns + MRD_USEC ? EPOCH_OLDER
                                                                        : EPOCH_IN_DOUBT;
}

/* The challenger executed nothing: bind to it and repeat everything with the cookie. */
void mrd_engine_rx_challenge(struct mrd_engine *e, const struct mrd_wire_head *head,
                             const struct mrd_addr *from)
{
    struct mrd_peer *peer = peer_of(e, head, from);
    struct mrd_tx_half *tx = peer ? peer->tx : NULL;

    if (head->dst_inc != e->config.incarnation || !tx || head->epoch != tx->epoch ||
        tx->acked_once || (tx->bound_inc && tx->bound_inc != head->src_inc)) {
        e->stats.rx_drop_reset++;
        return;
    }
    if (tx->has_cookie && tx->cookie == head->cookie)
        return; /* one of several, answered already */
    switch (compare_epoch(e, tx, head)) {
    case EPOCH_OLDER:
        if (renew_epoch(e, peer, head->src_inc))
            break;
        e->stats.rx_resets++;
        peer_restarted(e, peer, false);
        return;
    case EPOCH_IN_DOUBT:
        if (renew_epoch(e, peer, head->src_inc))
            break;
        return;
    case EPOCH_YOUNGER:
        break;
    }
    /* From here on the epoch is younger than the challenger, and what was held back may go. */
    tx->hello = tx->silence_probe = false;
    e->stats.rx_challenges++;
    tx->bound_inc = head->src_inc;
    tx->cookie = head->cookie;
    tx->has_cookie = true;
    peer->heard_ns = e->now;
    mrd_engine_answered(e, peer);
    while (tx->sent.inflight.num) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, tx->sent.inflight.head);

        mrd_path_forgot(&tx->paths, rec->path);
        rec->deliberate = true; /* no loss: it says nothing about a path */
        e->stats.retx_challenge++;
        mrd_sent_lose(&tx->sent, rec, tx->path);
    }
    mrd_engine_ready(e, peer);
}
