/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swift: one target for the round trip's delay, after Kumar et al., "Swift: Delay is Simple and
 * Effective for Congestion Control in the Datacenter", SIGCOMM 2020. With B the base RTT (the
 * greatest of the fabric where the mover knows it, so that all have one target, who began while a
 * queue stood included) and cwnd in packets:
 *
 *   target = 2 B + 4 B x (1/sqrt(cwnd) - 1/sqrt(100)) / (1/sqrt(0.1) - 1/sqrt(100)), that share
 *   within 0 and 1
 *   delay < target     + 1 / cwnd a packet, a packet where cwnd is below one
 *   delay >= target    x max(1 - 0.8 (delay - target) / delay, 0.5), once an RTT
 *
 * The second term of the target is the paper's flow scaling: the smaller its window the more delay
 * a flow bears, since many flows make a longer queue than few, and of two flows the one with more
 * gives way first.
 *
 * It differs from the paper where paths are many: the delay is the least of the last four to eight
 * samples, because a mean of samples of different paths tells of a hot path, which the spray
 * leaves, and then the link of an incast runs idle; a quarter of a window has to be lost in an RTT
 * for a cut, since random loss on some path says little. It starts slowly like the other policies.
 * Marks are not looked at, nor is the delay of hosts told apart from that of the fabric.
 */
#include "core/cc.h"

enum { ROOT_STEPS = 12 }; /* of Newton's method: enough for 1e-6 .. 1e6 */

static const struct mrd_tune_swift *constants(const struct mrd_cc *cc)
{
    return &cc->config.tune->swift;
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

/* The round trip that is borne at this window. */
static double target_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_tune_swift *tune = constants(cc);
    uint64_t base_ns = cc->config.base_rtt_max_ns;
    double packets = cc->cwnd_bytes / cc->config.packet_bytes;
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

    if (cc->config.link_bps == 0 || rtt_min_ns == 0)
        return MRD_CC_UNBOUNDED;
    return greater(tune->most_bdp * mrd_cc_bdp_bytes(cc, rtt_min_ns),
                   tune->least_packets * cc->config.packet_bytes);
}

static uint64_t round_ns(const struct mrd_cc *cc, uint64_t srtt_ns, uint64_t rtt_min_ns)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    return srtt_ns > base_ns ? srtt_ns : base_ns;
}

static void grow(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double packet = cc->config.packet_bytes;
    double each = cc->slow_start ? packet : constants(cc)->gain_packets * packet;

    if (!cc->slow_start && cc->cwnd_bytes > packet)
        each *= packet / cc->cwnd_bytes;
    cc->cwnd_bytes += ack->acked_packets * each;
}

/* One cut an RTT, whatever for: what it does shows only then. */
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
        mrd_cc_least_delay(cc, (double)ack->rtt_ns, constants(cc)->delay_samples);
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
    double packet = cc->config.packet_bytes;
    double needed = greater(1, cc->cwnd_bytes / packet * constants(cc)->loss_share);

    if (!mrd_cc_losses(cc, packets, needed, now_ns, rtt_ns))
        return;
    /* Before the first sample there is no RTT to pace a window below one packet by. */
    double least = srtt_ns == 0 && cc->cwnd_bytes >= packet ? packet : 0;

    cc->slow_start = false;
    cut(cc, 0, now_ns, rtt_ns);
    cc->cwnd_bytes = greater(cc->cwnd_bytes, least);
    mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
}

/*
 * A row of timeouts means that nothing gets through: the paper goes down to the least window
 * after five.
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
