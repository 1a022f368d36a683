/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loss: goodput and the tail of completion times against Bernoulli loss and message size.
 *
 * One host sends to one below another leaf, in a closed loop: a message starts when an earlier one
 * ends. As many are outstanding as twice the BDP holds, and at least two, so that the loss-free
 * link is full at every size: what is missing then is what recovery costs. A completion time thus
 * includes the wait behind the messages before it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/experiment.h"

static const double sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
static const double losses[] = {0,         1.0 / 16384, 1.0 / 4096, 1.0 / 1024,
                                1.0 / 256, 0.01,        0.02,       0.05};

enum {
    NUM_SIZES = sizeof(sizes) / sizeof(sizes[0]),
    NUM_LOSSES = sizeof(losses) / sizeof(losses[0]),
    TOTAL_BYTES = 256 << 20, /* of a point: 22 ms at 100 Gb/s, where a last RTO hardly counts */
    MESSAGES_MIN = 8,
    MESSAGES_MAX = 16384, /* enough for the 99.9th percentile */
    OUTSTANDING_MIN = 2,
    OUTSTANDING_MAX = 1024,
};

/* The traffic of a point. */
struct plan {
    uint32_t messages, outstanding;
};

/* -------------------------------------------------------------------------------------- measure */

static uint32_t clamp(double value, uint32_t low, uint32_t high)
{
    return (uint32_t)fmin(fmax(value, low), high);
}

static struct plan make_plan(const struct simx_net *net, uint64_t bytes)
{
    struct plan plan;

    plan.messages = clamp((double)TOTAL_BYTES / (double)bytes, MESSAGES_MIN, MESSAGES_MAX);
    plan.outstanding =
        clamp(ceil(2 * net->bdp_bytes / (double)bytes), OUTSTANDING_MIN, OUTSTANDING_MAX);
    if (plan.outstanding > plan.messages)
        plan.outstanding = plan.messages;
    return plan;
}

/* Message i starts when message i - outstanding has ended. */
static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    struct plan plan = make_plan(net, config->bytes);

    return simx_cm_loop(cm, net->topology.hosts, plan.messages, plan.outstanding, config->bytes);
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    struct plan plan = make_plan(&run->net, run->config->bytes);
    struct json_object *config = json_get(result, "config");
    double loss = run->config->loss;
    double full_gbps = simx_net_payload_gbps(&run->net, run->config, run->config->bytes);
    /*
     * The messages form chains, of which each starts when the one before has ended. The longest
     * message of the chain that ends last takes at least the mean of that chain.
     */
    double chain = ceil((double)plan.messages / plan.outstanding);
    double ideal_us = fmax(json_get_number(result, "ideal_us"),
                           json_get_number(result, "ideal_completion_us") / chain);

    json_add_numbers(
        result, {"loss", loss}, {"size_bytes", (double)run->config->bytes},
        {"outstanding", (double)plan.outstanding}, {"full_gbps", full_gbps},
        {"efficiency", json_get_number(result, "goodput_gbps") / (full_gbps * (1 - loss))},
        {"ideal_us", ideal_us},
        {"max_over_ideal", json_get_number(result, "fct_us.max") / ideal_us});
    json_add_numbers(config, {"size_bytes", (double)run->config->bytes});
}

/* ------------------------------------------------------------------------------- the experiment */

const struct simx_experiment simx_exp_loss = {
    .name = "loss",
    .summary = "goodput and the tail against packet loss and message size",
    .about = "One host sends to one below another leaf, in a closed loop: as many messages are "
             "outstanding as hold twice the BDP, at least two. 256 MiB a point, but 8 messages at "
             "least and 16384 at most. Goodput and completion times against loss and size.",
    .own = {{"hosts", "32", NULL},
            {"size", NULL, "4K, 64K, 1M and 16M in turn"},
            {"loss", NULL, "0, 2^-14, 2^-12, 2^-10, 2^-8, 0.01, 0.02 and 0.05 in turn"}},
    .needs_two_leaves = true,
    .sweeps = {{offsetof(struct simx_config, bytes), true, NUM_SIZES, sizes},
               {offsetof(struct simx_config, loss), false, NUM_LOSSES, losses}},
    .traffic = traffic,
    .figures = add_figures,
    .columns =
        {
            {"transport", "transport", NULL, 0},
            {"size_bytes", "size", "B", 0},
            {"loss", "loss", NULL, 6},
            {"flows", "messages", NULL, 0},
            {"outstanding", "at once", NULL, 0},
            {"goodput_gbps", "goodput", "Gb/s", 3},
            {"efficiency", "efficiency", NULL, 4},
            {"ideal_us", "ideal", "us", 2},
            {"fct_us.p50", "FCT p50", "us", 2},
            {"fct_us.p99", "p99", "us", 2},
            {"fct_us.p999", "p99.9", "us", 2},
            {"fct_us.max", "max", "us", 2},
            {"packets", "packets", NULL, 0},
            {"lost", "lost", NULL, 0},
            {"retransmitted", "retx", NULL, 0},
            {"spurious", "spurious", NULL, 0},
            {"timeouts", "timeouts", NULL, 0},
            {"wall_s", "wall", "s", 3},
        },
    .picture =
        {
            .title = "Goodput against packet loss, by message size in bytes",
            .x_label = "loss of data packets and acks, end to end [%] (leftmost: none)",
            .y_label = "goodput [Gb/s]",
            .group = "size_bytes",
            .x = {"loss", 100, NULL},
            .y = {{"goodput_gbps", 1, NULL}},
            .x_log = true,
            .x_zero = 0.0015,
        },
};
