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
 * was measured (leave_slow_start()): what it sent beyond that would be dropped for round trips. If losses
 * were many, growth is gentle from then on.
 *
 * d contains neither the length of a path beyond the least RTT nor the delay of late acks. Both are
 * in the RTT that makes the BDP, and so a, the floor and the greatest window. watch() finds out
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
#include "core/cc.h"

/* Hosts that were late stay so until RTTs jump by less than this share of jitter_share... */
#define LATE_JUMP_SHARE 0.5
/* ...or less than this share of jitter_loss is lost. */
#define LATE_LOSS_SHARE 0.25
/*
 * RTTs after slow start until it is known what of its last window got through; and losses that are a burst
 * whatever the delay.
 */
enum { SETTLE_ROUNDS = 2, SETTLE_LOSSES = 16 };

/* RTTs that jump by less than so many packets are not late hosts'. */
#define LATE_JUMP_PACKETS 3

static const struct mrd_tune_nscc *constants(const struct mrd_cc *cc)
{
    return &cc->tune->nscc;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double within(double least, double x, double most)
{
    return x < least ? least : x > most ? most : x;
}

static bool rate_known(const struct mrd_cc *cc)
{
    return cc->config->link_bps != 0;
}

/* Is the way so long that a window at once would be too much for its queues? */
static bool is_far(const struct mrd_cc *cc)
{
    return cc->length_ns >= constants(cc)->far_rtt_ns;
}

/*
 * Did a queue drop packets of late? Then the window grows slowly, delay does not cut it, and packets are
 * paced.
 */
static bool is_gentle(const struct mrd_cc *cc)
{
    return cc->nscc.queue_losses.gentle != 0 && !cc->ce_seen;
}

static uint16_t gentle_rounds(const struct mrd_cc *cc)
{
    double rounds = constants(cc)->gentle_rounds + constants(cc)->gentle_ramp_rounds;

    return rounds < UINT16_MAX ? (uint16_t)rounds : UINT16_MAX;
}

/* Did no queue drop any for some RTTs, so that delay that stays may be looked into? */
static bool is_calm(const struct mrd_cc *cc)
{
    return !is_gentle(cc) ||
           cc->nscc.queue_losses.gentle + constants(cc)->gentle_calm <= gentle_rounds(cc);
}

static double bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return greater(mrd_cc_bdp_bytes(cc, rtt_min_ns),
                   constants(cc)->least_bdp_packets * cc->packet_bytes);
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

/* Returns the least window to which delay without marks may cut. */
static double delay_floor_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    if (cc->loss_ewma > constants(cc)->floor_loss_share)
        return 0;
    if (rate_known(cc) && is_gentle(cc))
        return mrd_cc_measured_bdp_bytes(cc, rtt_min_ns);
    if (rate_known(cc))
        return bdp_bytes(cc, rtt_min_ns);
    return greater(cc->start_bytes, mrd_cc_bdp_bytes(cc, rtt_min_ns));
}

/*
 * May delay cut the window? A window that a loss took below the floor grows again whatever the
 * delay is. Not where the rate is known: there the fair window of an incast is below the floor.
 */
static bool delay_holds(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return rate_known(cc) || cc->cwnd_bytes >= delay_floor_bytes(cc, rtt_min_ns);
}

/* ----------------------------------------------------------------------------- is it our queue? */

enum { WATCH_DOUBT = 0, WATCH_DRAIN, WATCH_LEAST };

static void enter_state(struct mrd_cc *cc, uint8_t state)
{
    cc->nscc.watch.state = state;
    cc->nscc.watch.rounds = 0;
}

/* Requests that the paths take the watched delay for their length; ends a drain. */
static void calibrate(struct mrd_cc *cc, enum mrd_cc_request_type type, double fall_ns,
                      uint64_t rtt_min_ns)
{
    double base_ns = (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    cc->request = (struct mrd_cc_request){type, fall_ns, constants(cc)->calibrate_share * base_ns};
    enter_state(cc, WATCH_DOUBT);
}

/*
 * Drains our queue, to see whether the delay falls. The window becomes what is delivered in a base
 * RTT: that makes no queue, however narrow the bottleneck is.
 */
static void drain(struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    struct mrd_cc_watch *w = &cc->nscc.watch;
    double least_bytes = constants(cc)->watch_packets * cc->packet_bytes;
    double floor_bytes = cc->round_bps * (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns) / 8e9;

    if (cc->round_bps == 0 || w->pause || (w->rest && cc->delay_ns <= w->ours_ns))
        return;
    floor_bytes = greater(floor_bytes, least_bytes);
    if (floor_bytes > cc->cwnd_bytes)
        floor_bytes = cc->cwnd_bytes;
    w->before_ns = cc->delay_ns;
    w->cwnd_bytes = cc->cwnd_bytes;
    w->fall_ns = (cc->length_ns + cc->delay_ns) * (1 - floor_bytes / cc->cwnd_bytes);
    cc->cwnd_bytes = floor_bytes;
    cc->request.type = MRD_CC_REQUEST_DRAIN;
    enter_state(cc, WATCH_DRAIN);
}

/*
 * Restores the window after a drain. Beside a flow that fills the queue again each time, drains
 * would never end: each one lengthens the pause before the next.
 */
static void refill(struct mrd_cc *cc)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    struct mrd_cc_watch *w = &cc->nscc.watch;

    cc->cwnd_bytes = greater(cc->cwnd_bytes, w->cwnd_bytes);
    w->lately++;
    w->pause = mrd_tune_count(greater(0, tune->watch_pause_rtts * (w->lately - tune->watch_free)));
    enter_state(cc, WATCH_DOUBT);
}

/* Advances a drain by a round. A loss or a mark ends it: there is a queue. */
static void advance_drain(struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    struct mrd_cc_watch *w = &cc->nscc.watch;

    if (cc->loss_rtt > 0 || cc->ce_rtt > 0) {
        refill(cc);
        return;
    }
    if (++w->rounds < constants(cc)->watch_drain_rtts)
        return;
    if (w->state == WATCH_DRAIN) {
        cc->request.type = MRD_CC_REQUEST_WATCH;
        w->after_ns = w->before_ns;
        enter_state(cc, WATCH_LEAST);
        return;
    }
    /* nscc_calibrated() shortens it. */
    w->rest = mrd_tune_count(constants(cc)->watch_rest_rtts);
    w->ours_ns = w->before_ns * (1 + constants(cc)->watch_share);
    refill(cc);
    calibrate(cc, MRD_CC_REQUEST_CALIBRATE, w->fall_ns, rtt_min_ns);
}

/*
 * Does its cap limit the window, or may it? Then delay does not, and our queue could stand: others
 * would take it for the path's length.
 */
static bool held_by_cap(const struct mrd_cc *cc)
{
    double slack = constants(cc)->watch_slack;

    return rate_known(cc) || cc->cwnd_bytes * (1 + slack) >= cc->cap_bytes;
}

/* Decides at the end of a round whether to drain or to learn. */
static void watch(struct mrd_cc *cc, uint64_t rtt_min_ns, double target_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    struct mrd_cc_watch *w = &cc->nscc.watch;
    double worth_ns = tune->watch_share * (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns);
    double floor_bytes = delay_floor_bytes(cc, rtt_min_ns);

    w->rest -= w->rest > 0;
    w->pause -= w->pause > 0;
    w->lately *= tune->watch_rest_rtts / (tune->watch_rest_rtts + 1);
    if (w->state != WATCH_DOUBT) {
        advance_drain(cc, rtt_min_ns);
        return;
    }
    if (cc->ce_seen) {
        if (++w->rounds >= tune->unmarked_rtts)
            calibrate(cc, MRD_CC_REQUEST_CALIBRATE_UNMARKED, 0, rtt_min_ns);
        return;
    }
    if (cc->delay_ns < worth_ns || cc->loss_rtt > 0) {
        w->rounds -= w->rounds > 0;
        return;
    }
    if (w->rounds++ == 0)
        cc->request.type = MRD_CC_REQUEST_WATCH;
    if (cc->delay_ns >= target_ns && cc->cwnd_bytes * (1 - tune->watch_slack) <= floor_bytes) {
        if (w->rounds > tune->watch_floor_rtts)
            drain(cc, rtt_min_ns);
    } else if (w->rounds > tune->watch_cap_rtts && held_by_cap(cc)) {
        drain(cc, rtt_min_ns);
    }
}

static bool drained(const struct mrd_cc *cc)
{
    return cc->nscc.watch.state != WATCH_DOUBT;
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

/* Returns how long so many packets take at that rate, but no more than queue_loss_some base RTTs. */
static double packets_ns(const struct mrd_cc *cc, double packets, double rate_bps, double base_ns)
{
    double ns = packets * cc->packet_bytes * 8e9 / rate_bps;
    double most_ns = constants(cc)->queue_loss_some * base_ns;

    return ns < most_ns ? ns : most_ns;
}

/*
 * Returns the delay up to which there may be no queue: packets and bursts delay each other so much. Where the link's
 * rate is unknown it is what some packets take at the measured rate, or what RTTs change by; late hosts make no more
 * than most_ns.
 */
static double noise_ns(const struct mrd_cc *cc, double base_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    double least_ns = tune->queue_loss_known * base_ns, most_ns = tune->queue_loss_share * base_ns;
    double ns;

    if (rate_known(cc))
        return greater(least_ns, packets_ns(cc, tune->queue_loss_packets, cc->rate_bps, base_ns));
    if (most_ns > least_ns + tune->queue_loss_hosts_ns)
        most_ns = least_ns + tune->queue_loss_hosts_ns;
    if (cc->measured_bps == 0 || !cc->losses)
        return most_ns;
    ns = greater(packets_ns(cc, tune->queue_loss_few, cc->measured_bps, base_ns),
                 tune->queue_loss_jumps * cc->losses->jitter.jump_ns);
    return within(least_ns, ns, most_ns);
}

/*
 * Returns the growth for an acked packet after losses at a queue: of a packet an RTT, as TCP's, so that
 * flows that share the queue converge; for a short RTT less and for a long one more. Then it gets
 * faster. Faster at once while there is no queue: where the rate is known, or the window is below what it was
 * at the start or, on a long way, below what got through lately.
 */
static double gentle_growth(const struct mrd_cc *cc, uint64_t srtt_ns, double base_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    double packet = cc->packet_bytes, share = tune->gentle_gain * packet / cc->cwnd_bytes;
    uint32_t ramp = mrd_tune_count(tune->gentle_ramp_rounds);
    double got_bytes = tune->far_back * mrd_cc_measured_bdp_bytes(cc, (uint64_t)base_ns);
    double empty_ns;

    if (share > tune->gentle_share)
        share = tune->gentle_share;
    share *= within(tune->gentle_rtt_least, (double)srtt_ns / tune->gentle_rtt_ns,
                    tune->gentle_rtt_most);
    for (uint32_t left = cc->nscc.queue_losses.gentle; left < ramp; left++)
        share *= tune->gentle_ramp;
    empty_ns = noise_ns(cc, base_ns);
    if (cc->loss_rtt > 0) /* or a short queue that drops much */
        empty_ns *= 1 - cc->loss_ewma / tune->queue_loss_busy;
    if (cc->delay_ns < empty_ns && share < tune->gentle_empty &&
        (rate_known(cc) || cc->cwnd_bytes < cc->start_bytes))
        share = tune->gentle_empty;
    else if (is_far(cc) && cc->delay_ns < empty_ns && cc->cwnd_bytes < got_bytes)
        share = greater(share, tune->gentle_empty);
    return packet * share;
}

/* Grows the window for `packets` unmarked packets acked outside of slow start. */
static void grow(struct mrd_cc *cc, double packets, double gain_bytes, double target_ns,
                 uint64_t srtt_ns)
{
    double packet = cc->packet_bytes;
    double times = constants(cc)->above_gain;

    double below = constants(cc)->below_gain;

    if (mrd_cc_tests_losses(cc) || mrd_cc_is_elastic(cc))
        return; /* test_losses() grows the window then */
    if (cc->delay_ns < target_ns)
        times = below * (target_ns - cc->delay_ns) / target_ns;
    /*
     * Never faster than slow start. At a window below a packet one ack stands for several RTTs and
     * would add the growth of all. A BDP from a base RTT that contains a queue would turn one ack
     * into a burst.
     */
    double each = times * gain_bytes * packet / cc->cwnd_bytes;
    if (is_gentle(cc))
        each = gentle_growth(cc, srtt_ns, target_ns / constants(cc)->target_rtts);
    cc->cwnd_bytes += packets * (each < packet ? each : packet);
}

/*
 * Returns the delay of the queue that may have dropped what was declared lost in this round; 0: no
 * such queue. Those packets left up to an RTT ago and met the queue of that time. Constant delay is
 * the path's: a queue that drops is not always full.
 */
static double update_dropping_queue(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double base_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    struct mrd_cc_queue_losses *q = &cc->nscc.queue_losses;
    double delay_ns = greater(cc->delay_ns, q->delay_ns), least_ns, varies_ns;

    q->delay_ns = (float)cc->delay_ns;
    if (q->rounds++ >= mrd_tune_count(tune->queue_loss_least_rtts)) {
        q->least_prev_ns = q->least_ns;
        q->least_ns = (float)cc->delay_ns;
        q->rounds = 0;
    }
    if (cc->delay_ns < q->least_ns)
        q->least_ns = (float)cc->delay_ns;
    least_ns = q->least_ns < q->least_prev_ns ? q->least_ns : q->least_prev_ns;
    varies_ns = tune->queue_loss_varies * base_ns;
    if (rate_known(cc) && cc->cwnd_bytes < tune->queue_loss_small * cc->packet_bytes)
        varies_ns = 0;
    else if (rate_known(cc)) /* a queue that drops much is always full */
        varies_ns = tune->queue_loss_known_varies * noise_ns(cc, base_ns) *
                    (1 - cc->loss_ewma / tune->queue_loss_much);
    if (rate_known(cc) && cc->loss_ewma > tune->queue_loss_sure && cc->losses_rtt > 0 &&
        ack->limited && cc->round_bps < tune->queue_loss_slow * cc->rate_bps)
        return greater(delay_ns, 1); /* the least RTT may contain it */
    if (delay_ns - least_ns < varies_ns)
        return 0;
    return delay_ns >= noise_ns(cc, base_ns) ? delay_ns : 0;
}

/*
 * Does a queue stand? Hosts are sometimes not late at all, but a queue that drops never drains: it
 * is in the least of many RTTs.
 */
static bool queue_stands(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_cc_jitter *j = &cc->losses->jitter;
    double some_ns = constants(cc)->jitter_queue * (j->rtt_ns - (double)rtt_min_ns);
    double base_ns = (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    return mrd_cc_least_ns(&j->least) - (double)rtt_min_ns >
           greater(some_ns, constants(cc)->queue_loss_share * base_ns);
}

/*
 * Do RTTs jump from sample to sample as no full queue makes them? One that holds few packets does: each is
 * then much of the RTT. The rate is what was delivered where the link's is unknown, or where much is lost: that
 * queue may be of a link that is much slower than the host's.
 */
static bool may_be_late(const struct mrd_cc *cc, double base_ns)
{
    bool much = cc->loss_ewma > constants(cc)->jitter_much && cc->measured_bps > 0;
    double rate_bps = rate_known(cc) && !much ? cc->rate_bps : cc->measured_bps;
    double jump_ns;

    if (!cc->losses)
        return false;
    jump_ns = constants(cc)->jitter_share * LATE_JUMP_SHARE * cc->losses->jitter.rtt_ns;
    if (rate_bps > 0)
        jump_ns = greater(jump_ns, packets_ns(cc, LATE_JUMP_PACKETS, rate_bps, base_ns));
    return cc->losses->jitter.jump_ns > jump_ns;
}

/*
 * Updates and returns whether late hosts, or paths that differ, not a queue, make the delay: then losses are
 * random, or a policer's. Where the rate is known they do if RTTs jump. Where it is not, delay is weaker
 * evidence: they do if much is lost although the window was cut for a queue, and RTTs jump from
 * sample to sample. Some RTTs must be as short as the least: behind a full queue none is. It ends
 * when that changes, or when little is lost outside of a test.
 */
static bool update_late_hosts(struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    bool idle = !mrd_cc_is_elastic(cc) && !mrd_cc_tests_losses(cc);
    struct mrd_cc_jitter *j;
    double jump_ns;

    if (!cc->losses)
        return false;
    j = &cc->losses->jitter;
    if (rate_known(cc))
        return may_be_late(cc, (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns)) &&
               !queue_stands(cc, rtt_min_ns);
    jump_ns = tune->jitter_share * j->rtt_ns * (j->hosts ? LATE_JUMP_SHARE : 1);
    j->sent += cc->sent_rtt - j->sent * tune->jitter_fades;
    j->lost += cc->losses_rtt - j->lost * tune->jitter_fades;
    if (j->jump_ns < jump_ns || queue_stands(cc, rtt_min_ns))
        j->hosts = false;
    else if (j->lost >= tune->jitter_packets && j->lost > tune->jitter_loss * j->sent)
        j->hosts = true;
    else if (idle && j->lost < tune->jitter_loss * LATE_LOSS_SHARE * j->sent)
        j->hosts = false;
    return j->hosts;
}

/*
 * Ends slow start. On a long way what it sent beyond what gets through would be dropped for round trips:
 * a window for what was measured is enough.
 */
static void leave_slow_start(struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    /* The rate of an application that sent little says nothing. */
    double bytes = greater(cc->start_bytes, mrd_cc_measured_bdp_bytes(cc, rtt_min_ns));

    if (cc->slow_start && is_far(cc) && cc->cwnd_bytes > bytes) {
        cc->cwnd_bytes = bytes;
        cc->nscc.queue_losses.settles = SETTLE_ROUNDS;
    }
    cc->slow_start = false;
}

/* What was on its way as slow start ended tells now what gets through. */
static void settle(struct mrd_cc *cc, uint64_t rtt_min_ns, double queue_ns)
{
    if (!cc->nscc.queue_losses.settles)
        return;
    cc->nscc.queue_losses.settles--;
    /* A few of a small window are no burst. */
    if ((queue_ns > 0 || cc->losses_rtt >= SETTLE_LOSSES) &&
        cc->loss_rtt > constants(cc)->far_start_loss)
        cc->nscc.queue_losses.gentle = gentle_rounds(cc);
    cc->cwnd_bytes = greater(cc->cwnd_bytes, mrd_cc_measured_bdp_bytes(cc, rtt_min_ns));
}

/*
 * Returns what is cut for losses: what is in flight, as in RFC 5681, where the host's own link or the pace, not
 * the window, bounds it. A cut of the window would change nothing there, and a flow that fills the queue as fast
 * as it drains would keep all others out. An application that sends little keeps a share of the BDP, or where
 * the rate is unknown the start window; and before anything is measured the cut is of the window.
 */
static double in_flight_bytes(const struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double bytes = cc->measured_bps * (double)ack->srtt_ns / 8e9;
    double least = cc->start_bytes;

    if (rate_known(cc))
        least = constants(cc)->queue_loss_bdp * bdp_bytes(cc, ack->rtt_min_ns);
    bytes = greater(bytes, least);
    if (ack->limited || cc->measured_bps == 0 || bytes > cc->cwnd_bytes)
        return cc->cwnd_bytes;
    return bytes;
}

/*
 * Cuts for losses in a network that never marks, if there is a queue: it is full. The cut empties it, or is
 * by the share lost. Losses without a queue, and those on paths that have less of it than others, are
 * taken for random.
 */
static void cut_for_queue_losses(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double queue_ns)
{
    const struct mrd_tune_nscc *tune = constants(cc);
    double base_ns = (double)mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);
    uint32_t lost = cc->losses_rtt - cc->aside_rtt;
    bool late = may_be_late(cc, base_ns);
    double share, recent;

    if (is_gentle(cc))
        cc->nscc.queue_losses.gentle--;
    /* Hosts that are late now made what was taken for a queue's, too. */
    if (cc->losses_rtt && queue_ns == 0 && late)
        cc->nscc.queue_losses.gentle = 0;
    if (cc->ce_seen || lost == 0 || ack->now_ns < cc->loss_ok_ns || queue_ns == 0)
        return;
    cc->nscc.queue_losses.gentle = gentle_rounds(cc);
    if (late)
        queue_ns = 0; /* how much of it is a queue is not known */
    share = within(is_far(cc) && !rate_known(cc) ? tune->far_cut : tune->queue_loss_least,
                   queue_ns / (queue_ns + base_ns), tune->queue_loss_drain);
    /* In a small window a single loss is a large share. */
    recent = lost / cc->sent_rtt;
    share = greater(share, recent < cc->loss_ewma ? recent : cc->loss_ewma);
    if (share > tune->queue_loss_most)
        share = tune->queue_loss_most;
    if (cc->slow_start && is_far(cc))
        leave_slow_start(cc, ack->rtt_min_ns);
    else
        mrd_cc_cut_lost(cc, in_flight_bytes(cc, ack) * (1 - share), cc->losses_rtt);
    cc->slow_start = false;
    /* Packets declared lost until then left before the cut. */
    cc->loss_ok_ns = ack->now_ns + mrd_tune_ns(tune->queue_loss_rtts * (double)ack->srtt_ns);
}

/*
 * Returns the least window of a cut: what was delivered lately gets through again, even after a
 * burst of losses or an outage. 0: no such bound. A test has to show a difference, and a rate
 * measured with a packet an RTT says nothing.
 */
static double got_through_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_tune_elastic *tune = &cc->tune->elastic;
    double bytes = mrd_cc_measured_bdp_bytes(cc, rtt_min_ns);

    if (mrd_cc_tests_losses(cc) || cc->cwnd_bytes < tune->rate_packets * cc->packet_bytes)
        return 0;
    return (1 - tune->margin) * (bytes < cc->cwnd_bytes ? bytes : cc->cwnd_bytes);
}

/*
 * Tests whether losses without a queue are a policer's. With a queue they are not, and there growth
 * in proportion to the window would keep a small flow small beside greater ones.
 */
static void test_losses(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double queue_ns)
{
    struct mrd_elastic *x;

    if (!cc->losses || rate_known(cc))
        return;
    x = &cc->losses->elastic;
    /* Nothing else would end a test or slow growth in progress. */
    if (cc->ce_seen || queue_ns > 0) {
        mrd_elastic_reset(x);
        return;
    }
    switch (mrd_elastic_end_round(x, &cc->tune->elastic, cc->sent_rtt, cc->losses_rtt,
                                  cc->cwnd_bytes, cc->packet_bytes)) {
    case MRD_ELASTIC_CUT:
        cc->cwnd_bytes =
            greater(in_flight_bytes(cc, ack) * x->factor, got_through_bytes(cc, ack->rtt_min_ns));
        cc->slow_start = false;
        break;
    case MRD_ELASTIC_RESTORE:
        cc->cwnd_bytes = greater(cc->cwnd_bytes, x->cwnd_bytes);
        break;
    case MRD_ELASTIC_NONE:
        if (!x->testing && !x->wait && mrd_cc_may_grow(cc, ack))
            cc->cwnd_bytes *= 1 + x->growth;
        break;
    }
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
        watch(cc, ack->rtt_min_ns, target_ns);
    if (drained(cc))
        return;

    double queue_ns =
        update_dropping_queue(cc, ack, (double)mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns));

    if (update_late_hosts(cc, ack->rtt_min_ns))
        queue_ns = 0;
    settle(cc, ack->rtt_min_ns, queue_ns);
    cut_for_queue_losses(cc, ack, queue_ns);
    test_losses(cc, ack, queue_ns);
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
        leave_slow_start(cc, rtt_min_ns);
        mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
        if (!cc->ce_seen)
            cc->loss_ok_ns = now_ns + mrd_tune_ns(constants(cc)->queue_loss_rtts *
                                                  (double)(srtt_ns > base_ns ? srtt_ns : base_ns));
    }
    if ((double)cc->loss_packets >= constants(cc)->slow_start_losses)
        leave_slow_start(cc, rtt_min_ns);
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

static void nscc_calibrated(struct mrd_cc *cc)
{
    uint32_t again = mrd_tune_count(constants(cc)->watch_again_rtts);
    struct mrd_cc_watch *w = &cc->nscc.watch;

    /* Some of the delay is still unexplained: ask again soon. */
    if (w->after_ns >= w->before_ns / 2)
        w->rest = 0;
    else if (w->rest > again)
        w->rest = again;
}

static void nscc_marks_forgotten(struct mrd_cc *cc)
{
    cc->nscc.watch.rounds = 0;
}

const struct mrd_cc_ops mrd_cc_nscc = {
    .name = "nscc",
    .init = nscc_init,
    .ack = nscc_ack,
    .lost = nscc_lost,
    .timeout = nscc_timeout,
    .pace = nscc_pace,
    .calibrated = nscc_calibrated,
    .marks_forgotten = nscc_marks_forgotten,
};
