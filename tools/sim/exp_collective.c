/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allreduce: the ring algorithm over all hosts, by rank as they are numbered.
 * alltoall: each host has a piece for each other one. Serial, to one after the other, as htsim has
 * it, or --at-once.
 *
 * Bandwidths are those of the NCCL tests, in Gb/s: the algorithm's is size / time, the bus's is
 * that times a factor which makes it comparable with the rate of a host's link, whatever the number
 * n of hosts is: 2 (n - 1) / n for all-reduce, (n - 1) / n for all-to-all. Size is that of a host's
 * whole buffer. Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
 */
#include <string.h>

#include "tools/sim/experiment.h"

static const double sizes[] = {1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20};

static int make_ring(const struct simx_config *config, const struct simx_net *net,
                     struct simx_cm *cm)
{
    return simx_cm_ring_allreduce(cm, net->topology.hosts, config->bytes);
}

/* As in the NCCL tests a host's buffer has a piece for itself, which stays. */
static int make_alltoall(const struct simx_config *config, const struct simx_net *net,
                         struct simx_cm *cm)
{
    uint32_t hosts = net->topology.hosts;

    return simx_cm_alltoall(cm, hosts, config->bytes / hosts, !config->at_once);
}

static void add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct simx_config *config = run->config;
    bool is_ring = strcmp(config->experiment, "allreduce") == 0;
    uint64_t hosts = run->net.topology.hosts;
    uint64_t size = is_ring ? config->bytes : config->bytes / hosts * hosts;
    double factor = (is_ring ? 2.0 : 1.0) * (double)(hosts - 1) / (double)hosts;
    double bits = 8 * (double)size;
    struct simx_bounds bounds;

    simx_bounds_init(&bounds, run);
    simx_add_completion(run, &bounds, result);

    double us = json_get_number(result, "completion_us");

    json_add_string(result, "pattern", is_ring ? "ring" : config->at_once ? "at_once" : "serial");
    json_add_numbers(result, {"size_bytes", (double)size}, {"algbw_gbps", bits / us / 1e3},
                     {"busbw_gbps", bits / us / 1e3 * factor},
                     {"ideal_busbw_gbps", bits / bounds.completion_us / 1e3 * factor});
}

/* clang-format off */
#define COLLECTIVE \
    .own = {{"hosts", "32", NULL}, \
            {"leaf-hosts", "8", NULL}, \
            {"size", NULL, "1M, 2M, 4M, ... 64M in turn"}}, \
    .sweeps = {{offsetof(struct simx_config, bytes), true, \
                sizeof(sizes) / sizeof(sizes[0]), sizes}}, \
    .traffic_expected = "a byte or more for each host, and at most 1048576 flows", \
    .figures = add_figures, \
    .columns = { \
        SIMX_COLUMNS_TRANSPORT, \
        {"pattern", "pattern", NULL, 0}, \
        {"hosts", "hosts", NULL, 0}, \
        {"size_bytes", "size", "B", 0}, \
        {"completion_us", "completion", "us", 2}, \
        {"ideal_completion_us", "ideal", "us", 2}, \
        {"completion_over_ideal", "compl./ideal", NULL, 3}, \
        {"algbw_gbps", "algbw", "Gb/s", 2}, \
        {"busbw_gbps", "busbw", "Gb/s", 2}, \
        {"ideal_busbw_gbps", "ideal busbw", "Gb/s", 2}, \
        {"fct_us.p50", "FCT p50", "us", 2}, \
        {"fct_us.p99", "p99", "us", 2}, \
        {"fct_us.max", "max", "us", 2}, \
        {"retransmitted", "retx", NULL, 0}, \
        {"spurious", "spurious", NULL, 0}, \
        SIMX_COLUMNS_END, \
    }, \
    .picture = { \
        .title = "Bus bandwidth against size", \
        .x_label = "size of a host's buffer [MiB]", \
        .y_label = "bus bandwidth [Gb/s]", \
        .x = {"size_bytes", 1.0 / (1 << 20), NULL}, \
        .y = {{"busbw_gbps", 1, "measured"}, {"ideal_busbw_gbps", 1, "ideal"}}, \
        .x_log = true, \
    }
/* clang-format on */

const struct simx_experiment simx_exp_allreduce = {
    .name = "allreduce",
    .summary = "bus bandwidth of a ring all-reduce over all hosts",
    .about = "A ring all-reduce over all hosts, in the order of their numbers: 2 (n - 1) "
             "steps, each of which waits for the one before at the neighbour.",
    .traffic = make_ring,
    COLLECTIVE,
};

const struct simx_experiment simx_exp_alltoall = {
    .name = "alltoall",
    .summary = "bus bandwidth of an all-to-all, serial or --at-once",
    .about = "Each host has a piece for each other one, and sends them one after the other, "
             "each when the one before is acked, or --at-once.",
    .traffic = make_alltoall,
    COLLECTIVE,
};
