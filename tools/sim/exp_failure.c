/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure: one way of many fails during long transfers, in both directions.
 *
 * Hosts of the first leaf send to hosts of the last one (--senders of them, or -tm). At --at that
 * uplink of the first sender's leaf fails which has carried most: a flow with a single path is on
 * it, and a spraying one uses all alike. The run samples the receivers each quarter of a base RTT.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"
#include "tools/sim/goodput.h"
#include "transport/movers/sim/sim_world.h"

enum { NAME_BYTES = 48, STEPS_AN_RTT = 4, RTTS_BEFORE = 20 };

/*
 * Below this share of the rate before it is dark; at this share of what is possible it is well
 * again.
 */
#define DARK_SHARE 0.1
#define WELL_SHARE 0.9

static const struct kind {
    const char *name, *action, *value;
} kinds[] = {
    {"blackhole", "blackhole", "on"}, /* nobody is told */
    {"down", "down", "on"},           /* both switches know, the others do not */
    {"flap", "flap", "200,100"},      /* down for 100 us of each 200 us */
    {"degrade", "degrade", "0.1"},    /* a tenth of its rate */
};

enum { NUM_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Counters of the uplinks of the first sender's leaf, and the queue of the failing one. */
struct ways {
    uint64_t packets, failing_packets, queue_bytes;
};

/* Observations of a run. */
struct watch {
    const struct kind *kind;
    uint64_t owed[SIMX_NODES_MAX]; /* bytes for each host */
    struct simx_goodput goodput;
    struct ways ways[SIMX_LOOKS_MAX];            /* of each look */
    uint32_t first_uplink, num_uplinks, failing; /* links by number */
    double at_us, before_gbps, possible_gbps, share_before;
    char links[NAME_BYTES];
};

/* -------------------------------------------------------------------------------------- traffic */

static int traffic(const struct simx_config *c, const struct simx_net *net, struct simx_cm *cm)
{
    uint32_t pairs = c->senders ? c->senders : 1, hosts = net->topology.hosts;
    uint32_t leaf_hosts = net->topology.tier[0].radix_down;
    uint32_t last_leaf = (hosts - 1) / leaf_hosts * leaf_hosts;

    if (pairs > leaf_hosts)
        return -EINVAL;
    return simx_cm_pairs(cm, hosts, last_leaf, pairs, c->bytes);
}

/* -------------------------------------------------------------------------------------- looking */

/* Stores the counters of the uplinks as sample `index`. */
static void look_at_ways(const struct simx_run *run, struct watch *w, size_t index)
{
    struct ways *ways = &w->ways[index];

    *ways = (struct ways){0};
    for (uint32_t i = w->first_uplink; i < w->first_uplink + w->num_uplinks; i++) {
        struct mrd_sim_stats stats;

        mrd_sim_query_link(run->sim, i, NULL, &stats);
        ways->packets += stats.packets;
        if (i == w->failing)
            ways->failing_packets = stats.packets;
    }
    if (w->links[0])
        ways->queue_bytes =
            mrd_sim_wire_backlog(&run->sim->fabric.wires[w->failing], mrd_sim_now(run->sim));
}

/*
 * Samples what all receivers have. True: the series ends, as a host has all of its data and the sum
 * no longer covers all transfers, or as the series is full.
 */
static bool look(const struct simx_run *run, struct watch *w)
{
    double sum = 0;

    for (uint32_t i = 0; i < run->cm->nodes; i++) {
        uint64_t bytes = w->owed[i] ? run->ops->received(run->drive, i) : 0;

        if (w->owed[i] && bytes >= w->owed[i])
            return true;
        sum += (double)bytes;
    }
    if (w->goodput.num < SIMX_LOOKS_MAX)
        look_at_ways(run, w, w->goodput.num);
    return !simx_goodput_add(&w->goodput, (double)mrd_sim_now(run->sim) / 1e3, sum);
}

/* Runs until `ns` or until a transfer ends. True: a transfer has ended. */
static bool watch_until(struct simx_run *run, struct watch *w, uint64_t ns)
{
    uint64_t step_ns = (uint64_t)(run->net.base_rtt_ns / STEPS_AN_RTT) + 1;
    uint64_t now_ns = mrd_sim_now(run->sim);

    while (now_ns < ns && w->goodput.num < SIMX_LOOKS_MAX) {
        now_ns = ns - now_ns > step_ns ? now_ns + step_ns : ns;
        if (simx_run_until(run, now_ns) || look(run, w))
            return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------------- failing */

/* The links from the first sender's leaf upwards, whose numbers follow each other. */
static void find_uplinks(const struct simx_run *run, struct watch *w)
{
    uint32_t leaf = run->cm->flows[0].src / run->net.topology.tier[0].radix_down;
    char prefix[NAME_BYTES], name[NAME_BYTES];

    snprintf(prefix, sizeof(prefix), "leaf%u>", leaf);
    for (uint32_t i = 0; i < mrd_sim_num_links(run->sim); i++) {
        mrd_sim_link_name(run->sim, i, name, sizeof(name));
        if (strncmp(name, prefix, strlen(prefix)) != 0 || !simx_net_is_uplink(name))
            continue;
        if (w->num_uplinks++ == 0)
            w->first_uplink = i;
    }
}

/* Chooses the most used uplink to fail, and computes its share and the rate of the others. */
static void choose_links(const struct simx_run *run, struct watch *w)
{
    char name[NAME_BYTES];
    uint64_t most = 0, packets = 0, most_packets = 0;
    double one_gbps = 0, payload = run->config->payload_bytes / (double)run->net.packet_bytes;

    w->failing = w->first_uplink;
    for (uint32_t i = w->first_uplink; i < w->first_uplink + w->num_uplinks; i++) {
        struct mrd_sim_link link;
        struct mrd_sim_stats stats;

        mrd_sim_query_link(run->sim, i, &link, &stats);
        one_gbps = (double)link.rate_bps / 1e9;
        packets += stats.packets;
        if (stats.bytes <= most)
            continue;
        most = stats.bytes;
        most_packets = stats.packets;
        w->failing = i;
    }
    mrd_sim_link_name(run->sim, w->failing, name, sizeof(name));
    *strchr(name, '>') = '-'; /* both directions */
    snprintf(w->links, sizeof(w->links), "%s", name);
    w->share_before = (double)most_packets / (double)packets;
    w->possible_gbps = fmin(w->before_gbps, (w->num_uplinks - 1) * one_gbps * payload);
}

static int strike(struct simx_run *run, struct watch *w)
{
    double rtt_us = run->net.base_rtt_ns / 1e3;
    int ret;

    w->at_us = (double)mrd_sim_now(run->sim) / 1e3;
    w->before_gbps = simx_goodput_gbps(
        &w->goodput, fmax(w->at_us / 2, w->at_us - RTTS_BEFORE * rtt_us), w->at_us);
    choose_links(run, w);
    look_at_ways(run, w, w->goodput.num - 1); /* with the link that was chosen */
    ret = mrd_sim_schedule(run->sim, mrd_sim_now(run->sim), w->links, w->kind->action,
                           w->kind->value);
    return ret ? simx_fail(ret, "failure: %s", mrd_last_error()) : 0;
}

static const struct kind *kind_of(const char *name)
{
    unsigned i = 0;

    while (i + 1 < NUM_KINDS && strcmp(kinds[i].name, name) != 0)
        i++;
    return &kinds[i];
}

static int go(struct simx_run *run)
{
    uint64_t at_ns = (uint64_t)llround(run->config->at_us * 1e3);
    uint64_t limit_ns = (uint64_t)(run->config->limit_s * 1e9);
    struct watch *w = run->memo;

    w->kind = kind_of(run->config->failure);
    for (uint32_t i = 0; i < run->cm->num_flows; i++)
        w->owed[run->cm->flows[i].dst] += run->cm->flows[i].bytes;
    find_uplinks(run, w);
    if (look(run, w) || watch_until(run, w, at_ns)) {
        if (run->error != 0)
            return simx_run_all(run);
        return simx_fail(-EINVAL, "failure: a transfer ended before --at %g: --size may be greater",
                         run->config->at_us);
    }
    int ret = strike(run, w);
    if (ret != 0)
        return ret;
    watch_until(run, w, limit_ns);
    return simx_run_all(run);
}

/* -------------------------------------------------------------------------------------- results */

static struct json_object *samples(const struct watch *w)
{
    const struct simx_goodput *g = &w->goodput;
    struct json_object *array = json_object_new_array();

    for (size_t i = 1; i < g->num; i++) {
        const struct ways *now = &w->ways[i], *before = &w->ways[i - 1];
        struct json_object *sample = json_object_new_object();

        json_add_numbers(sample, {"t_us", g->t_us[i]},
                         {"gbps", simx_goodput_gbps(g, g->t_us[i - 1], g->t_us[i])});
        json_object_array_add(array, sample);
        if (g->t_us[i] <= w->at_us)
            continue;
        json_add_numbers(
            sample, {"packets", (double)(now->packets - before->packets)},
            {"failing_packets", (double)(now->failing_packets - before->failing_packets)},
            {"queue_bytes", (double)now->queue_bytes});
    }
    return array;
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct watch *w = run->memo;
    const struct simx_goodput *g = &w->goodput;
    double rtt_us = run->net.base_rtt_ns / 1e3;
    double blackout_us = simx_goodput_blackout_us(g, w->at_us, DARK_SHARE * w->before_gbps);
    double well_gbps = WELL_SHARE * w->possible_gbps;
    struct simx_totals totals;

    run->ops->totals(run->drive, &totals);
    json_add_string(result, "failure_kind", w->kind->name);
    json_add_string(result, "failure_value", w->kind->value);
    json_add_string(result, "failure_links", w->links);
    json_add_numbers(result, {"failure_at_us", w->at_us}, {"base_rtt_us", rtt_us},
                     {"before_gbps", w->before_gbps}, {"possible_gbps", w->possible_gbps},
                     {"blackout_us", blackout_us}, {"blackout_rtts", blackout_us / rtt_us},
                     {"lowest_gbps", simx_goodput_lowest_gbps(g, w->at_us, rtt_us)},
                     {"first_90_us", simx_goodput_first_back_us(g, w->at_us, rtt_us, well_gbps)},
                     {"to_90_us", simx_goodput_back_us(g, w->at_us, rtt_us, well_gbps)},
                     {"paths_suspended", (double)totals.paths_suspended},
                     {"paths_replaced", (double)totals.paths_replaced},
                     {"share_before", w->share_before});
    json_object_object_add(result, "samples", samples(w));
}

/* ------------------------------------------------------------------------------- the experiment */

static unsigned points(const struct simx_config *config)
{
    return config->failure[0] ? 1 : NUM_KINDS;
}

static void point(struct simx_config *config, unsigned index)
{
    if (!config->failure[0])
        snprintf(config->failure, sizeof(config->failure), "%s", kinds[index].name);
}

const struct simx_experiment simx_exp_failure = {
    .name = "failure",
    .summary = "goodput while a link fails: blackout and time to recover",
    .about = "Hosts of the first leaf send to hosts of the last one, or as -tm says. Then the "
             "link fails, both ways, on which the first sender's leaf had sent most upwards.",
    .own = {{"hosts", "32", NULL},
            {"size", "32M", NULL},
            {"senders", NULL, "1"},
            {"failure", NULL, "each in turn"}},
    .takes_matrix = true,
    .points = points,
    .point = point,
    .traffic = traffic,
    .traffic_expected = "two leaves, of as many hosts as --senders says",
    .memo_bytes = sizeof(struct watch),
    .go = go,
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"failure_kind", "failure", NULL, 0},
            {"failure_links", "of", NULL, 0},
            {"before_gbps", "before", "Gb/s", 2},
            {"possible_gbps", "possible", "Gb/s", 2},
            {"lowest_gbps", "lowest", "Gb/s", 2},
            {"blackout_us", "blackout", "us", 2},
            {"blackout_rtts", "blackout", "RTT", 2},
            {"first_90_us", "first 90 %", "us", 2},
            {"to_90_us", "for good", "us", 2},
            {"fct_us.max", "FCT max", "us", 2},
            {"retransmitted", "retx", NULL, 0},
            {"timeouts", "timeouts", NULL, 0},
            {"spurious", "spurious", NULL, 0},
            {"paths_suspended", "suspended", NULL, 0},
            {"paths_replaced", "replaced", NULL, 0},
            {"wall_s", "wall", "s", 3},
        },
    /* Averages over one base RTT: with samples of a quarter each single packet would show. */
    .picture =
        {
            .title = "Failure of one way",
            .x_label = "time [us]",
            .y_label = "goodput over one RTT [Gb/s]",
            .array = "samples",
            .group = "failure_kind",
            .x = {"t_us", 1, NULL},
            .y = {{"gbps", 1, NULL}},
            .mean_of = STEPS_AN_RTT,
            .x_mark = "failure_at_us",
        },
};
