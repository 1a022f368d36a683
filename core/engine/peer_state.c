/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of peers and of their send and receive states: when they begin and end, and what ends with them. */
#include "core/engine/peer_state.h"

#include <assert.h>
#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/message.h"
#include "core/engine/query.h"
#include "core/engine/request.h"
#include "core/engine/rnr.h"
#include "core/engine/rx_flow.h"
#include "core/engine/tx_flow.h"
#include "core/engine/txq.h"

enum {
    FIRST_GRANT = 2 * MRD_TRACKER_MIN / 16 * MRD_PSN_DATA, /* data fills half of it */
    /* Entries that gave way, one to the other, while the first is active. They may do so in a ring. */
    HEIRS_MOST = 128,
};

void mrd_peer_report_and_unwatch(struct mrd_engine *e, struct mrd_peer *peer,
                                 enum mrd_event_type type)
{
    mrd_event_add(e, peer, type);
    peer->watch.users = 0;
}

void mrd_send_state_answered(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (!peer->tx)
        return;
    peer->given_up = false;
    peer->tx->probes.unanswered = 0;
    peer->tx->probes.silent_since_ns = mrd_clock_present_ns(&e->clock);
    if (!peer->watch.users)
        return;
    if (!peer->watch.inc)
        peer->watch.inc = peer->tx->contact.inc;
    if (peer->watch.inc == peer->tx->contact.inc)
        return;
    e->stats.peers_restarted++;
    mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_RESTARTED);
}

void mrd_send_state_keepalive(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = mrd_send_state_open(e, peer);

    tx->probes.silence_due = !mrd_sent_any(&tx->sent);
    tx->active_ns = e->clock.now_ns; /* the next question is an interval away */
    mrd_tx_ready(e, peer);
}

/* --------------------------------------------------------------------------------------- expiry */

/*
 * Was the peer silent for so long that no packet of its space can still be on its way? Then it has
 * given the space up, or let it end by idleness.
 */
static bool rx_expired(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint64_t a = MRD_FIRST_CONTACT_LIFE_NS + MRD_PACKET_LIFE_NS;
    uint64_t give_up_ns = peer->space.max_unacked_ns > e->config.peer_timeout_ns
                              ? peer->space.max_unacked_ns
                              : e->config.peer_timeout_ns;
    uint64_t b = MRD_SEND_IDLE_LIFE_NS + give_up_ns + 2 * MRD_PACKET_LIFE_NS;

    return peer->space.state != MRD_SPACE_NONE &&
           e->clock.empty_ns > peer->heard_ns + (a > b ? a : b);
}

void mrd_recv_state_expire(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (rx_expired(e, peer))
        mrd_recv_state_end(e, peer, MRD_SPACE_NONE);
}

/*
 * Is the send state unused since idle_ns? Our own stalls count, too: to end a state early is always
 * safe, to end it late is not.
 */
static bool tx_idle(const struct mrd_engine *e, const struct mrd_peer *peer, uint64_t idle_ns)
{
    const struct mrd_send_state *tx = peer->tx;

    return tx->sent.una == tx->sent.next && mrd_list_empty(&peer->msgs) &&
           tx->refusals.next == &tx->refusals && tx->closes.next == &tx->closes &&
           e->clock.now_ns - tx->active_ns >= idle_ns;
}

/* The entry that `peer` gave way to; NULL: to none, or that one went, or `hops` are over. */
static struct mrd_peer *next_heir(const struct mrd_engine *e, const struct mrd_peer *peer,
                                  unsigned *hops)
{
    return peer->heir && (*hops)++ < HEIRS_MOST ? mrd_peer_by_id(&e->peers, peer->heir) : NULL;
}

struct mrd_peer *mrd_peer_successor(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    unsigned hops = 0;
    struct mrd_peer *p = next_heir(e, peer, &hops);

    while (p && !mrd_peer_has_state(p))
        p = next_heir(e, p, &hops);
    return p;
}

struct mrd_peer *mrd_peer_heir(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    return peer->own_way ? NULL : mrd_peer_successor(e, peer);
}

/* Is the entry that it gave way to still asked for: by handles, or by who ends the watch that went there? */
static bool has_heir(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_peer *p = mrd_peer_successor(e, peer);

    return p && (!peer->own_way || p->watch.users);
}

uint64_t mrd_peer_heirs_failed_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_peer *p = peer, *next;
    unsigned hops = 0;
    uint64_t ns = 0;

    for (; p->heir; p = next) {
        next = next_heir(e, p, &hops);
        if (!next) /* it went, and may be the one that evicted_ns is of */
            return mrd_later(ns, e->lives.evicted_ns);
        if (next == peer)
            break;
        ns = mrd_later(ns, next->failed_ns);
    }
    return ns;
}

/* Copies of what failed at that time: may they still come to their target? */
static bool may_still_come(const struct mrd_engine *e, uint64_t failed_ns)
{
    return failed_ns && e->clock.now_ns < failed_ns + MRD_PACKET_LIFE_NS;
}

static bool evictable(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    if (peer->watch.users)
        return false;
    if (peer->tx && !tx_idle(e, peer, MRD_SEND_IDLE_LIFE_NS))
        return false;
    return peer->space.state == MRD_SPACE_NONE || rx_expired(e, peer);
}

static void leave_lists(struct mrd_engine *e, struct mrd_peer *peer)
{
    mrd_heap_disarm(&e->timers.heap, &peer->timer);
    mrd_list_remove(&peer->ready);
    mrd_list_remove(&peer->suspect);
    mrd_list_remove(&peer->touched);
}

static void evict(struct mrd_engine *e, struct mrd_peer *peer)
{
    e->lives.evicted_ns = mrd_later(e->lives.evicted_ns,
                                    mrd_later(peer->failed_ns, mrd_peer_heirs_failed_ns(e, peer)));
    mrd_recv_state_end(e, peer, MRD_SPACE_NONE);
    if (peer->tx)
        mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    leave_lists(e, peer);
    mrd_peer_remove(&e->peers, peer);
    e->stats.peers_evicted++;
    e->stats.peers--;
}

/*
 * Makes room for one more peer. Returns false if none is found to be forgotten. At most
 * MRD_SWEEP_MOST of those that are active are looked at, each time others.
 */
static bool make_room(struct mrd_engine *e)
{
    struct mrd_node *n;

    if (mrd_pool_free(&e->peers.idle))
        return true;
    if (mrd_peer_forget(&e->peers)) {
        e->stats.peers_evicted++;
        e->stats.peers--;
        return true;
    }
    if (e->clock.now_ns < e->peers.full_ns)
        return false;
    for (uint32_t looks = 0; looks < MRD_SWEEP_MOST && (n = mrd_list_pop(&e->peers.active));
         looks++) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        mrd_list_append(&e->peers.active, n);
        if (!evictable(e, peer))
            continue;
        evict(e, peer);
        return true;
    }
    e->peers.full_ns = e->clock.now_ns + MRD_FULL_NS;
    return false;
}

struct mrd_peer *mrd_peer_open(struct mrd_engine *e, const struct mrd_addr *addr)
{
    struct mrd_peer *peer = mrd_peer_find(&e->peers, addr);

    if (!peer && e->peers.num_idle)
        peer = mrd_peer_activate(&e->peers, addr);
    return peer ? peer : mrd_peer_add_entry(e, addr);
}

struct mrd_peer *mrd_peer_add_entry(struct mrd_engine *e, const struct mrd_addr *addr)
{
    struct mrd_peer *peer;

    if (!make_room(e))
        return NULL;
    peer = mrd_peer_add(&e->peers, addr);
    assert(peer);
    mrd_peer_name(&e->peers, peer, mrd_answer_pair(e, addr));
    peer->place.heard_ns = e->clock.now_ns;
    peer->heard_ns = e->clock.now_ns;
    peer->dscp = e->config.dscp;
    e->stats.peers++;
    return peer;
}

/*
 * How long send states stay unused: shorter, the more there are. A new one costs no round trip, only
 * what was measured of the network.
 */
static uint64_t send_life_ns(const struct mrd_engine *e)
{
    uint64_t few = MRD_SEND_STATES_KEPT, states = e->peers.send_states.used;
    uint64_t ns = states > few ? MRD_SEND_IDLE_LIFE_NS / states * few : MRD_SEND_IDLE_LIFE_NS;

    return ns > MRD_SEND_IDLE_LEAST_NS ? ns : MRD_SEND_IDLE_LEAST_NS;
}

/* Is nothing of the peer left but what the record of an idle one holds? */
static bool may_rest(const struct mrd_peer *peer)
{
    static const struct mrd_peer_uses none;

    return !peer->tx && peer->space.state == MRD_SPACE_NONE && !peer->watch.users &&
           mrd_list_empty(&peer->msgs) && mrd_list_empty(&peer->flows_tx) &&
           mrd_list_empty(&peer->flows_rx) && mrd_list_empty(&peer->rnr_waiters) &&
           mrd_list_empty(&peer->readies) && !memcmp(&peer->uses, &none, sizeof(none));
}

/* Ends what of the peer is over; it becomes idle if that is all. */
static void look_at(struct mrd_engine *e, struct mrd_peer *peer)
{
    mrd_recv_state_expire(e, peer);
    if (peer->tx && !peer->watch.users && tx_idle(e, peer, send_life_ns(e)))
        mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    uint64_t failed_ns = mrd_peer_heirs_failed_ns(e, peer);

    if (!has_heir(e, peer) && !may_still_come(e, failed_ns))
        peer->heir = 0;
    if (!may_rest(peer) || may_still_come(e, mrd_later(peer->failed_ns, failed_ns)))
        return;
    /* Handles that know it only follow, and await, who speaks in its place. But others need the room. */
    if (peer->heir && e->peers.entries.used <= e->peers.max / 2)
        return;
    leave_lists(e, peer);
    mrd_peer_make_idle(&e->peers, peer);
    e->stats.peers_rested++;
}

void mrd_peers_sweep(struct mrd_engine *e)
{
    uint64_t since_ns = e->clock.now_ns - e->peers.swept_ns;
    uint64_t looks;
    struct mrd_node *n;

    if (since_ns < MRD_SWEEP_STEP_NS)
        return;
    e->peers.swept_ns = e->clock.now_ns;
    since_ns = since_ns < MRD_SWEEP_NS ? since_ns : MRD_SWEEP_NS;
    looks = e->peers.entries.used * since_ns / MRD_SWEEP_NS + 1;
    looks = looks < MRD_SWEEP_MOST ? looks : MRD_SWEEP_MOST;
    for (; looks && (n = mrd_list_pop(&e->peers.active)); looks--) {
        mrd_list_append(&e->peers.active, n);
        look_at(e, mrd_container_of(n, struct mrd_peer, node));
    }
}

/* ---------------------------------------------------------------------------------- send states */

void mrd_send_state_begin_epoch(struct mrd_engine *e, struct mrd_peer *peer, uint32_t inc)
{
    struct mrd_send_state *tx = peer->tx;

    do
        tx->contact.epoch = peer->pair.epoch_base + e->lives.epoch_next++;
    while (tx->contact.epoch == MRD_WIRE_EPOCH_NONE);
    tx->contact.epoch_ns = MRD_NEVER;
    tx->contact.inc = inc;
    tx->contact.knew_inc = inc != 0;
    tx->told.unchecked = false; /* another life may want checks, and would ack nothing */
    tx->told.tracker = e->config.mover.tracker;
    /* The peer's tracker is not known yet: grant what the smallest one allows. */
    tx->told.psn_limit =
        e->config.mover.tracker / 4 < FIRST_GRANT ? e->config.mover.tracker / 4 : FIRST_GRANT;
}

/*
 * Must an empty packet go first (`hello`)? Yes to a peer whose space we do not hold: it will
 * challenge us. Where first contacts are trusted data goes at once, but to a peer that was given up:
 * it may be down, and come back as another life.
 */
static bool begins_with_hello(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    if (peer->space.state == MRD_SPACE_KNOWN)
        return false;
    return peer->given_up || !e->config.trusting;
}

void mrd_send_state_path_lost(struct mrd_engine *e, struct mrd_send_state *tx, uint32_t index)
{
    uint32_t out = tx->paths.num_out;

    mrd_path_lost(&tx->paths, index, mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)),
                  e->clock.now_ns);
    e->stats.paths_suspended += tx->paths.num_out > out;
    e->turns.wants_path |= tx->paths.path[index].wants_ev != 0;
}

struct mrd_pmtu_range mrd_send_state_pmtu_range(const struct mrd_engine *e,
                                                const struct mrd_peer *peer)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_pmtu_range r = {m->payload_base, m->payload_usual};

    if (peer->payload_bytes)
        r.limit = peer->payload_bytes;
    if (!r.base || r.base > r.limit)
        r.base = r.limit;
    return r;
}

void mrd_send_state_use_pmtu(const struct mrd_engine *e, struct mrd_send_state *tx)
{
    const struct mrd_mover *m = &e->config.mover;
    uint32_t bytes = tx->pmtu.payload + MRD_HEAD_PEEK_BYTES, quantum = m->quantum;

    if (m->burst_bytes && m->burst_bytes / bytes < quantum)
        quantum = m->burst_bytes > bytes ? m->burst_bytes / bytes : 1;
    tx->run.quantum = (uint16_t)quantum;
    tx->cc.packet_bytes = bytes + m->header_bytes;
}

static void begin_search(const struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_pmtu_range r = mrd_send_state_pmtu_range(e, peer);

    mrd_pmtu_init(&peer->tx->pmtu, &r, !e->config.mover.probes || peer->one_way);
    mrd_send_state_use_pmtu(e, peer->tx);
}

void mrd_send_state_limit_payload(struct mrd_engine *e, struct mrd_peer *peer,
                                  uint32_t payload_bytes)
{
    struct mrd_pmtu_range r;
    bool more;

    if (payload_bytes > MRD_PAYLOAD_BYTES_MAX ||
        (peer->payload_bytes && payload_bytes >= peer->payload_bytes))
        return;
    r = mrd_send_state_pmtu_range(e, peer);
    more = payload_bytes > r.limit; /* it was not known, and taken for the usual one */
    peer->payload_bytes = (uint16_t)payload_bytes;
    if (peer->tx && more) {
        begin_search(e, peer);
    } else if (peer->tx) {
        r = mrd_send_state_pmtu_range(e, peer);
        mrd_pmtu_limit(&peer->tx->pmtu, &r);
        mrd_send_state_use_pmtu(e, peer->tx);
    }
}

void mrd_send_state_too_big(struct mrd_engine *e, struct mrd_peer *peer, uint32_t payload_bytes)
{
    struct mrd_pmtu_range r = mrd_send_state_pmtu_range(e, peer);

    /* Where nothing is searched for, it holds for good. */
    if (payload_bytes < r.base || payload_bytes >= r.limit) {
        mrd_send_state_limit_payload(e, peer, payload_bytes);
    } else if (peer->tx) {
        mrd_pmtu_too_big(&peer->tx->pmtu, payload_bytes, e->clock.now_ns);
        mrd_send_state_use_pmtu(e, peer->tx);
    }
}

struct mrd_send_state *mrd_send_state_open(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_send_state *tx = peer->tx;

    if (tx && !tx_idle(e, peer, MRD_SEND_IDLE_LIFE_NS))
        return tx;
    if (tx)
        mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    mrd_recv_state_expire(e, peer);
    tx = mrd_peer_tx_begin(&e->peers, peer, e->config.paths, m->tune, e->clock.now_ns);
    /* A TOMB's incarnation is not addressed: whoever answers now is another, or begins anew. */
    mrd_send_state_begin_epoch(e, peer, peer->space.state == MRD_SPACE_KNOWN ? peer->space.inc : 0);
    tx->contact.hello = tx->probes.silence_due = begins_with_hello(e, peer);
    tx->active_ns = e->clock.now_ns;
    begin_search(e, peer);
    e->cc_config = (struct mrd_cc_config){.link_bps = m->link_bps,
                                          .base_rtt_ns = m->base_rtt_ns,
                                          .base_rtt_max_ns = m->base_rtt_max_ns,
                                          .cwnd_cap_bytes = m->cwnd_cap_bytes,
                                          .cwnd_start_bytes = m->cwnd_start_bytes,
                                          .tune = m->tune,
                                          .allocator = &e->allocator};
    mrd_cc_init(&tx->cc, e->cc, &e->cc_config, tx->cc.packet_bytes);
    tx->spray.ops = e->spray;
    e->spray->init(&tx->spray, &tx->paths, &e->rng);
    return tx;
}

void mrd_peers_reclaim(struct mrd_engine *e)
{
    if (e->lives.reclaimed_ns && e->clock.now_ns - e->lives.reclaimed_ns < MRD_RECLAIM_NS)
        return;
    e->lives.reclaimed_ns = e->clock.now_ns;
    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        mrd_recv_state_expire(e, peer);
        if (peer->tx)
            mrd_tx_flow_close_idle(e, peer, 0);
    }
}

/*
 * Move all refusals to `list`. They outlive our space: the PSNs that they are about cannot be acked
 * until the peer has them.
 */
static void collect_refusals(struct mrd_send_state *tx, struct mrd_node *list)
{
    mrd_list_splice(list, &tx->refusals);
    for (uint32_t psn = tx->sent.una; psn != tx->sent.next; psn++) {
        struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);

        if (rec && rec->kind == MRD_SENT_REFUSAL && rec->state != MRD_SENT_ACKED)
            mrd_list_append(list, &rec->u.refusal->node);
    }
}

/* One that the peer acked, and that only the mover still reads, is not owed. */
static bool owes_response(const struct mrd_peer *peer)
{
    const struct mrd_node *n = peer->uses.responses ? peer->msgs.next : &peer->msgs;

    for (; n != &peer->msgs; n = n->next) {
        const struct mrd_msg *msg = mrd_container_of(n, const struct mrd_msg, peer_node);

        if (mrd_msg_is_response(msg) && msg->state != MRD_MSG_DONE)
            return true;
    }
    return false;
}

void mrd_send_state_end(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_wc_status status)
{
    struct mrd_send_state *tx = peer->tx;
    bool owes = owes_response(peer);
    struct mrd_node refusals, *n;

    peer->own_way |= tx->contact.acked_once;
    mrd_list_init(&refusals);
    collect_refusals(tx, &refusals);
    while ((n = mrd_list_first(&peer->msgs)))
        mrd_msg_abandon(e, mrd_container_of(n, struct mrd_msg, peer_node), status);
    while ((n = mrd_list_first(&peer->flows_tx)))
        mrd_msg_end_flow(e, mrd_container_of(n, struct mrd_flow_tx, peer_node));
    while ((n = mrd_list_first(&tx->rnr.txqs)))
        mrd_txq_free(e, mrd_container_of(n, struct mrd_txq, rnr_node));
    while ((n = mrd_list_first(&tx->txqs)))
        mrd_txq_free(e, mrd_container_of(n, struct mrd_txq, peer_node));
    mrd_peer_tx_end(&e->peers, peer);
    /* Its requests were acked, and will not be answered: the next packet of their space is reset. */
    if (owes && peer->rx)
        mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
    while ((n = mrd_list_pop(&refusals))) {
        struct mrd_refusal *r = mrd_container_of(n, struct mrd_refusal, node);

        if (!peer->rx || r->rx_life != peer->space.life) {
            mrd_refusal_release(e, peer, r);
            continue;
        }
        mrd_list_append(&mrd_send_state_open(e, peer)->refusals, &r->node);
        mrd_tx_ready(e, peer);
    }
}

void mrd_recv_state_end(struct mrd_engine *e, struct mrd_peer *peer, enum mrd_space_state state)
{
    struct mrd_node *n, *next;

    for (n = peer->flows_rx.next; n != &peer->flows_rx; n = n->next)
        mrd_rx_fail_flow(mrd_container_of(n, struct mrd_flow_rx, peer_node), MRD_WC_REM_ABORT_ERR);
    while (peer->rx && (n = mrd_list_first(&peer->rx->slots.open))) {
        struct mrd_slot *slot = mrd_container_of(n, struct mrd_slot, node);

        mrd_rx_fail_slot(e, peer, slot, MRD_SLOT_CLOSED,
                         slot->bound.request ? MRD_WC_RETRY_EXC_ERR : MRD_WC_REM_ABORT_ERR);
    }
    mrd_list_splice(&peer->rnr_waiters, &peer->readies);
    while ((n = mrd_list_first(&peer->rnr_waiters)))
        mrd_rnr_free(e, mrd_container_of(n, struct mrd_rnr_waiter, peer_node));
    while ((n = mrd_list_first(&peer->flows_rx)))
        mrd_rx_free_flow(e, mrd_container_of(n, struct mrd_flow_rx, peer_node),
                         MRD_WC_REM_ABORT_ERR);
    for (n = peer->tx ? peer->tx->refusals.next : NULL; n && n != &peer->tx->refusals; n = next) {
        next = n->next;
        mrd_list_remove(n);
        mrd_refusal_release(e, peer, mrd_container_of(n, struct mrd_refusal, node));
    }
    mrd_peer_rx_end(&e->peers, peer, state);
}

/*
 * The space is given up, but the peer may take what was sent there. What was to wait for copies of an earlier
 * space's messages waits for these, whoever the peer says that it is.
 */
static void note_failed(struct mrd_engine *e, struct mrd_peer *peer)
{
    uint32_t inc = peer->tx->contact.inc;
    bool waits = may_still_come(e, peer->failed_ns) && peer->failed_inc != inc;
    uint64_t at_ns = 0;

    for (const struct mrd_node *n = peer->msgs.next; n != &peer->msgs; n = n->next) {
        const struct mrd_msg *msg = mrd_container_of(n, const struct mrd_msg, peer_node);
        uint64_t start_ns = msg->order.flow ? msg->order.flow->start_ns : 0;

        if (msg->order.flow && msg->started) {
            at_ns = e->clock.now_ns;
        } else if (start_ns > e->clock.now_ns) {
            waits = true;
            at_ns = start_ns - MRD_PACKET_LIFE_NS > at_ns ? start_ns - MRD_PACKET_LIFE_NS : at_ns;
        }
    }
    if (at_ns <= peer->failed_ns)
        return;
    peer->failed_ns = at_ns;
    peer->failed_inc = waits ? ~inc : inc;
    if (at_ns > e->lives.failed_ns)
        e->lives.failed_ns = at_ns;
}

void mrd_peer_unreachable(struct mrd_engine *e, struct mrd_peer *peer)
{
    e->stats.peers_unreachable++;
    mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_UNREACHABLE);
    peer->given_up = true;
    /* Both directions end. What the peer still sends into its space is answered by resets. */
    mrd_recv_state_end(e, peer,
                       peer->space.state == MRD_SPACE_NONE ? MRD_SPACE_NONE : MRD_SPACE_TOMB);
    note_failed(e, peer);
    mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
}

void mrd_peer_restarted(struct mrd_engine *e, struct mrd_peer *peer, bool receives_lost)
{
    if (receives_lost || !mrd_list_empty(&peer->msgs) || peer->watch.users) {
        e->stats.peers_restarted++;
        mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_RESTARTED);
    }
    peer->given_up = true;
    mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
}

/* While the entry only asked, nothing of its messages was sent. */
static void hand_over(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_peer *to)
{
    struct mrd_node *n, *next;

    if (!peer->tx->contact.hello || mrd_list_empty(&peer->msgs))
        return;
    mrd_send_state_open(e, to);
    for (n = peer->msgs.next; n != &peer->msgs; n = next) {
        struct mrd_msg *msg = mrd_container_of(n, struct mrd_msg, peer_node);

        next = n->next;
        if (!mrd_msg_is_response(msg) &&
            (msg->state == MRD_MSG_QUEUED || msg->state == MRD_MSG_HELD))
            mrd_msg_move(e, msg, to);
    }
}

/* Who watches `peer` watches `to`, as others do. Both go on with the same life, unless one is over. */
static void join_watches(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_peer_watch watch,
                         struct mrd_peer *to)
{
    uint32_t inc = to->watch.inc;

    if (!inc && to->tx)
        inc = to->tx->contact.inc;
    if (!inc && to->space.state != MRD_SPACE_NONE)
        inc = to->space.inc;
    if (watch.inc && inc && watch.inc != inc) {
        e->stats.peers_restarted++;
        mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_RESTARTED);
        return;
    }
    to->watch.users += watch.users;
    to->watch.inc = inc ? inc : watch.inc;
}

void mrd_peer_give_way(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_peer *to)
{
    struct mrd_peer_watch watch = peer->watch;

    hand_over(e, peer, to);
    peer->watch.users = 0;
    peer->given_up = true;
    note_failed(e, peer);
    mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
    peer->heir = to->id;
    peer->own_way = false;
    if (!watch.users)
        return;
    if (to->watch.users) {
        join_watches(e, peer, watch, to);
        return;
    }
    to->watch = watch;
    mrd_send_state_keepalive(e, to);
}

void mrd_peer_turned_away(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (peer->watch.users)
        mrd_peer_report_and_unwatch(e, peer, MRD_EVENT_PEER_UNREACHABLE);
    peer->given_up = true;
    note_failed(e, peer);
    mrd_send_state_end(e, peer, MRD_WC_RETRY_EXC_ERR);
}

void mrd_peer_closed(struct mrd_engine *e, struct mrd_peer *peer)
{
    peer->space.max_unacked_ns = 0; /* it waits for nothing any more */
    mrd_peer_restarted(e, peer, false);
}

bool mrd_recv_state_is_owed(const struct mrd_peer *peer)
{
    return peer->rx->slots.num_open || peer->uses.reorder_entries || peer->uses.gone ||
           peer->rx->rcv.num_refused;
}
