/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_address.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "transport/movers/sim/sim_world.h"

enum { ONLY = 1 }; /* the bitmap of a host with its first address alone */

/* ------------------------------------------------------------------------------------ having them */

struct mrd_sim_addresses *mrd_sim_need_addresses(struct mrd_sim *sim, uint32_t host)
{
    struct mrd_sim_host *h = &sim->hosts[host];

    assert(host < sim->attr.hosts);
    if (h->addresses)
        return h->addresses;
    h->addresses = calloc(1, sizeof(*h->addresses));
    if (h->addresses)
        h->addresses->has = ONLY;
    sim->has_addresses |= h->addresses != NULL;
    return h->addresses;
}

int mrd_sim_set_addresses(struct mrd_sim *sim, uint32_t host, uint32_t num,
                          enum mrd_sim_source source)
{
    struct mrd_sim_addresses *a = mrd_sim_need_addresses(sim, host);

    assert(num >= 1 && num <= MRD_SIM_ADDRESSES_MAX);
    if (!a)
        return -ENOMEM;
    *a = (struct mrd_sim_addresses){.has = UINT32_MAX >> (32 - num), .source = (uint8_t)source};
    return 0;
}

uint32_t mrd_sim_addresses_of(const struct mrd_sim *sim, uint32_t host)
{
    assert(host < sim->attr.hosts);
    return sim->hosts[host].addresses ? sim->hosts[host].addresses->has : ONLY;
}

void mrd_sim_address_apply(struct mrd_sim *sim, uint32_t host, uint32_t id,
                           enum mrd_sim_address_change change)
{
    struct mrd_sim_addresses *a = sim->hosts[host].addresses;
    uint32_t bit = 1u << id;

    switch (change) {
    case MRD_SIM_ADDRESS_GET:
        a->has |= bit;
        break;
    case MRD_SIM_ADDRESS_LOSE:
        a->has &= ~bit;
        break;
    case MRD_SIM_ADDRESS_FAIL:
        a->fails |= bit;
        break;
    case MRD_SIM_ADDRESS_MEND:
        a->fails &= ~bit;
        break;
    }
}

bool mrd_sim_is_host(const struct mrd_sim *sim, const struct mrd_addr *addr)
{
    uint32_t id = mrd_sim_address_id(addr);
    struct mrd_addr plain = mrd_sim_address(addr->port - 1, id);

    return memcmp(addr, &plain, sizeof(plain)) == 0 && addr->port >= 1 &&
           addr->port <= sim->attr.hosts &&
           (id == 0 || (sim->hosts[addr->port - 1].addresses && id < MRD_SIM_ADDRESSES_MAX));
}

/* -------------------------------------------------------------------------------------- choosing */

/* The next address at or behind `id`, round the end; the host has one. */
static uint32_t next_of(const struct mrd_sim_addresses *a, uint32_t id)
{
    while (!(a->has >> (id % MRD_SIM_ADDRESSES_MAX) & 1))
        id++;
    return id % MRD_SIM_ADDRESSES_MAX;
}

static struct mrd_sim_pin *find_pin(struct mrd_sim_addresses *a, const struct mrd_addr *to)
{
    for (uint32_t i = 0; i < a->num_pins; i++) {
        if (memcmp(&a->pin[i].to, to, sizeof(*to)) == 0)
            return &a->pin[i];
    }
    return NULL;
}

static uint32_t hashed(const struct mrd_sim_addresses *a, const struct mrd_addr *to, uint16_t path)
{
    uint64_t hash = XXH3_64bits_withSeed(to, sizeof(*to), path);
    uint32_t skip = (uint32_t)(hash % (uint32_t)__builtin_popcount(a->has)), id = next_of(a, 0);

    while (skip-- > 0)
        id = next_of(a, id + 1);
    return id;
}

/* What the kernel chooses. The host has an address. */
static uint32_t chosen(struct mrd_sim_host *host, const struct mrd_addr *to, uint16_t path)
{
    struct mrd_sim_addresses *a = host->addresses;
    struct mrd_sim_pin *pin = find_pin(a, to);
    uint32_t id = mrd_sim_address_id(to);

    /* The route to an own address leaves from that address. */
    if (to->port == host->number + 1 && id < MRD_SIM_ADDRESSES_MAX && a->has >> id & 1)
        return id;
    if (pin)
        return next_of(a, pin->id);
    return a->source == MRD_SIM_SOURCE_HASHED ? hashed(a, to, path) : next_of(a, 0);
}

/* The id that `from` names, if it is an address of the host; else -1. */
static int named(const struct mrd_sim_host *host, const struct mrd_addr *from)
{
    uint32_t id = mrd_sim_address_id(from);
    struct mrd_addr own = mrd_sim_address(host->number, id);
    bool has = id < MRD_SIM_ADDRESSES_MAX && host->addresses->has >> id & 1;

    return has && memcmp(from->ip, own.ip, sizeof(own.ip)) == 0 ? (int)id : -1;
}

int mrd_sim_choose_source(struct mrd_sim_host *host, const struct mrd_addr *from,
                          const struct mrd_addr *to, uint16_t path)
{
    static const uint8_t zero[sizeof(from->ip)];
    struct mrd_sim_addresses *a = host->addresses;
    int id = -1;

    if (memcmp(from->ip, zero, sizeof(zero)) != 0)
        id = named(host, from);
    else if (a->has)
        id = (int)chosen(host, to, path);
    if (id < 0) {
        host->stats.no_source++;
        return -1;
    }
    if (a->fails >> id & 1) {
        host->stats.failed_source++;
        return -1;
    }
    return id;
}

bool mrd_sim_takes(struct mrd_sim_host *host, uint32_t id)
{
    const struct mrd_sim_addresses *a = host->addresses;
    bool takes = a ? a->has >> id & ~a->fails >> id & 1 : id == 0;

    host->stats.not_there += !takes;
    return takes;
}

void mrd_sim_other_source(struct mrd_backend *b, const struct mrd_addr *to)
{
    struct mrd_sim_host *host = (struct mrd_sim_host *)b;
    struct mrd_sim_addresses *a = host->addresses;

    if (!a || !a->has)
        return;

    struct mrd_sim_pin *pin = find_pin(a, to);
    uint32_t id = next_of(a, chosen(host, to, 0) + 1);

    if (!pin) {
        pin = &a->pin[a->next_pin++ % MRD_SIM_PINS_MAX];
        a->num_pins += a->num_pins < MRD_SIM_PINS_MAX;
    }
    *pin = (struct mrd_sim_pin){.to = *to, .id = id};
}

/* ---------------------------------------------------------------------------------------- strangers */

void mrd_sim_tapped(const struct mrd_sim *sim, struct mrd_addr *from, struct mrd_addr *to)
{
    const struct mrd_sim_packet *packet = sim->fabric.tapped;

    *from = mrd_sim_address(packet->from, packet->from_id);
    *to = mrd_sim_address(packet->to, packet->to_id);
}

int mrd_sim_inject_from(struct mrd_sim *sim, const struct mrd_addr *from, const struct mrd_addr *to,
                        const void *data, uint32_t len, uint64_t at_ns)
{
    const uint8_t *ip = from->ip + 12;
    uint32_t number =
        ((uint32_t)ip[0] << 24 | (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3]);

    if (!mrd_sim_is_host(sim, to) || len > MRD_SIM_DATAGRAM_BYTES_MAX)
        return -EINVAL;

    struct mrd_sim_part *part = sim->hosts[to->port - 1].part;
    struct mrd_sim_packet *packet = mrd_sim_packet_alloc(&part->packets, len);

    if (!packet)
        return -ENOMEM;
    packet->from = number - 1;
    packet->from_id = ip[-1];
    packet->to = to->port - 1;
    packet->to_id = (uint8_t)mrd_sim_address_id(to);
    packet->path = 0;
    packet->ecn = MRD_ECN_NOT_ECT;
    packet->alone = false;
    if (len)
        memcpy(packet->data, data, len);
    return mrd_sim_part_arrive(part, packet, packet->to, at_ns);
}

void mrd_sim_set_stray_hook(struct mrd_sim *sim,
                            void (*hook)(void *arg, const struct mrd_sim_stray *stray), void *arg)
{
    assert(sim->num_parts == 1);
    sim->options.stray_hook = hook;
    sim->options.stray_hook_arg = arg;
}

/* ------------------------------------------------------------------------------------------- text */

int mrd_sim_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr)
{
    const struct mrd_sim *sim = ((struct mrd_sim_host *)b)->sim;
    unsigned long number = 0, id = 0;
    int end = 0;

    if (sscanf(text, "sim:%9lu%n", &number, &end) != 1 || text[4] < '0' || text[4] > '9')
        goto malformed;
    if (sim->has_addresses && text[end] == '/') {
        const char *behind = text + end + 1;

        end = 0;
        if (*behind < '0' || *behind > '9' || sscanf(behind, "%9lu%n", &id, &end) != 1 ||
            behind[end] != '\0' || id >= MRD_SIM_ADDRESSES_MAX)
            goto malformed;
    } else if (text[end] != '\0') {
        goto malformed;
    }
    if (number >= sim->attr.hosts) {
        mrd_error_set("\"%s\": the simulation has %u hosts", text, sim->attr.hosts);
        return -EHOSTUNREACH;
    }
    *addr = mrd_sim_address((uint32_t)number, (uint32_t)id);
    return 0;

malformed:
    mrd_error_set("\"%s\" is not a simulated address: sim:HOST", text);
    return -EINVAL;
}

int mrd_sim_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len)
{
    uint32_t id = mrd_sim_address_id(addr);
    (void)b;

    int n = id ? snprintf(text, len, "sim:%u/%u", addr->port - 1, id)
               : snprintf(text, len, "sim:%u", addr->port - 1);

    return n >= 0 && (size_t)n < len ? 0 : -ENOSPC;
}
