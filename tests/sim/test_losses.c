/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Losses that are neither a queue's nor a policer's take no more of the rate than they must; and
 * those of a policer that several hosts share starve none. Hosts that always have something to
 * send, with what sockets know.
 */
#include "core/engine/state.h"
#include "tests/support/check.h"
#include "tests/support/pump.h"

enum { LINKS = 4, PATHS = 16, PAYLOAD_BYTES = 1408 };

static struct sim_world *world(uint64_t delay_ns, uint64_t rate_bps, uint32_t links)
{
    return sim_world_create(&(struct sim_options){.links = links,
                                                  .paths = PATHS,
                                                  .mtu = PAYLOAD_BYTES,
                                                  .rate_bps = rate_bps,
                                                  .delay_ns = delay_ns});
}

#define THERE "host0>host1*"

/* The mean is 2 %: bursts of 10 packets, in which all are lost. */
#define BURSTS "0.002,0.1,1"

/* Before, the links' rate bounds it. */
TEST(sim_losses__bursts_of_loss_rate_stays)
{
    struct sim_world *w = world(100 * USEC_NS, 25000000000, LINKS);
    struct pump pump;

    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, 50 * MSEC_NS);

    double before = pump_run_one(&pump, 50 * MSEC_NS);

    sim_links(w, THERE, "burst", BURSTS);
    pump_run_one(&pump, 300 * MSEC_NS);

    double after = pump_run_one(&pump, 300 * MSEC_NS);

    test_check(test_seed(), after >= 0.4 * before, "bursts of loss, 2 %%: %.3f Gb/s, before %.3f",
               after, before);
    pump_stop(&pump);
}

/* Losses are over: so is what they did, within 250 round trips, also where a test was under way. */
TEST(sim_losses__bursts_of_loss_a_test_ends)
{
    double least = 1e9, before = 0;

    for (uint64_t k = 0; k < 4; k++) {
        struct sim_world *w = world(100 * USEC_NS, 25000000000, LINKS);
        struct pump pump;

        pump_start(&pump, w, HOST_0, HOST_1);
        pump_run_one(&pump, 50 * MSEC_NS);
        before = pump_run_one(&pump, 50 * MSEC_NS);
        sim_links(w, THERE, "burst", BURSTS);
        pump_run_one(&pump, (200 + 70 * k) * MSEC_NS);
        sim_links(w, THERE, "burst", "0,0,0");
        pump_run_one(&pump, 50 * MSEC_NS);

        double after = pump_run_one(&pump, 50 * MSEC_NS);

        least = after < least ? after : least;
        pump_stop(&pump);
    }
    test_check(test_seed(), least >= 0.25 * before,
               "50 ms after the last loss: %.3f Gb/s, before %.3f", least, before);
}

TEST(sim_losses__random_loss_rate_stays)
{
    static const struct {
        uint64_t ppm;
        double least;
    } table[] = {{50000, 45}, {120000, 28}, {200000, 15}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_world *w = world(100 * USEC_NS, 25000000000, LINKS);
        struct pump pump;

        pump_start(&pump, w, HOST_0, HOST_1);
        pump_run_one(&pump, 50 * MSEC_NS);

        sim_links(w, THERE, "loss", "%ue-6", (unsigned)table[i].ppm);
        pump_run_one(&pump, 300 * MSEC_NS);

        double gbps = pump_run_one(&pump, 300 * MSEC_NS);

        test_check(test_seed(), gbps >= table[i].least, "random loss of %llu ppm: %.3f Gb/s",
                   (unsigned long long)table[i].ppm, gbps);
        pump_stop(&pump);
    }
}

/*
 * Lost from the start, where a window of 35 or 140 packets fills the links. One that a tenth is cut of for each loss
 * stays at sqrt(2 / (0.1 p)) packets, 20 at p = 5%, or less. In parts of the links' rate.
 */
TEST(sim_losses__random_loss_on_slow_links_rate_stays)
{
    static const struct {
        uint64_t rate_bps, ppm;
        double least;
    } table[] = {{500000000, 15000, 0.76},  {500000000, 30000, 0.69},  {500000000, 50000, 0.63},
                 {2000000000, 15000, 0.76}, {2000000000, 30000, 0.67}, {2000000000, 50000, 0.62}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_world *w = world(100 * USEC_NS, table[i].rate_bps, LINKS);
        struct pump pump;

        sim_links(w, THERE, "loss", "%ue-6", (unsigned)table[i].ppm);
        pump_start(&pump, w, HOST_0, HOST_1);
        pump_run_one(&pump, 300 * MSEC_NS);

        double share =
            pump_run_one(&pump, 300 * MSEC_NS) * 1e9 / ((double)table[i].rate_bps * LINKS);

        test_check(test_seed(), share >= table[i].least,
                   "%llu bit/s a link, %llu ppm lost: %.3f of the rate",
                   (unsigned long long)table[i].rate_bps, (unsigned long long)table[i].ppm, share);
        pump_stop(&pump);
    }
}

/* Down for 1 ms of each 10 ms: all of a window is lost at once. */
TEST(sim_losses__flapping_link_rate_stays)
{
    struct sim_world *w = world(100 * USEC_NS, 25000000000, 1);
    struct pump pump;

    pump_start(&pump, w, HOST_0, HOST_1);
    pump_run_one(&pump, 50 * MSEC_NS);

    double before = pump_run_one(&pump, 50 * MSEC_NS);

    sim_links(w, THERE, "flap", "10000,1000");
    pump_run_one(&pump, 200 * MSEC_NS);

    double after = pump_run_one(&pump, 200 * MSEC_NS);

    test_check(test_seed(), after >= 0.4 * before, "flapping: %.3f Gb/s, before %.3f", after,
               before);
    pump_stop(&pump);
}

/*
 * Bursts as short in packets as those of large ones. With 43 small ones to a superpacket, loss of
 * 1 % leaves less of the rate on a longer way than the test asks for.
 */
static void shorten_bursts(struct sim_world *w)
{
    for (uint32_t host = 0; host < w->options.hosts; host++)
        sim_engine(w, host)->config.mover.quantum = 15;
}

/* Random loss, then a longer way: what is taken for a queue is the way, and does not drop. */
TEST(sim_losses__longer_way_and_little_loss_rate_stays)
{
    static const struct {
        uint64_t delay_ns, ppm;
        double least_gbps;
    } table[] = {{45 * USEC_NS, 1000, 30}, {45 * USEC_NS, 10000, 27}, {100 * USEC_NS, 1000, 14}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_world *w = world(25 * USEC_NS, 25000000000, LINKS);
        struct pump pump;

        shorten_bursts(w);
        sim_links(w, THERE, "loss", "%ue-6", (unsigned)table[i].ppm);
        pump_start(&pump, w, HOST_0, HOST_1);
        pump_run_one(&pump, 200 * MSEC_NS);
        sim_links(w, "host0-host1*", "delay", "%u", (unsigned)(table[i].delay_ns / USEC_NS));
        pump_run_one(&pump, 200 * MSEC_NS);

        double after = pump_run_one(&pump, 200 * MSEC_NS);

        test_check(test_seed(), after >= table[i].least_gbps,
                   "RTT of 50 us becomes %llu us, loss of %llu ppm: %.3f Gb/s",
                   (unsigned long long)table[i].delay_ns * 2 / 1000,
                   (unsigned long long)table[i].ppm, after);
        pump_stop(&pump);
    }
}

/* --------------------------------------------------------------------- one policer, three hosts */

#define POLICED_BPS  2000000000.0
#define BUCKET_BYTES 30000.0

struct policer {
    const struct sim_world *w;
    double tokens;
    uint64_t at_ns;
};

static enum mrd_sim_verdict police(void *arg, struct mrd_sim_datagram *datagram)
{
    struct policer *p = arg;
    uint64_t now_ns = mrd_sim_now(p->w->sim);

    if (datagram->from == HOST_3)
        return MRD_SIM_PASS;
    p->tokens += POLICED_BPS / 8e9 * (double)(now_ns - p->at_ns);
    p->at_ns = now_ns;
    if (p->tokens > BUCKET_BYTES)
        p->tokens = BUCKET_BYTES;
    if (p->tokens < datagram->len)
        return MRD_SIM_DROP;
    p->tokens -= datagram->len;
    return MRD_SIM_PASS;
}

/* The least of the flows' rates, in shares of an equal one, after a late start of the others. */
static double least_share(uint64_t seed)
{
    enum { FLOWS = 3 };
    struct sim_world *w = sim_world_create(&(struct sim_options){.seed = seed,
                                                                 .hosts = FLOWS + 1,
                                                                 .links = LINKS,
                                                                 .paths = PATHS,
                                                                 .mtu = PAYLOAD_BYTES,
                                                                 .rate_bps = 25000000000,
                                                                 .delay_ns = 5000});
    struct policer policer = {.w = w, .tokens = BUCKET_BYTES};
    struct pump pumps[FLOWS];
    double gbps[FLOWS], least;

    mrd_sim_set_tap(w->sim, police, &policer);
    for (uint32_t i = 0; i < FLOWS; i++)
        pump_start(&pumps[i], w, i, HOST_3);
    pump_run(pumps, 1, 200 * MSEC_NS, NULL);
    pump_run(pumps, FLOWS, 200 * MSEC_NS, NULL);
    pump_run(pumps, FLOWS, 400 * MSEC_NS, gbps);
    least = gbps[0];
    for (uint32_t i = 0; i < FLOWS; i++) {
        least = gbps[i] < least ? gbps[i] : least;
        pump_stop(&pumps[i]);
    }
    sim_world_destroy(w);
    return least * 1e9 * FLOWS / POLICED_BPS;
}

/* In one world of 16 or so a flow has a quarter of its share for long; none has less. */
TEST(sim_losses__shared_policer_nobody_starves)
{
    enum { SEEDS = TEST_SEEDS(8), FEW_MOST = 1 };
    unsigned few = 0;

    for (uint64_t k = 0; k < SEEDS; k++) {
        double least = least_share(test_seed() + k);

        test_check(test_seed() + k, least >= 0.2, "a flow has %.3f of its share", least);
        few += least < 0.35;
    }
    test_check(test_seed(), few <= FEW_MOST, "in %u of %u worlds a flow has little", few, SEEDS);
}
