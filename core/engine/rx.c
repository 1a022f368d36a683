/* SPDX-License-Identifier: BSD-2-Clause */
/* Received packets: data into its place, the rest to where it is dealt with. */
#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/contact.h"
#include "core/engine/grant.h"
#include "core/engine/peer_state.h"
#include "core/engine/receive.h"
#include "core/engine/rx_ack.h"
#include "core/engine/rx_place.h"
#include "core/engine/rx_plan.h"
#include "core/engine/timer.h"
#include "core/seal.h"
#include "core/seq.h"

/* ---------------------------------------------------------------------------------------- data */

/* Decide when the ack of a new packet leaves, and in how many copies. */
static void owe_ack(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                    uint32_t payload_len, enum mrd_place_end end, bool had_gap)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_rcv *r = &peer->rx->rcv;
    uint64_t due = e->clock.now_ns + m->ack_delay_ns;
    bool by_bytes = m->ack_bytes && payload_len && end != MRD_PLACE_END_SMALL;

    if (end >= MRD_PLACE_END_LONG ||
        (by_bytes ? (uint64_t)r->since_ack * payload_len >= m->ack_bytes
                  : r->since_ack >= m->ack_every))
        r->now = true;
    /* Send the completing ack twice, on two paths: no later ack would repeat it. */
    r->twice |= end == MRD_PLACE_END_VERY_LONG;
    if (head->flags & MRD_WIRE_ACK_REQUEST) {
        /* Nothing follows a whole message: the ack waits for an answer that it can ride on. */
        if (end == MRD_PLACE_END_SMALL) {
            r->wait_for_reply = true;
            peer->rx->call_seq = e->calls.seq;
            due = e->clock.now_ns + MRD_ACK_WITH_REPLY_NS;
        } else {
            r->now = true;
        }
        /*
         * Losses at the end of a burst: the sender retransmits on two paths, and so does the ack.
         */
        r->twice |= had_gap && r->cum == r->highest;
    }
    if (due < r->due_ns)
        r->due_ns = due;
    if (r->now || r->wait_for_reply)
        mrd_tx_ready(e, peer);
    else
        mrd_heap_arm(&e->timers.heap, &peer->timer, r->due_ns);
}

/* A peer that owes us something is probed after a silence, which begins now. */
static void watch_silence(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_recv_state *rx = peer->rx;

    rx->silence_ns = 0;
    rx->probe_at_ns =
        mrd_recv_state_is_owed(peer) ? e->clock.now_ns + MRD_SILENCE_MIN_NS : MRD_NEVER;
    mrd_heap_arm(&e->timers.heap, &peer->timer, rx->probe_at_ns);
}

/* `n` new packets came, all with what is told of the last one. */
static void count_packets(struct mrd_engine *e, struct mrd_peer *peer, uint32_t n,
                          const struct mrd_wire_head *head, uint32_t payload_len,
                          const struct mrd_rx_packet *packet)
{
    struct mrd_rcv *r = &peer->rx->rcv;
    bool ce = packet->ecn == MRD_ECN_CE;

    peer->ect.acks_off |= packet->ecn == MRD_ECN_NOT_ECT;
    if (payload_len > e->share.largest)
        mrd_share_grow(&e->share, payload_len);
    e->stats.rx_packets += n;
    e->stats.rx_bytes += (uint64_t)n * payload_len;
    e->stats.rx_straight += packet->placed ? n : 0;
    e->stats.rx_ce += ce ? n : 0;
    peer->count.packets_received += n;
    peer->count.bytes_received += (uint64_t)n * payload_len;
    mrd_rcv_count_run(r, head, n, ce);
    mrd_rcv_echo(r, head, ce, mrd_wire_stamp(e->clock.now_ns), e->clock.now_ns);
}

/* Is the packet new, within what was granted, and undamaged? Else count it; ack a duplicate. */
static bool check_packet(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_rx_in *in)
{
    struct mrd_rcv *r = &peer->rx->rcv;
    enum mrd_rcv_verdict verdict = mrd_rcv_check(r, in->head.psn);

    if (verdict == MRD_RCV_DUPLICATE) {
        e->stats.rx_duplicates++;
        peer->ect.acks_off |= in->packet->ecn == MRD_ECN_NOT_ECT;
        mrd_rcv_count(r, &in->head, in->packet->ecn == MRD_ECN_CE);
        mrd_rcv_dup(r, in->head.psn);
        mrd_tx_ready(e, peer);
        return false;
    }
    if (verdict == MRD_RCV_BEYOND || (in->payload_len && !mrd_seq_before(in->head.psn, r->limit))) {
        e->stats.rx_drop_window++;
        return false;
    }
    if (in->head.flags & MRD_WIRE_UNCHECKED
            ? !e->config.no_check && !e->config.sealed
            : mrd_wire_payload_check(in->payload, in->payload_len) != in->head.payload_check) {
        e->stats.rx_drop_checksum++;
        return false;
    }
    return true;
}

/* Without the padding of a packet that finds out what its path takes: it has nothing else. */
static uint32_t payload_without_padding(const struct mrd_rx_in *in)
{
    return in->num_parts == 1 && in->part[0].op == MRD_OP_VOID ? 0 : in->payload_len;
}

static void rx_data(struct mrd_engine *e, struct mrd_rx_in *in)
{
    struct mrd_peer *peer = mrd_contact_identify(e, &in->head, in->packet);
    struct mrd_refusal *refusal;
    enum mrd_place_end end;
    struct mrd_rcv *r;
    bool had_gap;

    if (!peer)
        return;
    if (in->head.flags & MRD_WIRE_ACKBLOCK)
        mrd_rx_ackblock(e, peer, &in->head);
    if (!check_packet(e, peer, in))
        return;
    r = &peer->rx->rcv;
    had_gap = r->cum != r->highest;
    switch (mrd_rx_place(e, peer, in, &refusal, &end)) {
    case MRD_PLACE_MALFORMED:
        e->stats.rx_drop_malformed++;
        return;
    case MRD_PLACE_GUESS: /* counted */
        return;
    case MRD_PLACE_NO_ROOM:
        e->stats.rx_drop_resources++;
        return;
    case MRD_PLACE_REFUSED:
        /* A refusal is a reliable packet of ours. The PSN is acked only once the refusal was. */
        mrd_list_append(&mrd_send_state_open(e, peer)->refusals, &refusal->node);
        mrd_tx_ready(e, peer);
        break;
    case MRD_PLACED:
        break;
    }
    if (in->head.flags & MRD_WIRE_WANTS_MORE)
        mrd_grant_wanted(peer->rx, in->head.psn);
    mrd_rcv_add(r, in->head.psn, refusal != NULL);
    count_packets(e, peer, 1, &in->head, payload_without_padding(in), in->packet);
    watch_silence(e, peer);
    owe_ack(e, peer, &in->head, in->payload_len, end, had_gap);
}

/*
 * The packets from the front that are as planned: what rx_data() does for each of them is done
 * once. Returns their number; 0: to be dealt with one by one.
 */
static uint32_t rx_run(struct mrd_engine *e, const struct mrd_rx_packet *packets, uint32_t n)
{
    struct mrd_run run;

    n = mrd_rx_plan_run(e, packets, n, &run);
    if (!n)
        return 0;
    /* The space may be over meanwhile: then the first packet was dealt with, by a RESET. */
    if (!mrd_contact_identify(e, &run.head, packets))
        return 1;
    if (!mrd_rx_place_run(e, &run, n))
        return 0;
    if (run.head.flags & MRD_WIRE_WANTS_MORE)
        mrd_grant_wanted(run.peer->rx, run.head.psn);
    mrd_rcv_add_run(&run.peer->rx->rcv, run.head.psn, n);
    run.head.psn += n - 1;
    count_packets(e, run.peer, n, &run.head, run.part.len, packets);
    watch_silence(e, run.peer);
    owe_ack(e, run.peer, &run.head, run.part.len, MRD_PLACE_END_NONE, false);
    return n;
}

/* ----------------------------------------------------------------------------------- any packet */

static void rx_sealed(struct mrd_engine *e, const struct mrd_rx_packet *packet)
{
    const struct mrd_wire_head head = {.reply = mrd_wire_peek_reply(packet->data)};

    e->stats.rx_drop_sealed++;
    if (packet->len >= MRD_SEAL_BYTES + MRD_WIRE_BASE_BYTES && !mrd_rx_names_no_port(e, &head))
        mrd_answer_sealed(e, &head, packet);
}

static bool decode(struct mrd_engine *e, struct mrd_rx_in *in);

/*
 * The host that sent a piece. The piece may overtake the packet that begins its space, but its sender
 * must have heard our name: strangers get no room. 0: it did not.
 */
static uint32_t fragment_sender(struct mrd_engine *e, const struct mrd_wire_head *head,
                                const struct mrd_rx_packet *packet)
{
    struct mrd_addr addr = packet->from;
    const struct mrd_peer *peer;
    uint32_t own_inc;

    addr.port = head->reply;
    peer = mrd_peer_find_pair(&e->peers, &addr, head->dst_inc, head->src_inc);
    own_inc = peer ? peer->pair.own_inc : mrd_answer_pair(e, &addr).own_inc;
    if (head->dst_inc != own_inc && !e->config.trusting) {
        struct mrd_wire_head asks = *head;

        /* It is answered by a reset, or, as the first packets may all be in pieces, a challenge. */
        asks.flags = head->dst_inc ? 0 : MRD_WIRE_FIRST_CONTACT;
        (void)mrd_contact_identify(e, &asks, packet);
        return 0;
    }
    return (uint32_t)mrd_peer_hash_host(&addr) | 1;
}

/* A piece of a packet: when all are here, it is dealt with as if it had come whole. */
static void rx_fragment(struct mrd_engine *e, const struct mrd_rx_in *piece)
{
    const struct mrd_wire_head *head = &piece->head;
    struct mrd_rx_in in = {.whole = *piece->packet};
    const struct mrd_frag *whole;
    uint32_t sender;
    bool fits;

    if (mrd_wire_payload_check(piece->payload, piece->payload_len) != head->payload_check) {
        e->stats.rx_drop_checksum++;
        return;
    }
    sender = fragment_sender(e, head, piece->packet);
    if (!sender)
        return;
    whole = mrd_frags_add(&e->frags, &e->allocator, sender, head, piece->payload,
                          piece->payload_len, e->clock.now_ns, &fits);
    e->stats.rx_fragments += fits;
    e->stats.rx_drop_length += !fits;
    if (!whole)
        return;
    in.whole.data = whole->bytes;
    in.whole.len = whole->total;
    in.packet = &in.whole;
    if (!decode(e, &in))
        return;
    if (in.head.type != MRD_WIRE_DATA || in.head.psn != head->psn) {
        e->stats.rx_drop_malformed++;
        return;
    }
    /*
     * The round trip is of the last piece. But that the sender holds no space of ours it may have said
     * in an earlier transmission.
     */
    in.head.stamp = in.head.flags & MRD_WIRE_FORGOTTEN ? whole->head_stamp : head->stamp;
    in.head.path_id = head->path_id;
    rx_data(e, &in);
}

static void count_wire_error(struct mrd_engine *e, enum mrd_wire_error error)
{
    struct mrd_stats *s = &e->stats;
    uint64_t *const counter[] = {
        [MRD_WIRE_OK] = &s->rx_drop_malformed,        [MRD_WIRE_TRUNCATED] = &s->rx_drop_truncated,
        [MRD_WIRE_BAD_VERSION] = &s->rx_drop_version, [MRD_WIRE_BAD_TYPE] = &s->rx_drop_type,
        [MRD_WIRE_BAD_LENGTH] = &s->rx_drop_length,   [MRD_WIRE_BAD_CHECK] = &s->rx_drop_checksum};

    (*counter[error])++;
}

static bool decode(struct mrd_engine *e, struct mrd_rx_in *in)
{
    const struct mrd_rx_packet *packet = in->packet;
    enum mrd_wire_error error = mrd_wire_get(packet->data, packet->len, &in->head);

    if (error == MRD_WIRE_BAD_TYPE && in->head.type == MRD_WIRE_SEALED && !e->config.sealed) {
        rx_sealed(e, packet);
        return false;
    }
    if (error || in->head.key_id || mrd_rx_names_no_port(e, &in->head)) {
        count_wire_error(e, error);
        return false;
    }
    in->payload = packet->data + in->head.head_len;
    in->payload_len = packet->len - in->head.head_len;
    return true;
}

void mrd_engine_rx(struct mrd_engine *e, const struct mrd_rx_packet *packets, unsigned n,
                   uint64_t now_ns)
{
    struct mrd_rx_in in;

    mrd_clock_set(&e->clock, now_ns);
    if (n)
        mrd_timer_look(e);
    mrd_share_read(&e->share, n);
    for (unsigned i = 0; i < n; i++) {
        uint32_t in_run = packets[i].placed ? rx_run(e, &packets[i], n - i) : 0;

        if (in_run) {
            i += in_run - 1;
            continue;
        }
        in.packet = &packets[i];
        in.num_parts = 0;
        if (in.packet->placed && !mrd_rx_check_plan(e, &in))
            continue;
        if (!in.num_parts && !decode(e, &in))
            continue;
        switch ((enum mrd_wire_type)in.head.type) {
        case MRD_WIRE_DATA:
            rx_data(e, &in);
            break;
        case MRD_WIRE_ACK:
            mrd_rx_ack(e, &in.head, in.packet);
            break;
        case MRD_WIRE_RESET:
            mrd_contact_reset(e, &in.head, &in.packet->from);
            break;
        case MRD_WIRE_CHALLENGE:
            mrd_contact_challenge(e, &in.head, in.packet);
            break;
        case MRD_WIRE_BUSY:
            mrd_contact_busy(e, &in.head, &in.packet->from);
            break;
        case MRD_WIRE_FRAGMENT:
            rx_fragment(e, &in);
            break;
        }
    }
}
