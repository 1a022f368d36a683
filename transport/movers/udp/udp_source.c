/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/udp/udp_source.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/movers/udp/udp_addr.h"
#include "transport/movers/udp/udp_route.h"

#define SOURCE_DEAD_NS 1000000000u /* then the kernel is tried with it again */
#define SOURCE_SEEK_NS 100000000u  /* between two searches, of a destination and of all addresses */
#define SOURCE_IDLE_NS 30000000000u
#define TURN_FORGET_NS 30000000000u /* other_source() was not asked for so long: from the start */

enum { SLOTS_LOOKED_AT = 256 }; /* more than there are in a row while the table is half full */

uint64_t mrd_udp_coarse_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void mrd_udp_sources_fini(struct mrd_udp_sources *sources)
{
    free(sources->slots);
}

/* -------------------------------------------------------------------- the table */

/*
 * The slot of `to`, or the free one where it belongs, or its first: another destination has that then,
 * and is asked for again.
 */
static struct mrd_udp_source *slot_of(const struct mrd_udp_sources *s, const struct mrd_addr *to)
{
    uint64_t high, low;
    uint32_t first;

    memcpy(&high, to->ip, 8);
    memcpy(&low, to->ip + 8, 8);
    /*
     * Addresses of neighbours differ in their last bytes, which are the highest bits of `low`. Fold
     * them down before the multiplication.
     */
    low ^= high ^ to->scope;
    low ^= low >> 32;
    first = (uint32_t)(low * 0x9e3779b97f4a7c15u >> 32);
    for (uint32_t i = 0; i < s->num_slots && i < SLOTS_LOOKED_AT; i++) {
        struct mrd_udp_source *slot = &s->slots[(first + i) & (s->num_slots - 1)];

        if (!slot->used || mrd_udp_addr_same_ip(&slot->to, to))
            return slot;
    }
    return &s->slots[first & (s->num_slots - 1)];
}

static struct mrd_udp_source *find(const struct mrd_udp_sources *s, const struct mrd_addr *to)
{
    struct mrd_udp_source *slot = s->num_slots ? slot_of(s, to) : NULL;

    return slot && slot->used && mrd_udp_addr_same_ip(&slot->to, to) ? slot : NULL;
}

static bool grow(struct mrd_udp_sources *s)
{
    struct mrd_udp_sources bigger = *s;

    bigger.num_slots = s->num_slots ? s->num_slots * 2 : MRD_UDP_SOURCES_MIN;
    bigger.slots = calloc(bigger.num_slots, sizeof(*bigger.slots));
    if (!bigger.slots)
        return false;
    for (uint32_t i = 0; i < s->num_slots; i++)
        if (s->slots[i].used)
            *slot_of(&bigger, &s->slots[i].to) = s->slots[i];
    free(s->slots);
    *s = bigger;
    return true;
}

/* NULL: no memory. */
static struct mrd_udp_source *find_or_add(struct mrd_udp_sources *s, const struct mrd_addr *to)
{
    struct mrd_udp_source *slot = find(s, to);

    if (slot)
        return slot;
    if (s->num_used * 2 >= s->num_slots && s->num_slots < MRD_UDP_SOURCES_MAX && !grow(s) &&
        !s->num_slots)
        return NULL;
    slot = slot_of(s, to);
    s->num_used += !slot->used;
    *slot = (struct mrd_udp_source){.used = true, .to = *to};
    slot->to.port = 0;
    return slot;
}

/* -------------------------------------------------------------------- candidates */

/* Lists this machine's addresses on interfaces that are up and have a carrier. */
static void list_own(struct mrd_udp_sources *s, int family, uint64_t now_ns)
{
    struct ifaddrs *list = NULL;

    if (s->own_ns && now_ns - s->own_ns < SOURCE_SEEK_NS)
        return;
    if (getifaddrs(&list))
        return; /* what was known will do */
    s->own_ns = now_ns;
    s->num_own = 0;
    for (const struct ifaddrs *i = list; i && s->num_own < MRD_UDP_OWN_MAX; i = i->ifa_next) {
        const unsigned wanted = IFF_UP | IFF_RUNNING;

        if (!i->ifa_addr || (i->ifa_flags & wanted) != wanted ||
            (i->ifa_addr->sa_family != AF_INET &&
             (i->ifa_addr->sa_family != AF_INET6 || family != AF_INET6)))
            continue;
        s->own[s->num_own] = (struct mrd_addr){.scope = 0};
        mrd_udp_from_sockaddr((const union mrd_udp_sockaddr *)(const void *)i->ifa_addr,
                              &s->own[s->num_own]);
        s->own[s->num_own++].port = 0;
    }
    freeifaddrs(list);
}

/* Has the address the reach of the destination? */
static bool is_suitable(const struct mrd_addr *own, const struct mrd_addr *to)
{
    return mrd_udp_addr_is_v4(own) == mrd_udp_addr_is_v4(to) &&
           mrd_udp_addr_is_loopback(own) == mrd_udp_addr_is_loopback(to) &&
           mrd_udp_addr_is_link_local(own) == mrd_udp_addr_is_link_local(to) &&
           own->scope == to->scope;
}

/*
 * Gets the candidate `turn`: 0: what the kernel would choose now, from 1 on: this machine's
 * addresses. false: it is none, or is `but`.
 */
static bool candidate(const struct mrd_udp *udp, const struct mrd_addr *to, unsigned turn,
                      const struct mrd_addr *but, struct mrd_addr *source)
{
    const struct mrd_udp_sources *s = &udp->tx.sources;
    struct mrd_udp_route route;

    if (turn == 0) {
        if (mrd_udp_route(udp, to, &route))
            return false;
        *source = route.source;
    } else {
        *source = s->own[turn - 1];
    }
    return !mrd_udp_addr_same_ip(source, but) && is_suitable(source, to) &&
           (turn == 0 || !mrd_udp_route_from(udp, source, to));
}

/* Finds the next candidate from `*turn` on that is not `but`. false: there is no other. */
static bool next_candidate(struct mrd_udp *udp, const struct mrd_addr *to, uint32_t *turn,
                           const struct mrd_addr *but, struct mrd_addr *source)
{
    unsigned num = 1 + udp->tx.sources.num_own;

    for (unsigned i = 0; i < num; i++) {
        unsigned at = (*turn + i) % num;

        if (!candidate(udp, to, at, but, source))
            continue;
        *turn = at + 1;
        return true;
    }
    return false;
}

/* -------------------------------------------------------------------- choices */

static bool is_dead(const struct mrd_udp_source *slot, const struct mrd_addr *source,
                    uint64_t now_ns)
{
    return mrd_udp_addr_same_ip(&slot->dead, source) && now_ns - slot->dead_ns < SOURCE_DEAD_NS &&
           !mrd_udp_addr_is_any(&slot->dead);
}

bool mrd_udp_source_for(struct mrd_udp *udp, const struct mrd_addr *to, const struct mrd_addr *from,
                        struct mrd_addr *source)
{
    struct mrd_udp_sources *s = &udp->tx.sources;
    struct mrd_udp_source *slot;
    struct mrd_udp_route route;
    bool given = !mrd_udp_addr_is_any(from) && mrd_udp_addr_is_v4(from) == mrd_udp_addr_is_v4(to);

    if (!mrd_udp_addr_is_any(&udp->bound) || udp->tx.nameless)
        return false;
    *source = *from;
    if (given && udp->tx.now_ns >= s->dead_until_ns)
        return true;
    slot = find(s, to);
    if (given && !(slot && is_dead(slot, from, udp->tx.now_ns)))
        return true;
    if (slot && !mrd_udp_addr_is_any(&slot->source) &&
        udp->tx.now_ns - slot->used_ns < SOURCE_IDLE_NS) {
        slot->used_ns = udp->tx.now_ns;
        *source = slot->source;
        return true;
    }
    if (mrd_udp_route(udp, to, &route))
        return false;
    *source = route.source;
    slot = find_or_add(s, to);
    if (slot) {
        slot->source = route.source;
        slot->used_ns = udp->tx.now_ns;
    }
    return true;
}

static void log_change(struct mrd_udp *udp, const struct mrd_udp_source *slot,
                       const struct mrd_addr *old)
{
    const struct mrd_addr *addrs[] = {&slot->to, &slot->source, old};
    char text[3][MRD_ADDRESS_MAX];

    for (unsigned i = 0; i < 3; i++)
        if (mrd_udp_format_address(&udp->base, addrs[i], text[i], MRD_ADDRESS_MAX))
            text[i][0] = '\0';
    mrd_log(MRD_LOG_INFO, "packets to %s leave from %s now, not from %s", text[0], text[1],
            text[2]);
}

bool mrd_udp_source_refused(struct mrd_udp *udp, const struct mrd_addr *to,
                            const struct mrd_addr *from, int error)
{
    struct mrd_udp_sources *s = &udp->tx.sources;
    struct mrd_addr old, source;
    struct mrd_udp_source *slot;
    uint64_t now_ns = udp->tx.now_ns;
    uint32_t turn = 0;

    if (error != EINVAL && error != EADDRNOTAVAIL && error != ENETUNREACH && error != EHOSTUNREACH)
        return false;
    if (!mrd_udp_source_for(udp, to, from, &old))
        return false;
    slot = find_or_add(s, to);
    if (!slot || (slot->sought_ns && now_ns - slot->sought_ns < SOURCE_SEEK_NS))
        return false;
    slot->sought_ns = now_ns;
    /* Without a descriptor to ask with, the source is taken for the reason. */
    error = mrd_udp_route_from(udp, &old, to);
    if (!error)
        return false;
    list_own(s, udp->family, now_ns);
    if (!next_candidate(udp, to, &turn, &old, &source))
        return false;
    slot->source = source;
    slot->used_ns = now_ns;
    slot->dead = old;
    slot->dead_ns = now_ns;
    s->dead_until_ns = now_ns + SOURCE_DEAD_NS;
    log_change(udp, slot, &old);
    return true;
}

void mrd_udp_other_source(struct mrd_backend *b, const struct mrd_addr *to)
{
    struct mrd_udp *udp = mrd_udp_of(b);
    struct mrd_udp_sources *s = &udp->tx.sources;
    struct mrd_udp_source *slot;
    struct mrd_addr old, source;
    uint64_t now_ns = mrd_udp_coarse_ns();

    if (!mrd_udp_addr_is_any(&udp->bound))
        return;
    udp->tx.now_ns = now_ns; /* who asks before the next burst must not be before `used_ns` */
    slot = find_or_add(s, to);
    if (!slot)
        return;
    if (now_ns - slot->turned_ns > TURN_FORGET_NS)
        slot->turn = 0;
    slot->turned_ns = now_ns;
    list_own(s, udp->family, now_ns);
    old = slot->source;
    if (!next_candidate(udp, to, &slot->turn, &old, &source))
        return; /* there is only the one */
    slot->source = source;
    slot->used_ns = now_ns;
    if (!mrd_udp_addr_is_any(&old))
        log_change(udp, slot, &old);
}
