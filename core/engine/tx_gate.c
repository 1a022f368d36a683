/* SPDX-License-Identifier: BSD-2-Clause */
/* May a packet go now, and by which path: windows, PSN room, grants, bursts. */
#include "core/engine/tx_gate.h"

#include "core/engine/peer_state.h"
#include "core/engine/tx_emit.h"

uint32_t mrd_tx_pick_path(struct mrd_engine *e, struct mrd_send_state *tx, int avoid)
{
    struct mrd_spray_args args = {.now_ns = e->clock.now_ns,
                                  .base_rtt_ns =
                                      mrd_cc_base_rtt_ns(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)),
                                  .avoid = avoid,
                                  .blind = tx->loss.probes > 0,
                                  .rng = &e->rng,
                                  .tune = e->config.mover.tune};

    /*
     * As many paths as can be used, and no memory for more: two for each packet in flight, as with
     * one for each `rr` and `random` met more collisions. But all of them while nothing is answered:
     * the few may lead to the same dead switch.
     */
    while (!tx->spray.ops->one_path &&
           (2 * tx->sent.inflight.num >= tx->paths.num || tx->loss.probes > 1) &&
           mrd_paths_add(&tx->paths, &e->allocator))
        tx->spray.ops->init(&tx->spray, &tx->paths, &e->rng);
    return tx->spray.ops->pick(&tx->spray, &tx->paths, &args);
}

bool mrd_tx_window_open(const struct mrd_engine *e, const struct mrd_send_state *tx)
{
    const struct mrd_sents *s = &tx->sent;

    if (tx->cc.cwnd_bytes < tx->cc.packet_bytes)
        return !s->inflight.num && e->clock.now_ns >= mrd_tx_pace_ns(tx);
    return (double)s->inflight_bytes < tx->cc.cwnd_bytes &&
           (!mrd_tx_is_paced(tx) || e->clock.now_ns >= mrd_tx_pace_ns(tx));
}

/*
 * A host that was late makes up for an SRTT at most. What a full window held back goes no sooner than in its
 * time, but for this part of an SRTT: a smaller one for sockets, which send longer runs; and on a long way
 * nothing does, as hosts are not late for so long. A run takes the other part, and where the network marks, which
 * it does before queues drop, more.
 */
enum {
    PACE_FULL_SHARE = 4,
    PACE_FULL_SOCKETS = 8,
    PACE_RUN_SHARE = 64,
    PACE_RUN_MARKED = 8,
    PACE_FAR_NS = 2000000,
};

void mrd_tx_left(const struct mrd_engine *e, struct mrd_send_state *tx, uint32_t bytes)
{
    uint64_t share = e->config.mover.link_bps ? PACE_FULL_SHARE : PACE_FULL_SOCKETS;
    uint64_t srtt_ns = tx->loss.srtt_ns;
    uint64_t late_ns = srtt_ns > PACE_FAR_NS || tx->run.full ? srtt_ns / share : srtt_ns;
    uint64_t now_ns = e->clock.now_ns, from_ns, packet_ns, bytes_ns;

    tx->run.full = false;
    if (!mrd_tx_is_paced(tx) || tx->cc.cwnd_bytes < tx->cc.packet_bytes) {
        tx->sent_ns = now_ns;
        return;
    }
    packet_ns = mrd_tx_pace_ns(tx) - tx->sent_ns;
    bytes_ns = mrd_tune_ns((double)packet_ns * bytes / tx->cc.packet_bytes);
    from_ns = now_ns > late_ns ? now_ns - late_ns : 0;
    if (tx->sent_ns + packet_ns > from_ns)
        from_ns = tx->sent_ns + packet_ns;
    /* So that the next packet may leave bytes_ns later. */
    tx->sent_ns = from_ns + bytes_ns > packet_ns ? from_ns + bytes_ns - packet_ns : 0;
}

uint32_t mrd_tx_paced_run(const struct mrd_send_state *tx)
{
    unsigned share = tx->cc.ce_seen ? PACE_RUN_MARKED : PACE_RUN_SHARE;
    double packets = tx->cc.cwnd_bytes / tx->cc.packet_bytes / share;

    return packets > 1 ? mrd_tune_count(packets) : 1;
}

bool mrd_tx_psn_room(const struct mrd_send_state *tx, uint32_t sixteenths)
{
    return tx->sent.next - tx->sent.una < tx->told.tracker / 16 * sixteenths;
}

bool mrd_tx_add_control(struct mrd_peer *peer, enum mrd_sent_kind kind, uint32_t sixteenths,
                        struct mrd_sent **rec)
{
    if (!mrd_tx_psn_room(peer->tx, sixteenths))
        return false;
    *rec = mrd_sent_add(&peer->tx->sent, kind);
    return *rec != NULL;
}

bool mrd_tx_path_to_probe(const struct mrd_engine *e, const struct mrd_send_state *tx,
                          uint32_t *index)
{
    for (uint32_t i = 0; tx->paths.num_out && i < tx->paths.num; i++) {
        const struct mrd_path *path = &tx->paths.path[i];

        *index = i;
        if (!mrd_path_is_good(path) && mrd_path_usable(path, e->clock.now_ns))
            return true;
    }
    return false;
}

bool mrd_tx_probe_path(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_tx_out *o)
{
    struct mrd_sent *rec;
    uint32_t index;

    if (!mrd_tx_path_to_probe(e, peer->tx, &index) ||
        !mrd_tx_add_control(peer, MRD_SENT_EMPTY, MRD_PSN_CONTROL, &rec))
        return false;
    e->stats.probes_path++;
    /* As large as data: the path may be out for taking less than the others. */
    if (peer->tx->pmtu.payload > mrd_send_state_pmtu_range(e, peer).base)
        rec->offset = peer->tx->pmtu.payload;
    mrd_tx_emit(e, peer, rec, index, false, o);
    return true;
}

bool mrd_tx_waits_for_burst(const struct mrd_engine *e, const struct mrd_send_state *tx,
                            const struct mrd_msg *msg)
{
    double packet = tx->cc.packet_bytes;
    double burst = tx->cc.cwnd_bytes / e->config.mover.tune->engine.bursts_per_window;
    double most = tx->run.quantum * packet;
    double rest = msg->wr.length - msg->next_offset;

    if (tx->run.quantum == 1 || (tx->run.left && tx->run.picked_ns == e->clock.now_ns) ||
        !msg->multi || !tx->sent.inflight.num || mrd_tx_is_paced(tx))
        return false;
    burst = burst < most ? burst : most;
    burst = burst < rest ? burst : rest;
    return tx->cc.cwnd_bytes - (double)tx->sent.inflight_bytes < burst;
}

bool mrd_tx_coalesces(const struct mrd_engine *e, const struct mrd_send_state *tx)
{
    return !mrd_list_empty(&tx->txqs) && e->calls.post_seq == e->calls.seq &&
           tx->queued_bytes < tx->pmtu.payload && tx->queued_bytes < tx->sent.inflight_bytes;
}

bool mrd_tx_is_granted(const struct mrd_send_state *tx)
{
    uint32_t una = tx->sent.una;

    return (int32_t)(tx->sent.next - una) < (int32_t)(tx->told.psn_limit - una) / 2;
}

uint32_t mrd_tx_room(const struct mrd_send_state *tx, uint32_t bytes)
{
    const struct mrd_sents *s = &tx->sent;
    int32_t psns = (int32_t)(tx->told.tracker / 16 * MRD_PSN_DATA);
    int32_t granted = (int32_t)(tx->told.psn_limit - s->una) / 2;
    double window = tx->cc.cwnd_bytes - (double)s->inflight_bytes;
    int32_t n = (granted < psns ? granted : psns) - (int32_t)(s->next - s->una);
    uint64_t fit;

    if (n <= 0 || window <= 0 || tx->cc.cwnd_bytes < tx->cc.packet_bytes)
        return 0;
    fit = (uint64_t)(window / bytes);
    fit += (double)(fit * bytes) < window;
    return fit < (uint32_t)n ? (uint32_t)fit : (uint32_t)n;
}

bool mrd_tx_full_window(const struct mrd_send_state *tx)
{
    return tx->cc.cwnd_bytes >= mrd_cc_bdp_bytes(&tx->cc, mrd_loss_rtt_min_ns(&tx->loss)) / 2;
}
