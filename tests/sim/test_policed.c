/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clouds give each 5-tuple a rate, and drop what is more at once: no queue tells of it, only losses
 * do. A token bucket per path, as the network would have one per source port, and what the sender
 * sends again because of it. Also where hosts are late with acks, which looks like a queue.
 */
#include "tests/support/pump.h"

enum {
    LINKS = 4,
    PATHS_MAX = 32,
    BURST_BYTES = 256 << 10,
    PAYLOAD_BYTES = 1408,
    WARM_UP_NS = 400 * MSEC_NS,
    MEASURE_NS = 200 * MSEC_NS,
};
#define PATH_BPS 200000000.0

struct policer {
    const struct sim_world *w;
    double tokens[PATHS_MAX]; /* bytes */
    uint64_t at_ns[PATHS_MAX];
    uint64_t packets;
};

static enum mrd_sim_verdict police(void *arg, struct mrd_sim_datagram *datagram)
{
    struct policer *p = arg;
    uint64_t now_ns = mrd_sim_now(p->w->sim);
    uint32_t i = datagram->path % PATHS_MAX;

    if (datagram->from != HOST_0)
        return MRD_SIM_PASS;
    p->packets++;
    p->tokens[i] += PATH_BPS / 8e9 * (double)(now_ns - p->at_ns[i]);
    p->at_ns[i] = now_ns;
    if (p->tokens[i] > BURST_BYTES)
        p->tokens[i] = BURST_BYTES;
    if (p->tokens[i] < datagram->len)
        return MRD_SIM_DROP;
    p->tokens[i] -= datagram->len;
    return MRD_SIM_PASS;
}

struct scene {
    uint32_t paths;
    uint64_t late_ns;      /* acks come late by up to that */
    double again, goodput; /* at most; at least, of the sum of the rates */
};

static void check_scene(const struct scene *scene)
{
    struct sim_world *w = sim_world_create(&(struct sim_options){.links = LINKS,
                                                                 .paths = scene->paths,
                                                                 .mtu = PAYLOAD_BYTES,
                                                                 .rate_bps = 25000000000,
                                                                 .delay_ns = 5000});
    struct policer policer = {.w = w};
    struct pump pump;

    sim_links(w, "host1>host0*", "jitter", "%u", (unsigned)(scene->late_ns / USEC_NS));
    mrd_sim_set_tap(w->sim, police, &policer);
    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, WARM_UP_NS);

    uint64_t packets = policer.packets;
    uint64_t again = sim_counter(w, HOST_0, "retx_packets");
    double gbps = pump_run_one(&pump, MEASURE_NS);

    packets = policer.packets - packets;
    again = sim_counter(w, HOST_0, "retx_packets") - again;

    double share = (double)again / (double)packets;
    double goodput = gbps * 1e9 / (PATH_BPS * scene->paths);

    test_check(test_seed(), share <= scene->again && goodput >= scene->goodput,
               "%u paths, acks late by up to %llu us: %.4f sent again, goodput %.3f of the rates",
               scene->paths, (unsigned long long)scene->late_ns / 1000, share, goodput);
    pump_stop(&pump);
}

TEST(sim_policed__few_packets_are_sent_again)
{
    static const struct scene scenes[] = {
        {1, 0, 0.05, 0.85}, {8, 0, 0.05, 0.85}, {32, 0, 0.08, 0.85}};

    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        check_scene(&scenes[i]);
}

/* Taken for a queue's losses, a third was sent again. */
TEST(sim_policed__late_acks_are_no_queue)
{
    static const struct scene scenes[] = {
        {1, 20 * USEC_NS, 0.05, 0.85},  {1, 50 * USEC_NS, 0.05, 0.85},
        {1, 100 * USEC_NS, 0.05, 0.85}, {1, 200 * USEC_NS, 0.05, 0.7},
        {8, 100 * USEC_NS, 0.05, 0.85}, {32, 100 * USEC_NS, 0.08, 0.85}};

    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        check_scene(&scenes[i]);
}
