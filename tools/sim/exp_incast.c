/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * incast: many hosts send to one at once.
 *
 * With --victim another flow crosses from a leaf of senders to the target's leaf, to a host beside
 * the target. No link of its own way is short of capacity: what it takes longer than alone is what
 * the incast does to others.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"
#include "tools/sim/fair.h"

enum { TARGET = 0, BESIDE_TARGET = 1 };

/* Returns the number of hosts without the target and the victim's sender. 0: no such fabric. */
static uint32_t most_senders(const struct simx_config *config)
{
    struct simx_net net;

    if (simx_net_init(&net, config) != 0)
        return 0;
    return net.topology.hosts - 1 - config->victim;
}

static int check(const struct simx_config *config, const struct simx_net *net)
{
    uint32_t hosts = net->topology.hosts, leaf_hosts = net->topology.tier[0].radix_down;

    if (config->victim && (leaf_hosts < 2 || hosts <= leaf_hosts))
        return simx_fail(-EINVAL,
                         "--victim: expected two leaves, and a second host below the target's");
    if (config->senders <= most_senders(config))
        return 0;
    return simx_fail(-EINVAL, "--senders: expected at most %u of %u hosts%s, found %u",
                     most_senders(config), hosts, config->victim ? " with --victim" : "",
                     config->senders);
}

/* Powers of 2 below the largest number, then that number. */
static unsigned points(const struct simx_config *config)
{
    uint32_t most = most_senders(config);
    unsigned num = 1;

    if (config->senders)
        return 1;
    for (uint32_t n = 1; n < most; n *= 2)
        num++;
    return num;
}

static void point(struct simx_config *config, unsigned index)
{
    uint32_t most = most_senders(config);

    if (!config->senders)
        config->senders = (1u << index) < most ? 1u << index : most;
}

/* -------------------------------------------------------------------------------------- traffic */

/* Returns the first host of from .. to - 1 that neither sends nor is the target, or `to`. */
static uint32_t find_idle(const struct simx_cm *cm, uint32_t from, uint32_t to)
{
    for (; from < to; from++) {
        uint32_t i = 0;

        while (i < cm->num_flows && cm->flows[i].src != from)
            i++;
        if (from != TARGET && i == cm->num_flows)
            return from;
    }
    return to;
}

/*
 * The host from which the victim goes: below the leaf of the first sender that is not below the
 * target's, or of the last host if there is no such. If all hosts there send, one of them has
 * another host send in its place.
 */
static uint32_t make_room(struct simx_cm *cm, uint32_t leaf_hosts)
{
    uint32_t leaf = (cm->nodes - 1) / leaf_hosts, swapped = 0;

    for (uint32_t i = 0; i < cm->num_flows; i++) {
        if (cm->flows[i].src >= leaf_hosts) {
            leaf = cm->flows[i].src / leaf_hosts;
            swapped = i;
            break;
        }
    }

    uint32_t first = leaf * leaf_hosts;
    uint32_t end = first + leaf_hosts < cm->nodes ? first + leaf_hosts : cm->nodes;
    uint32_t host = find_idle(cm, first, end);

    if (host < end)
        return host;
    host = cm->flows[swapped].src;
    cm->flows[swapped].src = find_idle(cm, 0, cm->nodes);
    return host;
}

static int add_victim(struct simx_cm *cm, uint32_t leaf_hosts)
{
    struct simx_flow *flows = realloc(cm->flows, (cm->num_flows + 1) * sizeof(*flows));

    if (!flows) {
        simx_cm_fini(cm);
        return -ENOMEM;
    }
    cm->flows = flows;
    flows[cm->num_flows] = flows[0];
    flows[cm->num_flows].src = make_room(cm, leaf_hosts);
    flows[cm->num_flows].dst = BESIDE_TARGET;
    flows[cm->num_flows].id = cm->num_flows + 1;
    cm->num_flows++;
    return 0;
}

/* -------------------------------------------------------------------------------------- measure */

/* Of the rates of `num` flows of one size. */
static double jain(const struct simx_run_flow *flows, uint32_t num)
{
    struct simx_fair fair = {0};

    for (uint32_t i = 0; i < num; i++)
        simx_fair_add(&fair, 1 / (double)(flows[i].done_ns - flows[i].start_ns));
    return simx_fair_jain(&fair);
}

static double fct_us(const struct simx_run_flow *flow)
{
    return flow->done_ns == UINT64_MAX ? NAN : (double)(flow->done_ns - flow->start_ns) / 1e3;
}

static void add_victim_keys(const struct simx_run *run, struct json_object *result)
{
    uint32_t last = run->config->senders;
    const struct simx_flow *victim = &run->cm->flows[last];
    double us = fct_us(&run->flows[last]);
    double lone_us =
        simx_bound_flow_us(&run->net, run->config, victim->src, victim->dst, victim->bytes);

    json_add_numbers(result, {"victim_fct_us", us}, {"victim_over_lone", us / lone_us});
}

/*
 * The victim is the last flow. The keys of all runs have it among the others, but the goodput is
 * the target's.
 */
static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct simx_config *c = run->config;
    struct json_object *config = json_get(result, "config");
    bool is_all = run->num_done == run->cm->num_flows;
    double longest_us = 0;

    for (uint32_t i = 0; i < c->senders; i++)
        longest_us = fmax(longest_us, fct_us(&run->flows[i]));
    json_add_numbers(
        result, {"senders", (double)(c->senders)},
        {"jain", is_all ? jain(run->flows, c->senders) : NAN},
        {"goodput_gbps", is_all ? c->senders * (double)c->bytes * 8 / 1e3 / longest_us : NAN});
    if (c->victim)
        add_victim_keys(run, result);
    json_add_numbers(config, {"size_bytes", (double)c->bytes}, {"victim", c->victim});
}

static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    int ret = simx_cm_incast(cm, net->topology.hosts, TARGET, config->senders, config->bytes,
                             config->seed);

    if (ret == 0 && config->victim)
        ret = add_victim(cm, net->topology.tier[0].radix_down);
    return ret;
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_incast = {
    .name = "incast",
    .summary = "many hosts send to one; and what that does to a flow beside it",
    .about = "Hosts drawn from the seed send to host 0 at once. With --victim another flow goes "
             "to the host beside it, whose own way has room.",
    .own = {{"size", "2M", NULL}, {"senders", NULL, "1, 2, 4, ... all other hosts in turn"}},
    .points = points,
    .point = point,
    .check = check,
    .traffic = traffic,
    .traffic_expected = "fewer senders than hosts",
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"senders", "senders", NULL, 0},
            {"fct_us.min", "FCT min", "us", 2},
            {"fct_us.p50", "p50", "us", 2},
            {"fct_us.p99", "p99", "us", 2},
            {"fct_us.max", "max", "us", 2},
            {"ideal_us", "ideal", "us", 2},
            {"max_over_ideal", "max/ideal", NULL, 3},
            {"goodput_gbps", "goodput", "Gb/s", 2},
            {"jain", "Jain", NULL, 4},
            {"victim_fct_us", "victim", "us", 2},
            {"victim_over_lone", "victim/lone", NULL, 3},
            SIMX_COLUMNS_PACKETS,
            {"timeouts", "timeouts", NULL, 0},
            SIMX_COLUMNS_END,
        },
    .picture =
        {
            .title = "Incast: completion times against the number of senders",
            .x_label = "senders to one host",
            .y_label = "completion time over the least possible",
            .x = {"senders", 1, NULL},
            .y = {{"max_over_ideal", 1, "slowest over the ideal"},
                  {"victim_over_lone", 1, "victim over a lone flow"}},
            .x_log = true,
        },
};
