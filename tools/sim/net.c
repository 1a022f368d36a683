/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "tools/sim/fail.h"
#include "tools/sim/lines.h"
#include "tools/sim/topo.h"
#include "transport/movers/sim/sim_fabric.h"
#include "transport/movers/sim/sim_tree.h"

/* ---------------------------------------------------------------------------------- the figures */

double simx_net_payload_gbps(const struct simx_net *net, const struct simx_config *config,
                             uint64_t bytes)
{
    uint64_t packets = (bytes + config->payload_bytes - 1) / config->payload_bytes;
    /* A packet that is alone in its message needs no place in it. */
    uint64_t overhead = packets * (packets == 1 ? net->single_bytes : net->data_bytes);

    return (double)net->host_bps / 1e9 * (double)bytes / (double)(bytes + overhead);
}

/* Tiers from below, by the first letter: host, leaf, agg, and spine or core. */
static ptrdiff_t tier_of(const char *node)
{
    static const char letters[] = "hlasc";
    const char *found = *node ? strchr(letters, *node) : NULL;

    return found ? found - letters : -1;
}

bool simx_net_is_uplink(const char *link)
{
    const char *to = strchr(link, '>');

    return to && tier_of(link) > 0 && tier_of(to + 1) > tier_of(link);
}

/* --------------------------------------------------------------------------------------- faults */

enum { TIME, LINKS, ACTION, VALUE, WORDS };

/* The virtual time, at most a day: beyond it nothing runs. */
#define TIME_US_MAX 86400e6

/* A line `TIME_US LINKS ACTION VALUE`, as mrd_sim_schedule() has them. */
static int schedule(struct simx_lines *lines, void *arg)
{
    struct mrd_sim *sim = arg;
    char *end;

    if (lines->num_words < WORDS)
        return simx_lines_expected(lines, simx_lines_word(lines, WORDS),
                                   "TIME_US LINKS ACTION VALUE");

    double us = strtod(lines->word[TIME], &end);
    int ret = simx_lines_end(lines, WORDS);

    if (ret == 0 && (end == lines->word[TIME] || *end || !(us >= 0 && us <= TIME_US_MAX)))
        ret = simx_lines_expected(lines, lines->word[TIME], "a time in microseconds");
    if (ret != 0)
        return ret;
    ret = mrd_sim_schedule(sim, (uint64_t)llround(us * 1e3), lines->word[LINKS],
                           lines->word[ACTION], lines->word[VALUE]);
    if (ret == 0)
        return 0;
    return simx_fail(ret == -ENOENT ? -EINVAL : ret, "%s:%u: %s", lines->path, lines->line,
                     ret == -ENOMEM ? "no memory" : mrd_last_error());
}

/* ----------------------------------------------------------------------------------- the fabric */

static int make_topology(struct simx_net *net, const struct simx_config *config)
{
    if (config->topo[0])
        return simx_topo_read(&net->topology, config->topo);

    int ret = simx_topo_make(&net->topology, config->hosts, config->tiers, config->leaf_hosts,
                             config->oversubscription, config->gbps,
                             (uint64_t)llround(config->delay_us * 1e3));

    if (ret == 0 && config->host_ratio > 0)
        net->topology.tier[0].rate_bps = (uint64_t)llround(config->gbps * 1e9 * config->host_ratio);
    return ret;
}

int simx_net_init(struct simx_net *net, const struct simx_config *config)
{
    *net = (struct simx_net){0};

    int ret = make_topology(net, config);

    if (ret != 0)
        return ret;
    net->host_bps = net->topology.tier[0].rate_bps;
    net->data_bytes = MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES +
                      mrd_wire_part_bytes(MRD_OP_WRITE, MRD_PART_MULTI);
    net->single_bytes =
        MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES + mrd_wire_part_bytes(MRD_OP_WRITE, 0);
    net->ack_bytes = MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES;
    net->is_htsim = strcmp(config->wire_overhead, "htsim") == 0;
    if (net->is_htsim) {
        net->data_bytes = net->single_bytes = MRD_SIM_HTSIM_DATA_BYTES;
        net->ack_bytes = MRD_SIM_HTSIM_ACK_BYTES;
    }
    net->packet_bytes = config->payload_bytes + net->data_bytes;
    net->base_rtt_ns = mrd_sim_tree_longest_ns(&net->topology, net->packet_bytes) +
                       mrd_sim_tree_longest_ns(&net->topology, net->ack_bytes);
    net->bdp_bytes = (double)net->host_bps * net->base_rtt_ns / 8e9;
    if (config->host_ratio > 0)
        net->bdp_bytes /= config->host_ratio;
    net->link.queue_bytes = config->queue_bytes
                                ? config->queue_bytes
                                : (uint64_t)config->queue_packets * net->packet_bytes;
    net->link.ecn_min_bytes = (uint64_t)(config->ecn_min * net->bdp_bytes);
    net->link.ecn_max_bytes = (uint64_t)(config->ecn_max * net->bdp_bytes);
    return 0;
}

static enum mrd_sim_knows knows_of(const char *word)
{
    if (strcmp(word, "sockets") == 0)
        return MRD_SIM_KNOWS_SOCKETS;
    return strcmp(word, "rdma") == 0 ? MRD_SIM_KNOWS_RDMA : MRD_SIM_KNOWS_FABRIC;
}

struct mrd_sim *simx_net_create(const struct simx_net *net, const struct simx_config *config,
                                uint64_t seed)
{
    struct mrd_sim_attr attr = {
        .knows = knows_of(config->knows),
        .seed = seed,
        .link = net->link,
        .paths = config->paths,
        .clock_skew_ppm = config->skew_ppm,
        .topology = &net->topology,
        .wire_overhead = net->is_htsim ? MRD_SIM_WIRE_HTSIM : MRD_SIM_WIRE_ETHERNET,
        .loss_ppb = (uint32_t)llround(config->loss * 1e9),
        .ack_priority = config->ack_priority,
        .payload_by_reference = 1,
    };
    struct mrd_sim *sim = mrd_sim_create(&attr);
    struct simx_lines lines;

    if (!sim)
        return NULL;
    if (config->faults[0] && simx_lines_read(&lines, config->faults, schedule, sim) != 0) {
        mrd_sim_destroy(sim);
        return NULL;
    }
    return sim;
}
