/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dctcp: the window shrinks by half the smoothed share of marked packets, once an RTT (RFC 8257),
 * and grows by a packet an RTT. While the network never marked, any loss in an RTT halves the
 * window, as in the RFC. Once it did, only loss_share of a window lost does so: a lossy path among
 * many says nothing about the others.
 */
#include "core/cc.h"

static const struct mrd_tune_dctcp *constants(const struct mrd_cc *cc)
{
    return &cc->tune->dctcp;
}

static void dctcp_init(struct mrd_cc *cc)
{
    cc->ce_ewma = 1; /* RFC 8257: the first mark counts in full */
}

static double most_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    double most = constants(cc)->most_bdp * mrd_cc_bdp_bytes(cc, rtt_min_ns);
    double least = constants(cc)->least_packets * cc->packet_bytes;

    if (cc->config->link_bps == 0)
        return MRD_CC_UNBOUNDED;
    return most > least ? most : least;
}

static void dctcp_ack(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double packet = cc->packet_bytes;

    mrd_cc_count(cc, ack);
    if (ack->ce_packets)
        cc->slow_start = false;
    if (mrd_cc_end_round(cc, ack, constants(cc)->gain) && cc->ce_rtt > 0)
        cc->cwnd_bytes *= 1 - cc->ce_ewma / 2;
    if (mrd_cc_may_grow(cc, ack)) {
        double window = cc->cwnd_bytes > packet ? cc->cwnd_bytes : packet;
        cc->cwnd_bytes += ack->acked_packets * (cc->slow_start ? packet : packet * packet / window);
    }
    mrd_cc_clamp(cc, most_bytes(cc, ack->rtt_min_ns));
}

static void dctcp_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                       uint64_t rtt_min_ns)
{
    double needed = cc->ce_seen ? cc->cwnd_bytes / cc->packet_bytes * constants(cc)->loss_share : 1;
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    if (!mrd_cc_count_losses(cc, packets, needed, now_ns, srtt_ns > base_ns ? srtt_ns : base_ns))
        return;
    cc->slow_start = false;
    mrd_cc_halve(cc);
}

static void dctcp_timeout(struct mrd_cc *cc, uint64_t now_ns)
{
    (void)now_ns;
    cc->slow_start = false;
    mrd_cc_halve(cc);
}

const struct mrd_cc_ops mrd_cc_dctcp = {
    .name = "dctcp",
    .init = dctcp_init,
    .ack = dctcp_ack,
    .lost = dctcp_lost,
    .timeout = dctcp_timeout,
};
