/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each path has a token bucket of its own, as flows have in clouds: their rates add up, and next to
 * nothing is lost where the link is what bounds them.
 */
#include "tests/support/check.h"
#include "tests/support/pump.h"

enum { PATHS = 32, PAYLOAD_BYTES = 8832, SEEDS = 3 };

#define BUCKET_BYTES 262144.0

struct buckets {
    const struct sim_world *w;
    double cap_bps;
    double tokens[PATHS]; /* bytes */
    uint64_t at_ns[PATHS];
    uint64_t packets, dropped;
};

static enum mrd_sim_verdict cap(void *arg, struct mrd_sim_datagram *datagram)
{
    struct buckets *b = arg;
    uint64_t now_ns = mrd_sim_now(b->w->sim);
    double *tokens = &b->tokens[datagram->path];

    if (datagram->from != HOST_0)
        return MRD_SIM_PASS;
    b->packets++;
    *tokens += b->cap_bps / 8e9 * (double)(now_ns - b->at_ns[datagram->path]);
    b->at_ns[datagram->path] = now_ns;
    if (*tokens > BUCKET_BYTES)
        *tokens = BUCKET_BYTES;
    if (*tokens < datagram->len) {
        b->dropped++;
        return MRD_SIM_DROP;
    }
    *tokens -= datagram->len;
    return MRD_SIM_PASS;
}

struct caps_case {
    double cap_bps, link_bps;
    uint64_t delay_ns, run_ns;
    double least_share, most_lost; /* of what there is; of the packets */
};

static void run_case(const struct caps_case *c, uint64_t seed)
{
    double most_bps = c->link_bps < PATHS * c->cap_bps ? c->link_bps : PATHS * c->cap_bps;
    struct sim_world *w = sim_world_create(&(struct sim_options){.seed = seed,
                                                                 .links = 1,
                                                                 .paths = PATHS,
                                                                 .mtu = PAYLOAD_BYTES,
                                                                 .rate_bps = (uint64_t)c->link_bps,
                                                                 .delay_ns = c->delay_ns,
                                                                 .queue_bytes = 200000});
    struct buckets buckets = {.w = w, .cap_bps = c->cap_bps};
    struct pump pump;

    for (uint32_t i = 0; i < PATHS; i++)
        buckets.tokens[i] = BUCKET_BYTES;
    mrd_sim_set_tap(w->sim, cap, &buckets);
    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, c->run_ns / 3); /* the buckets are full at first */
    buckets.packets = buckets.dropped = 0;

    double share = pump_run_one(&pump, c->run_ns) * 1e9 / most_bps;
    double lost = (double)buckets.dropped / (double)buckets.packets;

    test_check(seed, share >= c->least_share, "%.3f of the rate", share);
    test_check(seed, lost <= c->most_lost, "%.4f of the packets lost", lost);
    pump_stop(&pump);
}

static void run_cases(const struct caps_case *c)
{
    for (uint64_t k = 0; k < SEEDS; k++)
        run_case(c, test_seed() + k);
}

/* A cloud's usual case: the link has the rate of a few flows. */
TEST(sim_caps__link_of_eight)
{
    run_cases(&(struct caps_case){1e9, 8e9, 40000, 300 * MSEC_NS, 0.95, 0.005});
}

/* Two packets hold what the path does: the queue of the link is most of the RTT. */
TEST(sim_caps__slow_link_of_eight)
{
    run_cases(&(struct caps_case){100e6, 800e6, 15000, 1500 * MSEC_NS, 0.95, 0.01});
}

/* No queue anywhere: losses alone tell of the caps. */
TEST(sim_caps__all_paths_full)
{
    run_cases(&(struct caps_case){1e9, 100e9, 40000, 150 * MSEC_NS, 0.85, 0.03});
}
