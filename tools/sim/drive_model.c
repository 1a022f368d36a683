/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows by a model of another transport: rc or irn, each with DCQCN or without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/drive.h"
#include "tools/sim/fail.h"
#include "tools/sim/models/flows.h"

struct simx_drive {
    struct simx_drive_env env;
    struct model_flows *flows;
    uint64_t *flow_bytes; /* received in order, a flow */
    uint64_t *host_bytes; /* the same, a host */
};

static void done(void *arg, uint32_t flow, uint64_t now_ns)
{
    struct simx_drive *d = arg;

    (void)now_ns;
    d->env.event(d->env.arg, flow, SIMX_SENT, NULL);
}

static void received(void *arg, uint32_t flow, uint64_t bytes, uint64_t now_ns)
{
    struct simx_drive *d = arg;
    const struct simx_flow *what = &d->env.cm->flows[flow];

    (void)now_ns;
    d->flow_bytes[flow] += bytes;
    d->host_bytes[what->dst] += bytes;
    if (d->flow_bytes[flow] == what->bytes && what->recv_done >= 0)
        d->env.event(d->env.arg, flow, SIMX_RECEIVED, NULL);
}

static void model_close(struct simx_drive *d)
{
    if (d->flows)
        model_flows_destroy(d->flows);
    free(d->flow_bytes);
    free(d->host_bytes);
    free(d);
}

static struct simx_drive *model_open(const struct simx_drive_env *env)
{
    const struct simx_config *config = env->config;
    struct simx_drive *d = calloc(1, sizeof(*d));

    if (!d)
        goto no_memory;
    d->env = *env;
    d->flow_bytes = calloc(env->cm->num_flows, sizeof(*d->flow_bytes));
    d->host_bytes = calloc(env->cm->nodes, sizeof(*d->host_bytes));
    if (!d->flow_bytes || !d->host_bytes)
        goto no_memory;
    d->flows = model_flows_create(env->sim, &(struct model_flows_config){
                                                .transport = config->transport,
                                                .dcqcn = strcmp(config->cc, "dcqcn") == 0,
                                                .payload_bytes = config->payload_bytes,
                                                .seed = config->seed,
                                                .tune = &config->model_tune,
                                                .done = done,
                                                .received = received,
                                                .arg = d,
                                            });
    if (d->flows)
        return d;
    model_close(d);
    return NULL;

no_memory:
    simx_error_set("no memory for %u flows", env->cm->num_flows);
    if (d)
        model_close(d);
    return NULL;
}

static int model_start(struct simx_drive *d, uint32_t flow)
{
    const struct simx_flow *what = &d->env.cm->flows[flow];

    return model_flows_start(d->flows, flow, what->src, what->dst, what->bytes);
}

static void model_totals(struct simx_drive *d, struct simx_totals *totals)
{
    struct model_flows_stats stats = model_flows_get_stats(d->flows);

    *totals = (struct simx_totals){
        .packets = stats.packets,
        .retransmitted = stats.retransmitted,
        .spurious = stats.spurious,
        .acks = stats.acks + stats.naks,
        .timeouts = stats.timeouts,
        .cuts = UINT64_MAX, /* not counted */
    };
}

static uint64_t model_received(struct simx_drive *d, uint32_t host)
{
    return d->host_bytes[host];
}

const struct simx_drive_ops simx_drive_model = {
    .open = model_open,
    .start = model_start,
    .totals = model_totals,
    .received = model_received,
    .close = model_close,
};
