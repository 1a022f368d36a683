/* SPDX-License-Identifier: BSD-2-Clause */
/* allreduce: the ring algorithm over all hosts, by rank as they are numbered. */
#include <math.h>

#include "tools/sim/collective.h"

static int traffic(const struct simx_config *config, const struct simx_net *net, struct simx_cm *cm)
{
    return simx_cm_ring_allreduce(cm, net->topology.hosts, config->bytes);
}

static uint64_t size(const struct simx_config *config, uint32_t hosts)
{
    (void)hosts;
    return config->bytes;
}

static double bus_factor(uint32_t hosts)
{
    return 2.0 * (hosts - 1) / hosts;
}

/*
 * A piece goes 2 (n - 1) ways, each of which begins when the one before has ended: twice around the
 * ring but for two ways, of which the piece that needs longest spares the shortest. Then the ack of
 * the last one.
 */
static double ideal_us(const struct simx_net *net, const struct simx_config *config)
{
    uint32_t n = net->topology.hosts;
    double way_us[SIMX_DISTANCES], back_us[SIMX_DISTANCES], round_us = 0, longest_us = 0;

    for (unsigned d = 0; d < SIMX_DISTANCES; d++) {
        way_us[d] = simx_net_way_us(net, config, (enum simx_distance)d, config->bytes / n);
        back_us[d] = simx_net_back_us(net, (enum simx_distance)d);
    }
    for (uint32_t i = 0; i < n; i++)
        round_us += way_us[simx_net_distance(net, i, (i + 1) % n)];
    for (uint32_t i = 0; i < n; i++) {
        /* The piece that ends at host i: it is spared the ways from i to i + 1 and on to i + 2. */
        uint32_t before = (i + n - 1) % n, next = (i + 1) % n, after = (i + 2) % n;
        double us = 2 * round_us - way_us[simx_net_distance(net, i, next)] -
                    way_us[simx_net_distance(net, next, after)] +
                    back_us[simx_net_distance(net, before, i)];

        longest_us = fmax(longest_us, us);
    }
    return longest_us;
}

static const struct simx_collective ring = {
    .pattern = "ring",
    .size = size,
    .bus_factor = bus_factor,
    .ideal_us = ideal_us,
};

static void add_figures(const struct simx_run *run, struct json_object *result, void *memo)
{
    (void)memo;
    simx_collective_figures(&ring, run, result);
}

const struct simx_experiment simx_exp_allreduce = {
    .name = "allreduce",
    .summary = "bus bandwidth of a ring all-reduce over all hosts",
    .about = "A ring all-reduce over all hosts, in the order of their numbers: 2 (n - 1) "
             "steps, each of which waits for the one before at the neighbour.",
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
