/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines: acks held back, losses by time, tail probes, retries for want of a receive, silence. */
#include "core/engine_impl.h"

#define STARVED_RETRY_NS (100 * MRD_USEC)
#define GRANT_ASK_NS     (10 * MRD_MSEC)

bool mrd_engine_full_window(const struct mrd_tx_half *tx)
{
    return tx->cc.cwnd_bytes >= mrd_cc_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) / 2;
}

static uint64_t tail_ns(const struct mrd_engine *e, const struct mrd_tx_half *tx)
{
    if (!mrd_sent_oldest(&tx->sent))
        return MRD_NEVER;
    return mrd_loss_tail_ns(&tx->loss, mrd_engine_full_window(tx),
                            tx->cc.cwnd_bytes / tx->cc.config.packet_bytes,
                            e->config.mover.rto_floor_ns);
}

static bool paced(const struct mrd_tx_half *tx)
{
    return tx->cc.cwnd_bytes < tx->cc.config.packet_bytes &&
           (tx->sent.lost.num || !mrd_list_empty(&tx->txqs)) && !tx->sent.inflight.num;
}

/* Work, but nothing in flight whose ack would wake it: a pool was empty. */
static bool starved(const struct mrd_peer *peer)
{
    const struct mrd_tx_half *tx = peer->tx;

    return !mrd_sent_oldest(&tx->sent) &&
           (!mrd_list_empty(&tx->txqs) || tx->refusals.next != &tx->refusals ||
            tx->aborts.next != &tx->aborts || peer->readies.next != &peer->readies ||
            tx->closes.next != &tx->closes || tx->silence_probe);
}

/* The peer's buffer has no place for us now. Its ack to an empty packet tells when it has. */
static bool without_grant(const struct mrd_peer *peer)
{
    return starved(peer) && (int32_t)(peer->tx->psn_limit - peer->tx->sent.una) < 2;
}

void mrd_engine_rearm(struct mrd_engine *e, struct mrd_peer *peer, uint64_t now_ns)
{
    uint64_t at = MRD_NEVER;
    const uint64_t soon = now_ns + 1;
    const struct mrd_tx_half *tx = peer->tx;

#define EARLIER(t) at = (t) < at ? (t) : at
    if (peer->rx) {
        EARLIER(peer->rx->rcv.due_ns);
        EARLIER(peer->rx->probe_at_ns);
    }
    if (tx) {
        EARLIER(tx->loss.rack_ns);
        EARLIER(tail_ns(e, tx));
        EARLIER(tx->rnr_next_ns);
        if (tx->rnr.next != &tx->rnr)
            EARLIER(tx->active_ns + MRD_WAITING_NS);
        if (tx->idle.next != &tx->idle)
            EARLIER(mrd_container_of(tx->idle.next, struct mrd_flow_tx, idle_node)->idle_ns +
                    MRD_FLOW_IDLE_NS);
        if (paced(tx))
            EARLIER(mrd_engine_pace_ns(tx));
        else if (without_grant(peer))
            EARLIER(tx->ask_ns);
        else if (starved(peer))
            EARLIER(now_ns + STARVED_RETRY_NS);
    }
#undef EARLIER
    mrd_engine_arm(e, peer, at != MRD_NEVER && at < soon ? soon : at);
}

bool mrd_engine_is_owed(const struct mrd_peer *peer)
{
    return peer->rx->slots.num_open || peer->num_pends || peer->num_gone || peer->rx->rcv.num_held;
}

/*
 * How long we wait for the peer: as long as we were told to, and, where no work of ours is at stake but only its own, as
 * long as it waits for us.
 */
static uint64_t patience_ns(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    uint64_t own_ns = e->config.peer_timeout_ns;

    if (!peer->rx || peer->msgs.next != &peer->msgs)
        return own_ns;
    return peer->rx_patience_ns > own_ns ? peer->rx_patience_ns : own_ns;
}

/* Silent for the timeout although it was asked often enough since we ourselves last slept. */
static bool is_unreachable(const struct mrd_engine *e, const struct mrd_peer *peer)
{
    const struct mrd_tx_half *tx = peer->tx;
    /* Negative where a stall is counted from before the last asking: a post sends without looking for one. */
    int64_t silent_ns = (int64_t)(mrd_engine_present(e) - tx->patience_ns);

    return tx->unanswered >= MRD_PROBES_MIN && silent_ns >= (int64_t)patience_ns(e, peer);
}

static void fire_tail(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_tx_half *tx = peer->tx;
    bool full = mrd_engine_full_window(tx);

    if (tx->stall_seen_ns != e->absent_long_ns) {
        tx->stall_seen_ns = e->absent_long_ns;
        tx->unanswered = 0;
    }
    tx->loss.probes++;
    tx->unanswered++;
    tx->loss.last_send_ns =
        e->now; /* also when nothing could be sent: the next probe is one interval away */
    if (mrd_loss_timed_out(&tx->loss)) {
        tx->last_timeout_ns = e->now;
        if (!tx->timeout_ns) {
            tx->timeout_ns = e->now;
            tx->timeout_cwnd = tx->cc.cwnd_bytes;
        }
        tx->cc.ops->timeout(&tx->cc, e->now);
        /* On two paths: where most are dead, one try in an RTO finds none for long. */
        tx->probes_due = 2;
    } else {
        tx->probes_due = full ? 2 : 1;
    }
    mrd_engine_ready(e, peer);
}

/*
 * The peer owes us and is silent. What is in flight to it has timers of its own; else an empty packet asks.
 */
static void fire_silence(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_tx_half *tx = mrd_engine_tx_half(e, peer);
    struct mrd_rx_half *rx = peer->rx; /* may have expired only now */
    uint64_t least = 8 * tx->loss.srtt_ns;

    if (!rx)
        return;
    rx->probe_at_ns = MRD_NEVER;
    if (!mrd_engine_is_owed(peer))
        return;
    rx->silence_ns = rx->silence_ns ? 2 * rx->silence_ns : MRD_SILENCE_MIN_NS;
    if (rx->silence_ns < least)
        rx->silence_ns = least;
    if (rx->silence_ns > MRD_SILENCE_MAX_NS)
        rx->silence_ns = MRD_SILENCE_MAX_NS;
    rx->probe_at_ns = e->now + rx->silence_ns;
    tx->silence_probe = !mrd_sent_oldest(&tx->sent);
    /* The silence may be for want of our last ack, which died on its way. */
    rx->rcv.now = rx->rcv.twice = true;
    mrd_engine_ready(e, peer);
}

void mrd_engine_fire(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (peer->rx && peer->rx->rcv.due_ns <= e->now)
        mrd_engine_ready(e, peer);
    if (e->empty_ns < e->looked_ns) { /* packets wait unread: nobody is judged before they are */
        mrd_engine_rearm(e, peer, e->now);
        return;
    }
    if (peer->rx && peer->rx->probe_at_ns <= e->now)
        fire_silence(e, peer);
    if (peer->tx && is_unreachable(e, peer) && tail_ns(e, peer->tx) != MRD_NEVER) {
        mrd_engine_unreachable(e, peer);
        mrd_engine_rearm(e, peer, e->now);
        return;
    }
    if (peer->tx && peer->tx->loss.rack_ns <= e->now)
        mrd_engine_losses(e, peer);
    if (peer->tx && tail_ns(e, peer->tx) <= e->now)
        fire_tail(e, peer);
    if (peer->tx && peer->tx->rnr_next_ns <= e->now)
        mrd_engine_fire_rnr(e, peer);
    /* Messages wait for receives, and nothing is sent meanwhile: is the peer there, and does it remember us? */
    if (peer->tx && peer->tx->rnr.next != &peer->tx->rnr &&
        e->now - peer->tx->active_ns >= MRD_WAITING_NS) {
        peer->tx->active_ns = e->now;
        peer->tx->silence_probe = true;
        mrd_engine_ready(e, peer);
    }
    if (peer->tx)
        mrd_engine_flows_close(e, peer, MRD_FLOW_IDLE_NS);
    if (peer->tx && without_grant(peer) && peer->tx->ask_ns <= e->now) {
        peer->tx->ask_ns = e->now + GRANT_ASK_NS;
        peer->tx->silence_probe = true;
    }
    if (peer->tx && (starved(peer) || (paced(peer->tx) && mrd_engine_pace_ns(peer->tx) <= e->now)))
        mrd_engine_ready(e, peer);
    mrd_engine_rearm(e, peer, e->now);
}
