/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_part.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int mrd_sim_part_init(struct mrd_sim_part *part, uint32_t number)
{
    memset(part, 0, sizeof(*part));
    mrd_sim_packets_init(&part->packets, (uint8_t)number);
    mrd_sim_memory_init(&part->memory);
    part->outbox[0].next_ns = part->outbox[1].next_ns = MRD_SIM_NEVER;
    part->out = &part->outbox[0];
    return mrd_sim_events_init(&part->events);
}

void mrd_sim_part_fini(struct mrd_sim_part *part)
{
    mrd_sim_memory_fini(&part->memory);
    mrd_sim_packets_fini(&part->packets);
    mrd_sim_events_fini(&part->events);
}

static int push(struct mrd_sim_part *part, struct mrd_sim_packet *packet, uint64_t at_ns,
                uint8_t rank)
{
    if (mrd_sim_events_push_rank(&part->events, &packet->event, at_ns, rank) == 0)
        return 0;
    mrd_sim_packet_release(&part->packets, packet);
    return -ENOMEM;
}

int mrd_sim_part_arrive(struct mrd_sim_part *part, struct mrd_sim_packet *packet, uint32_t node,
                        uint64_t at_ns)
{
    packet->event.tag = node;
    return push(part, packet, at_ns, MRD_SIM_RANK_LAST);
}

void mrd_sim_part_mail(struct mrd_sim_part *part, uint32_t to, struct mrd_sim_packet *packet,
                       uint32_t node, uint64_t at_ns)
{
    struct mrd_sim_mail *mail = &part->out->to[to];

    packet->event.tag = node;
    packet->event.at_ns = at_ns;
    packet->event.next = NULL;
    if (mail->first)
        mail->last->event.next = &packet->event;
    else
        mail->first = packet;
    mail->last = packet;
    if (at_ns < part->out->next_ns)
        part->out->next_ns = at_ns;
}

void mrd_sim_part_begin(struct mrd_sim_part *part, uint32_t round)
{
    part->out = &part->outbox[round % 2];
    part->out->next_ns = MRD_SIM_NEVER;
}

void mrd_sim_part_take(struct mrd_sim_part *part, struct mrd_sim_part *from, uint32_t round)
{
    uint8_t number = part->packets.number;
    struct mrd_sim_outbox *box = &from->outbox[round % 2];
    struct mrd_sim_packet *packet = box->to[number].first, *stray = box->strays[number];

    box->to[number].first = NULL;
    box->strays[number] = NULL;
    while (packet) {
        struct mrd_sim_packet *next = (struct mrd_sim_packet *)packet->event.next;

        assert(packet->event.at_ns >= part->now_ns && "a wire is shorter than the window");
        (void)push(part, packet, packet->event.at_ns, from->packets.number);
        packet = next;
    }
    while (stray) {
        struct mrd_sim_packet *next = (struct mrd_sim_packet *)stray->event.next;

        mrd_sim_packet_release(&part->packets, stray);
        stray = next;
    }
}

void mrd_sim_part_end(struct mrd_sim_part *part)
{
    uint64_t next_ns = mrd_sim_events_next_ns(&part->events);

    memcpy(part->out->strays, part->packets.strays, sizeof(part->out->strays));
    memset(part->packets.strays, 0, sizeof(part->packets.strays));
    if (next_ns < part->out->next_ns)
        part->out->next_ns = next_ns;
}
