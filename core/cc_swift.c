/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swift: one target for the delay of the round trip, after Kumar et al., "Swift: Delay is Simple
 * and Effective for Congestion Control in the Datacenter", SIGCOMM 2020. B is the base RTT: the
 * greatest of the fabric where the mover knows it, so that all flows have one target, even those
 * that began while a queue stood. With cwnd in packets and the constants of mrd_tune.swift:
 *
 *   target = target_rtts B + scaling_rtts B x share
 *   share  = (1/sqrt(cwnd) - 1/sqrt(scaling_most)) / (1/sqrt(scaling_least) -
 *            1/sqrt(scaling_most)), within 0 and 1
 *   delay < target     + gain_packets / cwnd a packet, + gain_packets where cwnd is below one
 *   delay >= target    x max(1 - cut_gain (delay - target) / delay, 1 - most_cut), once an RTT
 *
 * The second term of the target is the paper's flow scaling. The smaller its window, the more delay
 * a flow tolerates, since many flows make a longer queue than few. Of two flows, the one with the
 * greater window gives way first.
 *
 * It differs from the paper where paths are many:
 *  - The delay is the least of the last delay_samples to twice as many. A mean over paths would
 *    contain a hot path, which the spray leaves, and the link of an incast would then run idle.
 *  - Only loss_share of a window lost in an RTT cuts, since random loss on one path says little.
 *
 * It has a slow start like the other policies. It ignores marks, and does not tell the delay of
 * hosts from that of the fabric.
 */
#include "core/cc.h"

enum { ROOT_STEPS = 12 }; /* steps of Newton's method: enough for 1e-6 .. 1e6 */

static const struct mrd_tune_swift *constants(const struct mrd_cc *cc)
{
    return &cc->tune->swift;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* The core has no libm. */
static double inverse_root(double x)
{
    double root = (1 + x) / 2;

    for (int i = 0; i < ROOT_STEPS; i++)
        root = (root + x / root) / 2;
    return 1 / root;
}

/* Returns the target of the RTT at this window. */
static double target_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_tune_swift *tune = constants(cc);
    uint64_t base_ns = cc->config->base_rtt_max_ns;
    double packets = cc->cwnd_bytes / cc->packet_bytes;
    double share = 0;

    if (base_ns == 0)
        base_ns = mrd_cc_base_rtt_ns(cc, rtt_min_ns);
    if (packets <= tune->scaling_least)
        share = 1;
    else if (packets < tune->scaling_most)
        share = (inverse_root(packets) - cc->swift.root_most) * cc->swift.gain;
    return (tune->target_rtts + tune->scaling_rtts * share) * (double)base_ns;
}

static void swift_init(struct mrd_cc *cc)
{
    const struct mrd_tune_swift *tune = constants(cc);

    cc->swift.root_most = inverse_root(tune->scaling_most);
    cc->swift.gain = 1 / (inverse_root(tune->scaling_least) - cc->swift.root_most);
}

static double most_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_tune_swift *tune = constants(cc);

    if (cc->config->link_bps == 0 || rtt_min_ns == 0)
        return MRD_CC_UNBOUNDED;
    return greater(tune->most_bdp * mrd_cc_bdp_bytes(cc, rtt_min_ns),
                   tune->least_packets * cc->packet_bytes);
}

static uint64_t round_ns(const struct mrd_cc *cc, uint64_t srtt_ns, uint64_t rtt_min_ns)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    return srtt_ns > base_ns ? srtt_ns : base_ns;
}

static void grow(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double packet = cc->packet_bytes;
    double each = cc->slow_start ? packet : constants(cc)->gain_packets * packet;

    if (!cc->slow_start && cc->cwnd_bytes > packet)
        each *= packet / cc->cwnd_bytes;
    cc->cwnd_bytes += ack->acked_packets * each;
}

/* Cuts at most once an RTT, for whatever cause: the effect shows only an RTT later. */
static void cut(struct mrd_cc *cc, double factor, uint64_t now_ns, uint64_t rtt_ns)
{
    if (now_ns < cc->cut_ok_ns)
        return;
    cc->cwnd_bytes *= greater(factor, 1 - constants(cc)->most_cut);
    cc->cut_ok_ns = now_ns + rtt_ns;
}

static void swift_ack(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    mrd_cc_count(cc, ack);
    cc->swift.timeouts = 0;
    if (ack->rtt_ns)
        mrd_cc_set_least_delay(cc, (double)ack->rtt_ns, constants(cc)->delay_samples);
    double excess_ns = cc->delay_ns - target_ns(cc, ack->rtt_min_ns);

    if (cc->delay_valid && excess_ns >= 0) {
        cc->slow_start = false;
        cut(cc, 1 - constants(cc)->cut_gain * excess_ns / cc->delay_ns, ack->now_ns,
            round_ns(cc, ack->srtt_ns, ack->rtt_min_ns));
    } else if (mrd_cc_may_grow(cc, ack)) {
        grow(cc, ack);
    }
    mrd_cc_clamp(cc, most_bytes(cc, ack->rtt_min_ns));
}

static void swift_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                       uint64_t rtt_min_ns)
{
    uint64_t rtt_ns = round_ns(cc, srtt_ns, rtt_min_ns);
    double packet = cc->packet_bytes;
    double needed = greater(1, cc->cwnd_bytes / packet * constants(cc)->loss_share);

    if (!mrd_cc_count_losses(cc, packets, needed, now_ns, rtt_ns))
        return;
    /* Without an RTT sample a window below one packet cannot be paced. */
    double least = srtt_ns == 0 && cc->cwnd_bytes >= packet ? packet : 0;

    cc->slow_start = false;
    cut(cc, 0, now_ns, rtt_ns);
    cc->cwnd_bytes = greater(cc->cwnd_bytes, least);
    mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
}

/*
 * timeouts_most timeouts in a row: nothing gets through. Down to the least window, as in the paper.
 */
static void swift_timeout(struct mrd_cc *cc, uint64_t now_ns)
{
    (void)now_ns;
    cc->slow_start = false;
    mrd_cc_halve(cc);
    if (++cc->swift.timeouts < constants(cc)->timeouts_most)
        return;
    cc->cwnd_bytes = 0;
    mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
}

const struct mrd_cc_ops mrd_cc_swift = {
    .name = "swift",
    .init = swift_init,
    .ack = swift_ack,
    .lost = swift_lost,
    .timeout = swift_timeout,
};
