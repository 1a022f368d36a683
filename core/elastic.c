/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/elastic.h"

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static void count_anew(struct mrd_elastic *x)
{
    x->excess = x->sent = x->lost = x->rounds = x->lossy = 0;
}

static void end_test(struct mrd_elastic *x)
{
    x->testing = false;
    x->wait = 0;
    count_anew(x);
}

void mrd_elastic_reset(struct mrd_elastic *x)
{
    x->gain = 0;
    end_test(x);
}

/*
 * Cuts to less than what got through. If the share lost rose from nothing, the current one is twice
 * its mean; and in a test the effect must show. Where one packet at a time is in flight, a loss
 * delays those behind it, and the share understates the excess. There each step of a test cuts once
 * more, and the share is compared with that before the first cut.
 */
static enum mrd_elastic_act cut(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                double lost, double sent)
{
    double share = lost / sent;
    double once = greater(1 - tune->margin - 2 * share, tune->factor_least);
    bool deeper = x->testing && x->one_at_a_time && x->steps > 1;

    if (!deeper)
        x->share = share;
    x->factor = once;
    for (uint32_t i = 1; deeper && i < x->steps; i++)
        x->factor = greater(x->factor * once, tune->factor_least);
    x->wait = mrd_tune_count(tune->wait_rtts);
    count_anew(x);
    return MRD_ELASTIC_CUT;
}

/*
 * Starts a test, or cuts at once where losses are known to follow the window. A test first measures
 * the share at an unchanged window: the packets that raised the alarm are a biased sample, and the
 * next ones would lose less at any window.
 */
static enum mrd_elastic_act raise_alarm(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                        double cwnd_bytes, double packet_bytes)
{
    bool limited = x->gain > 0;

    x->testing = !limited || ++x->cuts > mrd_tune_count(tune->cuts);
    if (x->testing) {
        x->cwnd_bytes = cwnd_bytes;
        x->one_at_a_time = cwnd_bytes < packet_bytes;
        x->steps = 0;
    }
    if (limited) {
        x->gain = tune->gain;
        return cut(x, tune, x->recent_lost, x->recent_sent);
    }
    count_anew(x);
    return MRD_ELASTIC_NONE;
}

static enum mrd_elastic_act look(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                 double ignored)
{
    if (x->rounds < tune->look_rounds ||
        (x->lost < tune->test_packets && x->rounds < tune->test_rounds))
        return MRD_ELASTIC_NONE;
    if (x->lost <= ignored * x->sent) {
        x->cuts = 0;
        end_test(x);
        return MRD_ELASTIC_NONE;
    }
    x->steps = 1;
    return cut(x, tune, x->lost, x->sent);
}

/* When enough packets came to compare shares: did the share fall with the window? */
static enum mrd_elastic_act judge(struct mrd_elastic *x, const struct mrd_tune_elastic *tune)
{
    double expected = x->share * x->sent;

    /* A burst of losses is one event, however many packets it hits. */
    if (x->rounds < tune->test_rounds ||
        (expected < tune->test_packets && x->rounds < tune->test_rounds_most))
        return MRD_ELASTIC_NONE;
    if (x->lost <= expected * tune->falls_to) {
        x->gain = tune->gain;
        x->cuts = 0;
        end_test(x);
        return MRD_ELASTIC_NONE;
    }
    if (++x->steps <= mrd_tune_count(tune->steps))
        return cut(x, tune, x->lost, x->sent);
    x->usual = x->lost / x->sent;
    mrd_elastic_reset(x);
    return MRD_ELASTIC_RESTORE;
}

enum mrd_elastic_act mrd_elastic_end_round(struct mrd_elastic *x,
                                           const struct mrd_tune_elastic *tune, double sent,
                                           double lost, double cwnd_bytes, double packet_bytes)
{
    double ignored = greater(tune->ignored_share, tune->usual_times * x->usual);

    x->usual -= x->usual * tune->usual_fades;
    x->recent_sent += sent - x->recent_sent * tune->recent_fades;
    x->recent_lost += lost - x->recent_lost * tune->recent_fades;
    if (x->wait) {
        x->wait--;
        return MRD_ELASTIC_NONE;
    }
    x->sent += sent;
    x->lost += lost;
    x->rounds += sent > 0;
    x->lossy += lost > 0;
    if (x->testing)
        return x->steps == 0 ? look(x, tune, ignored) : judge(x, tune);
    double few = sent < tune->gain_packets ? sent / tune->gain_packets : 1;

    x->growth = x->gain * few;
    x->gain *= 1 + few * (tune->gain_rises - 1);
    if (x->gain > tune->gain_most)
        x->gain = 0;
    x->excess += lost - ignored * sent;
    if (x->excess <= 0)
        count_anew(x);
    if (x->excess < (x->gain > 0 ? tune->limited_packets : tune->alarm_packets) ||
        x->lossy < (x->gain > 0 ? tune->limited_rounds : tune->alarm_rounds))
        return MRD_ELASTIC_NONE;
    return raise_alarm(x, tune, cwnd_bytes, packet_bytes);
}
