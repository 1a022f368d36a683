/* SPDX-License-Identifier: BSD-2-Clause */
/* Received acks, and losses: what they mean for records, paths and windows. */
#include "core/engine/rx_ack.h"

#include "core/engine/address.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/seq.h"

enum {
    STALLED_SRTTS = 4,   /* a sample from before an RTO that is longer may span a stall */
    RUN_LOSSES_MAX = 64, /* packets of bursts lost in a row: this path loses bursts */
    DELAY_SRTT_MAX_NS = MRD_WIRE_STAMP_NS << 14, /* a quarter of the range of 16 bits of a stamp */
};

/* --------------------------------------------------------------------------------------- losses */

/*
 * What its last transmission carried, about, or each of its pieces did: the room for a header is taken
 * for used. A path probe that went again without its padding, and what went again as a header alone,
 * carried nothing, though the record still has the bytes of before.
 */
static uint32_t carried(const struct mrd_sent *rec)
{
    if (rec->kind == MRD_SENT_EMPTY)
        return rec->offset;
    if (rec->bare)
        return 0;
    if (rec->piece)
        return rec->piece;
    return rec->bytes > MRD_HEAD_PEEK_BYTES ? rec->bytes - MRD_HEAD_PEEK_BYTES : 0;
}

void mrd_rx_count_large_loss(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec)
{
    struct mrd_pmtu_range r = mrd_send_state_pmtu_range(e, peer);
    struct mrd_send_state *tx = peer->tx;

    /* A lost path probe tells of its path only; and acks of data, a bit smaller, never outweigh it. */
    if (rec->kind == MRD_SENT_EMPTY)
        return;
    if (!mrd_pmtu_payload_lost(&tx->pmtu, &r, carried(rec), tx->loss.srtt_ns, e->clock.now_ns))
        return;
    e->stats.mtu_falls++;
    mrd_send_state_use_pmtu(e, tx);
}

/*
 * Declare a packet lost. Returns true if a queue may have dropped it. A path that loses packet
 * after packet with none acked in between is broken: its losses must not cut the window, else many
 * dead paths would squeeze it to nothing.
 */
static bool declare_lost(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_sent *rec,
                         enum mrd_loss_cause cause)
{
    struct mrd_send_state *tx = peer->tx;
    bool fails;

    if (mrd_sent_is_mtu_probe(rec)) { /* too large, or it is tried again: not the path's fault */
        mrd_path_forgot(&tx->paths, rec->path);
        mrd_sent_lose(&tx->sent, rec, &tx->paths);
        return false;
    }
    mrd_rx_count_large_loss(e, peer, rec);
    if (cause == MRD_LOSS_BY_ORDER) {
        peer->count.lost_by_order++;
        e->stats.retx_order++;
    } else {
        peer->count.lost_by_rack++;
        e->stats.retx_rack++;
    }
    mrd_send_state_path_lost(e, tx, rec->path);
    fails = mrd_path_fails(&tx->paths, rec->path, e->clock.now_ns);
    if (!fails)
        mrd_cc_lost(&tx->cc, mrd_path_in_queue(&tx->paths, rec->path, tx->cc.delay_ns,
                                               tx->loss.srtt_ns, e->clock.now_ns));
    if (tx->spray.ops->lost)
        tx->spray.ops->lost(&tx->spray, rec->path);
    /* The path loses whole bursts, while single packets get through: segmentation offload fails. */
    if (rec->in_run && rec->tx_count == 1 && ++tx->run.losses >= RUN_LOSSES_MAX) {
        tx->run.losses = 0;
        tx->run.single_until_ns = e->clock.now_ns + MRD_SEC;
    }
    rec->deliberate = rec->probed = rec->path_penalized = false;
    rec->by_order = cause == MRD_LOSS_BY_ORDER;
    mrd_sent_lose(&tx->sent, rec, &tx->paths);
    return !fails;
}

void mrd_rx_judge_losses(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_send_state *tx = peer->tx;
    enum mrd_loss_cause cause;
    struct mrd_sent *rec;
    uint32_t n = 0, counted = 0;

    while ((rec = mrd_loss_next(&tx->loss, &tx->sent, &tx->paths, e->clock.now_ns, &cause))) {
        counted += declare_lost(e, peer, rec, cause);
        n++;
    }
    if (counted)
        tx->cc.ops->lost(&tx->cc, counted, e->clock.now_ns, tx->loss.srtt_ns,
                         mrd_loss_rtt_min_ns(&tx->loss));
    if (n)
        mrd_tx_ready(e, peer);
}

/* ---------------------------------------------------------------------------------------- acks */

static void undo_timeout(struct mrd_send_state *tx)
{
    if (tx->cc.cwnd_bytes < tx->probes.timeout_cwnd)
        tx->cc.cwnd_bytes = tx->probes.timeout_cwnd;
    tx->cc.slow_start |= tx->probes.timeout_start;
    tx->probes.timeout_ns = 0;
}

/*
 * Was the last RTO needed? The first ack after it tells. If it is for a packet that was sent only
 * once, and before the RTO, nothing was lost: the window gets back what it had (after F-RTO,
 * RFC 5682). An ack of a retransmitted packet is ambiguous unless its last copy is known to have
 * come. Several RTOs in a row are judged as one.
 */
static void judge_timeout(struct mrd_send_state *tx, const struct mrd_sent *rec, bool last_copy)
{
    if (!last_copy)
        return;
    if (rec->tx_count == 1 && rec->tx_ns < tx->probes.timeout_ns)
        undo_timeout(tx);
    tx->probes.timeout_ns = 0;
}

/* A packet that was declared lost arrived: take back what the loss did to its path and window. */
static void undo_loss(struct mrd_peer *peer, uint32_t path, bool path_penalized)
{
    mrd_path_found(&peer->tx->paths, path);
    if (!path_penalized)
        mrd_cc_found(&peer->tx->cc);
}

/* The packet came before its last copy did: if that one was to repair a loss, there was none. */
static void undo_retransmission(struct mrd_engine *e, struct mrd_peer *peer, uint32_t psn)
{
    struct mrd_retx *r = mrd_loss_spurious(&peer->tx->loss, psn, e->clock.now_ns);

    if (!r)
        return;
    e->stats.retx_spurious++;
    peer->count.packets_spurious++;
    if (r->by_order)
        mrd_path_order_spurious(&peer->tx->paths, r->old_path);
    mrd_path_age(&peer->tx->paths.path[r->old_path], e->clock.now_ns - r->tx_ns);
    undo_loss(peer, r->old_path, r->path_penalized);
}

/* What an ack of either form says of PSNs, summed up. */
struct acked {
    uint32_t packets, bytes;
    uint32_t repaired; /* packets of which only the copy arrived that was sent as a tail probe */
    bool echo;         /* the ack names one transmission: */
    uint32_t echo_psn, echo_stamp;
    const struct mrd_wire_ack *ack; /* names the PSNs that came twice; NULL: none did */
};

static bool came_twice(const struct acked *sum, uint32_t psn)
{
    for (unsigned i = 0; sum->ack && i < sum->ack->num_dups; i++) {
        if (sum->ack->dup[i] == psn)
            return true;
    }
    return false;
}

/*
 * Did its ack come sooner than any answer to its last copy could? Half of the least round trip
 * leaves room for one that was measured while a queue stood.
 */
static bool is_too_soon(const struct mrd_engine *e, const struct mrd_send_state *tx,
                        const struct mrd_sent *rec)
{
    uint64_t age_ns = e->clock.now_ns - rec->tx_ns;

    return age_ns < tx->paths.path[rec->path].rtt_min_ns &&
           age_ns < mrd_loss_rtt_min_ns(&tx->loss) / 2;
}

static void ack_psn(struct mrd_engine *e, struct mrd_peer *peer, uint32_t psn, struct acked *sum)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);
    struct mrd_pmtu_range r;
    bool last_copy;

    if (!rec || rec->state == MRD_SENT_ACKED || rec->state == MRD_SENT_NEW)
        return;
    last_copy = mrd_loss_acked(&tx->loss, rec,
                               sum->echo && psn == sum->echo_psn &&
                                   mrd_wire_stamp(rec->tx_ns) == sum->echo_stamp,
                               e->clock.now_ns);
    if (rec->tx_count == 1)
        mrd_path_age(&tx->paths.path[rec->path], e->clock.now_ns - rec->tx_ns);
    if (rec->state == MRD_SENT_LOST && !mrd_sent_is_mtu_probe(rec)) {
        if (rec->by_order)
            mrd_path_order_spurious(&tx->paths, rec->path);
        undo_loss(peer, rec->path, rec->path_penalized);
    }
    if (rec->state == MRD_SENT_INFLIGHT) {
        if (last_copy) {
            sum->repaired += rec->probed && !came_twice(sum, psn);
            mrd_path_acked(&tx->paths, rec->path);
            if (rec->tx_count == 1) /* else it is not known which copy was acked */
                mrd_path_pseq_acked(&tx->paths.path[rec->path], rec->pseq);
        } else {
            mrd_path_forgot(&tx->paths, rec->path);
            if (is_too_soon(e, tx, rec))
                undo_retransmission(e, peer, psn);
        }
        if (tx->spray.ops->acked)
            tx->spray.ops->acked(&tx->spray, rec->path, tx->paths.path[rec->path].rx_ce_now);
    }
    if (rec->in_run && rec->tx_count == 1)
        tx->run.losses = 0;
    if (tx->probes.timeout_ns)
        judge_timeout(tx, rec, last_copy);
    if (mrd_sent_is_mtu_probe(rec)) {
        r = mrd_send_state_pmtu_range(e, peer);
        mrd_pmtu_acked(&tx->pmtu, &r, rec->len, e->clock.now_ns);
        mrd_send_state_use_pmtu(e, tx);
    } else if (tx->pmtu.losses) {
        r = mrd_send_state_pmtu_range(e, peer);
        mrd_pmtu_payload_acked(&tx->pmtu, &r, carried(rec));
    }
    sum->packets++;
    sum->bytes += rec->bytes;
    mrd_sent_ack(&tx->sent, rec, &tx->paths);
    mrd_msg_record_acked(e, peer, rec);
}

/*
 * The packets from `psn` on, below `end`, that left as one run, as ack_psn() for each of them: what
 * they have in common is done once. Returns their number; 0: there is no run.
 */
static uint32_t ack_run(struct mrd_engine *e, struct mrd_peer *peer, uint32_t psn, uint32_t end,
                        struct acked *sum)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec = mrd_sent_get(&tx->sent, psn);
    struct mrd_pmtu_range r;
    struct mrd_path *path;
    uint32_t n, id, bytes, payload;

    if (!rec || psn + 1 == end || tx->probes.timeout_ns)
        return 0;
    n = mrd_sent_run(&tx->sent, rec, end);
    path = &tx->paths.path[rec->path];
    if (n < 2 || !mrd_path_is_good(path))
        return 0;
    mrd_loss_acked(&tx->loss, rec, false, e->clock.now_ns);
    mrd_path_run_acked(&tx->paths, rec->path, n);
    for (uint32_t i = 0; i < n; i++)
        mrd_path_age(path, e->clock.now_ns - rec->tx_ns);
    for (uint32_t i = n - 2; i < n; i++)
        mrd_path_pseq_acked(path, mrd_sent_get(&tx->sent, psn + i)->pseq);
    for (uint32_t i = 0; tx->spray.ops->acked && i < n; i++)
        tx->spray.ops->acked(&tx->spray, rec->path, path->rx_ce_now);
    tx->run.losses = 0;
    if (tx->pmtu.losses) {
        r = mrd_send_state_pmtu_range(e, peer);
        mrd_pmtu_payload_acked(&tx->pmtu, &r, carried(rec));
    }
    id = rec->id;
    mrd_sent_ack_run(&tx->sent, rec, n, &tx->paths, &bytes, &payload);
    sum->packets += n;
    sum->bytes += bytes;
    mrd_msg_segments_acked(e, peer, id, n, payload);
    return n;
}

static void ack_range(struct mrd_engine *e, struct mrd_peer *peer, uint32_t psn, uint32_t end,
                      struct acked *sum)
{
    while (mrd_seq_before(psn, end)) {
        uint32_t n = ack_run(e, peer, psn, end, sum);

        if (!n)
            ack_psn(e, peer, psn, sum);
        psn += n ? n : 1;
    }
}

static void ack_slices(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_ack *ack,
                       struct acked *sum)
{
    for (unsigned i = 0; i < ack->num_slices; i++) {
        for (uint32_t w = 0; w < 4; w++) {
            uint32_t base = ack->slice[i].base + 64 * w;
            uint64_t bits = mrd_sent_new_bits(&peer->tx->sent, base, ack->slice[i].bits[w]);

            while (bits) {
                uint32_t from = (uint32_t)__builtin_ctzll(bits);
                uint64_t gap = ~(bits >> from); /* the ones from there on end at its first one */
                uint32_t n = gap ? (uint32_t)__builtin_ctzll(gap) : 64;

                ack_range(e, peer, base + from, base + from + n, sum);
                bits &= from + n < 64 ? ~0ull << (from + n) : 0;
            }
        }
    }
}

/*
 * The space that an ack is about. Binds it to the acker's incarnation, if none was known. NULL: the
 * ack is of another space, or from another life, and was counted.
 */
static struct mrd_send_state *bind_ack(struct mrd_engine *e, struct mrd_peer *peer,
                                       const struct mrd_wire_head *head, uint32_t epoch,
                                       uint32_t cum)
{
    struct mrd_send_state *tx = peer ? peer->tx : NULL;

    if (!tx || head->dst_inc != peer->pair.own_inc || epoch != tx->contact.epoch ||
        (tx->contact.inc && tx->contact.inc != head->src_inc) ||
        mrd_seq_before(tx->sent.next, cum)) {
        e->stats.rx_drop_ack++;
        return NULL;
    }
    /* What comes so long after the newest one left later, though stamps may have come round. */
    if (!tx->contact.acked_once || mrd_seq_before(tx->told.stamp, head->stamp) ||
        e->clock.now_ns - tx->told.stamp_ns > MRD_PACKET_LIFE_NS)
        tx->told.stamp = head->stamp;
    tx->told.stamp_ns = e->clock.now_ns;
    tx->contact.inc = head->src_inc;
    tx->contact.acked_once = true;
    tx->contact.hello = false;
    tx->contact.has_cookie = tx->contact.proves = false;
    /* Copies of old acks would keep a send state that is not used, and that the peer forgets. */
    if (tx->sent.una != tx->sent.next)
        tx->active_ns = e->clock.now_ns;
    peer->heard_ns = e->clock.now_ns;
    return tx;
}

/*
 * Is the ack newer than all before it? Of an older one only the PSNs count, since what is acked
 * stays acked.
 */
static bool check_serial(struct mrd_engine *e, struct mrd_send_state *tx, uint32_t serial)
{
    if (tx->told.valid && !mrd_seq_before(tx->told.serial, serial)) {
        e->stats.rx_drop_stale_ack++;
        return false;
    }
    tx->told.valid = true;
    tx->told.serial = serial;
    return true;
}

/* The peer grants PSNs below `limit`, and tracks all of them from `cum` on. */
static void note_grant(struct mrd_send_state *tx, uint32_t limit, uint32_t cum)
{
    uint32_t psns = limit - cum;

    tx->told.psn_limit = limit;
    while (tx->told.tracker < MRD_TRACKER_WIDEST && psns >= 2 * tx->told.tracker)
        tx->told.tracker *= 2;
}

/*
 * The RTT that an echoed stamp tells, in ns; 0: no sample. A sample across our own stall is too
 * long, and so is one across the peer's: its packet left before our last RTO and took much longer
 * than others. The first one may tell that the RTT is longer than was taken for granted: then the timeouts
 * before it were early.
 */
static uint64_t rtt_sample(const struct mrd_engine *e, struct mrd_send_state *tx, uint32_t stamp,
                           uint32_t delay)
{
    uint32_t elapsed = mrd_wire_stamp(e->clock.now_ns) - stamp - delay;
    uint64_t ns = (uint64_t)elapsed * MRD_WIRE_STAMP_NS;

    if ((int32_t)elapsed < 0 || ns > e->clock.now_ns || e->clock.now_ns - ns < e->clock.absent_ns)
        return 0;
    if (!tx->loss.srtt_ns && tx->probes.timeout_ns &&
        ns > mrd_tune_ns(tx->loss.tune->initial_rtt_ns))
        undo_timeout(tx);
    if (e->clock.now_ns - ns < tx->probes.last_timeout_ns &&
        ns > STALLED_SRTTS * tx->loss.srtt_ns &&
        mrd_loss_stalled(&tx->loss, e->clock.now_ns - ns, ns))
        return 0;
    return ns ? ns : 1;
}

/* Does with the paths what the congestion control requests, and reports what they found. */
static void run_request(struct mrd_engine *e, struct mrd_send_state *tx,
                        enum mrd_cc_request request)
{
    uint64_t rtt_min_ns = mrd_loss_rtt_min_ns(&tx->loss);
    struct mrd_path_calibration calibration = {.rtt_min_ns = rtt_min_ns,
                                               .most_ns = mrd_cc_longest_ns(&tx->cc, rtt_min_ns),
                                               .fall_ns = (uint64_t)tx->cc.calibration.fall_ns,
                                               .least_ns = (uint64_t)tx->cc.calibration.least_ns,
                                               .unmarked =
                                                   request == MRD_CC_REQUEST_CALIBRATE_UNMARKED};

    if (request == MRD_CC_REQUEST_DRAIN) {
        mrd_path_drain(&tx->paths, &e->allocator);
        return;
    }
    if (request != MRD_CC_REQUEST_WATCH &&
        mrd_path_calibrate(&tx->paths, &e->allocator, &calibration, e->clock.now_ns))
        mrd_cc_calibrated(&tx->cc, rtt_min_ns + (uint64_t)tx->paths.excess_mean_ns);
    if (request != MRD_CC_REQUEST_CALIBRATE)
        mrd_path_watch(&tx->paths, &e->allocator);
}

static void tell_cc(struct mrd_engine *e, struct mrd_peer *peer, struct mrd_cc_ack *a,
                    uint64_t inflight)
{
    struct mrd_send_state *tx = peer->tx;

    if (!a->acked_packets && !a->counted_packets)
        return;
    if (peer->ect.off)
        a->ce_packets = 0; /* marks from before: none follow */
    a->now_ns = e->clock.now_ns;
    a->srtt_ns = tx->loss.srtt_ns;
    a->rtt_min_ns = mrd_loss_rtt_min_ns(&tx->loss);
    a->inflight_bytes = inflight;
    a->limited = tx->run.limited;
    tx->run.full |= (double)inflight >= tx->cc.cwnd_bytes;
    tx->cc.ops->ack(&tx->cc, a);
    if (tx->cc.request)
        run_request(e, tx, tx->cc.request);
    tx->cc.request = MRD_CC_REQUEST_NONE;
}

/*
 * Samples of the one-way delays of the other paths, from the last packet that came by each. The ack
 * carries their low 16 bits: they are taken to differ from the echoed delay by less than half of
 * that range, which holds where round trips are short (DELAY_SRTT_MAX_NS).
 */
static void apply_delays(struct mrd_engine *e, struct mrd_send_state *tx,
                         const struct mrd_wire_ack *ack)
{
    uint32_t echoed = ack->echo_rx_stamp - ack->echo_stamp;

    if (tx->loss.srtt_ns > DELAY_SRTT_MAX_NS)
        return;
    for (unsigned i = 0; i < ack->num_paths; i++) {
        const struct mrd_wire_path *told = &ack->path[i];
        const struct mrd_path *path = mrd_path_of_id(&tx->paths, told->id);
        int16_t later = (int16_t)(uint16_t)(told->delay - echoed);

        if (!told->delay || told->id == ack->echo_path || !path)
            continue;
        mrd_path_sample(&tx->paths, (uint32_t)(path - tx->paths.path),
                        ((int64_t)(int32_t)(echoed - tx->told.delay_base) + later) *
                            MRD_WIRE_STAMP_NS,
                        0, tx->loss.srtt_ns, e->clock.now_ns);
    }
}

/* The sample of RTT and one-way delay of the packet whose stamp the ack echoes. */
static void apply_echo(struct mrd_engine *e, struct mrd_send_state *tx,
                       const struct mrd_wire_ack *ack, struct mrd_cc_ack *a)
{
    const struct mrd_path *path = mrd_path_of_id(&tx->paths, ack->echo_path);
    uint32_t delay = ack->echo_rx_stamp - ack->echo_stamp;

    if (!(ack->flags & MRD_ACK_ECHO))
        return;
    a->rtt_ns = rtt_sample(e, tx, ack->echo_stamp, ack->echo_delay);
    if (!a->rtt_ns)
        return;
    mrd_loss_rtt(&tx->loss, a->rtt_ns, e->clock.now_ns);
    if (!path)
        return;
    if (!tx->told.delay_base_valid) {
        tx->told.delay_base_valid = true;
        tx->told.delay_base = delay;
    }
    int64_t delay_ns = (int64_t)(int32_t)(delay - tx->told.delay_base) * MRD_WIRE_STAMP_NS;
    uint32_t index = (uint32_t)(path - tx->paths.path);

    mrd_path_sample(&tx->paths, index, delay_ns, a->rtt_ns, tx->loss.srtt_ns, e->clock.now_ns);
    a->queue_ns = mrd_path_measure_queue_ns(&tx->paths, index, delay_ns, a->rtt_ns,
                                            mrd_loss_rtt_min_ns(&tx->loss));
    a->queue_valid = true;
    apply_delays(e, tx, ack);
}

/* The packets and CE marks that the peer counted on each path. */
static void apply_counts(struct mrd_send_state *tx, const struct mrd_wire_ack *ack,
                         struct mrd_cc_ack *a)
{
    for (unsigned i = 0; i < ack->num_paths; i++) {
        const struct mrd_wire_path *told = &ack->path[i];
        struct mrd_path *path = mrd_path_of_id(&tx->paths, told->id);
        uint32_t ce, received;

        if (!path)
            continue;
        ce = told->ce - path->rx_ce;
        received = told->received - path->rx_count;
        if ((int32_t)received < 0 || (int32_t)ce < 0)
            continue;
        if (received)
            mrd_path_came(path);
        path->rx_count = told->received;
        path->rx_ce = told->ce;
        path->rx_ce_now = ce != 0;
        path->ce += ce;
        a->counted_packets += received;
        a->ce_packets += ce;
    }
}

/* Was the packet acked that tests whether packets with ECT come through? */
static void judge_ect(struct mrd_engine *e, struct mrd_peer *peer)
{
    const struct mrd_sents *sent = &peer->tx->sent;
    const struct mrd_sent *rec = mrd_sent_get(sent, peer->ect.test_psn);

    if (!mrd_seq_before(peer->ect.test_psn, sent->next) || (rec && rec->state != MRD_SENT_ACKED))
        return;
    mrd_ect_passed(&peer->ect, e->clock.now_ns);
    e->stats.ecn_on++;
}

/* An ack was dealt with: its peer may send, and its losses are judged once the queue is empty. */
static void after_ack(struct mrd_engine *e, struct mrd_peer *peer)
{
    if (!peer->tx)
        return;
    if (peer->ect.testing)
        judge_ect(e, peer);
    if (mrd_list_empty(&peer->suspect))
        mrd_list_append(&e->turns.suspects, &peer->suspect);
    mrd_tx_ready(e, peer);
}

/*
 * The peer says which of its own spaces are over. If the one that we hold is, its half-received
 * messages will never be complete. Nothing else tells us if the peer gave us up while we
 * were stopped.
 */
static void apply_live_epoch(struct mrd_engine *e, struct mrd_peer *peer, uint32_t src_inc,
                             uint32_t live_epoch)
{
    if (peer->space.state == MRD_SPACE_KNOWN && peer->space.inc == src_inc &&
        mrd_wire_epoch_over(peer->space.epoch, live_epoch))
        mrd_recv_state_end(e, peer, MRD_SPACE_TOMB);
}

void mrd_rx_ack(struct mrd_engine *e, const struct mrd_wire_head *head,
                const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;
    struct mrd_cc_ack a = {0};
    struct acked sum = {0};
    struct mrd_wire_ack ack;
    struct mrd_send_state *tx;
    struct mrd_peer *peer;
    uint64_t inflight;
    bool news;

    addr.port = head->reply;
    peer = mrd_peer_find_pair(&e->peers, &addr, head->dst_inc, head->src_inc);
    if (!mrd_wire_get_ack(packet->data, head, &ack)) {
        e->stats.rx_drop_malformed++;
        return;
    }
    tx = bind_ack(e, peer, head, head->epoch, ack.cum);
    if (!tx)
        return;
    mrd_peer_set_life(e, peer, packet->life);
    e->stats.rx_acks++;
    mrd_address_came(e, peer, head, packet);
    apply_live_epoch(e, peer, head->src_inc, ack.live_epoch);
    inflight = tx->sent.inflight_bytes;
    news = check_serial(e, tx, ack.serial);
    if (news) {
        note_grant(tx, ack.psn_limit, ack.cum);
        tx->told.unchecked = ack.flags & MRD_ACK_UNCHECKED;
        tx->loss.peer_ack_delay_ns = ack.ack_delay_usec * (uint32_t)MRD_USEC;
        apply_echo(e, tx, &ack, &a);
        apply_counts(tx, &ack, &a);
    }
    /* No later ack says it again. */
    for (unsigned i = 0; i < ack.num_dups; i++)
        undo_retransmission(e, peer, ack.dup[i]);
    sum.ack = &ack;
    sum.echo = ack.flags & MRD_ACK_ECHO;
    sum.echo_psn = ack.echo_psn;
    sum.echo_stamp = ack.echo_stamp;
    ack_range(e, peer, tx->sent.una, ack.cum, &sum);
    ack_slices(e, peer, &ack, &sum);
    if (sum.packets || (news && (ack.num_dups || ack.flags & MRD_ACK_ECHO)))
        mrd_send_state_answered(e, peer);
    a.acked_packets = sum.packets;
    a.acked_bytes = sum.bytes;
    tell_cc(e, peer, &a, inflight);
    if (sum.repaired)
        mrd_cc_repaired(&tx->cc, sum.repaired, e->clock.now_ns, tx->loss.srtt_ns,
                        mrd_loss_rtt_min_ns(&tx->loss));
    if (ack.live_epoch == MRD_WIRE_EPOCH_NONE)
        mrd_peer_closed(e, peer);
    after_ack(e, peer);
}

void mrd_rx_ackblock(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head)
{
    struct mrd_send_state *tx = bind_ack(e, peer, head, head->ack_epoch, head->ack_cum);
    struct mrd_cc_ack a = {0};
    struct acked sum = {0};
    uint64_t inflight;

    if (!tx)
        return;
    inflight = tx->sent.inflight_bytes;
    if (check_serial(e, tx, head->ack_serial)) {
        mrd_send_state_answered(e, peer);
        note_grant(tx, head->ack_psn_limit, head->ack_cum);
        a.rtt_ns = rtt_sample(e, tx, head->ack_stamp, 0);
        if (a.rtt_ns)
            mrd_loss_rtt(&tx->loss, a.rtt_ns, e->clock.now_ns);
    }
    ack_range(e, peer, tx->sent.una, head->ack_cum, &sum);
    a.acked_packets = sum.packets;
    a.acked_bytes = sum.bytes;
    tell_cc(e, peer, &a, inflight);
    after_ack(e, peer);
}
