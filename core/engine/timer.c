/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines: acks held back, losses by time, tail probes, retries for want of a receive, silence.
 */
#include "core/engine/timer.h"

#include <assert.h>

#include "core/engine/address.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_ack.h"
#include "core/engine/tx_flow.h"
#include "core/engine/tx_gate.h"
#include "core/engine/txq.h"

/*
 * A pool was empty, or all messages are too far ahead in the order: look again after an eighth of
 * the time that nothing went, within these bounds.
 */
#define STARVED_RETRY_NS     (100 * MRD_USEC)
#define STARVED_RETRY_MAX_NS (10 * MRD_MSEC)
#define GRANT_ASK_NS         (10 * MRD_MSEC) /* nothing was granted: ask again */

/* Is there work of ours to the peer? A response is the peer's. */
static bool has_own_work(const struct mrd_peer *peer)
{
    for (const struct mrd_node *n = peer->msgs.next; n != &peer->msgs; n = n->next)
        if (!mrd_msg_is_response(mrd_container_of(n, const struct mrd_msg, peer_node)))
            return true;
    return false;
}

/*
 * How long we wait for the peer: as long as we were told to, and, where no work of ours is at stake
 * but only its own, as long as it waits for us.
 */
static uint64_t give_up_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint64_t own_ns = e->config.peer_timeout_ns;

    if (!peer->rx || has_own_work(peer))
        return own_ns;
    return peer->space.max_unacked_ns > own_ns ? peer->space.max_unacked_ns : own_ns;
}

/*
 * The longest RTO: it doubles no further than lets MRD_PROBES_MIN of them fit into the time that we
 * wait for a silent peer. After acks that told nothing new, and then none, we would wait for it
 * several times as long.
 */
static uint64_t rto_most_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint64_t rto_ns = mrd_loss_rto_ns(&peer->tx->loss, e->config.mover.rto_floor_ns);
    uint64_t most_ns = give_up_ns(e, peer) / MRD_PROBES_MIN;

    return most_ns > rto_ns ? most_ns : rto_ns;
}

/* When the next tail probe or RTO is due. */
static uint64_t tail_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;
    uint64_t at_ns, most_ns;

    if (!mrd_sent_any(&tx->sent))
        return MRD_NEVER;
    at_ns = mrd_loss_tail_ns(&tx->loss, mrd_tx_full_window(tx),
                             tx->cc.cwnd_bytes / tx->cc.packet_bytes, e->config.mover.rto_floor_ns);
    if (!tx->loss.probes || !mrd_loss_timed_out(&tx->loss))
        return at_ns;
    most_ns = tx->loss.last_send_ns + rto_most_ns(e, peer);
    return at_ns < most_ns ? at_ns : most_ns;
}

/* Does the next packet wait for its time? */
static bool paced(const struct mrd_send_state *tx)
{
    if (!tx->sent.lost.num && mrd_list_empty(&tx->txqs))
        return false;
    if (tx->cc.cwnd_bytes < tx->cc.packet_bytes)
        return !tx->sent.inflight.num;
    return mrd_tx_is_paced(tx) && (double)tx->sent.inflight_bytes < tx->cc.cwnd_bytes;
}

/*
 * When to ask a peer that owes responses whether it still holds our space; MRD_NEVER: it owes none.
 * What comes of its own does not tell: it may have forgotten us, and go on to write.
 */
static uint64_t keepalive_ns(const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;

    if (!peer->uses.requests || mrd_sent_any(&tx->sent))
        return MRD_NEVER;
    return tx->active_ns + tx->probes.answer_ns;
}

/* May messages wait until no copy of what failed can come? See mrd_handle_await(). */
static bool may_await(const struct mrd_engine *e, const struct mrd_send_state *tx)
{
    return e->lives.failed_ns && e->clock.now_ns < e->lives.failed_ns + MRD_PACKET_LIFE_NS &&
           !mrd_list_empty(&tx->txqs);
}

/*
 * When to ask a peer that nothing is sent to whether it is there and still holds our space, because
 * messages wait for receives, for others of their queue pairs, or for copies of what failed, or because it is
 * watched; MRD_NEVER: no need.
 */
static uint64_t idle_keepalive_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;
    uint64_t interval_ns = e->config.peer_timeout_ns / MRD_WAITING_SHARE;

    if (mrd_sent_any(&tx->sent))
        return MRD_NEVER;
    if (tx->rnr.txqs.next == &tx->rnr.txqs && !peer->uses.held && !peer->watch.users &&
        !may_await(e, tx))
        return MRD_NEVER;
    return tx->active_ns + (interval_ns < MRD_WAITING_NS ? interval_ns : MRD_WAITING_NS);
}

/* Is there something to send, but nothing in flight whose ack would wake us? */
static bool starved(const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;

    return !mrd_sent_any(&tx->sent) &&
           (!mrd_list_empty(&tx->txqs) || tx->refusals.next != &tx->refusals ||
            tx->aborts.next != &tx->aborts || peer->readies.next != &peer->readies ||
            tx->closes.next != &tx->closes || tx->probes.silence_due);
}

/* Is the peer's buffer full? Its ack to an empty packet tells when it has room for us. */
static bool without_grant(const struct mrd_peer *peer)
{
    return starved(peer) && (int32_t)(peer->tx->told.psn_limit - peer->tx->sent.una) < 2;
}

/* When a starved peer is looked at again. */
static uint64_t retry_ns(const struct mrd_send_state *tx, uint64_t now_ns)
{
    uint64_t pause_ns = now_ns > tx->active_ns ? (now_ns - tx->active_ns) / 8 : 0;

    if (pause_ns < STARVED_RETRY_NS)
        pause_ns = STARVED_RETRY_NS;
    return now_ns + (pause_ns < STARVED_RETRY_MAX_NS ? pause_ns : STARVED_RETRY_MAX_NS);
}

/* Compute the peer's next deadline as of now_ns, and arm its timer. */
static void rearm(struct mrd_engine *e, struct mrd_peer *peer, uint64_t now_ns)
{
    uint64_t at = MRD_NEVER;
    const uint64_t soon = now_ns + 1;
    const struct mrd_send_state *tx = peer->tx;

#define EARLIER(t) at = (t) < at ? (t) : at
    if (peer->rx) {
        EARLIER(peer->rx->rcv.due_ns);
        EARLIER(peer->rx->probe_at_ns);
    }
    if (tx) {
        const bool stuck = without_grant(peer);

        EARLIER(tx->loss.rack_ns);
        EARLIER(tail_ns(e, peer));
        EARLIER(tx->rnr.next_ns);
        EARLIER(keepalive_ns(peer));
        EARLIER(idle_keepalive_ns(e, peer));
        if (tx->idle.next != &tx->idle)
            EARLIER(mrd_container_of(tx->idle.next, struct mrd_flow_tx, idle_node)->idle_ns +
                    MRD_FLOW_IDLE_NS);
        if (stuck)
            EARLIER(tx->told.grant_ask_ns);
        /*
         * When its time has come, the next packet may still not leave: without a grant, or if its
         * message is too far ahead in the order (MRD_MSN_WINDOW). A lost one leaves.
         */
        if (paced(tx) && (mrd_tx_pace_ns(tx) > now_ns || tx->sent.lost.num))
            EARLIER(mrd_tx_pace_ns(tx));
        else if (starved(peer) && !stuck)
            EARLIER(retry_ns(tx, now_ns));
    }
#undef EARLIER
    mrd_heap_arm(&e->timers.heap, &peer->timer, at != MRD_NEVER && at < soon ? soon : at);
}

/* Was the peer silent for the whole timeout, and asked often enough since our own last stall? */
static bool is_unreachable(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_send_state *tx = peer->tx;
    /* Negative if a stall began before the last question: a post sends without looking for one. */
    int64_t silent_ns = (int64_t)(mrd_clock_present_ns(&e->clock) - tx->probes.silent_since_ns);

    return tx->probes.unanswered >= MRD_PROBES_MIN && silent_ns >= (int64_t)give_up_ns(e, peer);
}

/* A tail probe or an RTO is due. */
static void fire_tail(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;
    bool full = mrd_tx_full_window(tx);

    if (tx->probes.stall_seen_ns != e->clock.absent_long_ns) {
        tx->probes.stall_seen_ns = e->clock.absent_long_ns;
        tx->probes.unanswered = 0;
    }
    tx->loss.probes++;
    tx->probes.unanswered++;
    mrd_address_doubt(e, peer);
    if (mrd_ect_silent(&peer->ect, tx->probes.unanswered, e->clock.now_ns)) {
        e->stats.ecn_off++;
        mrd_cc_forget_marks(&tx->cc);
    }
    /* Also if nothing can be sent: the next probe is one interval away. */
    tx->loss.last_send_ns = e->clock.now_ns;
    if (mrd_loss_timed_out(&tx->loss)) {
        tx->probes.last_timeout_ns = e->clock.now_ns;
        if (!tx->probes.timeout_ns) {
            tx->probes.timeout_ns = e->clock.now_ns;
            tx->probes.timeout_cwnd = tx->cc.cwnd_bytes;
            tx->probes.timeout_start = tx->cc.slow_start;
        }
        tx->cc.ops->timeout(&tx->cc, e->clock.now_ns);
        /* On two paths: where most are dead, one try an RTO would take long to find a good one. */
        tx->probes.due = 2;
    } else {
        tx->probes.due = full ? 2 : 1;
    }
    mrd_tx_ready(e, peer);
}

/*
 * The peer owes us something and is silent: ask it by an empty packet, unless packets in flight
 * will have it probed anyway.
 */
static void fire_silence(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = mrd_send_state_open(e, peer);
    struct mrd_recv_state *rx = peer->rx; /* NULL if mrd_send_state_open() found it expired */
    uint64_t least = 8 * tx->loss.srtt_ns;

    if (!rx)
        return;
    rx->probe_at_ns = MRD_NEVER;
    if (!mrd_recv_state_is_owed(peer))
        return;
    rx->silence_ns = rx->silence_ns ? 2 * rx->silence_ns : MRD_SILENCE_MIN_NS;
    if (rx->silence_ns < least)
        rx->silence_ns = least;
    if (rx->silence_ns > MRD_SILENCE_MAX_NS)
        rx->silence_ns = MRD_SILENCE_MAX_NS;
    rx->probe_at_ns = e->clock.now_ns + rx->silence_ns;
    tx->probes.silence_due = !mrd_sent_any(&tx->sent);
    /* The peer may be waiting for an ack of ours that was lost: repeat it. */
    rx->rcv.now = rx->rcv.twice = true;
    mrd_tx_ready(e, peer);
}

/* Interval until the next question to a silent peer. */
static uint64_t longer(uint64_t interval_ns, uint64_t srtt_ns)
{
    uint64_t ns = 2 * interval_ns > 8 * srtt_ns ? 2 * interval_ns : 8 * srtt_ns;

    return ns < MRD_SILENCE_MAX_NS ? ns : MRD_SILENCE_MAX_NS;
}

/* The peer acked a request, and owes the response. */
static void ask_for_answer(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;

    tx->probes.answer_ns = longer(tx->probes.answer_ns, tx->loss.srtt_ns);
    tx->probes.silence_due = true;
    /* The next question is an interval away, also if this one waits to be sent. */
    tx->active_ns = e->clock.now_ns;
    mrd_tx_ready(e, peer);
}

/* The peer's timer fired: do what is due. */
static void fire(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (peer->rx && peer->rx->rcv.due_ns <= e->clock.now_ns)
        mrd_tx_ready(e, peer);
    /* Packets wait unread: nobody is judged before they are read. */
    if (e->clock.empty_ns < e->clock.looked_ns) {
        rearm(e, peer, e->clock.now_ns);
        return;
    }
    if (peer->rx && peer->rx->probe_at_ns <= e->clock.now_ns)
        fire_silence(e, peer);
    if (peer->tx && is_unreachable(e, peer) && tail_ns(e, peer) != MRD_NEVER) {
        mrd_peer_unreachable(e, peer);
        rearm(e, peer, e->clock.now_ns);
        return;
    }
    if (peer->tx && peer->tx->loss.rack_ns <= e->clock.now_ns)
        mrd_rx_judge_losses(e, peer);
    if (peer->tx && tail_ns(e, peer) <= e->clock.now_ns)
        fire_tail(e, peer);
    if (peer->tx && peer->tx->rnr.next_ns <= e->clock.now_ns)
        mrd_txq_retry(e, peer);
    if (peer->tx && keepalive_ns(peer) <= e->clock.now_ns)
        ask_for_answer(e, peer);
    if (peer->tx && idle_keepalive_ns(e, peer) <= e->clock.now_ns)
        mrd_send_state_keepalive(e, peer);
    if (peer->tx)
        mrd_tx_flow_close_idle(e, peer, MRD_FLOW_IDLE_NS);
    if (peer->tx && without_grant(peer) && peer->tx->told.grant_ask_ns <= e->clock.now_ns) {
        peer->tx->told.grant_ask_ns = e->clock.now_ns + GRANT_ASK_NS;
        peer->tx->probes.silence_due = true;
    }
    if (peer->tx &&
        (starved(peer) || (paced(peer->tx) && mrd_tx_pace_ns(peer->tx) <= e->clock.now_ns)))
        mrd_tx_ready(e, peer);
    rearm(e, peer, e->clock.now_ns);
}

/* ------------------------------------------------------------------------------------- the heap */

void mrd_timer_touch(struct mrd_engine *e, struct mrd_peer *peer)
{
    e->timers.touched_ns = e->clock.now_ns;
    if (mrd_list_empty(&peer->touched))
        mrd_list_append(&e->timers.touched, &peer->touched);
}

void mrd_timer_settle(struct mrd_engine *e)
{
    struct mrd_node *n;

    while ((n = mrd_list_pop(&e->timers.touched)))
        rearm(e, mrd_container_of(n, struct mrd_peer, touched), e->timers.touched_ns);
}

uint64_t mrd_timer_next_ns(struct mrd_engine *e)
{
    mrd_timer_settle(e);
    return mrd_heap_next_ns(&e->timers.heap);
}

void mrd_timer_look(struct mrd_engine *e)
{
    uint64_t due_ns = mrd_clock_is_late(&e->clock) ? mrd_timer_next_ns(e) : MRD_NEVER;

    e->stats.stalls += mrd_clock_look(&e->clock, due_ns);
}

void mrd_timer_fire_due(struct mrd_engine *e)
{
    struct mrd_timer *timer;

    mrd_timer_settle(e);
    while ((timer = mrd_heap_first(&e->timers.heap)) && timer->at_ns <= e->clock.now_ns) {
        mrd_heap_disarm(&e->timers.heap, timer);
        fire(e, mrd_container_of(timer, struct mrd_peer, timer));
        assert(timer->at_ns > e->clock.now_ns);
    }
}
