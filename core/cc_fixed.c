/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fixed: a window of mrd_tune.fixed.window_packets to each peer, which nothing changes, for
 * experiments. Unlike that of none it depends on neither rate nor RTT. The mover's cap bounds it.
 */
#include "core/cc.h"

static void fixed_init(struct mrd_cc *cc)
{
    cc->slow_start = false;
    cc->cwnd_bytes = cc->tune->fixed.window_packets * cc->packet_bytes;
    mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
}

static void fixed_ack(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    mrd_cc_count(cc, ack);
}

const struct mrd_cc_ops mrd_cc_fixed = {
    .name = "fixed",
    .init = fixed_init,
    .ack = fixed_ack,
    .lost = mrd_cc_ignore_lost,
    .timeout = mrd_cc_ignore_timeout,
};
