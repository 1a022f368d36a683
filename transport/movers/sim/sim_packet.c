/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * For headers whose payload is borrowed; acks; packets of an Ethernet MTU, of a payload of 4 KiB
 * and of the largest payload; and what mrd_sim_inject() may send.
 */
static const uint32_t class_bytes[MRD_SIM_PACKET_CLASSES] = {
    128, 256, 1536, 4608, 10240, MRD_SIM_DATAGRAM_BYTES_MAX};

enum { SLAB_BYTES = 256 << 10, SLAB_PACKETS_MIN = 4, LINE_BYTES = 64 };

struct mrd_sim_packet_slab {
    struct mrd_sim_packet_slab *next;
    _Alignas(LINE_BYTES) char items[];
};

void mrd_sim_packets_init(struct mrd_sim_packets *packets, uint8_t number)
{
    *packets = (struct mrd_sim_packets){.number = number};
}

void mrd_sim_packets_fini(struct mrd_sim_packets *packets)
{
    while (packets->slabs) {
        struct mrd_sim_packet_slab *slab = packets->slabs;

        packets->slabs = slab->next;
        free(slab);
    }
}

static void grow(struct mrd_sim_packets *packets, unsigned size_class)
{
    size_t item = sizeof(struct mrd_sim_packet) + class_bytes[size_class];

    item = (item + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

    size_t count = SLAB_BYTES / item > SLAB_PACKETS_MIN ? SLAB_BYTES / item : SLAB_PACKETS_MIN;
    struct mrd_sim_packet_slab *slab = aligned_alloc(LINE_BYTES, sizeof(*slab) + item * count);

    if (!slab)
        return;
    slab->next = packets->slabs;
    packets->slabs = slab;
    for (size_t i = 0; i < count; i++) {
        struct mrd_sim_packet *packet = (void *)(slab->items + i * item);

        packet->size_class = (uint8_t)size_class;
        packet->home = packets->number;
        packet->event.next = (struct mrd_sim_event *)packets->free[size_class];
        packets->free[size_class] = packet;
    }
}

struct mrd_sim_packet *mrd_sim_packet_alloc(struct mrd_sim_packets *packets, uint32_t len)
{
    unsigned size_class = 0;

    assert(len <= MRD_SIM_DATAGRAM_BYTES_MAX);
    while (class_bytes[size_class] < len)
        size_class++;
    if (!packets->free[size_class])
        grow(packets, size_class);

    struct mrd_sim_packet *packet = packets->free[size_class];

    if (!packet)
        return NULL;
    packets->free[size_class] = (struct mrd_sim_packet *)packet->event.next;
    packets->out++;
    packet->event = (struct mrd_sim_event){.kind = MRD_SIM_EVENT_ARRIVE};
    packet->len = packet->head_len = len;
    packet->rest = NULL;
    packet->urgent = packet->broken = false;
    packet->from_id = packet->to_id = 0;
    return packet;
}

struct mrd_sim_packet *mrd_sim_packet_clone(struct mrd_sim_packets *packets,
                                            const struct mrd_sim_packet *packet)
{
    struct mrd_sim_packet *clone = mrd_sim_packet_alloc(packets, packet->len);

    if (!clone)
        return NULL;
    clone->wire_bytes = packet->wire_bytes;
    clone->from = packet->from;
    clone->to = packet->to;
    clone->path = packet->path;
    clone->ecn = packet->ecn;
    clone->urgent = packet->urgent;
    clone->broken = packet->broken;
    clone->alone = packet->alone;
    clone->from_id = packet->from_id;
    clone->to_id = packet->to_id;
    memcpy(clone->data, packet->data, packet->head_len);
    if (packet->rest)
        memcpy(clone->data + packet->head_len, packet->rest, packet->len - packet->head_len);
    return clone;
}

struct mrd_sim_packet *mrd_sim_packet_join(struct mrd_sim_packets *packets,
                                           struct mrd_sim_packet *packet)
{
    if (!packet->rest)
        return packet;

    struct mrd_sim_packet *whole = mrd_sim_packet_clone(packets, packet);

    mrd_sim_packet_release(packets, packet);
    return whole;
}

void mrd_sim_packet_release(struct mrd_sim_packets *packets, struct mrd_sim_packet *packet)
{
    bool is_home = packet->home == packets->number;
    struct mrd_sim_packet **list =
        is_home ? &packets->free[packet->size_class] : &packets->strays[packet->home];

    packet->event.next = (struct mrd_sim_event *)*list;
    *list = packet;
    packets->out -= is_home;
}
