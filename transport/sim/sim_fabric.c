/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sim/sim_fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/packet.h"

int mrd_sim_fabric_init(struct mrd_sim_fabric *fabric, uint32_t hosts, uint32_t links,
                        const struct mrd_sim_link *attr, uint64_t seed,
                        struct mrd_sim_events *events, struct mrd_sim_packets *packets)
{
    size_t pairs = (size_t)hosts * hosts;
    struct mrd_rng rng;

    *fabric = (struct mrd_sim_fabric){
        .hosts = hosts, .links = links, .events = events, .packets = packets};
    fabric->wires = calloc(pairs * links, sizeof(*fabric->wires));
    fabric->loss_masks = calloc(pairs, sizeof(*fabric->loss_masks));
    if (!fabric->wires || !fabric->loss_masks) {
        mrd_sim_fabric_fini(fabric);
        return -ENOMEM;
    }
    mrd_rng_init(&rng, seed);
    for (size_t i = 0; i < pairs * links; i++)
        mrd_sim_wire_init(&fabric->wires[i], attr, mrd_rng_u64(&rng));
    return 0;
}

void mrd_sim_fabric_fini(struct mrd_sim_fabric *fabric)
{
    free(fabric->wires);
    free(fabric->loss_masks);
    fabric->wires = NULL;
    fabric->loss_masks = NULL;
}

struct mrd_sim_wire *mrd_sim_fabric_wire(const struct mrd_sim_fabric *fabric, uint32_t from,
                                         uint32_t to, uint32_t link)
{
    assert(from < fabric->hosts && to < fabric->hosts && link < fabric->links);
    return &fabric->wires[((size_t)from * fabric->hosts + to) * fabric->links + link];
}

/*
 * The next bit of the pair's mask: is this packet to be lost? Every packet takes one, also one that
 * the tap drops.
 */
static bool mask_loses(struct mrd_sim_fabric *fabric, const struct mrd_sim_packet *packet)
{
    uint64_t *mask = &fabric->loss_masks[(size_t)packet->from * fabric->hosts + packet->to];
    bool lost = *mask & 1;

    *mask >>= 1;
    return lost;
}

static enum mrd_sim_verdict tap_verdict(struct mrd_sim_fabric *fabric,
                                        struct mrd_sim_packet *packet)
{
    if (!fabric->tap)
        return MRD_SIM_PASS;

    struct mrd_sim_datagram datagram = {.from = packet->from,
                                        .to = packet->to,
                                        .path = packet->path,
                                        .data = packet->data,
                                        .len = packet->len};
    enum mrd_sim_verdict verdict = fabric->tap(fabric->tap_arg, &datagram);

    if (datagram.len < packet->len)
        packet->len = datagram.len;
    return verdict;
}

static void arrive(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet, uint64_t at_ns)
{
    if (mrd_sim_events_push(fabric->events, at_ns, MRD_SIM_EVENT_ARRIVE, packet, 0) != 0)
        mrd_sim_packet_release(fabric->packets, packet);
}

void mrd_sim_fabric_send(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet,
                         uint64_t now_ns)
{
    struct mrd_sim_wire *wire =
        mrd_sim_fabric_wire(fabric, packet->from, packet->to, packet->path % fabric->links);
    bool masked = mask_loses(fabric, packet);
    bool dropped = tap_verdict(fabric, packet) == MRD_SIM_DROP;

    if (masked || dropped) {
        wire->stats.packets++;
        wire->stats.lost++;
        mrd_sim_packet_release(fabric->packets, packet);
        return;
    }

    struct mrd_sim_passage passage = mrd_sim_wire_pass(
        wire, packet->len + MRD_SIM_WIRE_OVERHEAD_BYTES, packet->ecn != MRD_ECN_NOT_ECT, now_ns);

    if (passage.ce)
        packet->ecn = MRD_ECN_CE;
    if (passage.copies == 0)
        mrd_sim_packet_release(fabric->packets, packet);
    /*
     * Each copy is damaged on its own: an intact one beside a broken one is the interesting case.
     */
    for (unsigned i = 0; i < passage.copies; i++) {
        bool is_last = i + 1 == passage.copies;
        struct mrd_sim_packet *copy =
            is_last ? packet : mrd_sim_packet_clone(fabric->packets, packet);

        if (!copy)
            continue;
        if (passage.corrupt[i])
            mrd_sim_wire_corrupt(wire, copy->data, copy->len);
        arrive(fabric, copy, passage.arrive_ns[i]);
    }
}
