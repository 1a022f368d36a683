/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/cc.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"

static const struct mrd_tune_cc *constants(const struct mrd_cc *cc)
{
    return &cc->tune->cc;
}

#define X(name) &mrd_cc_##name,
static const struct mrd_cc_ops *const policies[] = {MRD_CC_POLICIES(X)};
#undef X

const struct mrd_cc_ops *mrd_cc_find(const char *name)
{
    if (name == NULL)
        return policies[0];
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    }
    return NULL;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double start_window(const struct mrd_cc_config *config, const struct mrd_tune_cc *tune,
                           uint32_t packet_bytes)
{

    if (config->cwnd_start_bytes)
        return config->cwnd_start_bytes;
    double least = tune->start_packets * packet_bytes;
    if (config->link_bps == 0)
        return least;
    double rtt_ns = tune->base_rtt_guess_ns;
    if (config->base_rtt_max_ns)
        rtt_ns = (double)config->base_rtt_max_ns;
    if (config->base_rtt_ns)
        rtt_ns = (double)config->base_rtt_ns;
    double bytes = tune->start_bdp * (double)config->link_bps * rtt_ns / 8e9;
    return bytes > least ? bytes : least;
}

void mrd_cc_init(struct mrd_cc *cc, const struct mrd_cc_ops *ops,
                 const struct mrd_cc_config *config, uint32_t packet_bytes)
{
    assert(packet_bytes > 0);
    memset(cc, 0, sizeof(*cc));
    cc->ops = ops;
    cc->config = config;
    cc->tune = config->tune ? config->tune : &mrd_tune_default;
    cc->packet_bytes = packet_bytes;
    cc->rate_bps = (double)config->link_bps;
    cc->slow_start = true;
    cc->cap_bytes = config->cwnd_cap_bytes ? config->cwnd_cap_bytes : MRD_CC_UNBOUNDED;
    cc->cwnd_bytes = start_window(config, &cc->tune->cc, packet_bytes);
    mrd_cc_clamp(cc, MRD_CC_UNBOUNDED);
    cc->start_bytes = cc->cwnd_bytes;
    ops->init(cc);
}

void mrd_cc_fini(struct mrd_cc *cc)
{
    if (cc->losses)
        mrd_free(cc->config->allocator, cc->losses, sizeof(*cc->losses));
    cc->losses = NULL;
}

void mrd_cc_examine(struct mrd_cc *cc)
{
    if (!cc->losses && cc->config->allocator)
        cc->losses = mrd_alloc(cc->config->allocator, sizeof(*cc->losses));
}

uint64_t mrd_cc_base_rtt_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    const struct mrd_cc_config *config = cc->config;

    if (config->base_rtt_max_ns && rtt_min_ns > config->base_rtt_max_ns)
        rtt_min_ns = config->base_rtt_max_ns;
    return rtt_min_ns > config->base_rtt_ns ? rtt_min_ns : config->base_rtt_ns;
}

static double length_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    double rtt_ns = (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns);
    double most_ns = (double)cc->config->base_rtt_max_ns;

    if (cc->length_ns > rtt_ns)
        rtt_ns = most_ns > 0 && cc->length_ns > most_ns ? greater(rtt_ns, most_ns) : cc->length_ns;
    return rtt_ns;
}

static double rate_times(const struct mrd_cc *cc, double rate_bps, double rtt_ns)
{
    double bdp = rate_bps * rtt_ns / 8e9;

    return bdp > 0 ? bdp : cc->start_bytes / constants(cc)->start_bdp;
}

double mrd_cc_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return rate_times(cc, cc->rate_bps, length_ns(cc, rtt_min_ns));
}

double mrd_cc_measured_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return rate_times(cc, cc->measured_bps, length_ns(cc, rtt_min_ns));
}

double mrd_cc_base_bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return rate_times(cc, cc->rate_bps, (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns));
}

/*
 * A mover's cap bounds what queues hold, not what is on its way. Flows that each have the same in a queue share it
 * alike, whatever their RTTs are. What late hosts keep waiting is on its way, too: what the mean RTT has beyond
 * the way's length and the queue. A queue that others keep is taken for length, and must not raise the cap: the least
 * RTT counts, but for the part in proportion to the way. While losses follow the window little more than what gets
 * through is of use, in an SRTT, as paths differ in length: of the least RTT it would be less than gets through.
 */
static void raise_cap(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    const struct mrd_tune_cc *tune = constants(cc);
    double least_ns = (double)ack->rtt_min_ns, length_ns = greater(least_ns, cc->length_ns);
    double rtt_ns = greater(least_ns, (double)ack->srtt_ns - cc->delay_ns);
    double late_ns = greater(0, rtt_ns - length_ns), far = rtt_ns / tune->cap_rtt_ns;
    double bytes = cc->measured_bps * (least_ns + late_ns) / 8e9;

    if (cc->config->cwnd_cap_bytes == 0)
        return;
    if (mrd_cc_is_elastic(cc))
        bytes = cc->tune->elastic.cap_bdp * cc->measured_bps * (double)ack->srtt_ns / 8e9;
    else
        bytes = greater(bytes + tune->cap_queue * cc->config->cwnd_cap_bytes,
                        tune->cap_bdp * (far < 1 ? far : 1) * cc->measured_bps * rtt_ns / 8e9);
    cc->cap_bytes = greater(cc->config->cwnd_cap_bytes, bytes);
}

/*
 * Measures the delivered rate of each round trip and its windowed maximum (BBR,
 * draft-cardwell-iccrg-bbr-congestion-control). The window of the maximum is counted in round trips
 * that cwnd limited, not in time. An idle application, or a stall of the peer's host, must not make
 * us forget what the network can carry.
 */
static void measure_rate(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    struct mrd_cc_rate *rate = &cc->rate;
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);
    uint64_t round_ns = ack->srtt_ns > base_ns ? ack->srtt_ns : base_ns;

    if (!rate->started) {
        rate->started = true;
        rate->start_ns = ack->now_ns; /* what this ack acks was delivered before the round */
        return;
    }
    rate->bytes += ack->acked_bytes;
    rate->limited |= ack->limited;
    if (round_ns == 0 || ack->now_ns - rate->start_ns < round_ns)
        return;

    double bps = (double)rate->bytes * 8e9 / (double)(ack->now_ns - rate->start_ns);
    if (bps > rate->cur_bps)
        rate->cur_bps = bps;
    if (rate->limited && ++rate->rounds >= constants(cc)->rate_rounds) {
        rate->prev_bps = rate->cur_bps;
        rate->cur_bps = 0;
        rate->rounds = 0;
    }
    cc->measured_bps = rate->cur_bps > rate->prev_bps ? rate->cur_bps : rate->prev_bps;
    if (cc->config->link_bps == 0)
        cc->rate_bps = cc->measured_bps;
    raise_cap(cc, ack);
    rate->bytes = 0;
    rate->limited = false;
    rate->start_ns = ack->now_ns;
}

void mrd_cc_count(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    if (ack->ce_packets)
        cc->ce_seen = true;
    cc->round_packets += ack->counted_packets;
    cc->round_ce += ack->ce_packets;
    cc->round_acked += ack->acked_packets;
    cc->round_bytes += ack->acked_bytes;
    measure_rate(cc, ack);
}

bool mrd_cc_end_round(struct mrd_cc *cc, const struct mrd_cc_ack *ack, double gain)
{
    uint64_t base_ns = mrd_cc_base_rtt_ns(cc, ack->rtt_min_ns);

    if (ack->now_ns < cc->round_end_ns || cc->round_packets == 0)
        return false;
    cc->ce_rtt = (double)cc->round_ce / (double)cc->round_packets;
    cc->ce_ewma += (cc->ce_rtt - cc->ce_ewma) * gain;
    double sent = (double)(cc->round_lost + cc->round_acked);
    cc->losses_rtt = cc->round_lost;
    cc->aside_rtt = cc->round_aside < cc->round_lost ? cc->round_aside : cc->round_lost;
    cc->sent_rtt = sent;
    cc->loss_rtt = sent > 0 ? (double)cc->round_lost / sent : 0;
    if (sent > 0)
        cc->loss_ewma += (cc->loss_rtt - cc->loss_ewma) * constants(cc)->loss_gain;
    if (cc->undo.packets && --cc->undo.rounds == 0)
        cc->undo.packets = 0;
    cc->round_bps = 0;
    if (cc->round_start_ns && ack->now_ns > cc->round_start_ns)
        cc->round_bps = (double)cc->round_bytes * 8e9 / (double)(ack->now_ns - cc->round_start_ns);
    cc->round_start_ns = ack->now_ns;
    cc->round_bytes = 0;
    cc->round_packets = cc->round_ce = cc->round_acked = cc->round_lost = cc->round_aside = 0;
    cc->round_end_ns = ack->now_ns + (ack->srtt_ns > base_ns ? ack->srtt_ns : base_ns);
    return true;
}

bool mrd_cc_may_grow(const struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    /* In the RTT after a cut by loss, acks are of packets sent before the cut. */
    if (ack->now_ns < cc->loss_ok_ns)
        return false;
    return ack->limited || cc->cwnd_bytes < constants(cc)->used_times * (double)ack->inflight_bytes;
}

void mrd_cc_clamp(struct mrd_cc *cc, double most_bytes)
{
    double least_bytes = constants(cc)->least_packets * cc->packet_bytes;

    if (most_bytes > cc->cap_bytes)
        most_bytes = cc->cap_bytes;
    if (cc->cwnd_bytes > most_bytes)
        cc->cwnd_bytes = most_bytes;
    if (cc->cwnd_bytes < least_bytes)
        cc->cwnd_bytes = least_bytes;
}

bool mrd_cc_count_losses(struct mrd_cc *cc, uint32_t packets, double packets_needed,
                         uint64_t now_ns, uint64_t rtt_ns)
{
    cc->round_lost += packets;
    if (now_ns < cc->loss_ok_ns)
        return false;
    /* Without an RTT sample the RTT has no end: all losses are of the first flight. */
    if (now_ns >= cc->loss_end_ns || (cc->loss_end_ns == UINT64_MAX && rtt_ns)) {
        cc->loss_packets = 0;
        cc->loss_end_ns = rtt_ns ? now_ns + rtt_ns : UINT64_MAX;
    }
    cc->loss_packets += packets;
    if ((double)cc->loss_packets < packets_needed)
        return false;
    cc->loss_packets = 0;
    cc->loss_ok_ns = now_ns + rtt_ns;
    return true;
}

void mrd_cc_least_add(struct mrd_cc_least *least, double ns, double samples)
{
    if (least->samples >= samples) {
        least->prev_ns = least->cur_ns;
        least->samples = 0;
    }
    if (least->samples++ == 0 || ns < least->cur_ns)
        least->cur_ns = ns;
}

double mrd_cc_least_ns(const struct mrd_cc_least *least)
{
    return least->cur_ns < least->prev_ns ? least->cur_ns : least->prev_ns;
}

void mrd_cc_set_least_delay(struct mrd_cc *cc, double sample_ns, double samples)
{
    if (!cc->delay_valid)
        cc->least_delay.prev_ns = sample_ns;
    mrd_cc_least_add(&cc->least_delay, sample_ns, samples);
    cc->delay_ns = mrd_cc_least_ns(&cc->least_delay);
    cc->delay_valid = true;
}

double mrd_cc_measure_queue_ns(struct mrd_cc *cc, const struct mrd_cc_ack *ack)
{
    uint64_t least_ns = ack->rtt_min_ns, most_ns = cc->config->base_rtt_max_ns;
    uint64_t queue_ns = ack->queue_ns;

    if (!ack->queue_valid)
        queue_ns = ack->rtt_ns > least_ns ? ack->rtt_ns - least_ns : 0;
    double length_ns = (double)(ack->rtt_ns - (queue_ns < ack->rtt_ns ? queue_ns : 0));
    if (cc->length_ns > 0)
        cc->length_ns += (length_ns - cc->length_ns) * constants(cc)->length_gain;
    else
        cc->length_ns = length_ns;
    /* A least RTT above the fabric's greatest contains a queue. */
    if (most_ns && least_ns > most_ns)
        queue_ns += least_ns - most_ns;
    return (double)queue_ns;
}

uint64_t mrd_cc_longest_ns(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    uint64_t most_ns = cc->config->base_rtt_max_ns;

    if (most_ns == 0)
        return UINT64_MAX;
    return most_ns > rtt_min_ns ? most_ns - rtt_min_ns : 0;
}

void mrd_cc_calibrated(struct mrd_cc *cc, uint64_t length_ns)
{
    double ns = (double)length_ns;

    /* A window found for a much shorter path says little: begin slow start anew. */
    if (ns >= constants(cc)->anew_times * cc->length_ns)
        cc->slow_start = true;
    if (ns > cc->length_ns)
        cc->length_ns = ns;
    cc->delay_ns = 0;
    if (cc->ops->calibrated)
        cc->ops->calibrated(cc);
}

void mrd_cc_lost(struct mrd_cc *cc, bool in_queue)
{
    cc->round_aside += !in_queue;
}

void mrd_cc_cut_lost(struct mrd_cc *cc, double cwnd_bytes, uint32_t packets)
{
    if (cwnd_bytes >= cc->cwnd_bytes)
        return;
    cc->undo.cwnd_bytes = greater(cc->undo.packets ? cc->undo.cwnd_bytes : 0, cc->cwnd_bytes);
    cc->undo.packets += packets;
    cc->undo.rounds = mrd_tune_count(constants(cc)->undo_rtts);
    cc->cwnd_bytes = cwnd_bytes;
}

void mrd_cc_forget_marks(struct mrd_cc *cc)
{
    if (!cc->ce_seen)
        return;
    cc->ce_seen = false;
    cc->ce_rtt = cc->ce_ewma = 0;
    if (cc->ops->marks_forgotten)
        cc->ops->marks_forgotten(cc);
}

void mrd_cc_found(struct mrd_cc *cc)
{
    if (cc->round_lost)
        cc->round_lost--;
    if (!cc->undo.packets || --cc->undo.packets)
        return;
    cc->cwnd_bytes = greater(cc->cwnd_bytes, cc->undo.cwnd_bytes);
}

void mrd_cc_repaired(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                     uint64_t rtt_min_ns)
{
    if (mrd_cc_tests_losses(cc))
        cc->round_lost += packets;
    else if (mrd_cc_is_elastic(cc))
        cc->ops->lost(cc, packets, now_ns, srtt_ns, rtt_min_ns);
}

void mrd_cc_halve(struct mrd_cc *cc)
{
    double packet = cc->packet_bytes;
    /* RFC 5681: an RTO leaves one packet; a window that is below one packet keeps its size. */
    double least = cc->cwnd_bytes < packet ? cc->cwnd_bytes : packet;

    cc->cwnd_bytes *= constants(cc)->timeout_factor;
    if (cc->cwnd_bytes < least)
        cc->cwnd_bytes = least;
}

void mrd_cc_ignore_lost(struct mrd_cc *cc, uint32_t packets, uint64_t now_ns, uint64_t srtt_ns,
                        uint64_t rtt_min_ns)
{
    (void)cc;
    (void)packets;
    (void)now_ns;
    (void)srtt_ns;
    (void)rtt_min_ns;
}

void mrd_cc_ignore_timeout(struct mrd_cc *cc, uint64_t now_ns)
{
    (void)cc;
    (void)now_ns;
}
