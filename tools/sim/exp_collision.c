/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collision: permutation traffic by each way to choose paths, and how evenly the links between
 * switches are used.
 *
 * A permutation loads each host's link fully and no link between switches more than its share. What
 * a flow pinned to one path loses by sharing it with others (ECMP collisions), a spraying one
 * keeps.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"

/* Spray policies of mrd, and rc, which has one path a connection. */
static const char *const policies[] = {"single", "rr", "random", "reps", "adaptive", "rc"};

enum {
    NUM_POLICIES = sizeof(policies) / sizeof(policies[0]),
    POLICY_RC = NUM_POLICIES - 1,
    LINK_NAME_BYTES = 48,
};

static bool is_mrd(const struct simx_config *config)
{
    return strcmp(config->transport, "mrd") == 0;
}

static int check(const struct simx_config *config, const struct simx_net *net)
{
    (void)net;
    if (strcmp(config->spray, "adaptive") == 0)
        return 0;
    return simx_fail(-EINVAL, "collision compares all policies: leave out --spray");
}

/* The models have no spray policies: one point. */
static unsigned points(const struct simx_config *config)
{
    return is_mrd(config) ? NUM_POLICIES : 1;
}

static void point(struct simx_config *config, unsigned index)
{
    if (!is_mrd(config))
        return;
    if (index < POLICY_RC) {
        snprintf(config->spray, sizeof(config->spray), "%s", policies[index]);
        return;
    }
    snprintf(config->transport, sizeof(config->transport), "%s", policies[index]);
    snprintf(config->cc, sizeof(config->cc), "none");
}

/* -------------------------------------------------------------------------------------- measure */

/* Adds the mean of the shares and their deviation. */
static void add_util(struct json_object *result, const double *shares, uint32_t num)
{
    struct json_object *util = json_object_new_object();
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;

    for (uint32_t i = 0; i < num; i++) {
        sum += shares[i];
        least = fmin(least, shares[i]);
        most = fmax(most, shares[i]);
    }
    for (uint32_t i = 0; i < num; i++)
        squares += (shares[i] - sum / num) * (shares[i] - sum / num);
    json_add_numbers(util, {"min", least}, {"mean", sum / num}, {"max", most},
                     {"stddev", sqrt(squares / num)});
    json_object_object_add(result, "util", util);
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    struct json_object *links = json_object_new_array();
    uint32_t num_links = mrd_sim_num_links(run->sim), num = 0;
    double *shares = malloc((num_links + 1) * sizeof(*shares));

    if (!shares)
        num_links = 0;
    for (uint32_t i = 0; i < num_links; i++) {
        char name[LINK_NAME_BYTES];
        struct mrd_sim_link attr;
        struct mrd_sim_stats stats;

        if (mrd_sim_link_name(run->sim, i, name, sizeof(name)) != 0 || !simx_net_is_uplink(name))
            continue;
        mrd_sim_query_link(run->sim, i, &attr, &stats);
        /* Bits that the link carried, divided by the bits that it could carry until then. */
        shares[num] = (double)stats.bytes * 8e9 / (double)attr.rate_bps / (double)run->last_done_ns;

        struct json_object *link = json_object_new_object();

        json_add_string(link, "name", name);
        json_add_numbers(link, {"share", shares[num++]});
        json_object_array_add(links, link);
    }
    json_add_string(result, "policy",
                    is_mrd(run->config) ? run->config->spray : run->config->transport);
    add_util(result, shares, num);
    json_object_object_add(result, "links", links);
    json_add_numbers(json_get(result, "config"), {"size_bytes", (double)run->config->bytes});
    free(shares);
}

static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    return simx_cm_permutation(cm, net->topology.hosts, config->bytes, config->seed);
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_collision = {
    .name = "collision",
    .summary = "a permutation by each path policy, and the load of each uplink",
    .about = "Each host sends to one other and receives from one other: a permutation, drawn "
             "from the seed. Once by each way of mrd to choose paths and once by rc, or once "
             "by the --transport that was asked for. Shows how evenly uplinks are used.",
    .own = {{"size", "2M", NULL}},
    .needs_two_leaves = true,
    .points = points,
    .point = point,
    .check = check,
    .traffic = traffic,
    .figures = add_figures,
    .columns =
        {
            {"policy", "policy", NULL, 0},
            {"cc", "cc", NULL, 0},
            {"flows", "flows", NULL, 0},
            SIMX_COLUMNS_FCT,
            {"goodput_gbps", "goodput", "Gb/s", 0},
            {"util.min", "uplinks min", NULL, 3},
            {"util.mean", "mean", NULL, 3},
            {"util.max", "max", NULL, 3},
            {"util.stddev", "stddev", NULL, 3},
            SIMX_COLUMNS_PACKETS,
            {"timeouts", "timeouts", NULL, 0},
            SIMX_COLUMNS_END,
        },
    .picture =
        {
            .title = "Utilisation of the links between switches under a permutation",
            .x_label = "uplinks, from the least to the most used",
            .y_label = "share of the link's rate until the last completion",
            .array = "links",
            .group = "policy",
            .x = {NULL, 1, NULL},
            .y = {{"share", 1, NULL}},
        },
};
