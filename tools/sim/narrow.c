/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/narrow.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/sim/fail.h"
#include "transport/movers/sim/sim_world.h"

/* LINKS: from host to host and back. */
enum { LINKS = 8, NAME_BYTES = 48 };

static const char narrow_link[] = "leaf0>spine0";

/* -------------------------------------------------------------------------------- configuration */

/* The RTT of links without delay: what packets take on them. */
static double least_rtt_us(const struct simx_config *config)
{
    struct simx_config c = *config;
    struct simx_net net;

    c.delay_us = 0;
    return simx_net_init(&net, &c) == 0 ? net.base_rtt_ns / 1e3 : INFINITY;
}

void simx_narrow_point(struct simx_config *c, uint32_t pairs)
{
    struct simx_net net;

    c->tiers = 2;
    c->leaf_hosts = pairs;
    c->hosts = 2 * pairs;
    c->oversubscription = pairs;
    c->host_ratio = c->speedup;
    c->is_one_part = true;
    c->delay_us = fmax(c->rtt_us - least_rtt_us(c), 0) / LINKS;
    if (simx_net_init(&net, c) != 0)
        return; /* simx_check() says why */
    c->queue_bytes = c->buffer_bytes;
    if (!c->queue_bytes)
        c->queue_bytes = (uint64_t)fmax(c->buffer_bdp * net.bdp_bytes, net.packet_bytes);
}

int simx_narrow_check(const struct simx_config *c)
{
    double least_us = least_rtt_us(c);

    if (c->topo[0])
        return simx_fail(-EINVAL, "--topo: %s makes its own fabric", c->experiment);
    if (c->rtt_us < least_us)
        return simx_fail(-EINVAL,
                         "--rtt: expected at least %.3g us, which packets of %u bytes take on "
                         "links of %g Gb/s, found %g",
                         least_us, c->payload_bytes, c->gbps, c->rtt_us);
    return 0;
}

uint64_t simx_narrow_endless_bytes(const struct simx_config *c, double seconds)
{
    return (uint64_t)ceil(c->gbps * 1e9 / 8 * seconds) + c->payload_bytes;
}

/* -------------------------------------------------------------------------------------- the run */

static uint32_t find_link(const struct simx_run *run)
{
    uint32_t i = 0;
    char name[NAME_BYTES];

    for (; i + 1 < mrd_sim_num_links(run->sim); i++) {
        if (mrd_sim_link_name(run->sim, i, name, sizeof(name)) == 0 &&
            strcmp(name, narrow_link) == 0)
            break;
    }
    return i;
}

void simx_narrow_look(const struct simx_run *run, struct simx_narrow_look *look)
{
    uint32_t link = find_link(run);
    struct mrd_sim_stats stats;

    mrd_sim_query_link(run->sim, link, NULL, &stats);
    look->t_ns = mrd_sim_now(run->sim);
    look->bytes = stats.bytes;
    look->drops = stats.queue_drops;
    look->queue_bytes = mrd_sim_wire_backlog(&run->sim->fabric.wires[link], look->t_ns);
}

double simx_narrow_utilisation(const struct simx_run *run, const struct simx_narrow_look *from,
                               const struct simx_narrow_look *to)
{
    /* Bytes count when they join the queue. */
    double bytes =
        (double)(to->bytes - from->bytes) - (double)to->queue_bytes + (double)from->queue_bytes;

    return bytes * 8 / ((double)(to->t_ns - from->t_ns) * run->config->gbps);
}

double simx_narrow_payload_gbps(const struct simx_run *run)
{
    return run->config->gbps * run->config->payload_bytes / run->net.packet_bytes;
}

int simx_narrow_end(struct simx_run *run)
{
    int ret = simx_run_end(run);

    for (uint32_t i = 0; ret == 0 && i < run->cm->num_flows; i++) {
        if (run->flows[i].failure)
            return simx_fail(-EIO,
                             "%s: with an RTT of %g us and a loss of %g the flow of host %u had "
                             "failed by %.6f s: %s",
                             run->config->experiment, run->config->rtt_us, run->config->loss,
                             run->cm->flows[i].src, (double)mrd_sim_now(run->sim) / 1e9,
                             run->flows[i].failure);
    }
    return ret;
}

void simx_narrow_add_figures(const struct simx_run *run, struct json_object *result)
{
    const struct simx_config *c = run->config;

    json_add_numbers(result, {"ideal_us", NAN}, {"max_over_ideal", NAN}, {"unfinished", 0});
    json_add_numbers(json_get(result, "config"), {"queue_packets", NAN}, {"limit_s", NAN},
                     {"narrow_gbps", c->gbps}, {"speedup", c->speedup},
                     {"buffer_bytes", (double)c->queue_bytes}, {"duration_s", c->duration_s});
}
