/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do losses follow the window? Those of a policer do, and those of a queue too short to show as
 * delay. Those of a bad cable do not, nor of a bottleneck where our share is small: there a cut
 * would only cost throughput.
 *
 * Call mrd_elastic_end_round() at the end of each round trip; it says what to do with the window.
 * Losses beyond the usual share add up (CUSUM: Page, "Continuous inspection schemes", 1954). When
 * they reach alarm_packets in several round trips, a test begins. It measures the share lost for
 * some round trips. If that is not small, it cuts the window and holds it, until enough packets
 * came to tell the same share from falls_to of it. It lasts long enough for bursts of losses
 * to occur.
 *
 * If the share fell so far, the losses follow the window. From then on the window grows by
 * percents, and is cut without a test some times. If not, the test cuts again, up to `steps` times;
 * then the window is restored, and that share is the usual one. (After the policer detection of
 * BBR, draft-cardwell-iccrg-bbr-congestion-control, which looks at the delivered rate of two lossy
 * intervals; here the cut is the test.) Constants: mrd_tune.elastic.
 */
#ifndef MRD_CORE_ELASTIC_H
#define MRD_CORE_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tune.h"

enum mrd_elastic_act {
    MRD_ELASTIC_NONE = 0,
    MRD_ELASTIC_CUT,     /* cut the window to `factor` of it */
    MRD_ELASTIC_RESTORE, /* set the window to `cwnd_bytes` at least */
};

struct mrd_elastic {
    bool testing;         /* a test runs: the window is held */
    bool one_at_a_time;   /* the window was below one packet when the test began */
    uint32_t steps;       /* cuts of this test so far */
    uint32_t wait;        /* rounds until losses are of packets sent after the cut */
    uint32_t cuts;        /* since the last test */
    double gain;          /* share of the window that it may grow by in an RTT; 0: no limit */
    double growth;        /* share of the window to grow by in this RTT */
    double excess;        /* CUSUM: packets lost beyond the usual share */
    double sent, lost;    /* packets since `excess` left zero, or since the test's last cut */
    double rounds, lossy; /* round trips since then; those with losses */
    double recent_sent, recent_lost; /* decaying numbers of packets */
    double share;                    /* share lost before that cut, or before the test's first */
    double usual;                    /* share lost whatever the window was */
    double cwnd_bytes;               /* window before the test */
    double factor;
};

/*
 * A round trip ended in which `sent` packets were acked or declared lost, `lost` of them lost.
 * Returns what to do with the window.
 */
enum mrd_elastic_act mrd_elastic_end_round(struct mrd_elastic *x,
                                           const struct mrd_tune_elastic *tune, double sent,
                                           double lost, double cwnd_bytes, double packet_bytes);
/* Something else explains the losses: ends a test and limited growth. The usual share is kept. */
void mrd_elastic_reset(struct mrd_elastic *x);

#endif
