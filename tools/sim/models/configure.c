/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants, and what all flows have in common: derived from the configuration, the constants
 * and the fabric.
 */
#include "tools/sim/models/configure.h"

#include <errno.h>
#include <string.h>

#include "transport/backend.h"

enum {
    PAYLOAD_MAX = 1 << 20,
    BITS_MIN = 64,
    WINDOW_WITHOUT_RATE = 1024,    /* packets; without a rate there is no BDP */
    RTO_WITHOUT_LIMIT_NS = 320000, /* IRN's RTO_high, where queues have no limit */
};

#define NS_PER_S 1e9

/* ------------------------------------------------------------------------------------ constants */

const struct model_tune model_tune_default = {
#define X(part, member, value, text) .part.member = (value),
    MODEL_TUNE(X)
#undef X
};

static const struct mrd_tune_entry entries[] = {
#define X(part, member, value, text)                                                               \
    {.name = #part "." #member,                                                                    \
     .help = (text),                                                                               \
     .value_default = (value),                                                                     \
     .offset = offsetof(struct model_tune, part.member)},
    MODEL_TUNE(X)
#undef X
};

enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

_Static_assert(sizeof(struct model_tune) == ENTRIES * sizeof(double), "each member has an entry");

const struct mrd_tune_entry *model_tune_entries(unsigned *num)
{
    *num = ENTRIES;
    return entries;
}

int model_tune_set(struct model_tune *tune, const char *name, double value)
{
    return mrd_tune_set_in(entries, ENTRIES, tune, name, value);
}

/* ------------------------------------------------------------------------------- what follows */

static const struct model_qp_ops *const transports[] = {&model_rc, &model_irn};

enum { TRANSPORTS = sizeof(transports) / sizeof(transports[0]) };

/* `packets`, or if that is 0 the BDP of the longest path and the packets that an ack waits for. */
static uint32_t window_of(const struct model_flows *flows, double packets, double line_bps)
{
    if (packets > 0)
        return mrd_tune_count(packets);
    if (line_bps == 0)
        return WINDOW_WITHOUT_RATE;

    double packet_ns = (flows->config.payload_bytes + flows->wire_data) * 8 * NS_PER_S / line_bps;

    return mrd_tune_count((double)flows->base_rtt_ns / packet_ns) + 1 + flows->ack_packets;
}

static void set_bytes(struct model_flows *flows)
{
    const struct model_qp_ops *ops = flows->ops;

    if (mrd_sim_stack_attr(flows->sim)->wire_overhead == MRD_SIM_WIRE_HTSIM) {
        flows->wire_data = MRD_SIM_HTSIM_DATA_BYTES;
        for (unsigned i = 0; i < MODEL_KINDS; i++)
            flows->wire_control[i] = MRD_SIM_HTSIM_ACK_BYTES;
        return;
    }
    flows->wire_data = MRD_SIM_WIRE_OVERHEAD_BYTES + ops->data_bytes;
    flows->wire_first = ops->first_bytes;
    flows->wire_control[MODEL_ACK] = MRD_SIM_WIRE_OVERHEAD_BYTES + MODEL_ACK_BYTES;
    flows->wire_control[MODEL_NAK] = flows->wire_control[MODEL_ACK] + ops->sack_bytes;
    flows->wire_control[MODEL_CNP] = MRD_SIM_WIRE_OVERHEAD_BYTES + MODEL_CNP_BYTES;
}

static void set_irn_rto(struct model_flows *flows, double line_bps)
{
    const struct model_tune_irn *tune = &flows->tune.irn;
    uint64_t queue_bytes = mrd_sim_stack_attr(flows->sim)->link.queue_bytes;
    double high_ns = RTO_WITHOUT_LIMIT_NS;

    if (queue_bytes && line_bps > 0)
        high_ns = (double)flows->base_rtt_ns + (double)queue_bytes * 8 * NS_PER_S / line_bps;
    if (tune->rto_high_us > 0)
        high_ns = tune->rto_high_us * 1e3;

    double low_ns = high_ns * 100 / 320;

    if (low_ns < 2 * (double)flows->base_rtt_ns)
        low_ns = 2 * (double)flows->base_rtt_ns;
    if (tune->rto_low_us > 0)
        low_ns = tune->rto_low_us * 1e3;
    if (tune->rto_high_us == 0 && high_ns < low_ns)
        high_ns = low_ns;
    flows->rto_ns = mrd_tune_ns(high_ns);
    flows->rto_low_ns = mrd_tune_ns(low_ns);
    flows->rto_low_packets = mrd_tune_count(tune->rto_low_packets);
}

/* Set how far irn may send beyond `una`, and the size of bitmaps for as many PSNs. */
static int set_range(struct model_flows *flows)
{
    double packets = flows->window_packets * flows->tune.irn.range_windows;

    if (packets < flows->window_packets || packets > MODEL_FLOW_WINDOW_MAX)
        return -EINVAL;
    flows->range_packets = (uint32_t)packets;
    flows->range_mask = BITS_MIN - 1;
    while (flows->range_mask + 1 < flows->range_packets)
        flows->range_mask = 2 * flows->range_mask + 1;
    return 0;
}

static int refuse(const char *what)
{
    mrd_error_set("model of a transport: %s", what);
    return -EINVAL;
}

static int derive(struct model_flows *flows)
{
    const struct mrd_sim *sim = flows->sim;
    bool is_rc = flows->ops == &model_rc;
    uint32_t last = flows->num_hosts - 1;
    double line_bps = (double)mrd_sim_stack_link(sim, 0, last)->rate_bps;

    set_bytes(flows);
    flows->base_rtt_ns =
        mrd_sim_stack_latency_ns(sim, 0, last, flows->config.payload_bytes + flows->wire_data) +
        mrd_sim_stack_latency_ns(sim, last, 0, flows->wire_control[MODEL_ACK]);
    flows->ack_packets = is_rc ? mrd_tune_count(flows->tune.rc.ack_packets) : 1;
    flows->retries = mrd_tune_count(flows->tune.rc.retries);
    flows->rto_ns = mrd_tune_ns(flows->tune.rc.rto_us * 1e3);
    if (!is_rc)
        set_irn_rto(flows, line_bps);
    flows->window_packets = window_of(
        flows, is_rc ? flows->tune.rc.window_packets : flows->tune.irn.window_packets, line_bps);
    if (flows->window_packets == 0 || flows->window_packets > MODEL_FLOW_WINDOW_MAX)
        return refuse("no window of 1 to 2^23 packets");
    if (flows->rto_ns == 0 || (!is_rc && flows->rto_low_ns == 0))
        return refuse("a timeout of zero");
    if (!is_rc && set_range(flows) != 0)
        return refuse("a range below the window or above 2^23 packets");
    if (flows->config.dcqcn &&
        model_dcqcn_limits_init(&flows->dcqcn, &flows->tune.dcqcn, line_bps) != 0)
        return refuse("constants of DCQCN out of range, or a link without a rate");
    return 0;
}

int model_flows_configure(struct model_flows *flows, const struct model_flows_config *config)
{
    const char *name = config->transport ? config->transport : transports[0]->name;

    for (unsigned i = 0; i < TRANSPORTS; i++) {
        if (strcmp(transports[i]->name, name) == 0)
            flows->ops = transports[i];
    }
    if (!flows->ops)
        return refuse("no such transport");
    flows->config = *config;
    flows->config.transport = flows->ops->name;
    flows->tune = config->tune ? *config->tune : model_tune_default;
    flows->config.tune = &flows->tune;
    if (config->payload_bytes == 0)
        flows->config.payload_bytes = MODEL_FLOW_PAYLOAD_BYTES;
    if (flows->config.payload_bytes > PAYLOAD_MAX)
        return refuse("packets of more than 1 MiB");
    return flows->num_hosts < 2 ? refuse("one host alone") : derive(flows);
}
