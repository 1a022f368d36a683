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

static void fixed_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                       uint64_t rtt_min_ns)
{
    (void)cc;
    (void)packets;
    (void)now_ns;
    (void)srtt_ns;
    (void)rtt_min_ns;
}

static void fixed_timeout(struct mrd_cc *cc, uint64_t now_ns)
{
    (void)cc;
    (void)now_ns;
}

const struct mrd_cc_ops mrd_cc_fixed = {
    .name = "fixed",
    .init = fixed_init,
    .ack = fixed_ack,
    .lost = fixed_lost,
    .timeout = fixed_timeout,
};
