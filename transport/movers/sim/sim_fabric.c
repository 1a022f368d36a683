/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/packet.h"

enum {
    PPB = 1000000000,
    PORT_FIRST = 49152, /* source port of path 0: RFC 6335's dynamic ports */
    PORT_OURS = 4793,
    PROTOCOL_UDP = 17,
    NAME_BYTES = 24,
};

/* ------------------------------------------------------------------------------- create, wiring */

static bool may_be_down(const struct mrd_sim_link *attr)
{
    return attr->down || attr->flap_period_ns;
}

/* The caller initialises them. */
static struct mrd_sim_wire *alloc_wires(uint32_t num)
{
    return aligned_alloc(_Alignof(struct mrd_sim_wire), num * sizeof(struct mrd_sim_wire));
}

static int init_pairs(struct mrd_sim_fabric *fabric, const struct mrd_sim_attr *attr)
{
    fabric->num_wires = attr->hosts * attr->hosts * attr->links;
    fabric->wires = alloc_wires(fabric->num_wires);
    fabric->start = malloc(sizeof(*fabric->start));
    if (!fabric->wires || !fabric->start)
        return -ENOMEM;
    fabric->start[0] = attr->link;
    fabric->num_down = may_be_down(&attr->link) ? fabric->num_wires : 0;
    for (uint32_t i = 0; i < fabric->num_wires; i++) {
        mrd_sim_wire_init(&fabric->wires[i], &attr->link, mrd_rng_u64(&fabric->rng));
        fabric->wires[i].to = i / attr->links % attr->hosts;
    }
    return 0;
}

static int init_tree(struct mrd_sim_fabric *fabric, const struct mrd_sim_attr *attr)
{
    const struct mrd_sim_topology *t = attr->topology;

    fabric->tree = calloc(1, sizeof(*fabric->tree));
    if (!fabric->tree)
        return -ENOMEM;

    int ret = mrd_sim_tree_init(fabric->tree, t, mrd_rng_u64(&fabric->rng));

    if (ret != 0)
        return ret;
    fabric->num_wires = fabric->tree->num_wires;
    fabric->wires = alloc_wires(fabric->num_wires);
    fabric->start = calloc(2 * MRD_SIM_TIERS_MAX, sizeof(*fabric->start));
    if (!fabric->wires || !fabric->start)
        return -ENOMEM;
    /*
     * A link's delay includes that of the switch at its end. Up, a link of tier i ends in a switch
     * of tier i; down, in one of the tier below, or in a host.
     */
    for (uint32_t i = 0; i < t->tiers; i++) {
        struct mrd_sim_link link = attr->link;

        link.rate_bps = t->tier[i].rate_bps;
        link.delay_ns = t->tier[i].delay_ns + (i ? t->tier[i - 1].switch_ns : 0);
        fabric->start[2 * i] = link;
        link.delay_ns = t->tier[i].delay_ns + t->tier[i].switch_ns;
        fabric->start[2 * i + 1] = link;
    }
    /* A host's own queue neither drops nor marks: the host sends when its link is idle. */
    fabric->start[1].queue_bytes = 0;
    fabric->start[1].ecn_min_bytes = fabric->start[1].ecn_max_bytes = 0;
    fabric->num_down = may_be_down(&attr->link) ? fabric->num_wires : 0;
    for (uint32_t i = 0; i < fabric->num_wires; i++) {
        mrd_sim_wire_init(&fabric->wires[i], mrd_sim_fabric_start(fabric, i),
                          mrd_rng_u64(&fabric->rng));
        fabric->wires[i].to = mrd_sim_tree_ends(fabric->tree, i).to;
    }
    return 0;
}

int mrd_sim_fabric_init(struct mrd_sim_fabric *fabric, const struct mrd_sim_attr *attr,
                        uint64_t seed)
{
    *fabric = (struct mrd_sim_fabric){.hosts = attr->hosts,
                                      .links = attr->links,
                                      .loss_ppb = attr->loss_ppb,
                                      .has_priority = attr->ack_priority != 0};
    mrd_rng_init(&fabric->rng, seed);

    int ret = attr->topology ? init_tree(fabric, attr) : init_pairs(fabric, attr);

    if (ret != 0)
        mrd_sim_fabric_fini(fabric);
    return ret;
}

void mrd_sim_fabric_fini(struct mrd_sim_fabric *fabric)
{
    if (fabric->tree)
        mrd_sim_tree_fini(fabric->tree);
    free(fabric->tree);
    free(fabric->wires);
    free(fabric->start);
    free(fabric->loss_masks);
    *fabric = (struct mrd_sim_fabric){0};
}

struct mrd_sim_wire *mrd_sim_fabric_wire(const struct mrd_sim_fabric *fabric, uint32_t from,
                                         uint32_t to, uint32_t link)
{
    assert(!fabric->tree && from < fabric->hosts && to < fabric->hosts && link < fabric->links);
    return &fabric->wires[((size_t)from * fabric->hosts + to) * fabric->links + link];
}

struct mrd_sim_wire *mrd_sim_fabric_uplink(const struct mrd_sim_fabric *fabric, uint32_t host)
{
    return fabric->tree ? &fabric->wires[host] : NULL;
}

struct mrd_sim_wire *mrd_sim_fabric_first(const struct mrd_sim_fabric *fabric, uint32_t from,
                                          uint32_t to, uint16_t path)
{
    struct mrd_sim_wire *uplink = mrd_sim_fabric_uplink(fabric, from);

    return uplink ? uplink : mrd_sim_fabric_wire(fabric, from, to, path % fabric->links);
}

const struct mrd_sim_link *mrd_sim_fabric_start(const struct mrd_sim_fabric *fabric, uint32_t wire)
{
    if (!fabric->tree)
        return &fabric->start[0];

    struct mrd_sim_ends ends = mrd_sim_tree_ends(fabric->tree, wire);

    return &fabric->start[2 * ends.tier + ends.is_up];
}

void mrd_sim_fabric_set(struct mrd_sim_fabric *fabric, uint32_t wire,
                        const struct mrd_sim_link *attr, uint64_t now_ns)
{
    struct mrd_sim_wire *w = &fabric->wires[wire];

    fabric->num_down -= may_be_down(&w->attr);
    fabric->num_down += may_be_down(attr);
    fabric->has_changed |= attr->delay_ns != w->attr.delay_ns;
    mrd_sim_wire_set(w, attr, now_ns);
}

int mrd_sim_fabric_name(const struct mrd_sim_fabric *fabric, uint32_t wire, char *name, size_t len)
{
    char from[NAME_BYTES], to[NAME_BYTES], parallel[NAME_BYTES] = "";
    struct mrd_sim_ends ends = {.num_parallel = fabric->links};
    int n;

    if (fabric->tree) {
        ends = mrd_sim_tree_ends(fabric->tree, wire);
        (void)mrd_sim_tree_node_name(fabric->tree, ends.from, from, sizeof(from));
        (void)mrd_sim_tree_node_name(fabric->tree, ends.to, to, sizeof(to));
    } else {
        ends.parallel = wire % fabric->links;
        snprintf(from, sizeof(from), "host%u", wire / fabric->links / fabric->hosts);
        snprintf(to, sizeof(to), "host%u", fabric->wires[wire].to);
    }
    if (ends.num_parallel > 1)
        snprintf(parallel, sizeof(parallel), ".%u", ends.parallel);
    n = snprintf(name, len, "%s>%s%s", from, to, parallel);
    return n >= 0 && (size_t)n < len ? 0 : -ENOSPC;
}

/* --------------------------------------------------------------------------------- losses, taps */

/* Take the next bit of the pair's mask: is this packet to be lost? */
static bool take_mask_bit(struct mrd_sim_fabric *fabric, const struct mrd_sim_packet *packet)
{
    if (!fabric->loss_masks)
        return false;

    uint64_t *mask = &fabric->loss_masks[(size_t)packet->from * fabric->hosts + packet->to];
    bool lost = *mask & 1;

    *mask >>= 1;
    return lost;
}

static enum mrd_sim_verdict ask_tap(struct mrd_sim_fabric *fabric, struct mrd_sim_packet *packet)
{
    if (!fabric->tap)
        return MRD_SIM_PASS;

    struct mrd_sim_datagram datagram = {.from = packet->from,
                                        .to = packet->to,
                                        .path = packet->path,
                                        .data = packet->data,
                                        .len = packet->len,
                                        .alone = packet->alone};
    enum mrd_sim_verdict verdict;

    fabric->tapped = packet;
    verdict = fabric->tap(fabric->tap_arg, &datagram);
    fabric->tapped = NULL;
    if (datagram.len < packet->len)
        packet->len = packet->head_len = datagram.len;
    return verdict;
}

bool mrd_sim_fabric_draw_loss(const struct mrd_sim_fabric *fabric, struct mrd_sim_part *part)
{
    if (fabric->loss_ppb == 0 || mrd_rng_below(&part->rng, PPB) >= fabric->loss_ppb)
        return false;
    part->lost++;
    return true;
}

/* ------------------------------------------------------------------------------------- movement */

static void arrive(struct mrd_sim_part *part, const struct mrd_sim_wire *wire,
                   struct mrd_sim_packet *packet, uint64_t at_ns)
{
    if (wire->part == part->packets.number)
        (void)mrd_sim_part_arrive(part, packet, wire->to, at_ns);
    else
        mrd_sim_part_mail(part, wire->part, packet, wire->to, at_ns);
}

/* Flip a bit of a packet; with `rest`, of a copy in its place. NULL: no memory, it is lost. */
static struct mrd_sim_packet *corrupt(struct mrd_sim_part *part, struct mrd_sim_wire *wire,
                                      struct mrd_sim_packet *packet)
{
    packet = mrd_sim_packet_join(&part->packets, packet);
    if (packet) {
        packet->broken = true;
        mrd_sim_wire_corrupt(wire, packet->data, packet->len);
    }
    return packet;
}

/*
 * With priority: note the packet's size. Returns 0 if it is not urgent, else the size of the
 * largest packet that it may find in service.
 */
static uint32_t note_size(struct mrd_sim_part *part, const struct mrd_sim_packet *packet)
{
    if (packet->wire_bytes > part->bytes_max)
        part->bytes_max = packet->wire_bytes;
    return packet->urgent ? part->bytes_max : 0;
}

static void pass(const struct mrd_sim_fabric *fabric, struct mrd_sim_part *part,
                 struct mrd_sim_wire *wire, struct mrd_sim_packet *packet)
{
    uint32_t urgent = fabric->has_priority ? note_size(part, packet) : 0;
    struct mrd_sim_passage passage = mrd_sim_wire_offer(
        wire, packet->wire_bytes, packet->ecn != MRD_ECN_NOT_ECT, urgent, part->now_ns);

    if (passage.ce)
        packet->ecn = MRD_ECN_CE;
    if (passage.copies == 0)
        mrd_sim_packet_release(&part->packets, packet);
    /* Each copy is damaged on its own, so that an intact one may arrive beside a broken one. */
    for (unsigned i = 0; i < passage.copies; i++) {
        bool is_last = i + 1 == passage.copies;
        struct mrd_sim_packet *copy =
            is_last ? packet : mrd_sim_packet_clone(&part->packets, packet);

        if (copy && passage.corrupt[i])
            copy = corrupt(part, wire, copy);
        if (copy)
            arrive(part, wire, copy, passage.arrive_ns[i]);
    }
}

void mrd_sim_fabric_send(struct mrd_sim_fabric *fabric, struct mrd_sim_part *part,
                         struct mrd_sim_packet *packet)
{
    struct mrd_sim_wire *wire =
        mrd_sim_fabric_first(fabric, packet->from, packet->to, packet->path);

    if (fabric->tap) { /* it sees all bytes in one piece */
        packet = mrd_sim_packet_join(&part->packets, packet);
        if (!packet)
            return;
    }

    /* Both are asked for each packet: a packet that the tap drops takes a bit of the mask, too. */
    bool masked = take_mask_bit(fabric, packet);
    bool dropped = ask_tap(fabric, packet) == MRD_SIM_DROP;

    if (masked || dropped) {
        wire->stats.packets++;
        wire->stats.lost++;
        mrd_sim_packet_release(&part->packets, packet);
        return;
    }
    pass(fabric, part, wire, packet);
}

/* ECMP: of `num` equal wires from `first`, those that are up share by hash. NULL: none is up. */
static struct mrd_sim_wire *choose(struct mrd_sim_fabric *fabric, uint32_t first, uint32_t num,
                                   uint64_t hash, uint64_t now_ns)
{
    uint32_t up = 0;

    if (fabric->num_down == 0)
        return &fabric->wires[first + hash % num];
    for (uint32_t i = 0; i < num; i++)
        up += !mrd_sim_wire_is_down(&fabric->wires[first + i], now_ns);
    if (up == 0)
        return NULL;
    up = (uint32_t)(hash % up);
    for (uint32_t i = 0;; i++) {
        if (!mrd_sim_wire_is_down(&fabric->wires[first + i], now_ns) && up-- == 0)
            return &fabric->wires[first + i];
    }
}

void mrd_sim_fabric_forward(struct mrd_sim_fabric *fabric, struct mrd_sim_part *part,
                            struct mrd_sim_packet *packet, uint32_t node)
{
    const struct mrd_sim_switch *s = &fabric->tree->switches[node - fabric->hosts];
    struct mrd_sim_tuple tuple = {.source = packet->from,
                                  .destination = packet->to,
                                  .source_port = (uint16_t)(PORT_FIRST + packet->path),
                                  .destination_port = PORT_OURS,
                                  .protocol = PROTOCOL_UDP};
    uint32_t num, first = mrd_sim_tree_ways(s, packet->to, &num);
    uint64_t hash = num > 1 ? mrd_sim_tree_hash(s, &tuple) : 0;
    struct mrd_sim_wire *wire = choose(fabric, first, num, hash, part->now_ns);

    if (!wire) {
        fabric->wires[first].stats.packets++;
        fabric->wires[first].stats.blackholed++;
        mrd_sim_packet_release(&part->packets, packet);
        return;
    }
    pass(fabric, part, wire, packet);
}
