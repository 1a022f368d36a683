/* SPDX-License-Identifier: BSD-2-Clause */
/* nscc: what losses mean where nothing marks: a queue that drops, late hosts, or chance. */
#include "core/cc_nscc.h"

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

double mrd_nscc_gentle_growth(const struct mrd_cc *cc, uint64_t srtt_ns, double base_ns)
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

void mrd_nscc_leave_slow_start(struct mrd_cc *cc, uint64_t rtt_min_ns)
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
        mrd_nscc_leave_slow_start(cc, ack->rtt_min_ns);
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

void mrd_nscc_judge_losses(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    double base_ns = (double)mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);
    double queue_ns = update_dropping_queue(cc, ack, base_ns);

    if (update_late_hosts(cc, ack->rtt_min_ns))
        queue_ns = 0;
    settle(cc, ack->rtt_min_ns, queue_ns);
    cut_for_queue_losses(cc, ack, queue_ns);
    test_losses(cc, ack, queue_ns);
}
