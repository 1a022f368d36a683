/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of nscc share, cc_nscc*.c; nobody else includes it. cc_nscc.c has the whole story. */
#ifndef MRD_CORE_CC_NSCC_H
#define MRD_CORE_CC_NSCC_H

#include "core/cc.h"

/* State of the watch: is the delay our queue? */
enum { WATCH_DOUBT = 0, WATCH_DRAIN, WATCH_LEAST };

static inline const struct mrd_tune_nscc *constants(const struct mrd_cc *cc)
{
    return &cc->tune->nscc;
}

static inline double greater(double a, double b)
{
    return a > b ? a : b;
}

static inline double within(double least, double x, double most)
{
    return x < least ? least : x > most ? most : x;
}

static inline bool rate_known(const struct mrd_cc *cc)
{
    return cc->config->link_bps != 0;
}

/* Is the way so long that a window at once would be too much for its queues? */
static inline bool is_far(const struct mrd_cc *cc)
{
    return cc->length_ns >= constants(cc)->far_rtt_ns;
}

/*
 * Did a queue drop packets of late? Then the window grows slowly, delay does not cut it, and packets are
 * paced.
 */
static inline bool is_gentle(const struct mrd_cc *cc)
{
    return cc->nscc.queue_losses.gentle != 0 && !cc->ce_seen;
}

static inline uint16_t gentle_rounds(const struct mrd_cc *cc)
{
    double rounds = constants(cc)->gentle_rounds + constants(cc)->gentle_ramp_rounds;

    return rounds < UINT16_MAX ? (uint16_t)rounds : UINT16_MAX;
}

static inline double bdp_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    return greater(mrd_cc_bdp_bytes(cc, rtt_min_ns),
                   constants(cc)->least_bdp_packets * cc->packet_bytes);
}

/* Returns the least window to which delay without marks may cut. */
static inline double delay_floor_bytes(const struct mrd_cc *cc, uint64_t rtt_min_ns)
{
    if (cc->loss_ewma > constants(cc)->floor_loss_share)
        return 0;
    if (rate_known(cc) && is_gentle(cc))
        return mrd_cc_measured_bdp_bytes(cc, rtt_min_ns);
    if (rate_known(cc))
        return bdp_bytes(cc, rtt_min_ns);
    return greater(cc->start_bytes, mrd_cc_bdp_bytes(cc, rtt_min_ns));
}

static inline bool drained(const struct mrd_cc *cc)
{
    return cc->nscc.watch.state != WATCH_DOUBT;
}

/* ------------------------------------------------------------- cc_nscc_watch.c: is it our queue? */

/* Decides at the end of a round whether to drain our queue, or to have the paths calibrated. */
void mrd_nscc_watch(struct mrd_cc *cc, uint64_t rtt_min_ns, double target_ns);
void mrd_nscc_calibrated(struct mrd_cc *cc);
void mrd_nscc_marks_forgotten(struct mrd_cc *cc);

/* -------------------------------------------- cc_nscc_loss.c: what losses mean where nothing marks */

/* At the end of a round: cuts, tests and grows the window for what was lost in it. */
void mrd_nscc_judge_losses(struct mrd_cc *cc, const struct mrd_cc_ack *ack);
/*
 * Ends slow start. On a long way what it sent beyond what gets through would be dropped for round
 * trips: a window for what was measured is enough.
 */
void mrd_nscc_leave_slow_start(struct mrd_cc *cc, uint64_t rtt_min_ns);
/*
 * Returns the growth for an acked packet after losses at a queue: of a packet an RTT, as TCP's, so
 * that flows that share the queue converge; for a short RTT less and for a long one more. Then it
 * gets faster. Faster at once while there is no queue: where the rate is known, or the window is
 * below what it was at the start or, on a long way, below what got through lately.
 */
double mrd_nscc_gentle_growth(const struct mrd_cc *cc, uint64_t srtt_ns, double base_ns);

#endif
