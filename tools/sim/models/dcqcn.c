/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/dcqcn.h"

#include <errno.h>

#define MBPS      1e6
#define PS_PER_S  1e12
#define ALPHA_MIN 1e-9 /* below, alpha counts as 0 and need not decay */

int model_dcqcn_limits_init(struct model_dcqcn_limits *limits, const struct model_tune_dcqcn *tune,
                            double line_bps)
{
    *limits = (struct model_dcqcn_limits){
        .tune = tune,
        .line_bps = line_bps,
        .min_bps = tune->min_mbps * MBPS < line_bps ? tune->min_mbps * MBPS : line_bps,
        .cnp_ns = mrd_tune_ns(tune->cnp_us * 1e3),
        .alpha_ns = mrd_tune_ns(tune->alpha_us * 1e3),
        .timer_ns = mrd_tune_ns(tune->timer_us * 1e3),
        .bytes = mrd_tune_ns(tune->bytes),
        .recoveries = mrd_tune_count(tune->recoveries),
    };
    if (limits->alpha_ns == 0 || limits->timer_ns == 0 || limits->bytes == 0 || tune->gain > 1 ||
        limits->min_bps < 1)
        return -EINVAL;
    return 0;
}

void model_dcqcn_init(struct model_dcqcn *d, const struct model_dcqcn_limits *limits)
{
    *d = (struct model_dcqcn){
        .rate_bps = limits->line_bps, .target_bps = limits->line_bps, .alpha = 1};
}

/* A step of the timer or the byte counter: halfway to the target, which grows after F steps. */
static void increase(struct model_dcqcn *d, const struct model_dcqcn_limits *limits)
{
    uint32_t most = d->timer_steps > d->byte_steps ? d->timer_steps : d->byte_steps;
    uint32_t least = d->timer_steps > d->byte_steps ? d->byte_steps : d->timer_steps;

    if (least > limits->recoveries)
        d->target_bps += limits->tune->hai_mbps * MBPS;
    else if (most >= limits->recoveries)
        d->target_bps += limits->tune->ai_mbps * MBPS;
    if (d->target_bps > limits->line_bps)
        d->target_bps = limits->line_bps;
    d->rate_bps = (d->rate_bps + d->target_bps) / 2;
    /* Halving the distance to line rate would never end. */
    if (d->rate_bps > limits->line_bps * 0.999)
        d->rate_bps = limits->line_bps;
}

static void catch_up(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                     uint64_t now_ns)
{
    while (d->alpha_at_ns <= now_ns && d->alpha > ALPHA_MIN) {
        d->alpha *= 1 - limits->tune->gain;
        d->alpha_at_ns += limits->alpha_ns;
    }
    while (d->timer_at_ns <= now_ns && d->rate_bps < limits->line_bps) {
        d->timer_steps++;
        d->timer_at_ns += limits->timer_ns;
        increase(d, limits);
    }
}

void model_dcqcn_cut(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                     uint64_t now_ns)
{
    double gain = limits->tune->gain;

    if (d->is_limited)
        catch_up(d, limits, now_ns);
    d->is_limited = true;
    d->target_bps = d->rate_bps;
    d->rate_bps *= 1 - d->alpha / 2;
    if (d->rate_bps < limits->min_bps)
        d->rate_bps = limits->min_bps;
    d->alpha = (1 - gain) * d->alpha + gain;
    d->timer_steps = d->byte_steps = 0;
    d->bytes = 0;
    d->alpha_at_ns = now_ns + limits->alpha_ns;
    d->timer_at_ns = now_ns + limits->timer_ns;
}

uint64_t model_dcqcn_pace(struct model_dcqcn *d, const struct model_dcqcn_limits *limits,
                          uint32_t wire_bytes, uint64_t now_ns)
{
    if (!d->is_limited)
        return 0;
    catch_up(d, limits, now_ns);
    d->bytes += wire_bytes;
    if (d->bytes >= limits->bytes) {
        d->bytes -= limits->bytes;
        d->byte_steps++;
        increase(d, limits);
    }
    if (d->rate_bps >= limits->line_bps)
        return 0;
    return (uint64_t)(wire_bytes * 8 * PS_PER_S / d->rate_bps);
}
