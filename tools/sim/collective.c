/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/collective.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { NUM_SIZES = 7, FIRST_SIZE = 1 << 20 };

void simx_collective_defaults(struct simx_config *config)
{
    config->hosts = 32;
    config->leaf_hosts = 8;
}

unsigned simx_collective_points(const struct simx_config *config)
{
    return config->bytes ? 1 : NUM_SIZES;
}

void simx_collective_point(struct simx_config *config, unsigned index)
{
    if (!config->bytes)
        config->bytes = (uint64_t)FIRST_SIZE << index;
}

/* ---------------------------------------------------------------------------------------- a run */

void simx_collective_figures(const struct simx_collective *what, const struct simx_run *run,
                             struct json_object *result)
{
    uint32_t hosts = run->net.topology.hosts;
    uint64_t size = what->size(run->config, hosts);
    bool is_done = run->num_done == run->cm->num_flows;
    double us = is_done ? (double)run->last_done_ns / 1e3 : NAN;
    double ideal_us = what->ideal_us(&run->net, run->config);
    double bits = 8 * (double)size, factor = what->bus_factor(hosts);

    simx_json_add_string(result, "pattern", what->pattern);
    simx_json_add_u64(result, "size_bytes", size);
    simx_json_add_double(result, "completion_us", us);
    /* That of all flows at once, which simx_result() has, knows nothing of the order among them. */
    simx_json_add_double(result, "ideal_us", ideal_us);
    json_object_object_del(result, "max_over_ideal");
    simx_json_add_double(result, "completion_over_ideal", us / ideal_us);
    simx_json_add_double(result, "algbw_gbps", bits / us / 1e3);
    simx_json_add_double(result, "busbw_gbps", bits / us / 1e3 * factor);
    simx_json_add_double(result, "ideal_busbw_gbps", bits / ideal_us / 1e3 * factor);
}

const struct simx_column simx_collective_columns[SIMX_COLLECTIVE_COLUMNS] = {
    SIMX_COLUMNS_TRANSPORT,
    {"pattern", "pattern", NULL, 0},
    {"hosts", "hosts", NULL, 0},
    {"size_bytes", "size", "B", 0},
    {"completion_us", "completion", "us", 2},
    {"ideal_us", "ideal", "us", 2},
    {"completion_over_ideal", "compl./ideal", NULL, 3},
    {"algbw_gbps", "algbw", "Gb/s", 2},
    {"busbw_gbps", "busbw", "Gb/s", 2},
    {"ideal_busbw_gbps", "ideal busbw", "Gb/s", 2},
    {"fct_us.p50", "FCT p50", "us", 2},
    {"fct_us.p99", "p99", "us", 2},
    {"fct_us.max", "max", "us", 2},
    {"retransmitted", "retx", NULL, 0},
    {"spurious", "spurious", NULL, 0},
    SIMX_COLUMNS_END,
};

const struct simx_picture simx_collective_picture = {
    .title = "Bus bandwidth against size",
    .x_label = "size of a host's buffer [MiB]",
    .y_label = "bus bandwidth [Gb/s]",
    .x = {"size_bytes", 1.0 / (1 << 20), NULL},
    .y = {{"busbw_gbps", 1, "measured"}, {"ideal_busbw_gbps", 1, "ideal"}},
    .x_log = true,
};
