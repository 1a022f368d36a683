/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks that are not only links: hosts with two addresses, addresses that fail and change,
 * strangers, peers with other timeouts. A seed draws them on top of its profile, from numbers of
 * their own: all else is drawn as it would be without.
 *
 * MRD_SWARM_NETWORKS names those of all seeds, in place of what they draw: a list like
 * "two,strangers", or "none". It may name kinds of strangers' packets (stranger_kind_name()), like
 * "ask,reset": then these come, and no others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/stranger.h"
#include "tests/support/swarm.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"

enum {
    ROAMS = 60,           /* per thousand of the actions */
    SECOND_ADDRESS = 300, /* per thousand of the address handles */
    FRESH_FIRST = 8,      /* ids of addresses that hosts move to */
    FRESH = MRD_SIM_ADDRESSES_MAX - FRESH_FIRST,
    TEXT_BYTES = 64,
};

#define ROAM_SHORT_NS (30 * MSEC_NS)

static const struct {
    const char *name;
    uint32_t bit;
    uint32_t one_in; /* one in so many seeds has it, by itself or with others; 0: none */
} networks[] = {
    {"two", SWARM_TWO_ADDRESSES, 12},
    {"roam", SWARM_ROAM, 12},
    {"strangers", SWARM_STRANGERS, 8},
    {"timeouts", SWARM_TIMEOUTS, 10},
};

enum { NETWORKS = sizeof(networks) / sizeof(networks[0]) };

/* ---------------------------------------------------------------------------------------- drawing */

/* Adds what the word names to the bits, or to the kinds of strangers. false: nothing. */
static bool add_word(const char *word, uint32_t *bits, uint32_t *kinds)
{
    bool found = strcmp(word, "none") == 0;

    for (unsigned i = 0; i < NETWORKS; i++) {
        if (strcmp(word, networks[i].name) != 0)
            continue;
        *bits |= networks[i].bit;
        found = true;
    }
    for (unsigned kind = 0; kind < STRANGER_KINDS; kind++) {
        if (strcmp(word, stranger_kind_name((enum stranger_kind)kind)) != 0)
            continue;
        *bits |= SWARM_STRANGERS;
        *kinds |= 1u << kind;
        found = true;
    }
    return found;
}

static uint32_t named(const char *text, uint32_t *kinds)
{
    char copy[TEXT_BYTES], *at = copy, *word;
    uint32_t bits = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    while ((word = strsep(&at, ",")) != NULL) {
        if (!add_word(word, &bits, kinds))
            fail_msg("MRD_SWARM_NETWORKS: what is \"%s\"?", word);
    }
    return bits;
}

static uint32_t draw_networks(struct mrd_rng *rng)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < NETWORKS; i++) {
        if (networks[i].one_in && mrd_rng_below(rng, networks[i].one_in) == 0)
            bits |= networks[i].bit;
    }
    return bits;
}

static void draw_addresses(struct swarm_config *c, struct mrd_rng *rng)
{
    for (uint32_t host = 0; host < SWARM_HOSTS_MAX; host++) {
        struct swarm_host_config *h = &c->host[host];
        bool two = c->networks & SWARM_TWO_ADDRESSES && (host == 0 || mrd_rng_below(rng, 10) < 7);

        h->addresses = two || mrd_rng_below(rng, 3) == 0 ? 2 : 1;
        h->hashed = two && (host == 0 || mrd_rng_below(rng, 10) < 7);
        /* Two hosts are several pairs of addresses, each with an entry. */
        if (h->max_peers > 0)
            h->max_peers = c->networks & SWARM_ROAM ? 0 : 4 * c->sim.hosts;
    }
    c->roam = c->networks & SWARM_ROAM ? ROAMS : 0;
}

/* From a host that gives up soon to one that hardly does. */
static void draw_timeouts(struct swarm_config *c, struct mrd_rng *rng)
{
    static const uint32_t timeouts_ms[] = {300, 1000, 2000, 8000, 20000, 60000};

    for (uint32_t host = 0; host < SWARM_HOSTS_MAX; host++)
        c->host[host].peer_timeout_ns = timeouts_ms[mrd_rng_below(rng, 6)] * MSEC_NS;
}

static void draw_strangers(struct swarm_config *c, struct mrd_rng *rng)
{
    static const uint32_t budgets[] = {100, 400, 1500};
    static const uint32_t periods_us[] = {3, 30, 300, 3000, 30000};
    uint32_t kind = mrd_rng_below(rng, STRANGER_KINDS);
    bool small = mrd_rng_below(rng, 3) == 0;

    c->strangers.budget = budgets[mrd_rng_below(rng, 3)];
    c->strangers.period_ns = periods_us[mrd_rng_below(rng, 5)] * USEC_NS;
    c->strangers.burst = 1 + mrd_rng_below(rng, 8);
    stranger_all_kinds(&c->strangers);
    if (mrd_rng_below(rng, 2) == 0) { /* mostly one kind, and the questions that it needs */
        c->strangers.weight[kind] = 40;
        c->strangers.weight[STRANGER_ASK] += 4;
    }
    /*
     * A table that strangers could fill, with room for those that are what they say they are: some of the
     * strangers sit on the machine of a host, which with them has no share of the last eighth.
     */
    for (uint32_t host = 0; host < SWARM_HOSTS_MAX; host++) {
        uint32_t honest = c->networks & SWARM_TWO_ADDRESSES ? 4 * c->sim.hosts : c->sim.hosts;
        uint32_t peers = honest + STRANGER_OWN;

        if ((c->host[host].max_peers > 0 || small) && !(c->networks & SWARM_ROAM))
            c->host[host].max_peers = peers + peers / 7;
    }
    /* Likewise: peers share these, and strangers that go on as peers are some. */
    c->pool[SWARM_POOL_REFUSALS] = c->pool[SWARM_POOL_PAGES] = 0;
}

void swarm_draw_networks(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    const char *text = getenv("MRD_SWARM_NETWORKS");
    uint32_t kinds = 0;
    struct mrd_rng rng;

    mrd_rng_init(&rng, s->seed ^ 0x6e6574);
    c->networks = draw_networks(&rng);
    if (text)
        c->networks = named(text, &kinds);
    /* Profiles in which a lost packet, or the patience of hosts, is the matter. */
    if (c->profile == SWARM_CLOSING)
        c->networks &= ~(uint32_t)SWARM_ROAM;
    if (c->profile == SWARM_QUIET) /* a peer that was given up has no other entry there */
        c->networks &= ~(uint32_t)(SWARM_TWO_ADDRESSES | SWARM_ROAM);
    if (c->profile == SWARM_CROWD || c->profile == SWARM_QUIET || c->profile == SWARM_STALLED)
        c->networks &= ~(uint32_t)SWARM_TIMEOUTS;
    if (c->networks & (SWARM_TWO_ADDRESSES | SWARM_ROAM))
        draw_addresses(c, &rng);
    /* Contexts that trust first contacts cannot tell peers by more than their address. */
    if (c->networks & (SWARM_TWO_ADDRESSES | SWARM_ROAM | SWARM_STRANGERS))
        for (uint32_t host = 0; host < SWARM_HOSTS_MAX; host++)
            c->host[host].challenge = true;
    if (c->networks & SWARM_TIMEOUTS)
        draw_timeouts(c, &rng);
    if (c->networks & SWARM_STRANGERS)
        draw_strangers(c, &rng);
    for (unsigned kind = 0; kind < STRANGER_KINDS && kinds; kind++)
        c->strangers.weight[kind] = kinds >> kind & 1;
}

void swarm_describe_networks(const struct swarm *s)
{
    char text[TEXT_BYTES] = "";

    if (!s->config.networks)
        return;
    for (unsigned i = 0; i < NETWORKS; i++) {
        if (s->config.networks & networks[i].bit)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", networks[i].name);
    }
    print_error("  networks:%s\n", text);
    for (unsigned kind = 0; s->stranger && kind < STRANGER_KINDS; kind++) {
        if (s->stranger->sent[kind])
            print_error("    strangers: %s: %u\n", stranger_kind_name(kind),
                        (unsigned)s->stranger->sent[kind]);
    }
}

/* ------------------------------------------------------------------------------------- addresses */

void swarm_address_of(struct swarm *s, uint32_t host, char *text, size_t len)
{
    const struct swarm_host_config *c = &s->config.host[host];

    if (c->addresses > 1 && mrd_rng_below(&s->net_rng, 1000) < SECOND_ADDRESS)
        snprintf(text, len, "sim:%u/%u", host, c->addresses - 1);
    else
        snprintf(text, len, "sim:%u", host);
}

static void change(struct swarm *s, uint32_t id, enum mrd_sim_address_change how)
{
    assert_int_equal(mrd_sim_change_address(s->sim, 0, s->roam.host, id, how), 0);
}

void swarm_roam(struct swarm *s, uint32_t host)
{
    static const char *const how[] = {"fails", "is lost", "changes"};
    uint64_t most_ns =
        mrd_rng_below(&s->net_rng, 1000) < s->config.longer ? s->config.cut_ns : ROAM_SHORT_NS;
    uint64_t ns = mrd_rng_u64(&s->net_rng) % most_ns + 1;
    struct swarm_roam *roam = &s->roam;

    if (roam->until_ns)
        return;
    *roam = (struct swarm_roam){.host = host,
                                .id = mrd_rng_below(&s->net_rng, s->config.host[host].addresses),
                                .new_id = FRESH_FIRST + s->num_roams++ % FRESH,
                                .how = mrd_rng_below(&s->net_rng, SWARM_ROAM_KINDS),
                                .until_ns = mrd_sim_now(s->sim) + ns};
    swarm_tell(s, "address %u of host %u %s for %.3f ms", roam->id, host, how[roam->how],
               (double)ns / 1e6);
    change(s, roam->id,
           roam->how == SWARM_ROAM_FAILS ? MRD_SIM_ADDRESS_FAIL : MRD_SIM_ADDRESS_LOSE);
    if (roam->how == SWARM_ROAM_CHANGES)
        change(s, roam->new_id, MRD_SIM_ADDRESS_GET);
    for (uint32_t other = 0; other < s->config.sim.hosts; other++) {
        swarm_note_cut(s, host, other, ns);
        /* What was under way may fail once when an address changes; then all goes on. */
        if (roam->how == SWARM_ROAM_CHANGES)
            swarm_excuse(s, host, other);
    }
}

void swarm_end_roam(struct swarm *s)
{
    struct swarm_roam *roam = &s->roam;

    swarm_tell(s, "address %u of host %u is back", roam->id, roam->host);
    change(s, roam->id, MRD_SIM_ADDRESS_GET);
    change(s, roam->id, MRD_SIM_ADDRESS_MEND);
    if (roam->how == SWARM_ROAM_CHANGES)
        change(s, roam->new_id, MRD_SIM_ADDRESS_LOSE);
    roam->until_ns = 0;
    s->faulty_ns = mrd_sim_now(s->sim);
}

/* ------------------------------------------------------------------------------------- strangers */

static bool aim(void *arg, uint32_t host, struct mrd_wire_part *part)
{
    struct swarm *s = arg;
    int index = s->host[host].qp[mrd_rng_below(&s->net_rng, s->config.slots)];

    if (!s->host[host].context || index < 0)
        return false;
    part->dst_qpn = s->qp[index].num;
    part->qkey = s->qp[index].qkey;
    return true;
}

uint64_t swarm_stranger_ns(const struct swarm *s)
{
    return s->stranger ? s->stranger->next_ns : UINT64_MAX;
}

void swarm_stranger_go(struct swarm *s)
{
    if (s->stranger)
        stranger_go(s->stranger);
}

/* ------------------------------------------------------------------------------------------ world */

void swarm_open_networks(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    mrd_rng_init(&s->net_rng, s->seed ^ 0x776f726c64);
    for (uint32_t host = 0; host < c->sim.hosts; host++) {
        const struct swarm_host_config *h = &c->host[host];

        if (h->addresses > 0)
            assert_int_equal(
                mrd_sim_set_addresses(s->sim, host, h->addresses,
                                      h->hashed ? MRD_SIM_SOURCE_HASHED : MRD_SIM_SOURCE_FIRST),
                0);
    }
    if (!(c->networks & SWARM_STRANGERS))
        return;
    c->strangers.aim = aim;
    c->strangers.arg = s;
    s->stranger = stranger_create(s->sim, c->sim.hosts, s->seed ^ 0x73747261);
    stranger_start(s->stranger, &c->strangers);
}

void swarm_close_networks(struct swarm *s)
{
    if (s->stranger)
        stranger_destroy(s->stranger);
    s->stranger = NULL;
}
