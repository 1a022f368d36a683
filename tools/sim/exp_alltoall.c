/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alltoall: each host has a piece for each other one. Serial, to one after the other, as htsim has
 * it, or --at-once.
 */
#include <math.h>

#include "tools/sim/collective.h"

/* As in the NCCL tests a host's buffer has a piece for itself, which stays. */
static uint64_t piece(const struct simx_config *config, uint32_t hosts)
{
    return config->bytes / hosts;
}

static uint64_t size(const struct simx_config *config, uint32_t hosts)
{
    return piece(config, hosts) * hosts;
}

static double bus_factor(uint32_t hosts)
{
    return (hosts - 1.0) / hosts;
}

/* ----------------------------------------------------------------------------------- one by one */

/* For each of its peers a host needs the way there and that of the ack back. */
static double serial_ideal_us(const struct simx_net *net, const struct simx_config *config)
{
    uint32_t n = net->topology.hosts;
    double step_us[SIMX_DISTANCES], longest_us = 0;

    for (unsigned d = 0; d < SIMX_DISTANCES; d++)
        step_us[d] = simx_net_way_us(net, config, (enum simx_distance)d, piece(config, n)) +
                     simx_net_back_us(net, (enum simx_distance)d);
    for (uint32_t i = 0; i < n; i++) {
        double us = 0;

        for (uint32_t j = 0; j < n; j++)
            us += j == i ? 0 : step_us[simx_net_distance(net, i, j)];
        longest_us = fmax(longest_us, us);
    }
    return longest_us;
}

static const struct simx_collective serial = {
    .pattern = "serial",
    .size = size,
    .bus_factor = bus_factor,
    .ideal_us = serial_ideal_us,
};

/* -------------------------------------------------------------------------------------- at once */

/*
 * The greater of two: all that a host has to send, in a row, the last of it to its nearest peer; a
 * piece to the farthest.
 */
static double at_once_ideal_us(const struct simx_net *net, const struct simx_config *config)
{
    uint32_t n = net->topology.hosts;
    enum simx_distance nearest = simx_net_distance(net, 0, 1);
    enum simx_distance farthest = simx_net_distance(net, 0, n - 1);
    double all_us = simx_net_way_us(net, config, nearest, piece(config, n) * (n - 1)) +
                    simx_net_back_us(net, nearest);
    double one_us =
        simx_net_way_us(net, config, farthest, piece(config, n)) + simx_net_back_us(net, farthest);

    return fmax(all_us, one_us);
}

static const struct simx_collective at_once = {
    .pattern = "at_once",
    .size = size,
    .bus_factor = bus_factor,
    .ideal_us = at_once_ideal_us,
};

/* ------------------------------------------------------------------------------- the experiment */

static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    uint32_t hosts = net->topology.hosts;
    uint64_t bytes = piece(config, hosts);

    return config->at_once ? simx_cm_alltoall(cm, hosts, bytes)
                           : simx_cm_alltoall_serial(cm, hosts, bytes);
}

static void add_figures(const struct simx_run *run, struct json_object *result, void *memo)
{
    (void)memo;
    simx_collective_figures(run->config->at_once ? &at_once : &serial, run, result);
}

const struct simx_experiment simx_exp_alltoall = {
    .name = "alltoall",
    .summary = "bus bandwidth of an all-to-all, serial or --at-once",
    .about = "Each host has a piece for each other one, and sends them one after the other, "
             "each when the one before is acked, or --at-once.",
    .notes = {{"size", "1M, 2M, 4M, ... 64M in turn"}},
    .defaults = simx_collective_defaults,
    .points = simx_collective_points,
    .point = simx_collective_point,
    .traffic = traffic,
    .traffic_expected = "a byte or more for each host, and at most 1048576 flows",
    .figures = add_figures,
    .columns = simx_collective_columns,
    .num_columns = SIMX_COLLECTIVE_COLUMNS,
    .picture = &simx_collective_picture,
};
