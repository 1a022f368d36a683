/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nscc: is delay that stays a queue of ours, or the length of the paths? It is a length if it stays
 * when our window is too small for some RTTs to make a queue, or if a fabric that marks does not
 * mark it.
 */
#include "core/cc_nscc.h"

static void enter_state(struct mrd_cc *cc, uint8_t state)
{
    cc->nscc.watch.state = state;
    cc->nscc.watch.rounds = 0;
}

/* Requests that the paths take the watched delay for their length; ends a drain. */
static void calibrate(struct mrd_cc *cc, enum mrd_cc_request request, double fall_ns,
                      uint64_t rtt_min_ns)
{
    double base_ns = (double)mrd_cc_base_rtt_ns(cc, rtt_min_ns);

    cc->request = (uint8_t)request;
    cc->calibration.fall_ns = fall_ns;
    cc->calibration.least_ns = constants(cc)->calibrate_share * base_ns;
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
    cc->calibration.fall_ns = (cc->length_ns + cc->delay_ns) * (1 - floor_bytes / cc->cwnd_bytes);
    cc->cwnd_bytes = floor_bytes;
    cc->request = MRD_CC_REQUEST_DRAIN;
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
        cc->request = MRD_CC_REQUEST_WATCH;
        w->after_ns = w->before_ns;
        enter_state(cc, WATCH_LEAST);
        return;
    }
    /* mrd_nscc_calibrated() shortens it. */
    w->rest = mrd_tune_count(constants(cc)->watch_rest_rtts);
    w->ours_ns = w->before_ns * (1 + constants(cc)->watch_share);
    refill(cc);
    calibrate(cc, MRD_CC_REQUEST_CALIBRATE, cc->calibration.fall_ns, rtt_min_ns);
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

void mrd_nscc_watch(struct mrd_cc *cc, uint64_t rtt_min_ns, double target_ns)
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
        cc->request = MRD_CC_REQUEST_WATCH;
    if (cc->delay_ns >= target_ns && cc->cwnd_bytes * (1 - tune->watch_slack) <= floor_bytes) {
        if (w->rounds > tune->watch_floor_rtts)
            drain(cc, rtt_min_ns);
    } else if (w->rounds > tune->watch_cap_rtts && held_by_cap(cc)) {
        drain(cc, rtt_min_ns);
    }
}

void mrd_nscc_calibrated(struct mrd_cc *cc)
{
    uint32_t again = mrd_tune_count(constants(cc)->watch_again_rtts);
    struct mrd_cc_watch *w = &cc->nscc.watch;

    /* Some of the delay is still unexplained: ask again soon. */
    if (w->after_ns >= w->before_ns / 2)
        w->rest = 0;
    else if (w->rest > again)
        w->rest = again;
}

void mrd_nscc_marks_forgotten(struct mrd_cc *cc)
{
    cc->nscc.watch.rounds = 0;
}
