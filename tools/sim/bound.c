/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "tools/sim/models/qp.h"
#include "transport/movers/sim/sim_fabric.h"
#include "transport/movers/sim/sim_tree.h"

/* Bytes on the wire besides the payload, of the transport. */
struct headers {
    uint32_t full;   /* of one of several packets of a message */
    uint32_t single; /* of the only one */
    uint32_t shared; /* of it, what messages in one packet have once; 0: they have none in common */
    uint32_t ack;
};

static struct headers headers_of(const struct simx_net *net, const struct simx_config *config)
{
    const struct model_qp_ops *model = strcmp(config->transport, "irn") ? &model_rc : &model_irn;
    uint32_t full = MRD_SIM_WIRE_OVERHEAD_BYTES + model->data_bytes;
    uint32_t shared = MRD_SIM_WIRE_OVERHEAD_BYTES + MRD_WIRE_BASE_BYTES;

    if (strcmp(config->transport, "mrd") == 0)
        return (struct headers){net->data_bytes, net->single_bytes,
                                net->is_htsim ? net->single_bytes : shared, net->ack_bytes};
    if (net->is_htsim)
        return (struct headers){net->data_bytes, net->single_bytes, 0, net->ack_bytes};
    return (struct headers){full, full + model->first_bytes, 0,
                            MRD_SIM_WIRE_OVERHEAD_BYTES + MODEL_ACK_BYTES};
}

/* -------------------------------------------------------------------------------------- one way */

enum simx_distance simx_bound_distance(const struct simx_net *net, uint32_t a, uint32_t b)
{
    const struct mrd_sim_topology *t = &net->topology;

    if (a / t->tier[0].radix_down == b / t->tier[0].radix_down)
        return SIMX_SAME_LEAF;
    return t->tiers == 2 || a / t->pod_hosts == b / t->pod_hosts ? SIMX_SAME_POD : SIMX_FAR;
}

/* The links of a way over that distance: a fabric that ends there has no longer one. */
static unsigned find_hops(const struct simx_net *net, enum simx_distance distance,
                          struct mrd_sim_hop *hops)
{
    struct mrd_sim_topology topology = net->topology;

    if (distance == SIMX_SAME_LEAF)
        topology.hosts = 1;
    if (distance == SIMX_SAME_POD && topology.tiers == 3)
        topology.hosts = topology.pod_hosts;
    return mrd_sim_tree_longest(&topology, hops);
}

/* Returns the number of links that a flow can spray over, `hops` hops from the nearer host. */
static double parallel_links(const struct simx_net *net, unsigned hops)
{
    const struct mrd_sim_tier *leaf = &net->topology.tier[0], *agg = &net->topology.tier[1];

    if (hops == 0)
        return 1;
    return hops == 1 ? leaf->radix_up
                     : (double)leaf->radix_up / (agg->bundle ? agg->bundle : 1) * agg->radix_up;
}

/*
 * Packets of `wire` bytes. Each hop stores and forwards one of them, and the slowest hop also
 * carries the others one after the other. The simulation cuts times to whole nanoseconds at a hop.
 */
static double way_us(const struct simx_net *net, enum simx_distance distance, double wire,
                     double packets)
{
    struct mrd_sim_hop hops[MRD_SIM_HOPS_MAX];
    unsigned num = find_hops(net, distance, hops);
    double ns = 0, others_ns = 0;

    for (unsigned i = 0; i < num; i++) {
        double one_ns = wire * 8e9 / (double)hops[i].rate_bps;
        double links = parallel_links(net, i < num / 2 ? i : num - 1 - i);

        ns += one_ns + (double)hops[i].delay_ns - 1;
        others_ns = fmax(others_ns, (packets / links - 1) * one_ns);
    }
    return (ns + others_ns) / 1e3;
}

double simx_bound_way_us(const struct simx_net *net, const struct simx_config *config,
                         enum simx_distance distance, uint64_t bytes)
{
    struct headers headers = headers_of(net, config);
    uint64_t full = bytes / config->payload_bytes;

    if (bytes <= config->payload_bytes)
        return way_us(net, distance, (double)(bytes + headers.single), 1);
    return way_us(net, distance, config->payload_bytes + headers.full, (double)full);
}

double simx_bound_back_us(const struct simx_net *net, const struct simx_config *config,
                          enum simx_distance distance)
{
    return way_us(net, distance, headers_of(net, config).ack, 1);
}

double simx_bound_flow_us(const struct simx_net *net, const struct simx_config *config,
                          uint32_t src, uint32_t dst, uint64_t bytes)
{
    enum simx_distance distance = simx_bound_distance(net, src, dst);

    return simx_bound_way_us(net, config, distance, bytes) +
           simx_bound_back_us(net, config, distance);
}

/* ------------------------------------------------------------------------------------ all flows */

/* Bounds of a flow. */
struct flow {
    double start_us; /* earliest start */
    double way_us, back_us;
    double busy_us;  /* time on a host's link */
    double other_us; /* time of its smallest packet and its ack on all other links */
};

/* A host's link in one direction. */
struct link {
    double other_us; /* the least of its flows */
    double last_us,
        queue_us; /* of those whose start is given: the latest start, what waited then */
    double end_us;
};

struct all {
    const struct simx_run *run;
    struct flow *flows;
    struct link *links; /* out and in of each host */
    uint32_t *order;    /* flows by start */
    double *fires_us;   /* when each trigger has its events */
};

/* Least bytes on the wire: small messages of mrd to one host may share a packet. */
static double least_wire(const struct headers *h, uint32_t payload_bytes, uint64_t bytes)
{
    double full = floor((double)bytes / payload_bytes), rest = (double)(bytes % payload_bytes);
    double part = rest + h->single - h->shared;

    if (bytes == payload_bytes)
        return (double)bytes + h->single;
    if (rest > 0)
        rest = part + h->shared * part / (payload_bytes + h->full - h->shared);
    return full * (payload_bytes + h->full) + rest;
}

static struct flow make_flow(const struct simx_run *run, const struct headers *h,
                             const struct simx_flow *what)
{
    const struct simx_config *c = run->config;
    const struct simx_net *net = &run->net;
    enum simx_distance distance = simx_bound_distance(net, what->src, what->dst);
    uint64_t rest = what->bytes % c->payload_bytes;
    double least = rest ? (double)(rest + h->single) : c->payload_bytes + fmin(h->single, h->full);
    struct flow flow = {.way_us = simx_bound_way_us(net, c, distance, what->bytes),
                        .back_us = simx_bound_back_us(net, c, distance)};

    flow.busy_us = least_wire(h, c->payload_bytes, what->bytes) * 8e6 / (double)net->host_bps;
    flow.other_us =
        way_us(net, distance, least, 1) - least * 8e6 / (double)net->host_bps + flow.back_us;
    return flow;
}

static void find_starts(struct all *all)
{
    const struct simx_waiting *w = &all->run->waiting;

    for (uint32_t i = 0; i < w->num_order; i++) {
        const struct simx_flow *what = &all->run->cm->flows[w->order[i]];
        struct flow *flow = &all->flows[w->order[i]];
        uint64_t start_ns = what->start_ps / 1000;

        flow->start_us = what->triggered ? all->fires_us[what->trigger] : (double)start_ns / 1e3;

        double there_us = flow->start_us + flow->way_us, back_us = there_us + flow->back_us;

        if (what->send_done >= 0)
            all->fires_us[what->send_done] = fmax(all->fires_us[what->send_done], back_us);
        if (what->recv_done >= 0)
            all->fires_us[what->recv_done] = fmax(all->fires_us[what->recv_done], there_us);
    }
}

static int compare_starts(const void *a, const void *b, void *arg)
{
    const struct flow *flows = arg;
    double x = flows[*(const uint32_t *)a].start_us, y = flows[*(const uint32_t *)b].start_us;

    return (x > y) - (x < y);
}

/* Adds a flow to the queue of a link. Callers pass flows in the order of their starts. */
static void pass(struct simx_bounds *b, struct link *link, const struct flow *flow, bool is_given)
{
    link->end_us = fmax(link->end_us, flow->start_us) + flow->busy_us;
    b->completion_us = fmax(b->completion_us, link->end_us + link->other_us);
    if (!is_given)
        return;
    link->queue_us = fmax(link->queue_us - (flow->start_us - link->last_us), 0) + flow->busy_us;
    link->last_us = flow->start_us;
    b->fct_us = fmax(b->fct_us, link->queue_us + link->other_us);
}

static struct link *link_of(const struct all *all, uint32_t flow, bool is_in)
{
    const struct simx_flow *what = &all->run->cm->flows[flow];

    return &all->links[is_in ? 2 * what->dst + 1 : 2 * what->src];
}

static void compute(struct all *all, struct simx_bounds *b)
{
    const struct simx_cm *cm = all->run->cm;
    struct headers headers = headers_of(&all->run->net, all->run->config);

    for (uint32_t i = 0; i < 2 * cm->nodes; i++)
        all->links[i].other_us = INFINITY;
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        all->flows[i] = make_flow(all->run, &headers, &cm->flows[i]);
        for (int is_in = 0; is_in < 2; is_in++) {
            struct link *link = link_of(all, i, is_in);

            link->other_us = fmin(link->other_us, all->flows[i].other_us);
        }
    }
    find_starts(all);
    memcpy(all->order, all->run->waiting.order, cm->num_flows * sizeof(*all->order));
    qsort_r(all->order, cm->num_flows, sizeof(*all->order), compare_starts, all->flows);
    for (uint32_t i = 0; i < cm->num_flows; i++) {
        uint32_t number = all->order[i];
        const struct flow *flow = &all->flows[number];
        double lone_us = flow->way_us + flow->back_us;

        b->fct_us = fmax(b->fct_us, lone_us);
        b->completion_us = fmax(b->completion_us, flow->start_us + lone_us);
        for (int is_in = 0; is_in < 2; is_in++)
            pass(b, link_of(all, number, is_in), flow, !cm->flows[number].triggered);
    }
}

bool simx_bounds_init(struct simx_bounds *bounds, const struct simx_run *run)
{
    size_t flows = run->cm->num_flows, triggers = run->cm->num_triggers;
    struct all all = {
        .run = run,
        .flows = calloc(flows, sizeof(*all.flows)),
        .links = calloc(2 * (size_t)run->cm->nodes, sizeof(*all.links)),
        .order = calloc(flows, sizeof(*all.order)),
        .fires_us = calloc(triggers + 1, sizeof(*all.fires_us)),
    };
    bool ok = all.flows && all.links && all.order && all.fires_us;

    *bounds = (struct simx_bounds){ok ? 0 : NAN, ok ? 0 : NAN};
    if (ok)
        compute(&all, bounds);
    free(all.flows);
    free(all.links);
    free(all.order);
    free(all.fires_us);
    return ok;
}
