/* SPDX-License-Identifier: BSD-2-Clause */
/* Straight receive: where the payloads of a burst should go, and whether what came there is what was predicted. */
#include <string.h>

#include "core/engine/rx.h"
#include "core/seq.h"

static struct mrd_slot *planned_slot(struct mrd_engine *e, const struct mrd_wire_head *head,
                                     const struct mrd_wire_part *part, const struct mrd_addr *from,
                                     struct mrd_peer **peer)
{
    struct mrd_addr addr = *from;
    struct mrd_slot *slot;

    addr.port = head->reply;
    *peer = mrd_peer_find(&e->peers, &addr);
    if (!*peer || (*peer)->space.state != MRD_SPACE_KNOWN || (*peer)->space.inc != head->src_inc ||
        (*peer)->space.epoch != head->epoch ||
        (head->dst_inc && head->dst_inc != e->config.incarnation))
        return NULL;
    if (mrd_slots_judge(&(*peer)->rx->slots, part->id, &slot) != MRD_SLOT_GO_ON ||
        !mrd_slot_agrees(slot, part))
        return NULL;
    return slot;
}

/*
 * Only the first header is known: the plan assumes that the others follow it, PSN by PSN, in one message. Each
 * predicted PSN must be new and all that came of the message must lie where its PSN says, else bytes that were received
 * already, under another PSN, would be overwritten.
 */
unsigned mrd_engine_rx_plan(struct mrd_engine *e, const uint8_t *data, unsigned head_len,
                            unsigned segments, unsigned segment_len, unsigned total_len,
                            const struct mrd_addr *from, struct mrd_rx_plan *plan)
{
    struct mrd_wire_head head;
    struct mrd_wire_part part;
    struct mrd_peer *peer;
    struct mrd_slot *slot;
    uint32_t at, len, offset;
    unsigned n;

    e->plan.num = 0;
    if (head_len > total_len)
        head_len = total_len;
    /* The datagram is longer than what was peeked: only the header must be whole. */
    if (head_len < MRD_WIRE_BASE_BYTES || mrd_wire_get(data, head_len, &head) != MRD_WIRE_OK ||
        head.type != MRD_WIRE_DATA)
        return 0;
    at = head.parts_at;
    if (!mrd_wire_get_part(data, &at, head.head_len, &part) || at != head.head_len ||
        part.op > MRD_OP_WRITE || !(part.flags & MRD_PART_MULTI) || segment_len <= head.head_len ||
        part.len != (total_len < segment_len ? total_len : segment_len) - head.head_len)
        return 0;
    slot = planned_slot(e, &head, &part, from, &peer);
    if (!slot)
        return 0;
    len = segment_len - head.head_len;
    offset = part.offset;
    if (!mrd_slot_is_even(slot, &part, head.psn, len))
        return 0;
    for (n = 0; n < segments && n < MRD_PLAN_SEGMENTS_MAX; n++, offset += len) {
        uint32_t rest = total_len - n * segment_len;
        uint32_t take = (rest < segment_len ? rest : segment_len) - head.head_len;

        if (rest <= head.head_len || offset >= slot->total || take > slot->total - offset ||
            mrd_rcv_check(&peer->rx->rcv, head.psn + n) != MRD_RCV_NEW ||
            !mrd_seq_before(head.psn + n, peer->rx->rcv.limit))
            break;
        if (mrd_rx_place_iov(e, slot, offset, take, &plan->iov[n]) != 1 ||
            (char *)plan->iov[n].iov_base != (char *)plan->iov[0].iov_base + n * len)
            break; /* it crosses pieces of a scatter list: stage it */
        plan->first[n] = (uint16_t)n;
    }
    plan->first[n] = (uint16_t)n;
    plan->num_segments = (uint16_t)n;
    plan->head_len = head.head_len;
    e->plan.num = (uint16_t)n;
    e->plan.psn = head.psn;
    e->plan.epoch = head.epoch;
    e->plan.src_inc = head.src_inc;
    e->plan.id = part.id;
    e->plan.offset = part.offset;
    e->plan.len = (uint16_t)len;
    e->plan.base = n ? plan->iov[0].iov_base : NULL;
    return n;
}

/* Is a segment that was received in place the one that was predicted there? */
static bool as_planned(const struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_rx_packet *packet)
{
    struct mrd_wire_part part;
    uint32_t at = head->parts_at;

    return head->type == MRD_WIRE_DATA && head->head_len == packet->len &&
           head->psn == e->plan.psn + packet->plan_index && head->epoch == e->plan.epoch &&
           head->src_inc == e->plan.src_inc &&
           mrd_wire_get_part(packet->data, &at, head->head_len, &part) && at == head->head_len &&
           part.flags & MRD_PART_MULTI && part.op <= MRD_OP_WRITE && part.id == e->plan.id &&
           part.len == packet->placed_len &&
           part.offset == e->plan.offset + (uint32_t)packet->plan_index * e->plan.len;
}

bool mrd_rx_check_plan(struct mrd_engine *e, const struct mrd_rx_packet *packet,
                       const uint8_t **placed, struct mrd_rx_packet *whole)
{
    struct mrd_wire_head head;
    const uint8_t *at;

    if (packet->plan_index >= e->plan.num ||
        packet->len + packet->placed_len > sizeof(e->plan.scratch)) {
        e->stats.rx_drop_length++;
        return false;
    }
    at = e->plan.base + (size_t)packet->plan_index * e->plan.len;
    if (mrd_wire_get(packet->data, packet->len, &head) == MRD_WIRE_OK &&
        as_planned(e, &head, packet)) {
        *placed = at;
        return true;
    }
    e->stats.rx_straight_moved++;
    memcpy(e->plan.scratch, packet->data, packet->len);
    memcpy(e->plan.scratch + packet->len, at, packet->placed_len);
    *whole = *packet;
    whole->data = e->plan.scratch;
    whole->len = packet->len + packet->placed_len;
    whole->placed = 0;
    *placed = NULL;
    return true;
}
