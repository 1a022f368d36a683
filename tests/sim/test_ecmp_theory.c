/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the baseline of one path a flow what ECMP theory says, or a straw man? On a leaf-spine fabric
 * with random permutations the flows on a leaf's ways up are balls in bins, and so are those on the
 * ways down to a leaf; the most loaded link decides when the last flow is over.
 */
#include "tests/support/check.h"
#include "tests/support/flows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "transport/movers/sim/sim_world.h"

enum {
    HOSTS = 64,
    LEAVES = 8,
    LEAF_HOSTS = HOSTS / LEAVES,
    SPINES = 8,
    FIRST_BYTES =
        4096 +
        98, /* the one packet of a short flow; the acks on a link are less than that together */
    PAYLOAD = MODEL_FLOW_PAYLOAD_BYTES,
};

static const struct mrd_sim_topology topology = {
    .hosts = HOSTS,
    .tiers = 2,
    .tier = {
        {.radix_down = LEAF_HOSTS, .radix_up = SPINES, .rate_bps = 100000000000, .delay_ns = 1000},
        {.radix_down = LEAVES, .rate_bps = 100000000000, .delay_ns = 1000}}};

static void permute(uint32_t to[HOSTS], uint64_t seed)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, seed ^ UINT64_C(0x5555555555555555));
    for (uint32_t i = 0; i < HOSTS; i++)
        to[i] = i;
    for (uint32_t i = HOSTS - 1; i > 0; i--) {
        uint32_t j = mrd_rng_below(&rng, i + 1), host = to[i];

        to[i] = to[j];
        to[j] = host;
    }
}

/* Flows on each link between leaf and spine. */
struct loads {
    unsigned up[LEAVES][SPINES], down[SPINES][LEAVES];
    unsigned up_max, down_max;
};

static unsigned most(const unsigned *loads, unsigned num)
{
    unsigned max = 0;

    for (unsigned i = 0; i < num; i++)
        max = loads[i] > max ? loads[i] : max;
    return max;
}

static struct loads count_loads(struct flows *f, uint64_t flow_bytes)
{
    const struct mrd_sim_fabric *fabric = &f->sim->fabric;
    const struct mrd_sim_switch *switches = fabric->tree->switches;
    struct loads l;

    for (unsigned leaf = 0; leaf < LEAVES; leaf++) {
        for (unsigned spine = 0; spine < SPINES; spine++) {
            const struct mrd_sim_wire *up = &fabric->wires[switches[leaf].up_first + spine];
            const struct mrd_sim_wire *down =
                &fabric->wires[switches[LEAVES + spine].down_first + leaf];

            assert_int_equal(up->to, HOSTS + LEAVES + spine);
            assert_int_equal(down->to, HOSTS + leaf);
            l.up[leaf][spine] = (unsigned)(up->stats.bytes / flow_bytes);
            l.down[spine][leaf] = (unsigned)(down->stats.bytes / flow_bytes);
        }
    }
    l.up_max = most(&l.up[0][0], LEAVES * SPINES);
    l.down_max = most(&l.down[0][0], LEAVES * SPINES);
    return l;
}

/* Run a permutation; the time of its last flow goes to *last_ns. */
static struct loads run_permutation(uint64_t seed, const uint32_t to[HOSTS], unsigned packets,
                                    uint64_t *last_ns)
{
    /* A link that says anything is taken at its word: no queue limit. Its delay is its tier's. */
    struct mrd_sim_attr attr = {.seed = seed, .topology = &topology, .link = {.delay_ns = 1}};
    struct flows *f = flows_create(&attr, &(struct model_flows_config){.seed = seed});
    unsigned flows = 0;

    for (uint32_t i = 0; i < HOSTS; i++) {
        if (to[i] != i) {
            flows_start(f, i, i, to[i], (uint64_t)packets * PAYLOAD);
            flows++;
        }
    }
    flows_finish(f, flows, SEC_NS);
    *last_ns = 0;
    for (uint32_t i = 0; i < HOSTS; i++)
        *last_ns = f->done_ns[i] > *last_ns ? f->done_ns[i] : *last_ns;
    struct model_flows_stats stats = model_flows_get_stats(f->model);
    assert_int_equal(stats.retransmitted, 0);
    struct loads l = count_loads(f, packets == 1 ? FIRST_BYTES : packets * UINT64_C(4178));
    return l;
}

/* --------------------------------------------------------------------------------------- theory */

/*
 * `balls` thrown into SPINES bins: the probability that none has more than `max`. Of the
 * SPINES^balls ways those are balls! times the coefficient of x^balls in (1 + x + x^2/2! +
 * ... + x^max/max!)^SPINES.
 */
static double none_above(unsigned balls, unsigned max)
{
    double poly[HOSTS + 1] = {1}, p;

    for (unsigned bin = 0; bin < SPINES; bin++) {
        double product[HOSTS + 1] = {0};

        for (unsigned i = 0; i <= balls; i++) {
            double term = poly[i];

            for (unsigned k = 0; k <= max && i + k <= balls; k++) {
                product[i + k] += term;
                term /= k + 1;
            }
        }
        for (unsigned i = 0; i <= balls; i++)
            poly[i] = product[i];
    }
    p = poly[balls];
    for (unsigned i = 1; i <= balls; i++)
        p *= (double)i / SPINES;
    return p;
}

/* Mean and variance of the maximum over leaves that have so many flows each. */
static void add_theory(const unsigned balls[LEAVES], double *mean, double *variance)
{
    double first = 0, second = 0;

    for (unsigned m = 0; m < HOSTS; m++) {
        double p = 1;

        for (unsigned leaf = 0; leaf < LEAVES; leaf++)
            p *= none_above(balls[leaf], m);
        first += 1 - p;
        second += (2 * m + 1) * (1 - p);
    }
    *mean += first;
    *variance += second - first * first;
}

/* The formula itself: small cases counted by hand. */
TEST(theory_none_above__by_hand)
{
    assert_true(fabs(none_above(1, 1) - 1) < 1e-12);
    assert_true(fabs(none_above(2, 1) - 7. / 8) < 1e-12);            /* two in different bins */
    assert_true(fabs(none_above(3, 1) - 7. * 6 / 64) < 1e-12);       /* all three */
    assert_true(fabs(none_above(3, 2) - (1 - 1. / 64)) < 1e-12);     /* not all in one */
    assert_true(fabs(none_above(8, 1) - 40320. / 16777216) < 1e-12); /* 8! / 8^8 */
    assert_true(none_above(9, 1) == 0);
}

/* --------------------------------------------------------------------------------------- fabric */

enum { SEEDS = 400 };

/* Flows that leave each leaf, and that come to it. */
static void count_balls(const uint32_t to[HOSTS], unsigned leaving[LEAVES], unsigned coming[LEAVES])
{
    for (uint32_t i = 0; i < LEAVES; i++)
        leaving[i] = coming[i] = 0;
    for (uint32_t i = 0; i < HOSTS; i++) {
        leaving[i / LEAF_HOSTS] += i / LEAF_HOSTS != to[i] / LEAF_HOSTS;
        coming[to[i] / LEAF_HOSTS] += i / LEAF_HOSTS != to[i] / LEAF_HOSTS;
    }
}

/*
 * Over many seeds, the mean of the greatest number of flows on a way up, and on a way down, is that
 * of balls in bins; and each way up of a leaf gets its share.
 */
TEST(ecmp_loads__balls_in_bins)
{
    double up = 0, down = 0, up_mean = 0, down_mean = 0, up_variance = 0, down_variance = 0;
    double flows[LEAVES] = {0}, on_way[LEAVES][SPINES] = {{0}}, chi_square = 0;
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < SEEDS; i++) {
        unsigned leaving[LEAVES], coming[LEAVES];
        uint32_t to[HOSTS];
        uint64_t last_ns;

        permute(to, seed + i);
        count_balls(to, leaving, coming);
        add_theory(leaving, &up_mean, &up_variance);
        add_theory(coming, &down_mean, &down_variance);

        struct loads l = run_permutation(seed + i, to, 1, &last_ns);

        up += l.up_max;
        down += l.down_max;
        for (unsigned leaf = 0; leaf < LEAVES; leaf++) {
            unsigned sum = 0;

            for (unsigned spine = 0; spine < SPINES; spine++) {
                sum += l.up[leaf][spine];
                on_way[leaf][spine] += l.up[leaf][spine];
            }
            assert_int_equal(sum, leaving[leaf]);
            flows[leaf] += sum;
        }
    }
    for (unsigned leaf = 0; leaf < LEAVES; leaf++) {
        for (unsigned spine = 0; spine < SPINES; spine++) {
            double expected = flows[leaf] / SPINES, off = on_way[leaf][spine] - expected;

            chi_square += off * off / expected;
        }
    }
    print_message(
        "most flows on a way up %.3f, theory %.3f; down %.3f, theory %.3f; chi-square %.1f\n",
        up / SEEDS, up_mean / SEEDS, down / SEEDS, down_mean / SEEDS, chi_square);
    /* Four standard deviations of the sums. */
    test_check(seed, (up - up_mean) * (up - up_mean) <= 16 * up_variance, "up %g, not %g", up,
               up_mean);
    test_check(seed, (down - down_mean) * (down - down_mean) <= 16 * down_variance,
               "down %g, not %g", down, down_mean);
    /* 56 degrees of freedom: outside once in 10000 times on either side. */
    test_check(seed, chi_square > 24.7 && chi_square < 104.3, "chi-square %g", chi_square);
}

/*
 * Without losses the last flow is over when the most loaded link has carried all its flows: its
 * load times the bytes of a flow, and the way there and back of one packet.
 */
TEST(ecmp_last_flow__most_loaded_link)
{
    enum { PACKETS = 1000, RUNS = 20 };
    double mean = 0, worst = 0;
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < RUNS; i++) {
        uint32_t to[HOSTS];
        uint64_t last_ns;

        permute(to, seed + i);

        struct loads l = run_permutation(seed + i, to, PACKETS, &last_ns);
        unsigned max = l.up_max > l.down_max ? l.up_max : l.down_max;
        double least_ns = (double)flows_wire_ns(max * PACKETS * UINT64_C(4178), 100e9);
        double ratio = (double)last_ns / least_ns;

        test_check(seed + i, ratio >= 1 && ratio < 1.15, "load %u: %" PRIu64 " ns of %g", max,
                   last_ns, least_ns);
        mean += ratio / RUNS;
        worst = ratio > worst ? ratio : worst;
    }
    print_message("last flow after %.3f of what its link takes, %.3f at worst\n", mean, worst);
    test_check(seed, mean < 1.07, "%g on average", mean);
}
