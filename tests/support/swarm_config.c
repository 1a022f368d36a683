/* SPDX-License-Identifier: BSD-2-Clause */
/* What a seed draws. */
#include "tests/support/swarm.h"

#define KIB 1024u

uint32_t swarm_below(struct swarm *s, uint32_t bound)
{
    return mrd_rng_below(&s->rng, bound);
}

bool swarm_chance(struct swarm *s, uint32_t per_mille)
{
    return swarm_below(s, 1000) < per_mille;
}

static uint32_t pick(struct swarm *s, const uint32_t *values, uint32_t num)
{
    return values[swarm_below(s, num)];
}

#define PICK(s, ...)                                                                               \
    pick(s, (const uint32_t[]){__VA_ARGS__},                                                       \
         sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void draw_links(struct swarm *s)
{
    struct swarm_config *c = &s->config;
    struct mrd_sim_link *link = &c->sim.link;

    link->rate_bps = 1000000000ull * PICK(s, 1, 10, 25, 100, 400);
    link->delay_ns = PICK(s, 100, 1000, 5000, 50000);
    link->queue_bytes = PICK(s, 16, 64, 256, 1024) * KIB;
    if (swarm_chance(s, 500)) {
        link->ecn_min_bytes = link->queue_bytes / 5;
        link->ecn_max_bytes = link->queue_bytes / 2;
    }
    c->healthy = *link;
    if (swarm_chance(s, 300))
        link->jitter_ns = PICK(s, 100, 3000, 30000, 1000000);
    if (swarm_chance(s, 750))
        link->loss_ppm = swarm_below(s, PICK(s, 2000, 20000, 200000) + 1);
    if (swarm_chance(s, 400))
        link->duplicate_ppm = swarm_below(s, PICK(s, 2000, 100000) + 1);
    if (swarm_chance(s, 400))
        link->corrupt_ppm = swarm_below(s, PICK(s, 2000, 50000) + 1);
    c->sim.links = 1 + swarm_below(s, 8);
}

static void draw_hosts(struct swarm *s)
{
    static const char *const sprays[] = {NULL, "single", "rr", "random", "reps", "adaptive"};
    static const char *const ccs[] = {NULL, "nscc", "dctcp", "none", "swift"};
    struct swarm_config *c = &s->config;

    c->sim.hosts = swarm_chance(s, 700) ? 2 : 2 + swarm_below(s, SWARM_HOSTS_MAX - 1);
    c->sim.clock_skew_ppm = swarm_chance(s, 500) ? swarm_below(s, 200) : 0;
    c->sim.tx_done_delay_ns = swarm_chance(s, 400) ? PICK(s, 100, 5000, 200000) : 0;
    c->sim.tx_burst_max = swarm_chance(s, 300) ? 1 + swarm_below(s, 7) : 0;
    c->paths = PICK(s, 0, 1, 2, 4, 16, 64);
    c->mtu = PICK(s, 0, 0, 256, 1024, 4096, 8192);
    c->spray = sprays[swarm_below(s, 6)];
    c->cc = ccs[swarm_below(s, 5)];
    c->straight = swarm_chance(s, 330);
    c->own_buffers = swarm_chance(s, 400);
    c->max_peers = swarm_chance(s, 250) ? 2 : 0;
    c->max_flows = swarm_chance(s, 200) ? 1 + swarm_below(s, 4) : 0;
    c->peer_timeout_ns = swarm_chance(s, 250) ? PICK(s, 300, 1000, 2000) * MSEC_NS : 0;
    c->slots = 1 + swarm_below(s, SWARM_SLOTS_MAX);
    c->recv_bytes = PICK(s, 256, 4 * KIB, 64 * KIB, 256 * KIB);
    c->recv_depth = PICK(s, 1, 2, 8, 32);
    c->send_depth = PICK(s, 2, 8, 64);
    c->send_cqe = PICK(s, 4, 16, 256);
    /*
     * A target without room for another flow refuses for as long as its others live: retries must
     * end.
     */
    c->rnr_limited = swarm_chance(s, 200) || c->max_flows > 0;
}

static void draw_chaos(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->actions = 100 + swarm_below(s, 300);
    c->pace_ns = PICK(s, 500, 5000, 30000, 300000);
    c->bytes_left = PICK(s, 64, 1024, 6 * 1024) * KIB;
    c->bad_requests = swarm_chance(s, 300);
    c->flush = swarm_chance(s, 300) ? 10 : 0;
    c->destroy = swarm_chance(s, 300) ? 10 : 0;
    c->dereg = swarm_chance(s, 300) ? 15 : 0;
    c->stop = swarm_chance(s, 250) ? 8 : 0;
    c->hole = swarm_chance(s, 350) ? 8 : 0;
    c->partition = swarm_chance(s, 200) ? 4 : 0;
    c->restart = swarm_chance(s, 250) ? 5 : 0;
    /*
     * Without the wait after open a copy from an earlier life may be taken for the new one's:
     * documented.
     */
    c->challenge = c->restart > 0 || swarm_chance(s, 250);
}

void swarm_draw(struct swarm *s)
{
    struct swarm_config *c = &s->config;

    c->sim.seed = s->seed;
    draw_links(s);
    draw_hosts(s);
    draw_chaos(s);
    c->trouble =
        c->restart > 0 || (c->max_peers > 0 && c->max_peers < c->sim.hosts) ||
        (c->peer_timeout_ns > 0 && (c->stop || c->partition || c->hole ||
                                    c->sim.link.loss_ppm + c->sim.link.corrupt_ppm > 30000));
    c->cancels =
        c->flush || c->destroy || c->dereg || c->rnr_limited || c->trouble || c->bad_requests;
}

void swarm_describe(const struct swarm *s)
{
    const struct swarm_config *c = &s->config;
    const struct mrd_sim_link *l = &c->sim.link;

    print_error(
        "swarm at %.3f us: hosts %u slots %u links %u paths %u mtu %u spray %s cc %s rate %.0fG "
        "delay %.1f us jitter %.1f us queue %u KiB loss %u dup %u corrupt %u ppm\n",
        (double)mrd_sim_now(s->sim) / 1e3, c->sim.hosts, c->slots, c->sim.links, c->paths, c->mtu,
        c->spray ? c->spray : "-", c->cc ? c->cc : "-", (double)l->rate_bps / 1e9,
        (double)l->delay_ns / 1e3, (double)l->jitter_ns / 1e3, (unsigned)(l->queue_bytes / KIB),
        l->loss_ppm, l->duplicate_ppm, l->corrupt_ppm);
    print_error(
        "  skew %u ppm tx_done %u ns burst %u straight %d own buffers %d peers %u flows %u timeout "
        "%u ms recv %u x %u B sq %u cqe %u rnr limited %d\n",
        c->sim.clock_skew_ppm, (unsigned)c->sim.tx_done_delay_ns, c->sim.tx_burst_max, c->straight,
        c->own_buffers, c->max_peers, c->max_flows, (unsigned)(c->peer_timeout_ns / MSEC_NS),
        c->recv_depth, c->recv_bytes, c->send_depth, c->send_cqe, c->rnr_limited);
    print_error("  flush %u destroy %u dereg %u stop %u hole %u partition %u restart %u bad %d "
                "challenge %d; "
                "%u messages, %u succeeded, %u failed, healing %d\n",
                c->flush, c->destroy, c->dereg, c->stop, c->hole, c->partition, c->restart,
                c->bad_requests, c->challenge, s->num_messages, s->successes, s->failures,
                s->healing);
}
