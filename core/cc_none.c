/* SPDX-License-Identifier: BSD-2-Clause */
/* none: a constant window, for experiments and for networks that are never short of room. */
#include "core/cc.h"

static const struct mrd_tune_none *constants(const struct mrd_cc *cc)
{
    return &cc->tune->none;
}

static void none_init(struct mrd_cc *cc)
{
    cc->slow_start = false;
    if (cc->config->cwnd_cap_bytes)
        cc->cwnd_bytes = cc->config->cwnd_cap_bytes;
    else
        cc->cwnd_bytes = constants(cc)->window_bytes;
}

/* Sets the window to window_bdp BDPs once the RTT is known. */
static void none_ack(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    if (cc->config->cwnd_cap_bytes || cc->config->link_bps == 0 || ack->rtt_min_ns == 0)
        return;
    double bytes = constants(cc)->window_bdp * mrd_cc_bdp_bytes(cc, ack->rtt_min_ns);
    cc->cwnd_bytes = bytes > cc->start_bytes ? bytes : cc->start_bytes;
}

const struct mrd_cc_ops mrd_cc_none = {
    .name = "none",
    .init = none_init,
    .ack = none_ack,
    .lost = mrd_cc_ignore_lost,
    .timeout = mrd_cc_ignore_timeout,
};
