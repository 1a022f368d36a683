/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/wire.h"
#include "tools/sim/faults.h"
#include "tools/sim/topo.h"
#include "transport/sim/sim_fabric.h"
#include "transport/sim/sim_tree.h"

/* ---------------------------------------------------------------------------------- the figures */

static double serialise_ns(double bytes, uint64_t rate_bps)
{
    return bytes * 8e9 / (double)rate_bps;
}

/* Of each data packet of a message: one that is alone in it needs no place in it. */
static uint32_t overhead_bytes(const struct simx_net *net, const struct simx_config *config,
                               uint64_t bytes)
{
    return bytes <= config->payload_bytes ? net->single_bytes : net->data_bytes;
}

enum simx_distance simx_net_distance(const struct simx_net *net, uint32_t a, uint32_t b)
{
    const struct mrd_sim_topology *t = &net->topology;

    if (a / t->tier[0].radix_down == b / t->tier[0].radix_down)
        return SIMX_SAME_LEAF;
    return t->tiers == 2 || a / t->pod_hosts == b / t->pod_hosts ? SIMX_SAME_POD : SIMX_FAR;
}

/* The longest way of a fabric that ends there. */
static struct mrd_sim_topology part(const struct simx_net *net, enum simx_distance distance)
{
    struct mrd_sim_topology topology = net->topology;

    if (distance == SIMX_SAME_LEAF)
        topology.hosts = 1;
    if (distance == SIMX_SAME_POD && topology.tiers == 3)
        topology.hosts = topology.pod_hosts;
    return topology;
}

double simx_net_way_us(const struct simx_net *net, const struct simx_config *config,
                       enum simx_distance distance, uint64_t bytes)
{
    struct mrd_sim_topology topology = part(net, distance);
    struct mrd_sim_hop hops[MRD_SIM_HOPS_MAX];
    unsigned num = mrd_sim_tree_longest(&topology, hops);
    double leaves_ns[MRD_SIM_HOPS_MAX] = {0};
    uint32_t overhead = overhead_bytes(net, config, bytes);
    double arrive_ns = 0;

    /* Each packet leaves a hop when it is there and the one before it has left: n packets through a pipeline. */
    for (uint64_t sent = 0; sent < bytes;) {
        uint64_t payload =
            bytes - sent < config->payload_bytes ? bytes - sent : config->payload_bytes;
        double wire = (double)(payload + overhead);

        arrive_ns = 0;
        for (unsigned i = 0; i < num; i++) {
            leaves_ns[i] = fmax(arrive_ns, leaves_ns[i]) + serialise_ns(wire, hops[i].rate_bps);
            arrive_ns = leaves_ns[i] + (double)hops[i].delay_ns;
        }
        sent += payload;
    }
    return arrive_ns / 1e3;
}

double simx_net_back_us(const struct simx_net *net, enum simx_distance distance)
{
    struct mrd_sim_topology topology = part(net, distance);

    return mrd_sim_tree_longest_ns(&topology, net->ack_bytes) / 1e3;
}

double simx_net_lone_us(const struct simx_net *net, const struct simx_config *config,
                        uint64_t bytes)
{
    return simx_net_way_us(net, config, SIMX_FAR, bytes) + simx_net_back_us(net, SIMX_FAR);
}

static double wire_bytes(const struct simx_net *net, const struct simx_config *config,
                         uint64_t bytes)
{
    uint64_t packets = (bytes + config->payload_bytes - 1) / config->payload_bytes;

    return (double)(bytes + packets * overhead_bytes(net, config, bytes));
}

double simx_net_payload_gbps(const struct simx_net *net, const struct simx_config *config,
                             uint64_t bytes)
{
    return (double)net->host_bps / 1e9 * (double)bytes / wire_bytes(net, config, bytes);
}

double simx_net_ideal_us(const struct simx_net *net, const struct simx_config *config,
                         const struct simx_cm *cm)
{
    double *crossing = calloc(2 * (size_t)net->topology.hosts, sizeof(*crossing));
    uint64_t largest = 0;
    double most = 0;

    if (!crossing)
        return NAN;
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        const struct simx_flow *flow = &cm->flows[i];
        double wire = wire_bytes(net, config, flow->bytes);
        double *out = &crossing[2 * flow->src], *in = &crossing[2 * flow->dst + 1];

        *out += wire;
        *in += wire;
        most = fmax(most, fmax(*out, *in));
        largest = flow->bytes > largest ? flow->bytes : largest;
    }
    free(crossing);

    double latency_us = (mrd_sim_tree_longest_ns(&net->topology, 0) +
                         mrd_sim_tree_longest_ns(&net->topology, net->ack_bytes)) /
                        1e3;

    return fmax(simx_net_lone_us(net, config, largest),
                serialise_ns(most, net->host_bps) / 1e3 + latency_us);
}

/* ----------------------------------------------------------------------------------- the fabric */

static int make_topology(struct simx_net *net, const struct simx_config *config, char *error,
                         size_t len)
{
    if (config->topo[0])
        return simx_topo_read(&net->topology, config->topo, error, len);
    return simx_topo_make(&net->topology, config->hosts, config->tiers, config->leaf_hosts,
                          config->oversubscription, config->gbps,
                          (uint64_t)llround(config->delay_us * 1e3), error, len);
}

int simx_net_init(struct simx_net *net, const struct simx_config *config, char *error, size_t len)
{
    *net = (struct simx_net){0};

    int ret = make_topology(net, config, error, len);

    if (ret != 0)
        return ret;
    net->host_bps = net->topology.tier[0].rate_bps;
    net->data_bytes = MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES +
                      mrd_wire_part_bytes(MRD_OP_WRITE, MRD_PART_MULTI);
    net->single_bytes =
        MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES + mrd_wire_part_bytes(MRD_OP_WRITE, 0);
    net->ack_bytes = MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES;
    if (config->htsim_overhead) {
        net->data_bytes = net->single_bytes = MRD_SIM_HTSIM_DATA_BYTES;
        net->ack_bytes = MRD_SIM_HTSIM_ACK_BYTES;
    }
    net->packet_bytes = config->payload_bytes + net->data_bytes;
    net->base_rtt_ns = mrd_sim_tree_longest_ns(&net->topology, net->packet_bytes) +
                       mrd_sim_tree_longest_ns(&net->topology, net->ack_bytes);
    net->bdp_bytes = (double)net->host_bps * net->base_rtt_ns / 8e9;
    net->link.queue_bytes = (uint64_t)config->queue_packets * net->packet_bytes;
    net->link.ecn_min_bytes = (uint64_t)(config->ecn_min * net->bdp_bytes);
    net->link.ecn_max_bytes = (uint64_t)(config->ecn_max * net->bdp_bytes);
    return 0;
}

struct mrd_sim *simx_net_create(const struct simx_net *net, const struct simx_config *config,
                                uint64_t seed, char *error, size_t len)
{
    struct mrd_sim_attr attr = {
        .seed = seed,
        .link = net->link,
        .paths = config->paths,
        .clock_skew_ppm = config->skew_ppm,
        .topology = &net->topology,
        .wire_overhead = config->htsim_overhead ? MRD_SIM_WIRE_HTSIM : MRD_SIM_WIRE_ETHERNET,
        .loss_ppb = (uint32_t)llround(config->loss * 1e9),
        .ack_priority = config->ack_priority,
        .payload_by_reference = 1,
    };
    struct mrd_sim *sim = mrd_sim_create(&attr);

    if (!sim) {
        snprintf(error, len, "%s", mrd_last_error());
        return NULL;
    }
    if (config->faults[0] && simx_faults_read(sim, config->faults, error, len) != 0) {
        mrd_sim_destroy(sim);
        return NULL;
    }
    return sim;
}
