/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiles: what a seed changes in a world with a little of everything, so that one kind of
 * trouble comes often. Each keeps a seed cheap to run.
 */
#include "tests/support/swarm.h"

#define KIB 1024u

static void set_all(struct swarm *s, uint64_t timeout_ns, uint32_t max_peers, uint32_t max_flows)
{
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        s->config.host[i].peer_timeout_ns = timeout_ns;
        s->config.host[i].max_peers = max_peers;
        s->config.host[i].max_flows = max_flows;
    }
}

static void clear_chaos(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->flush = c->destroy = c->dereg = c->restart = c->stop = c->hole = c->partition = 0;
    c->one_way = c->delay = c->late = 0;
    c->late_ns = 0;
    c->bad_requests = c->rnr_limited = false;
}

static void clean_links(struct swarm *s)
{
    struct mrd_sim_link *link = &s->config.sim.link;

    link->jitter_ns = 0;
    link->loss_ppm = link->duplicate_ppm = link->corrupt_ppm = 0;
}

static void draw_depth(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    if (swarm_chance(s, 500))
        clean_links(s);
    set_all(s, 0, 0, 0);
    c->slots = 1 + swarm_below(s, 2);
    c->sim.hosts = swarm_chance(s, 800) ? 2 : 3;
    c->mtu = SWARM_PICK(s, 256, 256, 1024);
    if (c->sim.link.rate_bps < 10000000000ull)
        c->sim.link.rate_bps = 10000000000ull;
    c->numbered = true;
    c->sends = SWARM_PICK(s, 900, 1000);
    c->ordered = SWARM_PICK(s, 0, 0, 500, 1000);
    c->bytes_left = 16 * KIB * KIB;
    c->recv_depth = SWARM_PICK(s, 1, 4, 4, 32, 256);
    c->messages = SWARM_PICK(s, 65, 130, 400, 1100, 1500, 3000);
    if (swarm_chance(s, 600)) { /* messages of several packets */
        c->len_min = c->mtu + 1;
        c->len_max = c->mtu * SWARM_PICK(s, 2, 3, 8);
    } else {
        c->len_min = 1;
        c->len_max = 64;
    }
    if (c->messages <= 400 && swarm_chance(s, 300))
        c->len_min = c->len_max = 16 * KIB;
    c->recv_bytes = c->len_max;
    c->send_depth = SWARM_PICK(s, 64, 128, 4096);
    c->send_cqe = c->send_depth;
    /* More messages than one flow's order window. */
    if (c->messages > 1024 && swarm_chance(s, 700)) {
        c->sim.hosts = 2;
        c->slots = 1;
        c->one_sided = true;
        c->send_depth = c->send_cqe = 4096;
        c->ordered = 1000;
    }
    c->pool[SWARM_POOL_SLOTS] = SWARM_PICK(s, 0, 4, 16);
    c->pool[SWARM_POOL_PENDS] = SWARM_PICK(s, 0, 16, 64);
    c->pool[SWARM_POOL_PAGES] = SWARM_PICK(s, 0, 4, 8);
    c->actions = 100;
    c->burst = 2 * c->messages / c->actions + 2;
    c->pace_ns = SWARM_PICK(s, 500, 30000, 300000);
    c->late_ns = swarm_chance(s, 700) ? 50 * MSEC_NS : 0;
    c->late = swarm_chance(s, 300) ? 20 : 0;
}

static void draw_starved(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    if (swarm_chance(s, 700))
        clean_links(s);
    set_all(s, 0, 0, 0);
    c->unequal_delays = false; /* they shrink windows so much that all else is slow, too */
    c->sim.hosts = 2 + swarm_below(s, 3);
    c->slots = 2 + swarm_below(s, 2);
    c->mtu = SWARM_PICK(s, 256, 1024, 4096);
    c->recv_bytes = c->mtu * SWARM_PICK(s, 1, 2, 3);
    c->send_depth = 2048;
    c->send_cqe = 4096;
    c->numbered = true;
    c->messages = 2048;
    c->actions = 60;
    c->bytes_left = 8 * KIB * KIB;
    if (swarm_chance(s, 300)) { /* more starved flows than the target has records for */
        c->sim.hosts = 3 + swarm_below(s, 2);
        c->slots = SWARM_SLOTS_MAX;
        c->ordered = 1000;
        c->host[1].max_flows = 2 + swarm_below(s, 2);
    }
}

/*
 * Many refusals, mostly to the sender's own host. There both directions have one window, and a
 * refusal may wait behind the very packet that it answers.
 */
static void draw_refused(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++)
        c->host[i].cc = "swift";
    c->sim.hosts = 2;
    c->sim.link.loss_ppm = SWARM_PICK(s, 200000, 300000);
    c->sim.link.rate_bps = 10000000000ull;
    c->own = 700;
    c->bad_requests = true;
    c->flawed = 500;
    c->pace_ns = SWARM_PICK(s, 30000, 300000);
    if (swarm_chance(s, 500))
        return;
    c->partition = 150; /* whole round trips are lost at once */
    c->longer = 1000;
    c->busy = 1000;
    c->cut_ns = SWARM_PICK(s, 20, 100, 500) * USEC_NS;
}

static void draw_squeezed(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    uint32_t flush = c->flush, destroy = c->destroy;

    clear_chaos(s);
    set_all(s, 0, 0, 0);
    c->flush = flush;
    c->destroy = destroy;
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        if (swarm_chance(s, 800))
            c->host[i].cc = swarm_chance(s, 500) ? "dctcp" : "swift";
    }
    c->sim.link.loss_ppm = SWARM_PICK(s, 50000, 200000, 300000);
    c->sim.link.rate_bps = 1000000000ull * SWARM_PICK(s, 1, 10);
    if (swarm_chance(s, 700)) { /* any queue marks */
        c->sim.link.ecn_min_bytes = 1;
        c->sim.link.ecn_max_bytes = 2;
    }
    c->sim.hosts = 2 + swarm_below(s, 3);
    c->mtu = SWARM_PICK(s, 256, 1024, 4096);
    c->recv_depth = SWARM_PICK(s, 1, 1, 2, 8);
    c->recv_bytes = 4 * KIB;
    c->sends = 900;
    c->send_depth = c->send_cqe = 64;
    c->burst = 6;
    c->late_ns = 50 * MSEC_NS;
    c->late = swarm_chance(s, 300) ? 50 : 0;
    c->bytes_left = 256 * KIB;
    c->pace_ns = SWARM_PICK(s, 5000, 30000, 300000);
    if (swarm_chance(s, 500))
        draw_refused(s);
}

/* Small messages over seconds: most of the time passes in faults. */
static void draw_slow(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    static const uint32_t timeouts_ms[] = {300, 300, 500, 1000, 2000, 8000};

    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++)
        c->host[i].peer_timeout_ns =
            (i > 0 && swarm_chance(s, 500) ? c->host[0].peer_timeout_ns / MSEC_NS
                                           : swarm_pick(s, timeouts_ms, i == 0 ? 5 : 6)) *
            MSEC_NS;
    c->sim.link.loss_ppm %= 20001;
    c->sim.link.corrupt_ppm %= 10001;
    c->bytes_left = SWARM_PICK(s, 64, 1024, 2048) * KIB;
    c->actions = 100;
    c->burst = 4;
    c->mtu = SWARM_PICK(s, 256, 1024, 4096);
    c->recv_bytes = SWARM_PICK(s, 256, 4 * KIB, 64 * KIB, 64 * KIB);
    c->one_sided = swarm_chance(s, 400);
    c->pace_ns = SWARM_PICK(s, 300000, 3000000, 30000000);
    c->ordered = SWARM_PICK(s, 0, 500, 1000);
    c->longer = 500;
    c->busy = 800;
    c->last = 500;
    c->old_copies = SWARM_PICK(s, 0, 20, 100, 300);
}

static void draw_one_way(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    draw_slow(s);
    if (swarm_chance(s, 500))
        clean_links(s);
    c->one_way = 40;
    c->stop = swarm_chance(s, 200) ? 10 : 0;
    c->late = swarm_chance(s, 300) ? 20 : 0;
    c->flush = swarm_chance(s, 200) ? 10 : 0;
    c->destroy = swarm_chance(s, 200) ? 10 : 0;
    c->cut_ns = SWARM_PICK(s, 200, 1000, 8000, 12000) * MSEC_NS;
    c->pace_ns = SWARM_PICK(s, 3000000, 30000000, 100000000);
}

static void draw_stalled(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    draw_slow(s);
    if (swarm_chance(s, 500))
        clean_links(s);
    c->stop = 30;
    c->partition = swarm_chance(s, 500) ? 20 : 0;
    c->late = swarm_chance(s, 300) ? 20 : 0;
    c->stop_ns = SWARM_PICK(s, 500, 2000, 6000) * MSEC_NS;
    c->cut_ns = SWARM_PICK(s, 500, 2000, 6000) * MSEC_NS;
}

static void draw_churn(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    bool small_peers = swarm_chance(s, 200);

    clear_chaos(s);
    c->sim.hosts = 2 + swarm_below(s, 7);
    c->slots = SWARM_SLOTS_MAX;
    c->ordered = 800;
    c->destroy = 150;
    c->flush = swarm_chance(s, 500) ? 30 : 0;
    c->recv_bytes = SWARM_PICK(s, 256, 4 * KIB);
    c->bytes_left = 512 * KIB;
    c->pace_ns = SWARM_PICK(s, 30000, 300000, 20000000);
    c->burst = 5;
    c->actions = 300;
    c->sim.link.loss_ppm %= 20001;
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        c->host[i].max_flows = SWARM_PICK(s, 2, 4, 8, 16);
        c->host[i].max_peers = small_peers ? 2 + swarm_below(s, 6) : 0;
    }
}

static void draw_restarts(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    draw_slow(s);
    if (swarm_chance(s, 300))
        set_all(s, 0, 0, 0);
    c->sim.hosts = swarm_chance(s, 600) ? 2 : 3;
    c->actions = 150;
    c->restart = 40;
    c->stop = swarm_chance(s, 400) ? 20 : 0;
    c->partition = swarm_chance(s, 300) ? 20 : 0;
    c->one_way = swarm_chance(s, 300) ? 20 : 0;
    c->stop_ns = c->cut_ns = SWARM_PICK(s, 500, 2000, 4000) * MSEC_NS;
    c->destroy = swarm_chance(s, 200) ? 10 : 0;
}

static void draw_closing(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    clean_links(s);
    draw_slow(s);
    clean_links(s);
    set_all(s, 0, 0, 0);
    c->rx_buffer_bytes = 0; /* nor does the receive queue lose any */
    c->sim.link.rate_bps = 1000000000ull * SWARM_PICK(s, 25, 100);
    c->sim.link.queue_bytes = 4 * KIB * KIB;
    c->sim.link.ecn_min_bytes = c->sim.link.ecn_max_bytes = 0;
    c->unequal_delays = false;
    c->sim.hosts = 2 + swarm_below(s, 2);
    c->restart = 20;
    c->last = 0;
    /* A message in one packet with a refused one is acked only with the refusal. */
    c->recv_depth = 32;
    c->pace_ns = SWARM_PICK(s, 5000, 30000, 300000);
    c->bytes_left = 512 * KIB;
}

/* Many hosts share the first one's pools; in some seeds it hears all and reaches none. */
static void draw_crowd(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    clean_links(s);
    set_all(s, SWARM_PICK(s, 300, 1000) * MSEC_NS, 0, 0);
    c->sim.hosts = SWARM_PICK(s, 8, 16, 30, 30);
    c->sim.links = 2;
    c->slots = 1 + swarm_below(s, 2);
    c->pool[SWARM_POOL_REFUSALS] = 0;
    if (swarm_chance(s, 500)) { /* each may take half of what is left: enough for a few */
        c->sim.hosts = 8;
        c->pool[SWARM_POOL_REFUSALS] = 256;
    }
    c->sim.link.rate_bps = 100000000000ull;
    c->sim.link.delay_ns = 5000;
    c->sim.link.queue_bytes = 1024 * KIB;
    c->mtu = 256;
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        c->host[i].cc = "none";
        c->host[i].max_flows = swarm_chance(s, 300) ? 16 : 0;
    }
    c->ordered = SWARM_PICK(s, 0, 500);
    c->numbered = true;
    c->sends = 1000;
    c->len_min = 1;
    c->len_max = SWARM_PICK(s, 64, 200, 500);
    c->recv_bytes = c->len_max;
    c->recv_depth = 2;
    c->send_depth = c->send_cqe = 512;
    c->messages = 8000;
    c->burst = 160;
    c->actions = 200;
    c->pace_ns = SWARM_PICK(s, 3000, 30000);
    c->bytes_left = 16 * KIB * KIB;
    c->one_way = swarm_chance(s, 500) ? 20 : 0;
    c->late_ns = swarm_chance(s, 500) ? 50 * MSEC_NS : 0;
    c->cut_ns = 1500 * MSEC_NS;
    c->longer = 1000;
}

static void draw_in_order(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    c->ordered = 1000;
    c->sim.link.loss_ppm = SWARM_PICK(s, 20000, 100000, 200000);
    if (swarm_chance(s, 500))
        draw_slow(s);
    c->sim.link.loss_ppm = SWARM_PICK(s, 20000, 100000, 200000);
    c->pace_ns = SWARM_PICK(s, 5000, 30000, 300000);
    c->burst = 8;
    c->bytes_left = 512 * KIB;
    c->flush = swarm_chance(s, 500) ? 20 : 0;
    c->destroy = swarm_chance(s, 500) ? 20 : 0;
    c->restart = swarm_chance(s, 500) ? 20 : 0;
    c->one_sided = swarm_chance(s, 400);
    c->dereg = swarm_chance(s, 200) ? 15 : 0;
    c->stop = swarm_chance(s, 300) ? 20 : 0;
    c->stop_ns = 3000 * MSEC_NS;
    c->busy = 800;
    c->last = 800;
}

static void draw_quiet(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    clear_chaos(s);
    draw_slow(s);
    c->sim.hosts = 2 + swarm_below(s, 2);
    c->sim.link.loss_ppm %= 5001;
    c->restart = 20;
    c->actions = 20;
    c->slots = 1;
    c->last = 0;
    set_all(s, SWARM_PICK(s, 300, 500, 1000, 2000) * MSEC_NS, 0, 0);
}

/*
 * What seeds of all profiles draw. The QPs of a host share their receives, whose completions may
 * find no room: not where some QPs are to have none.
 */
static void draw_rest(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    /* Room for all QPs, so that the receives of one never keep those of another out. */
    c->recv_cqe = c->recv_depth * SWARM_SLOTS_MAX;
    c->shared = c->profile != SWARM_STARVED && swarm_chance(s, 250);
    if (c->shared)
        c->recv_cqe = 1 + swarm_below(s, c->recv_cqe);
    c->watch = swarm_chance(s, 250) ? 30 : 0;
}

static const struct {
    const char *name;
    uint32_t weight; /* per thousand of the seeds */
    void (*draw)(struct swarm *s);
} profiles[SWARM_PROFILES] = {
    [SWARM_MIXED] = {"mixed", 210, NULL},
    [SWARM_DEPTH] = {"depth", 100, draw_depth},
    [SWARM_STARVED] = {"starved", 80, draw_starved},
    [SWARM_SQUEEZED] = {"squeezed", 80, draw_squeezed},
    [SWARM_ONE_WAY] = {"one way", 90, draw_one_way},
    [SWARM_STALLED] = {"stalled", 80, draw_stalled},
    [SWARM_CHURN] = {"churn", 80, draw_churn},
    [SWARM_RESTARTS] = {"restarts", 80, draw_restarts},
    [SWARM_CLOSING] = {"closing", 50, draw_closing},
    [SWARM_CROWD] = {"crowd", 30, draw_crowd},
    [SWARM_IN_ORDER] = {"in order", 80, draw_in_order},
    [SWARM_QUIET] = {"quiet", 40, draw_quiet},
};

const char *swarm_profile_name(enum swarm_profile profile)
{
    return profiles[profile].name;
}

void swarm_draw_profile(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    uint32_t dice = swarm_below(s, 1000);

    while (c->profile + 1 < SWARM_PROFILES && dice >= profiles[c->profile].weight)
        dice -= profiles[c->profile++].weight;
    if (profiles[c->profile].draw)
        profiles[c->profile].draw(s);
    draw_rest(s);
}
