/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delay that is no queue of ours: routes that become longer, acks that come late, one path that is
 * longer than the others. The rate before and after, of one pair of hosts that always has something
 * to send.
 */
#include "core/engine/state.h"
#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/pump.h"
#include "tests/support/wiretap.h"
#include "transport/movers/sim/sim_host.h"

enum {
    LINKS = 4,
    PATHS = 16,
    LINK_DELAY_NS = 5000,
    BASE_RTT_NS = 2 * LINK_DELAY_NS,
    WARM_UP_NS = 3 * MSEC_NS,
    MEASURE_NS = 3 * MSEC_NS,
    JOINED_NS = 2000 * MSEC_NS,
};
#define LINK_BPS 25000000000

static struct sim_world *world(uint64_t seed, uint64_t ecn_bytes)
{
    return sim_fabric_world(&(struct sim_options){.seed = seed,
                                                  .links = LINKS,
                                                  .paths = PATHS,
                                                  .rate_bps = LINK_BPS,
                                                  .delay_ns = LINK_DELAY_NS,
                                                  .ecn_min_bytes = ecn_bytes / 4,
                                                  .ecn_max_bytes = ecn_bytes});
}

static void delay(struct sim_world *w, int from, int to, int link, uint64_t ns, uint64_t jitter_ns)
{
    struct mrd_sim_link attr;

    assert_int_equal(mrd_sim_get_link(w->sim, HOST_0, HOST_1, 0, &attr), 0);
    attr.delay_ns = ns;
    attr.jitter_ns = jitter_ns;
    assert_int_equal(mrd_sim_set_link(w->sim, from, to, link, &attr), 0);
}

static uint32_t dead_paths(struct sim_world *w)
{
    struct mrd_engine *e = sim_engine(w, HOST_0);
    struct mrd_addr addr = mrd_sim_addr(HOST_1);

    return mrd_peer_find(&e->peers, &addr)->tx->paths.num_dead;
}

/* What a scene does to links from `first` on, and what is left of the rate 50 round trips later. */
struct scene {
    uint64_t there_ns, back_ns, back_jitter_ns; /* longer by that */
    int first;
    double least;    /* of the rate before */
    double spurious; /* retransmissions, at most that share of the packets */
};

/* The rate after, of that before. */
static double check_scene(const char *name, const struct scene *scene, uint64_t seed,
                          uint64_t ecn_bytes)
{
    struct sim_world *w = world(seed, ecn_bytes);
    uint64_t rtt_ns = BASE_RTT_NS + scene->there_ns + scene->back_ns + scene->back_jitter_ns;
    struct pump pump;

    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, WARM_UP_NS);

    double before = pump_run_one(&pump, MEASURE_NS);

    for (int i = scene->first; i < LINKS; i++) {
        delay(w, HOST_0, HOST_1, i, LINK_DELAY_NS + scene->there_ns, 0);
        delay(w, HOST_1, HOST_0, i, LINK_DELAY_NS + scene->back_ns, scene->back_jitter_ns);
    }
    pump_run_one(&pump, 50 * rtt_ns);

    double after = pump_run_one(&pump, 50 * rtt_ns);
    uint64_t spurious = sim_counter(w, HOST_0, "retx_spurious");

    test_check(seed, after >= scene->least * before,
               "%s, %llu us longer, ecn %llu: %.2f Gb/s, before %.2f", name,
               (unsigned long long)(rtt_ns - BASE_RTT_NS) / 1000, (unsigned long long)ecn_bytes,
               after, before);
    test_check(seed, dead_paths(w) == 0, "%s: %u paths are dead", name, dead_paths(w));
    test_check(seed,
               (double)spurious < scene->spurious * (double)sim_counter(w, HOST_0, "tx_packets"),
               "%s: %llu spurious retransmissions", name, (unsigned long long)spurious);
    pump_stop(&pump);
    return after / before;
}

/* With and without switches that mark. */
static void check_scenes(const char *name, const struct scene *scenes, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        check_scene(name, &scenes[i], test_seed(), 0);
        check_scene(name, &scenes[i], test_seed(), 80000);
    }
}

/* All paths become longer; in the last one round trips are longer than the RTO was. */
TEST(sim_delay__all_paths_longer)
{
    static const struct scene scenes[] = {
        {20 * USEC_NS, 0, 0, 0, 0.8, 0.003},  {20 * USEC_NS, 20 * USEC_NS, 0, 0, 0.8, 0.003},
        {50 * USEC_NS, 0, 0, 0, 0.8, 0.003},  {50 * USEC_NS, 50 * USEC_NS, 0, 0, 0.8, 0.003},
        {200 * USEC_NS, 0, 0, 0, 0.8, 0.003}, {200 * USEC_NS, 200 * USEC_NS, 0, 0, 0.8, 0.003},
    };

    check_scenes("all", scenes, sizeof(scenes) / sizeof(scenes[0]));
}

/*
 * How fast the lengths are learnt depends on which packets are under way when the window is
 * drained: where nothing marks, the mean over some seeds tells, and each that nothing collapses.
 */
TEST(sim_delay__three_of_four_longer)
{
    enum { SEEDS = 4 };
    static const struct scene marked[] = {
        {20 * USEC_NS, 0, 0, 1, 0.8, 0.003},  {20 * USEC_NS, 20 * USEC_NS, 0, 1, 0.8, 0.003},
        {50 * USEC_NS, 0, 0, 1, 0.8, 0.003},  {50 * USEC_NS, 50 * USEC_NS, 0, 1, 0.8, 0.003},
        {200 * USEC_NS, 0, 0, 1, 0.8, 0.003}, {200 * USEC_NS, 200 * USEC_NS, 0, 1, 0.8, 0.003},
    };
    const size_t num = sizeof(marked) / sizeof(marked[0]);
    double sum = 0;

    for (size_t i = 0; i < num; i++) {
        struct scene unmarked = marked[i];

        unmarked.least = unmarked.back_ns ? 0.4 : 0.8;
        check_scene("three of four", &marked[i], test_seed(), 80000);
        for (uint64_t k = 0; k < SEEDS; k++) {
            double left = check_scene("three of four", &unmarked, test_seed() + k, 0);

            sum += left < 1 ? left : 1;
        }
    }
    test_check(test_seed(), sum >= 0.8 * SEEDS * (double)num, "three of four: %.3f is left",
               sum / (SEEDS * (double)num));
}

/* What is not acked as soon as on other paths is not lost. */
TEST(sim_delay__one_of_four_longer)
{
    static const struct scene scenes[] = {
        {100 * USEC_NS, 0, 0, 3, 0.8, 0.001},
        {100 * USEC_NS, 100 * USEC_NS, 0, 3, 0.8, 0.001},
    };

    check_scenes("one of four", scenes, sizeof(scenes) / sizeof(scenes[0]));
}

/*
 * One of many links has a tenth of the rate: its queue, which the spray leaves, is not taken for its length,
 * by which it would be kept full. From the start, or later; and its marks do not cut what the others carry.
 */
static void slower(uint64_t seed, bool later, bool marks)
{
    enum { MANY = 8, QUEUE_BYTES = 500000 };
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.seed = seed,
                                               .links = MANY,
                                               .paths = 8 * MANY,
                                               .rate_bps = LINK_BPS,
                                               .delay_ns = 7 * USEC_NS,
                                               .queue_bytes = QUEUE_BYTES,
                                               .ecn_min_bytes = marks ? QUEUE_BYTES / 4 : 0,
                                               .ecn_max_bytes = marks ? QUEUE_BYTES * 3 / 4 : 0});
    double full = (MANY - 1) * (LINK_BPS / 1e9) * 4096 / 4238, after;
    struct pump pump;

    for (uint32_t host = 0; host < 2; host++) /* the hosts have one port for all links */
        sim_engine(w, host)->config.mover.link_bps = MANY * LINK_BPS;
    if (!later)
        sim_links(w, "host0>host1.7", "degrade", "0.1");
    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, WARM_UP_NS);
    if (later)
        sim_links(w, "host0>host1.7", "degrade", "0.1");
    pump_run_one(&pump, 10 * MSEC_NS);
    after = pump_run_one(&pump, 20 * MSEC_NS);
    test_check(seed, after >= 0.9 * full,
               "one of %d links at a tenth of its rate %s, marks %d: %.1f of %.1f Gb/s", MANY,
               later ? "later" : "from the start", marks, after, full);
    pump_stop(&pump);
}

TEST(sim_delay__one_of_many_slower)
{
    for (uint64_t k = 0; k < TEST_SEEDS(3); k++)
        for (int which = 0; which < 4; which++)
            slower(test_seed() + k, which & 1, which & 2);
}

/* A busy host answers late: that is no queue in the fabric. */
TEST(sim_delay__late_acks)
{
    static const struct scene scene = {0, 0, 200 * USEC_NS, 0, 0.5, 0.001};

    check_scenes("late acks", &scene, 1);
}

/* Mean packets that leave on one path at one time, of those from index `first` on. */
static double mean_burst(const struct wiretap *tap, uint32_t first)
{
    const struct wire_packet *last = NULL;
    uint32_t packets = 0, bursts = 0;

    for (uint32_t i = first; i < tap->num; i++) {
        const struct wire_packet *p = &tap->packets[i];

        if (p->from != HOST_0 || p->kind != WIRE_MESSAGE)
            continue;
        bursts += !last || last->at_ns != p->at_ns || last->path != p->path;
        packets++;
        last = p;
    }
    return bursts ? (double)packets / bursts : 0;
}

/*
 * A burst is measured by the base RTT: by late acks it would grow, and on a host that is late
 * because it is busy with bursts, it would grow without end.
 */
TEST(sim_delay__late_acks_leave_bursts_short)
{
    struct sim_world *w = sim_world_create(&(struct sim_options){
        .links = LINKS, .paths = PATHS, .rate_bps = 1000000000, .delay_ns = LINK_DELAY_NS});
    struct wiretap *tap = wiretap_open(w);
    struct pump pump;

    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, 20 * MSEC_NS);
    uint32_t first = tap->num;
    pump_run_one(&pump, 20 * MSEC_NS);

    double before = mean_burst(tap, first);

    for (int i = 0; i < LINKS; i++)
        delay(w, HOST_1, HOST_0, i, LINK_DELAY_NS, 400 * USEC_NS);
    pump_run_one(&pump, 50 * MSEC_NS);
    first = tap->num;
    pump_run_one(&pump, 20 * MSEC_NS);

    double after = mean_burst(tap, first);

    /* A base RTT of 50 us at 4 Gb/s is 6 packets; a burst is half, rates being measured high. */
    test_check(test_seed(), before > 1 && after <= 4,
               "bursts of %.2f packets, with late acks of %.2f", before, after);
    pump_stop(&pump);
}

/* ------------------------------------------------------------------------------------- no marks */

/*
 * The bottleneck is half as fast as the sender's link, its queue is short, and nothing is marked.
 */
TEST(sim_no_marks__narrow_link)
{
    static const struct {
        uint64_t queue_bytes;
        double drops, goodput; /* at most, at least */
    } table[] = {{10000, 0.05, 0.85}, {20000, 0.05, 0.9}, {40000, 0.05, 0.95}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_world *w = sim_fabric_world(&(struct sim_options){
            .links = 1, .paths = PATHS, .rate_bps = LINK_BPS, .delay_ns = LINK_DELAY_NS});
        struct mrd_sim_stats start, end;
        struct pump pump;

        sim_links(w, "host0>host1*", "degrade", "0.5");
        sim_links(w, "host0>host1*", "queue", "%u", (unsigned)table[i].queue_bytes);
        pump_start(&pump, w, HOST_0, HOST_1);
        pump_run_one(&pump, WARM_UP_NS);
        assert_int_equal(mrd_sim_link_stats(w->sim, HOST_0, HOST_1, 0, &start), 0);

        double goodput = pump_run_one(&pump, 20 * MSEC_NS) * 2e9 / LINK_BPS;

        assert_int_equal(mrd_sim_link_stats(w->sim, HOST_0, HOST_1, 0, &end), 0);

        double drops =
            (double)(end.queue_drops - start.queue_drops) / (double)(end.packets - start.packets);

        test_check(test_seed(), drops <= table[i].drops && goodput >= table[i].goodput,
                   "queue of %llu bytes: dropped %.4f, goodput %.3f",
                   (unsigned long long)table[i].queue_bytes, drops, goodput);
        pump_stop(&pump);
    }
}

struct joiner_scene {
    uint64_t rate_bps, queue_bytes, delay_ns;
    bool sockets;
};

static void check_joiner(const struct joiner_scene *scene, uint64_t seed)
{
    const struct mrd_sim_topology topology = {4,
                                              2,
                                              0,
                                              {{4, 4, 0, scene->rate_bps, scene->delay_ns, 0},
                                               {1, 0, 0, scene->rate_bps, scene->delay_ns, 0}}};
    struct sim_world *w = sim_world_create(&(struct sim_options){
        .knows = scene->sockets ? MRD_SIM_KNOWS_SOCKETS : MRD_SIM_KNOWS_FABRIC,
        .seed = seed,
        .topology = &topology,
        .queue_bytes = scene->queue_bytes});
    struct pump pumps[2];
    double gbps[2];

    pump_start(&pumps[0], w, HOST_0, HOST_2);
    pump_start(&pumps[1], w, HOST_1, HOST_2);
    pump_run(pumps, 1, 20 * MSEC_NS, NULL);
    pump_run(pumps, 2, JOINED_NS, NULL);
    pump_run(pumps, 2, 100 * MSEC_NS, gbps);
    for (int k = 0; k < 2; k++)
        test_check(seed, gbps[k] * 2e9 / (double)scene->rate_bps >= 0.35,
                   "queue of %llu bytes at %llu bit/s: flow %d has %.3f Gb/s",
                   (unsigned long long)scene->queue_bytes, (unsigned long long)scene->rate_bps, k,
                   gbps[k]);
    pump_stop(&pumps[0]);
    pump_stop(&pumps[1]);
}

/* One sender has the link of the target; another joins and knows no round trip without a queue. */
TEST(sim_no_marks__late_joiner)
{
    static const struct joiner_scene scenes[] = {
        {10000000000, 100000, 1000, false},
        {25000000000, 1 << 20, 5000, true},
        {1000000000, 1 << 20, 5000, false},
        {1000000000, 1 << 20, 5000, true},
    };

    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        check_joiner(&scenes[i], test_seed());
}

/* One took the other's queue for the way's length, and the other's window is at its cap. */
TEST(sim_no_marks__late_joiner_at_a_deep_queue)
{
    enum { SEEDS = TEST_SEEDS(6) };
    static const struct joiner_scene scene = {10000000000, 1 << 20, 1000, true};

    for (uint64_t k = 0; k < SEEDS; k++)
        check_joiner(&scene, test_seed() + k);
}

/* The delay's target is more than the queue holds: who fills it loses less than a latecomer. */
TEST(sim_no_marks__late_joiner_at_a_short_queue)
{
    enum { SEEDS = TEST_SEEDS(6) };
    static const struct joiner_scene scene = {10000000000, 100000, 1000, true};

    for (uint64_t k = 0; k < SEEDS; k++)
        check_joiner(&scene, test_seed() + k);
}

/*
 * Eight have a deep queue full, and take some of its delay for the way's length: losses come where
 * there seems to be no queue, too. That does not make them random ones, which nobody would give
 * way for.
 */
TEST(sim_no_marks__many_senders_share)
{
    enum { SENDERS = 8, SEEDS = TEST_SEEDS(2) };
    static const struct mrd_sim_topology topology = {
        2 * SENDERS,
        2,
        0,
        {{SENDERS, 1, 0, 10000000000, LINK_DELAY_NS, 0}, {2, 0, 0, 40000000000, LINK_DELAY_NS, 0}}};

    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_world_create(&(struct sim_options){.seed = seed,
                                                                     .topology = &topology,
                                                                     .paths = PATHS,
                                                                     .mtu = 1408,
                                                                     .queue_bytes = 1 << 20});
        double gbps[SENDERS], sum = 0, squares = 0;
        struct pump pumps[SENDERS];

        for (uint32_t k = 0; k < SENDERS; k++)
            pump_start(&pumps[k], w, k, SENDERS);
        pump_run(pumps, SENDERS, 300 * MSEC_NS, NULL);
        pump_run(pumps, SENDERS, 300 * MSEC_NS, gbps);
        for (int k = 0; k < SENDERS; k++) {
            sum += gbps[k];
            squares += gbps[k] * gbps[k];
        }
        /* Jain, Chiu and Hawe, DEC-TR-301, 1984: 1 if all have the same, 1/8 if one has all. */
        test_check(seed, sum * sum / (SENDERS * squares) >= 0.6, "fairness %.3f",
                   sum * sum / (SENDERS * squares));
        for (int k = 0; k < SENDERS; k++)
            pump_stop(&pumps[k]);
    }
}

/* Holds what comes back from the targets for a random time; in order for each sender. */
struct late_hosts {
    const struct sim_world *w;
    struct mrd_rng rng;
    uint32_t targets; /* the first */
    uint64_t way_ns, late_ns, due_ns[SIM_HOSTS_MAX];
};

static enum mrd_sim_verdict hold(void *arg, struct mrd_sim_datagram *d)
{
    struct late_hosts *l = arg;
    uint64_t at_ns;

    if (d->from < l->targets)
        return MRD_SIM_PASS;
    at_ns = mrd_sim_now(l->w->sim) + l->way_ns + mrd_rng_below(&l->rng, (uint32_t)l->late_ns);
    if (at_ns < l->due_ns[d->to])
        at_ns = l->due_ns[d->to];
    l->due_ns[d->to] = at_ns;
    assert_int_equal(mrd_sim_inject(l->w->sim, d->from, d->to, d->data, d->len, at_ns), 0);
    return MRD_SIM_DROP;
}

/* Acks come late by as much as the queue takes: losses are the queue's still, and all give way. */
TEST(sim_no_marks__senders_with_late_acks_share)
{
    enum { SENDERS = 4, SEEDS = TEST_SEEDS(2) };
    static const struct mrd_sim_topology topology = {
        2 * SENDERS, 2, 0, {{SENDERS, 1, 0, 10000000000, 2000, 0}, {2, 0, 0, 1000000000, 2000, 0}}};

    for (uint64_t seed = test_seed(); seed < test_seed() + SEEDS; seed++) {
        struct sim_world *w = sim_world_create(&(struct sim_options){
            .seed = seed, .topology = &topology, .paths = PATHS, .queue_bytes = 50000});
        struct late_hosts late = {
            .w = w, .targets = SENDERS, .way_ns = 8000, .late_ns = 300 * USEC_NS};
        double gbps[SENDERS], sum = 0;
        struct pump pumps[SENDERS];

        mrd_rng_init(&late.rng, seed);
        mrd_sim_set_tap(w->sim, hold, &late);
        for (uint32_t k = 0; k < SENDERS; k++)
            pump_start(&pumps[k], w, k, SENDERS + k);
        pump_run(pumps, SENDERS, 500 * MSEC_NS, NULL);
        pump_run(pumps, SENDERS, 1000 * MSEC_NS, gbps);
        for (int k = 0; k < SENDERS; k++)
            sum += gbps[k];
        for (int k = 0; k < SENDERS; k++) {
            test_check(seed, gbps[k] >= 0.4 * sum / SENDERS, "sender %d has %.3f of %.3f Gb/s", k,
                       gbps[k], sum);
            pump_stop(&pumps[k]);
        }
        sim_world_destroy(w);
    }
}
