/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scale: the cost of peers, in state and in rate.
 *
 * One host sends messages to N peers at once, round robin: MESSAGES of them whatever N is, so that
 * points compare, but at least one a peer. With --hosts (or -topo) all hosts send, each a message
 * to each of --peers others: the size of fabric that the machine can simulate.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "tools/sim/experiment.h"
#include "tools/sim/fail.h"

enum { MESSAGES = 4096, LOOKS = 4 };

static const uint32_t sweep[] = {1, 4, 16, 64, 256, 1024, 4096};

enum { NUM_SWEEP = sizeof(sweep) / sizeof(sweep[0]) };

/* -------------------------------------------------------------------------------------- traffic */

static int traffic(const struct simx_config *c, const struct simx_net *net, struct simx_cm *cm)
{
    uint32_t hosts = net->topology.hosts, rounds = c->peers < MESSAGES ? MESSAGES / c->peers : 1;

    return c->is_all_hosts ? simx_cm_spread(cm, hosts, c->peers, c->bytes)
                           : simx_cm_fan_out(cm, hosts, c->peers, rounds * c->peers, c->bytes);
}

/* -------------------------------------------------------------------------------------- results */

/* Returns the most memory that the process ever had, MB (10^6). */
static double rss_mb(void)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

static uint64_t state_now(const struct simx_run *run)
{
    struct simx_totals totals;

    run->ops->totals(run->drive, &totals);
    return totals.state_bytes;
}

/* Runs to the end. Samples the state while all peers are busy and keeps the largest value. */
static int go(struct simx_run *run)
{
    uint64_t *state_bytes = run->memo;
    struct simx_bounds bounds;

    if (!simx_bounds_init(&bounds, run))
        return simx_fail(-ENOMEM, "scale: no memory");
    for (unsigned i = 1; i <= LOOKS; i++) {
        bool is_over = simx_run_until(run, (uint64_t)(bounds.fct_us * 1e3 * i / (LOOKS + 1)));
        uint64_t bytes = state_now(run);

        *state_bytes = bytes > *state_bytes ? bytes : *state_bytes;
        if (is_over)
            break;
    }
    return simx_run_all(run);
}

/* Null where the transport does not count the figure. */
static double counted(double value)
{
    return value > 0 ? value : NAN;
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    uint64_t state_bytes = *(const uint64_t *)run->memo;
    const struct simx_config *c = run->config;
    uint64_t relations = (uint64_t)c->peers * (c->is_all_hosts ? run->cm->nodes : 1);
    double us = (double)run->last_done_ns / 1e3;
    struct simx_totals totals;

    run->ops->totals(run->drive, &totals);
    json_add_string(result, "pattern", c->is_all_hosts ? "all_hosts" : "fan_out");
    json_add_numbers(result, {"peers", (double)(c->peers)}, {"message_bytes", (double)c->bytes},
                     {"completion_us", us}, {"messages_per_s", run->num_done / us * 1e6},
                     {"state_bytes", counted((double)state_bytes)},
                     {"state_bytes_per_peer", counted((double)state_bytes / (double)relations)},
                     {"idle_peer_bytes", counted((double)totals.idle_peer_bytes)},
                     {"active_peer_bytes", counted((double)totals.active_peer_bytes)},
                     {"rss_mb", rss_mb()});
}

/* ------------------------------------------------------------------------------- the experiment */

static unsigned points(const struct simx_config *config)
{
    return config->hosts || config->topo[0] || config->peers ? 1 : NUM_SWEEP;
}

static void point(struct simx_config *config, unsigned index)
{
    config->is_all_hosts = config->hosts || config->topo[0];
    if (!config->peers)
        config->peers = config->is_all_hosts ? 1 : sweep[index];
    if (config->is_all_hosts)
        return;

    /* Room for all, and two leaves or more, so that the longest way is the same at every point. */
    uint32_t leaves = config->peers / config->leaf_hosts + 1;

    config->hosts = (leaves < 2 ? 2 : leaves) * config->leaf_hosts;
}

const struct simx_experiment simx_exp_scale = {
    .name = "scale",
    .summary = "state and rate against the number of peers; with --hosts: of hosts",
    .about = "Host 0 sends 4096 messages, or one to each if there are more peers, round robin. "
             "With --hosts or -topo every host sends a message to each of its --peers.",
    .own = {{"hosts", NULL, "as many as the peers need"},
            {"size", "64K", NULL},
            {"peers", NULL, "1, 4, 16, 64, 256, 1024 and 4096 in turn; with --hosts: 1"}},
    .points = points,
    .point = point,
    .traffic = traffic,
    .traffic_expected = "fewer peers than hosts and at most 1048576 flows",
    .memo_bytes = sizeof(uint64_t),
    .go = go,
    .figures = add_figures,
    .columns =
        {
            SIMX_COLUMNS_TRANSPORT,
            {"pattern", "pattern", NULL, 0},
            {"hosts", "hosts", NULL, 0},
            {"peers", "peers", NULL, 0},
            {"flows", "messages", NULL, 0},
            {"message_bytes", "size", "B", 0},
            {"goodput_gbps", "goodput", "Gb/s", 2},
            {"messages_per_s", "rate", "1/s", 0},
            {"state_bytes", "state", "B", 0},
            {"state_bytes_per_peer", "a peer", "B", 0},
            {"idle_peer_bytes", "idle", "B", 0},
            {"active_peer_bytes", "active", "B", 0},
            {"retransmitted", "retx", NULL, 0},
            {"rss_mb", "RSS", "MB", 1},
            {"wall_s", "wall", "s", 3},
            {"packets_per_wall_s", "packets", "1/s of wall", 0},
        },
    .picture =
        {
            .title = "State of a peer, at both ends",
            .x_label = "peers",
            .y_label = "state of a peer [B]",
            .x = {"peers", 1, NULL},
            .y = {{"state_bytes_per_peer", 1, "active"}, {"idle_peer_bytes", 2, "idle"}},
            .x_log = true,
        },
};
