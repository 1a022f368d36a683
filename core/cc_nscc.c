/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nscc: marks where the network has them, else delay, and losses at a queue that drops; after the network-signal
 * congestion control of the Ultra Ethernet Specification 1.0 (NSCC), from which it has its start and the
 * growth by delay.
 *
 * With B the base RTT, C the link's rate, a = gain_bdp C B, and the constants of mrd_tune.nscc:
 *
 * Marks. A network that marked one packet tells of its queues by marks: delay alone neither holds nor cuts.
 * With m the mean share of packets marked over some RTTs, and u = mark_unit_bdp C SRTT the unit of growth, in an
 * RTT the window W
 *
 *   grows by u (1 - m) (mark_grow_least + mark_grow_known (1 - m / mark_share)^2, the latter if
 *         m < mark_share) and mark_fair a
 *   and is cut by W mark_cut ((m - mark_share) / (1 - mark_share))^2, if m > mark_share;
 *         as by delay, if all is marked and d >= T: an incast
 *
 * so that flows that share a queue, and see the same m, have the same W / SRTT. One hot path of many, which
 * the spray leaves, cuts nothing. Where the link's rate is unknown u is some packets, and mark_grow stands for
 * mark_grow_known. u must not be of the flow's own rate: a slow flow would grow as slowly as it is.
 *
 * Delay. With d the smoothed queue delay and T = target_rtts B, the window grows by below_gain a (T - d) / T / W a
 * packet while d < T, and by fair_gain a an RTT, so that flows converge. With d >= T it is cut by cut_gain (d - T) / d
 * once an RTT, at most to cut_least, and not below a BDP unless losses come with it.
 *
 * Random loss says little where paths are many: only loss_share of a window lost in an RTT cuts.
 *
 * Where nothing ever marks, losses at a queue cut (cut_for_queue_losses()), by what empties it: to
 * W B / (B + d), or by the share lost if that is more. For some RTTs after that the policy is gentle:
 * the window grows by about a packet an RTT, as TCP's does, delay does not cut it, and packets are paced.
 * With a sawtooth for all, flows that share a queue converge, whatever each takes for its base RTT. A loss is
 * of a queue if there was one an RTT ago (update_dropping_queue()) and the packet's path had it
 * (mrd_path_in_queue()), and if the path does not lose more than others do (mrd_path_fails()). Losses
 * without a queue are random where the link's rate is known; else they are tested (elastic.h).
 *
 * On a long way (far_rtt_ns) packets are always paced. As slow start ends by losses, the window becomes what
 * was measured (mrd_nscc_leave_slow_start()): what it sent beyond that would be dropped for round trips. If losses
 * were many, growth is gentle from then on.
 *
 * d contains neither the length of a path beyond the least RTT nor the delay of late acks. Both are
 * in the RTT that makes the BDP, and so a, the floor and the greatest window. mrd_nscc_watch() finds out
 * whether delay that stays is a queue of ours. It is not if a fabric that marks does not mark it.
 * Nor is it if it stays when our window is too small for some RTTs to make a queue.
 *
 * Where the link's rate is unknown (sockets), the RTT contains the scheduling of two hosts too, and
 * delay is weaker evidence. Four things then differ:
 *  - d is the least of the last delay_samples to twice as many: a standing queue is in each of
 *    them, a late wakeup is not (with that signal the controller did as well as with the mean);
 *  - cuts by delay alone take the window no lower than the start window or the measured BDP. A
 *    window that is safe before anything is known stays safe, and the measured rate stays possible;
 *    else jitter that does not depend on the window would drive it to nothing. Losses at a queue, and
 *    loss above floor_loss_share take it lower;
 *  - late hosts, not a queue that drops, make delay that jumps from packet to packet, and is at
 *    times absent, while much is lost (update_late_hosts()). Then losses are tested like those without
 *    a queue;
 *  - the window is not held below most_bdp measured BDPs: only a growing window can find a
 *    greater rate.
 */
#include "core/cc_nscc.h"

/* Did no queue drop any for some RTTs, so that delay that stays may be looked into? */
static bool is_calm(const struct mrd_cc *cc)
{
    return !is_gentle(cc) ||
           cc->nscc.queue_losses.gentle + constants(cc)->gentle_calm <= gentle_rounds(cc);
}

/*
 * Returns the BDP that growth is measured in. Where the rate is unknown it is at least that of the
 * start window: else a slow flow would grow as slowly as it is.
 */
static double unit_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    double least = rate_known(cc) ? 0 : cc->start_bytes / cc->tune->cc.start_bdp;

    return greater(bdp_bytes(cc, rtt_min_ns), least);
}

static double most_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    if (!rate_known(cc) || rtt_min_ns == 0)
        return MRD_CC_UNBOUNDED;
    return constants(cc)->most_bdp * bdp_bytes(cc, rtt_min_ns);
}

static void nscc_init(struct mrd_cc *cc)
{
    (void)cc; /* mrd_cc_init() set all */
}

static void sample_jitter(struct mrd_cc *cc, double rtt_ns)
{
    struct mrd_cc_jitter *j = &cc->losses->jitter;
    double gain = constants(cc)->jitter_gain;
    double jump_ns = rtt_ns > j->last_ns ? rtt_ns - j->last_ns : j->last_ns - rtt_ns;

    if (j->last_ns > 0) {
        j->jump_ns += (jump_ns - j->jump_ns) * gain;
        j->rtt_ns += (rtt_ns - j->rtt_ns) * gain;
    }
    j->last_ns = rtt_ns;
    mrd_cc_least_add(&j->least, rtt_ns, constants(cc)->jitter_samples);
}

static void sample_delay(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    if (ack->rtt_ns == 0)
        return;
    if (cc->losses)
        sample_jitter(cc, (double)ack->rtt_ns);
    double sample_ns = mrd_cc_measure_queue_ns(cc, ack);
    if (cc->nscc.watch.state != 0 && sample_ns < cc->nscc.watch.after_ns)
        cc->nscc.watch.after_ns = sample_ns;
    if (!rate_known(cc))
        mrd_cc_set_least_delay(cc, sample_ns, constants(cc)->delay_samples);
    else
        cc->delay_ns += (sample_ns - cc->delay_ns) * constants(cc)->delay_gain;
    cc->delay_valid = true;
}

/*
 * May delay cut the window? A window that a loss took below the floor grows again whatever the
 * delay is. Not where the rate is known: there the fair window of an incast is below the floor.
 */
static bool delay_holds(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return rate_known(cc) || cc->cwnd_bytes >= delay_floor_bytes(cc, rtt_min_ns);
}

/*
 * Cuts for delay above the target: once an RTT, because a cut shows only an RTT later,
 * and in a deep queue that is many base RTTs. (Four senders to one with four cuts an RTT: windows
 * of 2 packets where 10 were fair, and 1.44 times the ideal time; with one cut 1.11.)
 */
static void cut(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double target_ns)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);
    uint64_t rtt_ns = mrd_tune_ns(constants(cc)->cut_rtts * (double)ack->srtt_ns);
    double floor_bytes = delay_floor_bytes(cc, ack->rtt_min_ns);

    if (ack->now_ns < cc->cut_ok_ns || cc->cwnd_bytes <= floor_bytes)
        return;
    double factor = 1 - constants(cc)->cut_gain * (cc->delay_ns - target_ns) / cc->delay_ns;
    cc->cwnd_bytes =
        greater(cc->cwnd_bytes * greater(factor, constants(cc)->cut_least), floor_bytes);
    cc->cut_ok_ns = ack->now_ns + (rtt_ns > base_ns ? rtt_ns : base_ns);
}

/* Grows the window for `packets` unmarked packets acked outside of slow start. */
static void grow(struct mrd_cc *cc, double packets, double gain_bytes, double target_ns,
                 uint64_t srtt_ns)
{
    double packet = cc->packet_bytes;
    double times = constants(cc)->above_gain;

    double below = constants(cc)->below_gain;

    if (mrd_cc_tests_losses(cc) || mrd_cc_is_elastic(cc))
        return; /* mrd_nscc_judge_losses() grows the window then */
    if (cc->delay_ns < target_ns)
        times = below * (target_ns - cc->delay_ns) / target_ns;
    /*
     * Never faster than slow start. At a window below a packet one ack stands for several RTTs and
     * would add the growth of all. A BDP from a base RTT that contains a queue would turn one ack
     * into a burst.
     */
    double each = times * gain_bytes * packet / cc->cwnd_bytes;
    if (is_gentle(cc))
        each = mrd_nscc_gentle_growth(cc, srtt_ns, target_ns / constants(cc)->target_rtts);
    cc->cwnd_bytes += packets * (each < packet ? each : packet);
}

/* Returns the unit of growth where the network marks. */
static double mark_unit_bytes(const struct mrd_cc *cc, uint64_t srtt_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);

    if (rate_known(cc))
        return tune->mark_unit_bdp * cc->rate_bps * (double)srtt_ns / 8e9;
    return tune->mark_unit_packets * cc->packet_bytes *
           within(tune->gentle_rtt_least, (double)srtt_ns / tune->gentle_rtt_ns,
                  tune->mark_rtt_most);
}

/*
 * Grows the window for `packets` unmarked packets acked, where the network marks: fast while hardly any is
 * marked, and a little always, which is what makes shares equal.
 */
static void grow_by_marks(struct mrd_cc *cc, double packets, uint64_t srtt_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    double packet = cc->packet_bytes, unmarked = 1 - cc->ce_ewma / tune->mark_share;
    double times = tune->mark_grow_least, each;

    if (unmarked > 0)
        times += (rate_known(cc) ? tune->mark_grow_known : tune->mark_grow) * unmarked * unmarked;
    each = times * mark_unit_bytes(cc, srtt_ns) * packet / cc->cwnd_bytes;
    cc->cwnd_bytes += packets * (each < packet ? each : packet);
}

/* Is all marked, and has been for some RTTs? Then a long queue is that of the last hop, and many send to it. */
static bool is_incast(const struct mrd_cc *cc)
{
    return cc->ce_rtt >= constants(cc)->incast_share && cc->ce_ewma >= constants(cc)->mark_share;
}

/*
 * Cuts at the end of an RTT for what is marked beyond mark_share. The square makes the cut small near that
 * share: in proportion, all flows of a short queue would cut, and then grow, in step. When marks of
 * this RTT are few, those of the ones before have had their cuts.
 */
static void cut_for_marks(struct mrd_cc *cc)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    double beyond = (cc->ce_ewma - tune->mark_share) / (1 - tune->mark_share);

    if (beyond > 0 && cc->ce_rtt > tune->mark_share / 2)
        cc->cwnd_bytes *= 1 - tune->mark_cut * beyond * beyond;
}

static void end_round(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double gain_bytes,
                      double target_ns)
{
    if (!mrd_cc_end_round(cc, ack, constants(cc)->ce_gain))
        return;
    if (is_calm(cc) || drained(cc))
        mrd_nscc_watch(cc, ack->rtt_min_ns, target_ns);
    if (drained(cc))
        return;
    mrd_nscc_judge_losses(cc, ack);
    if (cc->ce_rtt >= constants(cc)->incast_share)
        cc->slow_start = false;
    if (!cc->slow_start && !is_gentle(cc) && !mrd_cc_is_elastic(cc) && !mrd_cc_tests_losses(cc) &&
        mrd_cc_may_grow(cc, ack))
        cc->cwnd_bytes +=
            (cc->ce_seen ? constants(cc)->mark_fair : constants(cc)->fair_gain) * gain_bytes;
    if (cc->ce_seen)
        cut_for_marks(cc);
}

static void nscc_ack(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double target_ns = constants(cc)->target_rtts * (double)mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);

    mrd_cc_count(cc, ack);
    sample_delay(cc, ack);
    double gain_bytes = constants(cc)->gain_bdp * unit_bytes(cc, ack->rtt_min_ns);

    end_round(cc, ack, gain_bytes, target_ns);

    bool late = cc->delay_valid && cc->delay_ns >= target_ns;
    bool delay_is_mark = late && !cc->ce_seen && !is_gentle(cc);
    bool full = cc->cwnd_bytes >= most_bytes(cc, ack->rtt_min_ns);
    double packet = cc->packet_bytes;
    if (full || delay_is_mark ||
        (ack->ce_packets && cc->delay_ns >= constants(cc)->slow_start_delay * target_ns))
        cc->slow_start = false;

    if (drained(cc)) {
        /* The window is held until the least delay is known. */
    } else if (cc->slow_start) {
        if (mrd_cc_may_grow(cc, ack))
            cc->cwnd_bytes += ack->acked_packets * packet;
    } else if ((delay_is_mark && delay_holds(cc, ack->rtt_min_ns)) || (late && is_incast(cc))) {
        cut(cc, ack, target_ns);
    } else if (mrd_cc_may_grow(cc, ack) && cc->ce_seen) {
        double marked = ack->counted_packets ? (double)ack->ce_packets / ack->counted_packets : 0;
        grow_by_marks(cc, ack->acked_packets * (1 - marked), ack->srtt_ns);
    } else if (mrd_cc_may_grow(cc, ack)) {
        grow(cc, ack->acked_packets, gain_bytes, target_ns, ack->srtt_ns);
    }
    mrd_cc_clamp(cc, most_bytes(cc, ack->rtt_min_ns));
}

static void nscc_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                      uint64_t rtt_min_ns)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, rtt_min_ns);
    double packet = cc->packet_bytes;
    double sent = cc->cwnd_bytes / packet;

    mrd_cc_examine(cc);
    if (mrd_cc_is_elastic(cc))
        sent = greater(sent, cc->sent_rtt);
    double needed = greater(1, sent * constants(cc)->loss_share);

    /* The share being tested is expected: only twice of it counts. */
    if (mrd_cc_tests_losses(cc) && cc->losses->elastic.steps)
        needed = greater(needed, 2 * cc->losses->elastic.share * sent);
    if (mrd_cc_count_losses(cc, packets, needed, now_ns, srtt_ns > base_ns ? srtt_ns : base_ns)) {
        /* Without an RTT sample a window below one packet cannot be paced. */
        double least = srtt_ns == 0 && cc->cwnd_bytes >= packet ? packet : 0;
        mrd_cc_cut_lost(cc, greater(cc->cwnd_bytes * constants(cc)->loss_factor, least), packets);
        /* The end of a test or drain must not undo the cut. */
        if (cc->losses)
            cc->losses->elastic.cwnd_bytes = cc->cwnd_bytes;
        cc->nscc.watch.cwnd_bytes *= constants(cc)->loss_factor;
        mrd_nscc_leave_slow_start(cc, rtt_min_ns);
        mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
        if (!cc->ce_seen)
            cc->loss_ok_ns = now_ns + mrd_tune_ns(constants(cc)->queue_loss_rtts *
                                                  (double)(srtt_ns > base_ns ? srtt_ns : base_ns));
    }
    if ((double)cc->loss_packets >= constants(cc)->slow_start_losses)
        mrd_nscc_leave_slow_start(cc, rtt_min_ns);
}

static void nscc_timeout(struct mrd_cc *cc, uint64_t now_ns)
{
    (void)now_ns;
    cc->slow_start = false;
    mrd_cc_halve(cc);
    cc->nscc.watch.cwnd_bytes *= cc->tune->cc.timeout_factor;
    if (cc->losses) /* probably an outage: a policer lets some packets through */
        mrd_elastic_reset(&cc->losses->elastic);
}

/*
 * Returns how many windows an SRTT leave evenly; 0: the window alone decides. Where the network marks, flows that
 * send their windows as bursts, one behind the other, see different marks for ever; and where a window is below
 * two packets, two on their way are much more. Faster than the window in an SRTT, so that the window, not
 * the rate, bounds what is in flight: an SRTT lags behind a queue that grows (Linux paces TCP at 1.2 times). While
 * growth is gentle, where the rate is unknown, so that TCP keeps its share of a short queue.
 */
static double nscc_pace(const struct mrd_cc *cc)
{
    if (cc->ce_seen &&
        (!rate_known(cc) || cc->cwnd_bytes < constants(cc)->mark_pace_packets * cc->packet_bytes))
        return constants(cc)->mark_pace;
    if (is_far(cc))
        return 1;
    if (!is_gentle(cc))
        return 0;
    return rate_known(cc) ? 1 : constants(cc)->gentle_pace;
}

const struct mrd_cc_ops mrd_cc_nscc = {
    .name = "nscc",
    .init = nscc_init,
    .ack = nscc_ack,
    .lost = nscc_lost,
    .timeout = nscc_timeout,
    .pace = nscc_pace,
    .calibrated = mrd_nscc_calibrated,
    .marks_forgotten = mrd_nscc_marks_forgotten,
};
