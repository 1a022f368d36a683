/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Straight receive: where the payloads of a burst should go, and whether what came there is what
 * was predicted.
 */
#include "core/engine/rx_plan.h"

#include <assert.h>
#include <string.h>

#include "core/engine/receive.h"
#include "core/engine/rx_place.h"
#include "core/seq.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The part of a packet that carries nothing but one segment of a message. */
static bool get_segment(const uint8_t *data, const struct mrd_wire_head *head,
                        struct mrd_wire_part *part)
{
    uint32_t at = head->parts_at;

    return head->type == MRD_WIRE_DATA && !head->key_id &&
           mrd_wire_get_part(data, &at, head->head_len, part) && at == head->head_len &&
           (part->op <= MRD_OP_WRITE || part->op == MRD_OP_RESPONSE) &&
           part->flags & MRD_PART_MULTI;
}

/* The peer in whose space the packet is; NULL: it is in no space that is held. */
static struct mrd_peer *planned_peer(struct mrd_engine *e, const struct mrd_wire_head *head,
                                     const struct mrd_addr *from)
{
    struct mrd_addr addr = *from;
    struct mrd_peer *peer;

    if (mrd_rx_names_no_port(e, head))
        return NULL;
    addr.port = head->reply;
    peer = mrd_peer_find_pair(&e->peers, &addr, head->dst_inc, head->src_inc);
    if (!peer || peer->space.state != MRD_SPACE_KNOWN || peer->space.inc != head->src_inc ||
        peer->space.epoch != head->epoch ||
        (head->dst_inc ? head->dst_inc != peer->pair.own_inc : !e->config.trusting))
        return NULL;
    return peer;
}

/* The open message of the part; NULL: there is none, or it does not agree. */
static struct mrd_slot *planned_slot(const struct mrd_peer *peer, const struct mrd_wire_part *part)
{
    struct mrd_slot *slot;

    return mrd_slots_judge(&peer->rx->slots, part->id, &slot) == MRD_SLOT_GO_ON &&
                   mrd_slot_agrees(slot, part)
               ? slot
               : NULL;
}

/* How many bytes from the part's on go to one place, segments of `len` bytes in a row; 0: none. */
static uint32_t planned_room(struct mrd_engine *e, struct mrd_peer *peer,
                             const struct mrd_wire_head *head, const struct mrd_wire_part *part,
                             uint32_t len, uint8_t **place)
{
    struct mrd_slot *slot;

    if (mrd_slots_judge(&peer->rx->slots, part->id, &slot) == MRD_SLOT_BEGIN)
        return slot ? 0 : mrd_rx_place_new(e, peer, part, place);
    slot = planned_slot(peer, part);
    return slot && mrd_slot_is_even(slot, part, head->psn, len)
               ? mrd_rx_place_at(e, slot, part->offset, place)
               : 0;
}

/*
 * Only the first header is known. The plan assumes that the next PSNs follow it, with the next
 * offsets of the same message. It is made only if these PSNs are new, and if all that came of the
 * message lies where its PSN says: else bytes that came under other PSNs would be overwritten. What
 * begins a message is planned for, too, if it is a write that will be taken.
 */
unsigned mrd_engine_rx_plan(struct mrd_engine *e, const uint8_t *data, unsigned head_len,
                            unsigned segments, unsigned segment_len, unsigned total_len,
                            const struct mrd_addr *from, struct mrd_rx_plan *plan)
{
    struct mrd_wire_head head;
    struct mrd_wire_part part;
    struct mrd_peer *peer;
    uint32_t len, room, n;
    uint8_t *place;

    e->plan.num = 0;
    if (head_len > total_len)
        head_len = total_len;
    /* Only the header must be whole: the datagram may be longer than what was peeked. */
    if (head_len < MRD_WIRE_BASE_BYTES || mrd_wire_get(data, head_len, &head) != MRD_WIRE_OK ||
        !get_segment(data, &head, &part) || head.head_len > sizeof(e->plan.head_bytes) ||
        segment_len <= head.head_len ||
        part.len != (total_len < segment_len ? total_len : segment_len) - head.head_len)
        return 0;
    peer = planned_peer(e, &head, from);
    if (!peer)
        return 0;
    len = segment_len - head.head_len;
    /* What crosses entries of a scatter list is staged. */
    room = planned_room(e, peer, &head, &part, len, &place);
    if (!room)
        return 0;
    if (segments > MRD_PLAN_SEGMENTS_MAX)
        segments = MRD_PLAN_SEGMENTS_MAX;
    segments = mrd_rcv_room(&peer->rx->rcv, head.psn, segments);
    for (n = 0; n < segments; n++) {
        uint32_t rest = total_len - n * segment_len;
        uint32_t take = (rest < segment_len ? rest : segment_len) - head.head_len;

        if (rest <= head.head_len || n * len + take > room)
            break;
        plan->iov[n] = (struct iovec){place + n * len, take};
        plan->first[n] = (uint16_t)n;
    }
    plan->first[n] = (uint16_t)n;
    plan->num_segments = (uint16_t)n;
    plan->head_len = head.head_len;
    e->plan.num = e->plan.moved_from = (uint16_t)n;
    e->plan.len = (uint16_t)len;
    e->plan.bytes = n ? (n - 1) * len + (uint32_t)plan->iov[n - 1].iov_len : 0;
    e->plan.base = n ? plan->iov[0].iov_base : NULL;
    e->plan.head = head;
    e->plan.part = part;
    memcpy(e->plan.head_bytes, data, head.head_len);
    return n;
}

/*
 * Is the packet the segment that was predicted at its place? It is decoded for that, except for the
 * first one, whose header was decoded for the plan.
 */
static bool as_planned(const struct mrd_plan *plan, struct mrd_rx_in *in)
{
    const struct mrd_rx_packet *packet = in->packet;
    struct mrd_wire_part *part = &in->part[0];

    if (!packet->plan_index && packet->len == plan->head.head_len &&
        !memcmp(packet->data, plan->head_bytes, packet->len)) {
        in->head = plan->head;
        *part = plan->part;
    } else if (mrd_wire_get(packet->data, packet->len, &in->head) != MRD_WIRE_OK ||
               !get_segment(packet->data, &in->head, part)) {
        return false;
    }
    return in->head.head_len == packet->len &&
           in->head.psn == plan->head.psn + packet->plan_index &&
           in->head.epoch == plan->head.epoch && in->head.src_inc == plan->head.src_inc &&
           part->id == plan->part.id && part->len == packet->placed_len &&
           part->offset == plan->part.offset + (uint32_t)packet->plan_index * plan->len;
}

uint32_t mrd_rx_plan_run(struct mrd_engine *e, const struct mrd_rx_packet *packets, uint32_t n,
                         struct mrd_run *run)
{
    const struct mrd_plan *plan = &e->plan;
    const struct mrd_wire_head *head = &plan->head;
    uint32_t first = packets->plan_index, count;
    uint8_t expected[MRD_HEAD_PEEK_BYTES];
    bool checked;

    /* Behind a cookie or an ack block the fields lie elsewhere than in the headers that follow. */
    if (n < 2 || first >= plan->num || head->parts_at != MRD_WIRE_BASE_BYTES)
        return 0;
    run->peer = planned_peer(e, head, &packets->from);
    run->slot = run->peer && head->src_inc != run->peer->pair.own_inc
                    ? planned_slot(run->peer, &plan->part)
                    : NULL;
    if (!run->slot)
        return 0;
    run->head = *head;
    run->head.flags = head->flags & MRD_WIRE_WANTS_MORE;
    checked = !(head->flags & MRD_WIRE_UNCHECKED);
    if (!checked && !e->config.no_check)
        return 0;
    run->head.psn += first;
    run->part = plan->part;
    run->part.len = plan->len;
    run->part.offset += first * plan->len;
    /* Not the last segment: it ends the message. */
    n = least(n, (run->slot->total - run->slot->got - 1) / plan->len);
    n = least(least(n, plan->num - first), mrd_rcv_room(&run->peer->rx->rcv, run->head.psn, n));
    for (count = 0; count < n; count++) {
        const struct mrd_rx_packet *packet = &packets[count];
        uint32_t index = first + count, offset = index * plan->len;
        uint32_t check;

        if (!packet->placed || packet->plan_index != index || packet->len != head->head_len ||
            packet->placed_len != plan->len || packet->ecn != packets->ecn)
            break;
        check = mrd_wire_get_payload_check(packet->data);
        mrd_wire_follow(expected, plan->head_bytes, head->head_len, head->psn + index,
                        head->pseq + index, plan->part.offset + offset, check);
        mrd_wire_seal(expected, expected + head->head_len);
        if (memcmp(expected, packet->data, packet->len) ||
            (checked && mrd_wire_payload_check(plan->base + offset, plan->len) != check))
            break;
    }
    return count;
}

/*
 * Where the payload is that was received as segment `index`, and is not what was predicted. Behind
 * a lost segment each one lies where the one before it belongs: who is put into its place overwrites
 * the next. So all that is left of the burst is moved away first. NULL: no memory.
 */
static const uint8_t *move_away(struct mrd_engine *e, uint16_t index)
{
    struct mrd_plan *plan = &e->plan;

    if (plan->moved_from == plan->num) {
        uint32_t bytes = plan->bytes - index * (uint32_t)plan->len;

        if (plan->moved_size < bytes) {
            uint8_t *moved = mrd_grow(&e->allocator, plan->moved, plan->moved_size, bytes);

            if (!moved)
                return NULL;
            plan->moved = moved;
            plan->moved_size = bytes;
        }
        memcpy(plan->moved, plan->base + index * (size_t)plan->len, bytes);
        plan->moved_from = index;
    }
    assert(index >= plan->moved_from); /* in the order of the burst */
    return plan->moved + (size_t)(index - plan->moved_from) * plan->len;
}

bool mrd_rx_check_plan(struct mrd_engine *e, struct mrd_rx_in *in)
{
    const struct mrd_rx_packet *packet = in->packet;
    struct mrd_plan *plan = &e->plan;
    const uint8_t *place;

    if (packet->plan_index >= plan->num ||
        packet->len + packet->placed_len > sizeof(plan->scratch)) {
        e->stats.rx_drop_length++;
        return false;
    }
    if (as_planned(plan, in)) {
        in->payload = plan->base + (size_t)packet->plan_index * plan->len;
        in->payload_len = packet->placed_len;
        in->num_parts = 1;
        return true;
    }
    place = move_away(e, packet->plan_index);
    if (!place) {
        e->stats.rx_drop_resources++;
        return false;
    }
    e->stats.rx_straight_moved++;
    memcpy(plan->scratch, packet->data, packet->len);
    memcpy(plan->scratch + packet->len, place, packet->placed_len);
    in->whole = *packet;
    in->whole.data = plan->scratch;
    in->whole.len = packet->len + packet->placed_len;
    in->whole.placed = 0;
    in->packet = &in->whole;
    return true;
}
