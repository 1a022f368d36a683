/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/elastic.h"

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static void count_anew(struct mrd_elastic *x)
{
    x->excess = x->sent = x->lost = 0;
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

/* `times` the share: where it rose from nothing, twice its mean is what is lost now. */
static enum mrd_elastic_act cut(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                double times)
{
    x->share = x->lost / x->sent;
    x->factor = greater(1 - tune->margin - times * x->share, tune->factor_least);
    x->wait = mrd_tune_count(tune->wait_rtts);
    count_anew(x);
    return MRD_ELASTIC_CUT;
}

static enum mrd_elastic_act alarm(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                  double cwnd_bytes)
{
    x->testing = x->gain == 0 || ++x->cuts > mrd_tune_count(tune->cuts);
    if (x->testing) {
        x->cwnd_bytes = cwnd_bytes;
        x->steps = 1;
    } else {
        x->gain = tune->gain;
    }
    return cut(x, tune, 2);
}

/* So many packets came that the same share of them would tell. Did it fall with the window? */
static enum mrd_elastic_act judge(struct mrd_elastic *x, const struct mrd_tune_elastic *tune)
{
    double expected = x->share * x->sent;

    if (expected < tune->test_packets)
        return MRD_ELASTIC_NONE;
    if (x->lost <= expected * tune->falls_to) {
        x->gain = tune->gain;
        x->cuts = 0;
        end_test(x);
        return MRD_ELASTIC_NONE;
    }
    if (++x->steps <= mrd_tune_count(tune->steps))
        return cut(x, tune, 1);
    x->usual = x->lost / x->sent;
    mrd_elastic_reset(x);
    return MRD_ELASTIC_RESTORE;
}

enum mrd_elastic_act mrd_elastic_round(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                       double sent, double lost, double cwnd_bytes)
{
    double ignored = greater(tune->ignored_share, tune->usual_times * x->usual);

    x->usual -= x->usual * tune->usual_fades;
    if (x->wait) {
        x->wait--;
        return MRD_ELASTIC_NONE;
    }
    x->sent += sent;
    x->lost += lost;
    if (x->testing)
        return judge(x, tune);
    x->gain *= tune->gain_rises;
    if (x->gain > tune->gain_most)
        x->gain = 0;
    x->excess += lost - ignored * sent;
    if (x->excess <= 0)
        count_anew(x);
    if (x->excess < (x->gain > 0 ? tune->limited_packets : tune->alarm_packets))
        return MRD_ELASTIC_NONE;
    return alarm(x, tune, cwnd_bytes);
}
