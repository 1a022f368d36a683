/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the world of a seed: a little of everything, then adjusted to the seed's profile. */
#include <stdlib.h>

#include "core/packet.h"
#include "tests/support/swarm.h"

#define KIB 1024u

enum { MTU_DEFAULT = 4096 };

uint32_t swarm_below(struct swarm *s, uint32_t bound)
{
    return mrd_rng_below(&s->rng, bound);
}

bool swarm_chance(struct swarm *s, uint32_t per_mille)
{
    return swarm_below(s, 1000) < per_mille;
}

uint32_t swarm_pick(struct swarm *s, const uint32_t *values, uint32_t num)
{
    return values[swarm_below(s, num)];
}

static void draw_links(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    struct mrd_sim_link *link = &c->sim.link;

    link->rate_bps = 1000000000ull * SWARM_PICK(s, 1, 10, 25, 100, 400);
    link->delay_ns = SWARM_PICK(s, 100, 1000, 5000, 50000);
    link->queue_bytes = SWARM_PICK(s, 16, 64, 256, 1024) * KIB;
    if (swarm_chance(s, 500)) {
        link->ecn_min_bytes = link->queue_bytes / 5;
        link->ecn_max_bytes = link->queue_bytes / 2;
    }
    if (swarm_chance(s, 300))
        link->jitter_ns = SWARM_PICK(s, 100, 3000, 30000, 1000000);
    if (swarm_chance(s, 750))
        link->loss_ppm = swarm_below(s, SWARM_PICK(s, 2000, 20000, 200000) + 1);
    if (swarm_chance(s, 400))
        link->duplicate_ppm = swarm_below(s, SWARM_PICK(s, 2000, 100000) + 1);
    if (swarm_chance(s, 400))
        link->corrupt_ppm = swarm_below(s, SWARM_PICK(s, 2000, 50000) + 1);
    c->sim.links = 1 + swarm_below(s, 8);
    c->unequal_delays = swarm_chance(s, 250);
    c->delay = swarm_chance(s, 250) ? 30 : 0;
}

/* Draws the attributes of contexts: the same for all hosts, or different ones. */
static void draw_attributes(struct swarm *s)
{
    static const char *const sprays[] = {NULL, "single", "rr", "random", "reps", "adaptive"};
    static const char *const ccs[] = {NULL, "nscc", "dctcp", "none", "swift"};
    struct swarm_config *c = &s->config;
    bool odd = swarm_chance(s, 350);
    bool small_peers = swarm_chance(s, 150), small_flows = swarm_chance(s, 200);
    bool timeouts = swarm_chance(s, 300);

    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        struct swarm_host_config *host = &c->host[i];

        if (i > 0 && !odd) {
            *host = c->host[0];
            continue;
        }
        host->paths = SWARM_PICK(s, 0, 1, 2, 4, 16, 64);
        host->spray = sprays[swarm_below(s, 6)];
        host->cc = ccs[swarm_below(s, 5)];
        host->max_peers = small_peers ? 2 : 0;
        host->max_flows = small_flows ? 1 + swarm_below(s, 4) : 0;
        host->peer_timeout_ns = timeouts ? SWARM_PICK(s, 300, 1000, 2000, 0) * MSEC_NS : 0;
        host->challenge = swarm_chance(s, 400);
        host->challenge_ns = SWARM_PICK(s, 0, 0, 0, 1, 100, 1000, 10000) * MSEC_NS;
    }
}

static void draw_hosts(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->sim.knows = MRD_SIM_KNOWS_FABRIC;
    c->sim.hosts = swarm_chance(s, 700) ? 2 : 3 + swarm_below(s, swarm_chance(s, 700) ? 2 : 6);
    c->sim.clock_skew_ppm = swarm_chance(s, 500) ? swarm_below(s, 200) : 0;
    c->sim.tx_done_delay_ns = swarm_chance(s, 400) ? SWARM_PICK(s, 100, 5000, 200000) : 0;
    c->sim.tx_burst_max = swarm_chance(s, 300) ? 1 + swarm_below(s, 7) : 0;
    c->mtu = SWARM_PICK(s, 0, 0, 256, 1024, 4096, 8192);
    c->straight = swarm_chance(s, 330);
    c->own_buffers = swarm_chance(s, 400);
    c->slots = 1 + swarm_below(s, SWARM_SLOTS_MAX);
    c->ordered = 500;
    c->recv_bytes = SWARM_PICK(s, 256, 4 * KIB, 64 * KIB, 256 * KIB);
    c->recv_depth = SWARM_PICK(s, 1, 2, 8, 32);
    c->send_depth = SWARM_PICK(s, 2, 8, 64);
    c->send_cqe = SWARM_PICK(s, 4, 16, 256);
    c->rnr_limited = swarm_chance(s, 200);
    for (unsigned pool = 0; pool < SWARM_POOLS; pool++)
        c->pool[pool] = swarm_chance(s, 150) ? SWARM_PICK(s, 16, 64, 256) : 0;
    c->tracker = SWARM_PICK(s, 0, 0, MRD_TRACKER_MIN, 1024);
    c->rx_buffer_bytes = SWARM_PICK(s, 0, 0, 16, 64, 1024) * KIB;
    draw_attributes(s);
}

static void draw_chaos(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->actions = 100 + swarm_below(s, 300);
    c->messages = 512;
    c->burst = 2;
    c->sends = 500;
    c->requests = swarm_chance(s, 500) ? SWARM_PICK(s, 100, 300, 900) : 0;
    c->fences = swarm_chance(s, 300) ? 50 : 0;
    c->max_rd_atomic = SWARM_PICK(s, 0, 0, 1, 3);
    c->pace_ns = SWARM_PICK(s, 500, 5000, 30000, 300000);
    c->bytes_left = SWARM_PICK(s, 64, 1024, 6 * 1024) * KIB;
    c->bad_requests = swarm_chance(s, 300);
    c->flawed = 100;
    c->own = 30;
    c->late_ns = swarm_chance(s, 150) ? 50 * MSEC_NS : 0;
    c->cut_ns = 400 * MSEC_NS;
    c->stop_ns = 1200 * MSEC_NS;
    c->longer = 200;
    c->busy = 500;
    c->old_copies = swarm_chance(s, 400) ? SWARM_PICK(s, 2, 10, 50) : 0;
    c->flush = swarm_chance(s, 300) ? 10 : 0;
    c->destroy = swarm_chance(s, 300) ? 10 : 0;
    c->dereg = swarm_chance(s, 300) ? 15 : 0;
    c->stop = swarm_chance(s, 250) ? 8 : 0;
    c->hole = swarm_chance(s, 350) ? 8 : 0;
    c->partition = swarm_chance(s, 150) ? 4 : 0;
    c->one_way = swarm_chance(s, 150) ? 4 : 0;
    c->late = swarm_chance(s, 150) ? 20 : 0;
    c->restart = swarm_chance(s, 250) ? 5 : 0;
}

/* Sets what depends on the rest. */
static void settle_config(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->healthy = c->sim.link;
    c->healthy.jitter_ns = 0;
    c->healthy.loss_ppm = c->healthy.duplicate_ppm = c->healthy.corrupt_ppm = 0;
    if (c->messages > SWARM_MESSAGES_MAX / 2)
        c->messages = SWARM_MESSAGES_MAX / 2; /* leaves room for the aftermath */
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++) {
        /* Without challenges after open, a new life may execute old copies: this is documented. */
        if (c->restart > 0) {
            c->host[i].challenge = true;
            if (c->host[i].challenge_ns < 4000 * MSEC_NS)
                c->host[i].challenge_ns = 0;
        }
        /* A peer table of one entry is of no use. */
        if (c->host[i].max_peers == 1)
            c->host[i].max_peers = 2;
    }
}

/* Paths that take less than contexts believe. By a seed of its own: all else stays as drawn. */
static void draw_narrow_paths(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    struct mrd_rng rng;
    uint32_t mtu = c->mtu ? c->mtu : 4096;

    mrd_rng_init(&rng, s->seed ^ 0x6d7475);
    if (mtu < 1024 || mrd_rng_below(&rng, 3))
        return;
    c->payload_base = 256 * (1 + mrd_rng_below(&rng, 2));
    c->payload_sure = mrd_rng_below(&rng, 2);
    if (!mrd_rng_below(&rng, 3))
        return;
    c->narrow_bytes = c->payload_base + MRD_HEAD_PEEK_BYTES + mrd_rng_below(&rng, mtu);
    c->narrow_from_ns = mrd_rng_below(&rng, 2) * mrd_rng_below(&rng, 20) * MSEC_NS / 4;
    c->narrow_to_ns = mrd_rng_below(&rng, 2)
                          ? UINT64_MAX
                          : c->narrow_from_ns + mrd_rng_below(&rng, 200) * MSEC_NS;
}

/* Hosts that want no check of payloads, where nothing is changed on the way. As above. */
static void draw_checks(struct swarm *s)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, s->seed ^ 0x636865636b);
    if (s->config.sim.link.corrupt_ppm || mrd_rng_below(&rng, 3))
        return;
    for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++)
        s->config.host[i].unchecked = (uint8_t)mrd_rng_below(&rng, 256);
}

/* Of four seeds one is sealed; with MRD_TEST_SEALED all are. */
static void draw_seal(struct swarm *s)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, s->seed ^ 0x7365616c);
    s->config.sealed = mrd_rng_below(&rng, 4) == 0 || getenv("MRD_TEST_SEALED");
}

void swarm_draw(struct swarm *s)
{
    s->config.sim.seed = s->seed;
    draw_links(s);
    draw_hosts(s);
    draw_chaos(s);
    swarm_draw_profile(s);
    settle_config(s);
    draw_narrow_paths(s);
    draw_checks(s);
    draw_seal(s);
    swarm_draw_networks(s);
}

/* --------------------------------------------------------------------------------- what follows */

bool swarm_is_crowded(const struct swarm *s)
{
    for (uint32_t i = 0; i < s->config.sim.hosts; i++) {
        if (s->config.host[i].max_peers > 0 && s->config.host[i].max_peers < s->config.sim.hosts)
            return true;
    }
    return false;
}

static void describe_host(const struct swarm *s, uint32_t host)
{
    const struct swarm_host_config *h = &s->config.host[host];

    print_error("  host %u: paths %u spray %s cc %s peers %u flows %u timeout %u ms challenge %d "
                "(%u ms) unchecked %02x lives %u\n",
                host, h->paths, h->spray ? h->spray : "-", h->cc ? h->cc : "-", h->max_peers,
                h->max_flows, (unsigned)(h->peer_timeout_ns / MSEC_NS), h->challenge,
                (unsigned)(h->challenge_ns / MSEC_NS), h->unchecked, s->host[host].life);
}

void swarm_describe(const struct swarm *s)
{
    const struct swarm_config *c = &s->config;
    const struct mrd_sim_link *l = &c->sim.link;

    swarm_describe_networks(s);
    if (c->payload_base)
        print_error("  payloads from %u on%s; narrow: %u bytes from %.3f to %.3f ms\n",
                    c->payload_base, c->payload_sure ? " (sure)" : "", c->narrow_bytes,
                    (double)c->narrow_from_ns / 1e6, (double)c->narrow_to_ns / 1e6);
    print_error("swarm (%s) at %.3f us: hosts %u slots %u links %u mtu %u rate %.0fG delay %.1f us "
                "(unequal %d) jitter %.1f us queue %u KiB ecn %u loss %u dup %u corrupt %u ppm\n",
                swarm_profile_name(c->profile), (double)mrd_sim_now(s->sim) / 1e3, c->sim.hosts,
                c->slots, c->sim.links, c->mtu, (double)l->rate_bps / 1e9,
                (double)l->delay_ns / 1e3, c->unequal_delays, (double)l->jitter_ns / 1e3,
                (unsigned)(l->queue_bytes / KIB), (unsigned)l->ecn_min_bytes, l->loss_ppm,
                l->duplicate_ppm, l->corrupt_ppm);
    print_error("  skew %u ppm tx_done %u ns burst %u straight %d own buffers %d recv %u x %u B, "
                "shared %d, cqe %u sq "
                "%u cqe %u ordered %u rnr limited %d late %u ms\n",
                c->sim.clock_skew_ppm, (unsigned)c->sim.tx_done_delay_ns, c->sim.tx_burst_max,
                c->straight, c->own_buffers, c->recv_depth, c->recv_bytes, c->shared, c->recv_cqe,
                c->send_depth, c->send_cqe, c->ordered, c->rnr_limited,
                (unsigned)(c->late_ns / MSEC_NS));
    print_error("  flush %u destroy %u dereg %u stop %u hole %u partition %u one-way %u restart %u "
                "late %u bad %d; %u QPs, %u messages, %u succeeded, %u failed, healing %d\n",
                c->flush, c->destroy, c->dereg, c->stop, c->hole, c->partition, c->one_way,
                c->restart, c->late, c->bad_requests, s->num_qps, s->num_messages, s->successes,
                s->failures, s->healing);
    for (uint32_t host = 0; host < c->sim.hosts && host < 4; host++)
        describe_host(s, host);
}
