/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * skew: one long flow over paths whose delays differ, without loss.
 *
 * The K-th of n uplinks of the first leaf is longer by spread x base RTT x K / (n - 1), in the
 * direction of the data only. Packets overtake each other by as much; none is lost, so each
 * retransmission takes lateness for loss. The transport may learn this in the first 16 round trips,
 * of the slowest path; the keys that end in after_16_rtt count from there.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"

static const double spreads[] = {0, 0.25, 0.5, 1, 2, 4};

enum {
    NUM_SPREADS = sizeof(spreads) / sizeof(spreads[0]),
    LEARN_RTTS = 16,
    LOOKS_A_RTT = 4, /* at the window; no transport cuts it more often */
    VALUE_BYTES = 32,
};

/* Observations during the run. */
struct looks {
    struct simx_totals learned; /* totals at the end of the first 16 round trips */
    bool is_long;               /* the flow had not ended by then */
    uint64_t window_bytes, window_min_bytes, falls;
};

static int check(const struct simx_config *config, const struct simx_net *net)
{
    (void)config;
    if (net->topology.tier[0].radix_up >= 2)
        return 0;
    return simx_fail(-EINVAL, "skew needs leaves with at least two uplinks, not %u",
                     net->topology.tier[0].radix_up);
}

/* -------------------------------------------------------------------------------------- measure */

/* One flow to a host below the last leaf. */
static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    return simx_cm_pairs(cm, net->topology.hosts, net->topology.hosts - 1, 1, config->bytes);
}

/* 0 or -errno with a sentence. */
static int lengthen(struct simx_run *run)
{
    double most_ns = run->config->spread * run->net.base_rtt_ns;
    uint32_t uplinks = run->net.topology.tier[0].radix_up, k = 0;

    for (uint32_t i = 0; i < mrd_sim_num_links(run->sim); i++) {
        char name[SIMX_NAME_BYTES * 4], value[VALUE_BYTES];
        struct mrd_sim_link link;

        mrd_sim_link_name(run->sim, i, name, sizeof(name));
        if (strncmp(name, "leaf0>", 6) != 0 || !simx_net_is_uplink(name))
            continue;
        mrd_sim_query_link(run->sim, i, &link, NULL);
        snprintf(value, sizeof(value), "%.3f",
                 ((double)link.delay_ns + most_ns * k++ / (uplinks - 1)) / 1e3);

        int ret = mrd_sim_schedule(run->sim, 0, name, "delay", value);

        if (ret != 0)
            return simx_fail(ret, "%s: %s", name, mrd_last_error());
    }
    mrd_sim_run_until(run->sim, 0); /* before the flow starts */
    return 0;
}

/* Samples the window while the flow runs, and counts how often it is lower than before. */
static void watch(struct simx_run *run, struct looks *looks)
{
    uint64_t end_ns = (uint64_t)(run->config->limit_s * 1e9);
    uint64_t step_ns = (uint64_t)(run->net.base_rtt_ns / LOOKS_A_RTT);
    uint64_t now_ns = mrd_sim_now(run->sim);

    looks->window_bytes = looks->window_min_bytes = run->ops->window(run->drive, 0);
    for (uint64_t before = looks->window_bytes; now_ns < end_ns;) {
        now_ns = now_ns + step_ns < end_ns ? now_ns + step_ns : end_ns;
        if (simx_run_until(run, now_ns))
            return;

        uint64_t window = run->ops->window(run->drive, 0);

        looks->falls += window < before;
        if (window < looks->window_min_bytes)
            looks->window_min_bytes = window;
        before = window;
    }
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct looks *looks = run->memo;
    const struct simx_config *c = run->config;
    bool has_window = looks->is_long && run->ops->window;
    double goodput = json_get_number(result, "goodput_gbps");
    const struct simx_totals *learned = &looks->learned;
    struct simx_totals all;

    run->ops->totals(run->drive, &all);

    double packets = (double)(all.packets - learned->packets);
    double retransmitted = (double)(all.retransmitted - learned->retransmitted);
    double spurious = (double)(all.spurious - learned->spurious);

    json_add_numbers(
        result, {"spread_rtts", c->spread}, {"spread_us", c->spread * run->net.base_rtt_ns / 1e3},
        {"size_bytes", (double)c->bytes},
        {"efficiency", goodput / simx_net_payload_gbps(&run->net, c, c->bytes)},
        {"spurious_share", (double)all.spurious / (double)all.packets},
        {"spurious_share_after_16_rtt", looks->is_long ? spurious / packets : NAN},
        {"retransmitted_after_16_rtt", looks->is_long ? retransmitted : NAN},
        {"cuts", all.cuts == UINT64_MAX ? NAN : (double)all.cuts},
        {"window_bytes_at_16_rtt", has_window ? (double)looks->window_bytes : NAN},
        {"window_bytes_min_after_16_rtt", has_window ? (double)looks->window_min_bytes : NAN},
        {"window_falls_after_16_rtt", has_window ? (double)looks->falls : NAN});
    json_add_numbers(json_get(result, "config"), {"spread_rtts", c->spread},
                     {"size_bytes", (double)c->bytes});
}

static int go(struct simx_run *run)
{
    double longest_rtt_ns = run->net.base_rtt_ns * (1 + run->config->spread);
    struct looks *looks = run->memo;
    int ret = lengthen(run);

    if (ret != 0)
        return ret;
    looks->is_long = !simx_run_until(run, (uint64_t)(LEARN_RTTS * longest_rtt_ns));
    run->ops->totals(run->drive, &looks->learned);
    if (looks->is_long && run->ops->window)
        watch(run, looks);
    return simx_run_all(run);
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_skew = {
    .name = "skew",
    .summary = "spurious retransmissions where the delays of paths differ",
    .about = "One long flow, without loss, over paths whose delays differ: the K-th of n uplinks "
             "of the first leaf is longer by K / (n - 1) of the spread. What is sent again was "
             "only late.",
    .own = {{"hosts", "32", NULL},
            {"size", "256M", NULL},
            {"spread", NULL, "0, 0.25, 0.5, 1, 2 and 4 in turn"}},
    .needs_two_leaves = true,
    .sweeps = {{offsetof(struct simx_config, spread), false, NUM_SPREADS, spreads}},
    .check = check,
    .traffic = traffic,
    .memo_bytes = sizeof(struct looks),
    .go = go,
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"spread_rtts", "spread", "RTT", 2},
            {"spread_us", "spread", "us", 2},
            {"fct_us.max", "FCT", "us", 2},
            {"goodput_gbps", "goodput", "Gb/s", 3},
            {"efficiency", "efficiency", NULL, 4},
            SIMX_COLUMNS_PACKETS,
            {"spurious_share", "share", NULL, 6},
            {"retransmitted_after_16_rtt", "retx after 16 RTT", NULL, 0},
            {"spurious_share_after_16_rtt", "spurious share after", NULL, 6},
            {"cuts", "cuts", NULL, 0},
            {"window_bytes_at_16_rtt", "window", "B", 0},
            {"window_bytes_min_after_16_rtt", "least after", "B", 0},
            {"window_falls_after_16_rtt", "falls after", NULL, 0},
            {"timeouts", "timeouts", NULL, 0},
            {"wall_s", "wall", "s", 3},
        },
    .picture =
        {
            .title = "Retransmissions of packets that were only late",
            .x_label = "delay of the slowest path above the fastest one's [base RTT]",
            .y_label = "spurious retransmissions [% of packets]",
            .x = {"spread_rtts", 1, NULL},
            .y = {{"spurious_share", 100, "of the whole flow"},
                  {"spurious_share_after_16_rtt", 100, "after 16 round trips"}},
        },
};
