/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks every packet that leaves a host. Checks after each turn of a host's loop what it has
 * learnt of its peers, which may only grow. Also delivers old copies of packets, as networks do.
 */
#include "core/engine/tx_gate.h"
#include "core/seq.h"
#include "tests/support/swarm.h"
#include "transport/context.h"
#include "transport/movers/sim/sim_host.h"

#define CLOCKS_NS (1 * MSEC_NS) /* by how much two clocks may drift apart in a run */

enum {
    AUDITS = 8, /* per thousand of the turns of a host's loop: an audit follows */
    PROBES_OUT = 2,
    HEAD_BYTES_MOST = 256,
    FIRST_CONTACTS = 10, /* so many times as many copies of first contacts */
};

static struct mrd_engine *engine_of(const struct swarm *s, uint32_t host)
{
    return s->host[host].context ? mrd_context_engine(s->host[host].context) : NULL;
}

/*
 * Does the host send a packet when it makes it? One that the device did not take at once leaves
 * later, when much may have arrived since.
 */
static bool sends_at_once(const struct swarm *s, uint32_t host)
{
    return mrd_context_impl(s->host[host].context)->outbox.first == 0;
}

static struct mrd_peer *peer_of(const struct mrd_engine *e, uint32_t to)
{
    struct mrd_addr addr = mrd_sim_addr(to);

    return mrd_peer_find(&e->peers, &addr);
}

/* ---------------------------------------------------------------------------------------- acks */

/* Checks acks of a space: serials grow, what was acked stays so, what was granted is accepted. */
static void judge_told(struct swarm *s, const struct mrd_sim_datagram *d,
                       const struct mrd_wire_head *head, uint32_t epoch, uint32_t serial,
                       uint32_t limit, uint32_t cum)
{
    struct swarm_told *told = &s->told[d->from][d->to];
    const struct mrd_engine *e = engine_of(s, d->from);
    const struct mrd_peer *peer = e ? peer_of(e, d->to) : NULL;

    if (!head->dst_inc)
        return;
    if (told->inc == head->dst_inc && told->epoch == epoch && told->by == head->src_inc) {
        swarm_check(s, !mrd_seq_before(serial, told->serial),
                    "host %u acks host %u with serial %u after %u", d->from, d->to, serial,
                    told->serial);
        /* A later grant may be smaller. */
        limit = mrd_seq_before(limit, told->limit) ? told->limit : limit;
        swarm_check(s, !mrd_seq_before(cum, told->cum), "host %u acks host %u below %u, now %u",
                    d->from, d->to, told->cum, cum);
    }
    if (peer && peer->rx && peer->space.inc == head->dst_inc && peer->space.epoch == epoch)
        swarm_check(s, !mrd_seq_before(peer->rx->rcv.limit, limit),
                    "host %u granted host %u PSNs below %u, and takes those below %u", d->from,
                    d->to, limit, peer->rx->rcv.limit);
    *told = (struct swarm_told){.by = head->src_inc,
                                .inc = head->dst_inc,
                                .epoch = epoch,
                                .serial = serial,
                                .limit = limit,
                                .cum = cum,
                                .farewells = told->farewells};
}

static void judge_ack(struct swarm *s, const struct mrd_sim_datagram *d,
                      const struct mrd_wire_head *head)
{
    struct mrd_wire_ack ack;

    swarm_check(s, mrd_wire_get_ack(d->data, head, &ack), "host %u sends a malformed ack", d->from);
    judge_told(s, d, head, head->epoch, ack.serial, ack.psn_limit, ack.cum);
    s->told[d->from][d->to].farewells += ack.live_epoch == UINT32_MAX;
}

void swarm_judge_closed(struct swarm *s, uint32_t host, uint64_t kept)
{
    for (uint32_t to = 0; to < s->config.sim.hosts; to++) {
        uint32_t farewells = s->told[host][to].farewells;

        swarm_check(s, farewells == 0 || farewells + kept >= MRD_FAREWELL_ACKS,
                    "host %u closed, and acked what it has from host %u %u times", host, to,
                    farewells);
        s->told[host][to].farewells = 0;
    }
}

/* ---------------------------------------------------------------------------------------- data */

/* Does the packet carry parts of messages? */
static bool has_message(struct swarm *s, const struct mrd_sim_datagram *d,
                        const struct mrd_wire_head *head)
{
    struct mrd_wire_part part;

    for (uint32_t at = head->parts_at; at < head->head_len;) {
        swarm_check(s, mrd_wire_get_part(d->data, &at, head->head_len, &part),
                    "host %u sends a malformed part", d->from);
        if (part.op == MRD_OP_SEND || part.op == MRD_OP_WRITE)
            return true;
    }
    return false;
}

/* FIRST_CONTACT must end with the first ack of the epoch, or when the first contact is too old. */
static void judge_first_contact(struct swarm *s, const struct mrd_sim_datagram *d,
                                const struct mrd_wire_head *head, const struct mrd_send_state *tx,
                                bool just_sent)
{
    struct swarm_begun *begun = &s->begun[d->from][d->to];
    uint64_t now_ns = mrd_sim_now(s->sim);

    if (begun->inc != head->src_inc || begun->epoch != head->epoch)
        *begun = (struct swarm_begun){.inc = head->src_inc, .epoch = head->epoch, .at_ns = now_ns};
    if (!(head->flags & MRD_WIRE_FIRST_CONTACT))
        return;
    swarm_check(
        s, now_ns - begun->at_ns <= MRD_FIRST_CONTACT_LIFE_NS + MRD_PACKET_LIFE_NS / 2 + CLOCKS_NS,
        "host %u to host %u: a first contact %.1f ms after it began", d->from, d->to,
        (double)(now_ns - begun->at_ns) / 1e6);
    swarm_check(s, !just_sent || !tx->contact.acked_once,
                "host %u to host %u: a first contact, although host %u has acked", d->from, d->to,
                d->to);
}

/*
 * Bytes in flight for which the window had to be open: without probes, empty and control packets.
 */
static uint64_t windowed_bytes(const struct mrd_send_state *tx)
{
    uint64_t bytes = tx->sent.inflight_bytes;

    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        const struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->state == MRD_SENT_INFLIGHT &&
            (rec->deliberate || rec->probed || rec->kind == MRD_SENT_EMPTY ||
             mrd_sent_is_control(rec->kind)))
            bytes -= rec->bytes;
    }
    return bytes;
}

/* The packet that may leave while the window is not full: one of before the path shrank, perhaps. */
static uint32_t largest_packet(const struct mrd_send_state *tx)
{
    uint32_t most = tx->pmtu.payload + HEAD_BYTES_MOST;

    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        const struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->state == MRD_SENT_INFLIGHT && rec->bytes > most)
            most = rec->bytes;
    }
    return most;
}

static void judge_window(struct swarm *s, const struct mrd_sim_datagram *d,
                         const struct mrd_sent *rec, const struct mrd_send_state *tx)
{
    double most = tx->cc.cwnd_bytes + largest_packet(tx);

    if (rec->deliberate || rec->probed || (double)tx->sent.inflight_bytes <= most)
        return;
    swarm_check(s, (double)windowed_bytes(tx) <= most,
                "host %u to host %u: %u bytes in flight, PSN %u again %u, and the window is %.0f",
                d->from, d->to, (unsigned)windowed_bytes(tx), rec->psn, rec->tx_count - 1u,
                tx->cc.cwnd_bytes);
}

/* Only between two lives that both want it is a check left out. */
static void judge_unchecked(struct swarm *s, const struct mrd_sim_datagram *d,
                            const struct mrd_wire_head *head, const struct mrd_engine *from)
{
    const struct mrd_engine *to = engine_of(s, d->to);

    if (!(head->flags & MRD_WIRE_UNCHECKED) || s->config.sealed)
        return;
    swarm_check(s, !from || from->config.no_check, "host %u leaves out a check", d->from);
    swarm_check(s, !to || to->config.incarnation != head->dst_inc || to->config.no_check,
                "host %u leaves out a check, and host %u wants it", d->from, d->to);
}

static void judge_data(struct swarm *s, const struct mrd_sim_datagram *d,
                       const struct mrd_wire_head *head)
{
    const struct mrd_engine *e = engine_of(s, d->from);
    const struct mrd_peer *peer = e ? peer_of(e, d->to) : NULL;
    const struct mrd_send_state *tx =
        peer && peer->tx && peer->tx->contact.epoch == head->epoch ? peer->tx : NULL;
    const struct mrd_sent *rec = tx ? mrd_sent_get(&tx->sent, head->psn) : NULL;
    bool just_sent = rec && rec->tx_ns == e->clock.now_ns && sends_at_once(s, d->from),
         message = has_message(s, d, head);

    judge_first_contact(s, d, head, tx, just_sent);
    judge_unchecked(s, d, head, e);
    if (head->flags & MRD_WIRE_ACKBLOCK) {
        judge_told(s, d, head, head->ack_epoch, head->ack_serial, head->ack_psn_limit,
                   head->ack_cum);
        swarm_check(s, !just_sent || !peer->rx || peer->rx->rcv.highest == head->ack_cum,
                    "host %u: an ack of host %u's PSNs below %u rides, and it has %u", d->from,
                    d->to, head->ack_cum, peer->rx->rcv.highest - 1);
    }
    if (tx)
        s->view[d->from][d->to].unasked_ns =
            just_sent && !tx->run.limited && !(head->flags & MRD_WIRE_ACK_REQUEST) ? e->clock.now_ns
                                                                                   : 0;
    if (!message)
        return;
    swarm_check(s, !just_sent || rec->tx_count > 1 || mrd_seq_before(head->psn, tx->told.psn_limit),
                "host %u sends PSN %u, and host %u granted those below %u", d->from, head->psn,
                d->to, tx->told.psn_limit);
    if (just_sent)
        judge_window(s, d, rec, tx);
}

/* ----------------------------------------------------------------------------------- old copies */

static uint64_t draw_age_ns(struct swarm *s)
{
    static const uint64_t most_ns[] = {100 * USEC_NS, 10 * MSEC_NS, 300 * MSEC_NS, SWARM_OLDEST_NS};

    return mrd_rng_u64(&s->wire_rng) % most_ns[mrd_rng_below(&s->wire_rng, 4)];
}

/*
 * Delivers a copy of some packets late, and not before a packet could come that meets no queue. Not
 * while links are cut: a copy would get around the cut. More of first contacts: they are few, and a
 * host that accepts one begins a space.
 */
static void copy_late(struct swarm *s, const struct mrd_sim_datagram *d,
                      const struct mrd_wire_head *head)
{
    uint32_t per_mille = s->config.old_copies;
    struct mrd_addr from, to;

    if (head->flags & MRD_WIRE_FIRST_CONTACT)
        per_mille *= FIRST_CONTACTS;
    if (s->healing || s->cut.until_ns > 0 || mrd_rng_below(&s->wire_rng, 1000) >= per_mille)
        return;
    mrd_sim_tapped(s->sim, &from, &to);
    assert_int_equal(mrd_sim_inject_from(s->sim, &from, &to, d->data, d->len,
                                         mrd_sim_now(s->sim) + swarm_delay_ns(s) + draw_age_ns(s)),
                     0);
}

/* Adds a packet's time, path and length to the digest. Its bytes have addresses of the process. */
static void digest(struct swarm *s, const struct mrd_sim_datagram *d)
{
    uint64_t fact =
        mrd_sim_now(s->sim) * 31 + d->path * 7919ull + d->len * 104729ull + d->from * 3ull + d->to;

    s->digest = (s->digest ^ fact) * 0x9e3779b97f4a7c15u;
    s->digest ^= s->digest >> 29;
}

static void note_source(struct swarm *s, const struct mrd_sim_datagram *d,
                        const struct mrd_wire_head *head)
{
    struct mrd_addr from, to;

    mrd_sim_tapped(s->sim, &from, &to);
    struct swarm_way *w = &s->view[d->from][d->to].way[mrd_sim_address_id(&to)];
    from.port = 1; /* that of the path */
    if (w->source.port && memcmp(&w->source, &from, sizeof(from)) != 0)
        w->moved_ns = mrd_sim_now(s->sim);
    w->source = from;
    if (w->last_ns && mrd_sim_now(s->sim) - w->last_ns > swarm_timeout_ns(s, d->to))
        w->quiet_ns = mrd_sim_now(s->sim);
    w->last_ns = mrd_sim_now(s->sim);
    if (head->type != MRD_WIRE_DATA)
        return;
    if (head->flags & MRD_WIRE_FIRST_CONTACT && !w->first_contact)
        w->hello_ns = mrd_sim_now(s->sim);
    w->first_contact = head->flags & MRD_WIRE_FIRST_CONTACT;
    if (w->first_contact)
        w->contact_ns = mrd_sim_now(s->sim);
}

enum mrd_sim_verdict swarm_judge_packet(void *arg, struct mrd_sim_datagram *d)
{
    struct swarm *s = arg;
    struct mrd_sim_datagram inner = swarm_opened(s, d);
    struct mrd_wire_head head;

    digest(s, d);
    if (s->stranger && !s->stranger->cut)
        stranger_watch(s->stranger, d);
    swarm_check(s, mrd_wire_get(inner.data, inner.len, &head) == MRD_WIRE_OK,
                "host %u sends a malformed packet", d->from);
    note_source(s, d, &head);
    if (head.type == MRD_WIRE_ACK)
        judge_ack(s, &inner, &head);
    else if (head.type == MRD_WIRE_DATA)
        judge_data(s, &inner, &head);
    if (s->config.narrow_bytes && d->len > s->config.narrow_bytes &&
        mrd_sim_now(s->sim) >= s->config.narrow_from_ns &&
        mrd_sim_now(s->sim) < s->config.narrow_to_ns)
        return MRD_SIM_DROP;
    if (s->config.old_copies > 0)
        copy_late(s, d, &head);
    return MRD_SIM_PASS;
}

/* --------------------------------------------------------------------------------- after a turn */

/* Number of packets that are not acked. */
static uint32_t unacked(const struct mrd_send_state *tx)
{
    uint32_t n = 0;

    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++)
        n += mrd_sent_get(&tx->sent, psn) != NULL;
    return n;
}

/*
 * Checks what a host has learnt of a peer: acks and serials never go back, and only an ack of that
 * peer counts as its answer.
 */
static void judge_learnt(struct swarm *s, uint32_t host, uint32_t to,
                         const struct mrd_send_state *tx, uint32_t call_seq)
{
    struct swarm_view *v = &s->view[host][to];

    if (v->epoch != tx->contact.epoch) {
        v->epoch = tx->contact.epoch;
        v->una = tx->sent.una;
        v->unanswered = 0;
        v->ack_seen = false;
    }
    swarm_check(s, !mrd_seq_before(tx->sent.una, v->una), "host %u forgets what host %u acked",
                host, to);
    swarm_check(s, !v->ack_seen || !mrd_seq_before(tx->told.serial, v->ack_serial),
                "host %u takes an older ack of host %u for a newer one", host, to);
    swarm_check(s,
                tx->sent.una == v->una || tx->probes.unanswered < PROBES_OUT ||
                    call_seq - v->call_seq > 1 || /* calls of the user are not looked at */
                    tx->probes.unanswered < v->unanswered,
                "host %u counts %u probes of host %u as unanswered, and it acks", host,
                tx->probes.unanswered, to);
    swarm_check(s,
                tx->probes.unanswered >= v->unanswered || !v->ack_seen ||
                    tx->told.serial != v->ack_serial ||
                    tx->probes.stall_seen_ns != v->stall_seen_ns || unacked(tx) < v->unacked,
                "host %u takes something for an answer of host %u that tells nothing", host, to);
    v->unacked = tx->probes.unanswered > 0 ? unacked(tx) : 0;
    v->stall_seen_ns = tx->probes.stall_seen_ns;
    v->call_seq = call_seq;
    v->una = tx->sent.una;
    v->ack_seen = tx->told.valid;
    v->ack_serial = tx->told.serial;
    v->unanswered = tx->probes.unanswered;
}

/*
 * A host that has nothing more to send to a peer must have asked for an ack with its last packet.
 * Or an earlier request must be unanswered; or one was when the window held up what would have
 * followed, and its ack, which came in the same instant, told that nothing need follow. Hosts with
 * several addresses are several pairs, of which one may be at rest while another asks: nothing is
 * said of these.
 */
static void judge_asked(struct swarm *s, uint32_t host, uint32_t to,
                        const struct mrd_send_state *tx, uint64_t now_ns)
{
    if (s->config.networks & (SWARM_TWO_ADDRESSES | SWARM_ROAM) ||
        s->view[host][to].unasked_ns != now_ns || !tx->sent.inflight.num || tx->queued_bytes ||
        tx->sent.lost.num || tx->sent.lost_control.num || tx->run.limited || tx->probes.copy_due ||
        tx->probes.due || tx->probes.silence_due || !mrd_list_empty(&tx->refusals) ||
        !mrd_list_empty(&tx->aborts) || !mrd_list_empty(&tx->closes))
        return;
    swarm_check(s, !mrd_seq_before(tx->request.psn, tx->sent.una),
                "host %u has nothing more for host %u, and asks for no ack", host, to);
}

/*
 * Checks that lost packets are retransmitted as soon as the window is open. Not while the peer is
 * on the ready list, or its timer is due: then its turn comes next.
 */
static void judge_lost(struct swarm *s, uint32_t host, const struct mrd_engine *e,
                       const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;
    uint32_t to = peer->addr.port - 1;

    if (mrd_context_impl(s->host[host].context)->outbox.count > 0 || tx->contact.hello ||
        !mrd_list_empty(&peer->ready) || peer->timer.at_ns <= e->clock.now_ns + USEC_NS)
        return;
    swarm_check(s, !tx->sent.lost_control.num,
                "host %u does not send again what host %u lost, a refusal or an ABORT", host, to);
    swarm_check(s, !tx->sent.lost.num || !mrd_tx_window_open(e, tx),
                "host %u does not send again what host %u lost, and the window is open", host, to);
}

/* How many items of a shared pool a peer holds. A spare page is beyond its share. */
static uint32_t held(const struct mrd_peer *peer, enum swarm_pool what)
{
    switch (what) {
    case SWARM_POOL_REFUSALS:
        return peer->uses.refusals;
    case SWARM_POOL_SLOTS:
        return peer->rx ? peer->rx->slots.num_open : 0;
    case SWARM_POOL_PENDS:
        return peer->uses.reorder_entries;
    case SWARM_POOL_PAGES:
        return peer->tx ? peer->tx->sent.num_pages - (peer->tx->sent.spare != NULL) : 0;
    default:
        return 0;
    }
}

/*
 * Checks shares of a pool: a peer may take more only while it holds no more than is free. The check
 * sees only what changed since the last turn. All items taken since may have been free then, and
 * others may have been taken and given back; `slack` allows for these. Refusals need none: the engine
 * counts them, and many are given back by one ack, and taken again.
 */
static void judge_share(struct swarm *s, uint32_t host, const struct mrd_engine *e,
                        enum swarm_pool what)
{
    static const char *const name[] = {"refusals", "open messages", "held back messages",
                                       "pages of records", "responses"};
    const struct mrd_pool *pool = swarm_pool(s, host, what);
    /* Each peer has a first page and one for refusals, and some use theirs. */
    uint32_t kept = what == SWARM_POOL_PAGES ? 2 * e->peers.max : 0, taken = 0;
    uint32_t slack = (pool->num - kept) / 8 + 2 + (kept > 0 ? s->config.sim.hosts : 0);
    uint32_t free = mrd_pool_free(pool) > kept ? mrd_pool_free(pool) - kept : 0;

    for (const struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, const struct mrd_peer, node);
        uint32_t seen = s->view[host][peer->addr.port - 1].held[what], now = held(peer, what);

        taken += now > seen ? now - seen : 0;
    }
    if (what == SWARM_POOL_REFUSALS) {
        uint64_t *before = &s->host[host].refused;

        if (e->stats.tx_refusals - *before > taken)
            taken = (uint32_t)(e->stats.tx_refusals - *before);
        slack = 1;
        *before = e->stats.tx_refusals;
    }
    for (const struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, const struct mrd_peer, node);
        struct swarm_view *v = &s->view[host][peer->addr.port - 1];
        uint32_t now = held(peer, what), grown = now > v->held[what] ? now - v->held[what] : 0;

        swarm_check(s, !grown || now <= free + taken - grown + slack,
                    "host %u lets host %u take %u %s, of %u, and %u are free", host,
                    peer->addr.port - 1, now, name[what], pool->num, free);
        v->held[what] = now;
    }
}

/* Is it an honest host, at its first address? Only such peers have a struct swarm_view. */
static bool is_at_home(const struct swarm *s, const struct mrd_peer *peer)
{
    return peer->addr.port <= s->config.sim.hosts && mrd_sim_address_id(&peer->addr) == 0;
}

void swarm_judge_turn(void *arg, uint32_t host)
{
    struct swarm *s = arg;
    struct mrd_engine *e = engine_of(s, host);

    if (!e)
        return;
    for (const struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        const struct mrd_peer *peer = mrd_container_of(n, const struct mrd_peer, node);

        if (peer->tx && is_at_home(s, peer)) {
            judge_learnt(s, host, peer->addr.port - 1, peer->tx, e->calls.seq);
            judge_asked(s, host, peer->addr.port - 1, peer->tx, e->clock.now_ns);
            judge_lost(s, host, e, peer);
        }
    }
    for (unsigned what = 0; what < SWARM_POOLS && !s->config.networks; what++)
        judge_share(s, host, e, what);
    if (mrd_rng_below(&s->wire_rng, 1000) < AUDITS) {
        const char *wrong = mrd_engine_audit(e);

        swarm_check(s, !wrong, "audit of host %u: %s", host, wrong);
    }
}
