/* SPDX-License-Identifier: BSD-2-Clause */
/* Received packets: data into its place, the rest to where it is dealt with. */
#include "core/engine/rx.h"
#include "core/engine/contact.h"
#include "core/engine/timer.h"
#include "core/seq.h"

/* ---------------------------------------------------------------------------------------- data */

static void owe_ack(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                    enum mrd_place_end end, bool had_gap)
{
    const struct mrd_mover *m = &e->config.mover;
    struct mrd_rcv *r = &peer->rx->rcv;
    uint64_t due = e->clock.now_ns + m->ack_delay_ns;

    if (r->since_ack >= m->ack_every || end >= MRD_PLACE_END_LONG)
        r->now = true;
    /* That no ack follows which would tell the same is worth one more, on another path. */
    r->twice |= end == MRD_PLACE_END_VERY_LONG;
    if (head->flags & MRD_WIRE_ACK_REQUEST) {
        if (end ==
            MRD_PLACE_END_SMALL) { /* nothing follows it: wait for an answer that the ack can ride on */
            r->wait_for_reply = true;
            peer->rx->call_seq = e->calls.seq;
            due = e->clock.now_ns + MRD_ACK_WITH_REPLY_NS;
        } else {
            r->now = true;
        }
        /* The end after losses: the sender repeats itself on two paths, and so does the ack. */
        r->twice |= had_gap && r->cum == r->highest;
    }
    if (due < r->due_ns)
        r->due_ns = due;
    if (r->now || r->wait_for_reply)
        mrd_tx_ready(e, peer);
    else
        mrd_heap_arm(&e->timers.heap, &peer->timer, r->due_ns);
}

/* Whoever owes us is probed after a silence. */
static void watch_silence(struct mrd_engine *e, struct mrd_peer *peer)
{
    struct mrd_rx_half *rx = peer->rx;

    rx->silence_ns = 0;
    rx->probe_at_ns = mrd_half_is_owed(peer) ? e->clock.now_ns + MRD_SILENCE_MIN_NS : MRD_NEVER;
    mrd_heap_arm(&e->timers.heap, &peer->timer, rx->probe_at_ns);
}

static void rx_new(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                   const struct mrd_rx_packet *packet, const uint8_t *payload, uint32_t payload_len)
{
    struct mrd_rx_half *rx = peer->rx;
    bool had_gap = rx->rcv.cum != rx->rcv.highest;
    struct mrd_refusal *refusal;
    enum mrd_place_end end;

    switch (mrd_rx_place(e, peer, head, packet->data, packet->placed ? NULL : payload, payload_len,
                         &refusal, &end)) {
    case MRD_PLACE_MALFORMED:
        e->stats.rx_drop_malformed++;
        return;
    case MRD_PLACE_NO_ROOM:
        e->stats.rx_drop_resources++;
        return;
    case MRD_PLACE_REFUSED:
        /* A refusal is a reliable packet of our own; the PSN counts as received, but is told when it got there. */
        mrd_list_append(&mrd_half_open_tx(e, peer)->refusals, &refusal->node);
        mrd_tx_ready(e, peer);
        break;
    case MRD_PLACED:
        break;
    }
    mrd_rcv_add(&rx->rcv, head->psn, refusal != NULL);
    e->stats.rx_packets++;
    e->stats.rx_bytes += payload_len;
    e->stats.rx_straight += packet->placed;
    e->stats.rx_ce += packet->ecn == MRD_ECN_CE;
    peer->count.packets_received++;
    peer->count.bytes_received += payload_len;
    mrd_rcv_count(&rx->rcv, head, packet->ecn == MRD_ECN_CE);
    mrd_rcv_echo(&rx->rcv, head, packet->ecn == MRD_ECN_CE, mrd_wire_stamp(e->clock.now_ns),
                 e->clock.now_ns);
    watch_silence(e, peer);
    owe_ack(e, peer, head, end, had_gap);
}

static void rx_data(struct mrd_engine *e, const struct mrd_wire_head *head,
                    const struct mrd_rx_packet *packet, const uint8_t *payload,
                    uint32_t payload_len)
{
    struct mrd_peer *peer = mrd_contact_identify(e, head, packet);
    struct mrd_rx_half *rx;

    if (!peer)
        return;
    rx = peer->rx;
    if (head->flags & MRD_WIRE_ACKBLOCK)
        mrd_rx_ackblock(e, peer, head);
    switch (mrd_rcv_check(&rx->rcv, head->psn)) {
    case MRD_RCV_BEYOND:
        e->stats.rx_drop_window++;
        return;
    case MRD_RCV_DUPLICATE:
        e->stats.rx_duplicates++;
        mrd_rcv_count(&rx->rcv, head, packet->ecn == MRD_ECN_CE);
        mrd_rcv_dup(&rx->rcv, head->psn);
        mrd_tx_ready(e, peer);
        return;
    case MRD_RCV_NEW:
        break;
    }
    if (payload_len && !mrd_seq_before(head->psn, rx->rcv.limit)) {
        e->stats.rx_drop_window++;
        return;
    }
    if (mrd_wire_payload_check(payload, payload_len) != head->payload_check) {
        e->stats.rx_drop_checksum++;
        return;
    }
    rx_new(e, peer, head, packet, payload, payload_len);
}

/* ---------------------------------------------------------------------------------------- any packet */

static void count_wire_error(struct mrd_engine *e, enum mrd_wire_error error)
{
    struct mrd_stats *s = &e->stats;
    uint64_t *const counter[] = {
        [MRD_WIRE_OK] = &s->rx_drop_malformed,        [MRD_WIRE_TRUNCATED] = &s->rx_drop_truncated,
        [MRD_WIRE_BAD_VERSION] = &s->rx_drop_version, [MRD_WIRE_BAD_TYPE] = &s->rx_drop_type,
        [MRD_WIRE_BAD_LENGTH] = &s->rx_drop_length,   [MRD_WIRE_BAD_CHECK] = &s->rx_drop_checksum};

    (*counter[error])++;
}

static void rx_one(struct mrd_engine *e, const struct mrd_rx_packet *packet, const uint8_t *placed)
{
    struct mrd_wire_head head;
    enum mrd_wire_error error = mrd_wire_get(packet->data, packet->len, &head);

    if (error) {
        count_wire_error(e, error);
        return;
    }
    if (head.key_id) { /* kept for an authenticated mode: nobody here holds a key */
        e->stats.rx_drop_malformed++;
        return;
    }
    switch ((enum mrd_wire_type)head.type) {
    case MRD_WIRE_DATA:
        rx_data(e, &head, packet, placed ? placed : packet->data + head.head_len,
                placed ? packet->placed_len : packet->len - head.head_len);
        break;
    case MRD_WIRE_ACK:
        mrd_rx_ack(e, &head, packet);
        break;
    case MRD_WIRE_RESET:
        mrd_contact_reset(e, &head, &packet->from);
        break;
    case MRD_WIRE_CHALLENGE:
        mrd_contact_challenge(e, &head, &packet->from);
        break;
    }
}

static void rx_placed(struct mrd_engine *e, const struct mrd_rx_packet *packet)
{
    struct mrd_rx_packet whole;
    const uint8_t *placed;

    if (!mrd_rx_check_plan(e, packet, &placed, &whole))
        return;
    if (placed)
        rx_one(e, packet, placed);
    else
        rx_one(e, &whole, NULL);
}

void mrd_engine_rx(struct mrd_engine *e, const struct mrd_rx_packet *packets, unsigned n,
                   uint64_t now_ns)
{
    mrd_clock_set(&e->clock, now_ns);
    if (n)
        mrd_timer_look(e);
    for (unsigned i = 0; i < n; i++) {
        if (packets[i].placed)
            rx_placed(e, &packets[i]);
        else
            rx_one(e, &packets[i], NULL);
    }
}
