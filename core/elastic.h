/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do losses follow the window? Those of a policer do, and of a queue too short to show as delay;
 * those of a bad cable, or of a bottleneck where our share is small, do not, and a cut would
 * only cost.
 *
 * Each round trip's packets are told by mrd_elastic_round(). Losses beyond the usual share add up
 * (CUSUM: Page, "Continuous inspection schemes", 1954). When they are too many, and not all of one
 * burst, a test looks at the share that is lost for some round trips. If it is not small the window
 * is cut, and held until so many packets are known that the same share of them would be clearly
 * told from a third of it, and for so long that bursts would have come. Fell it to a third, the
 * losses follow the window: it grows by percents, and is cut without another test for some times.
 * If not it is cut again, a few times; then it gets back what it had before the test, and that
 * share is usual. (After the policer detection of BBR, draft-cardwell-iccrg-bbr-congestion-control,
 * which looks at the delivered rate of two lossy intervals; here the cut is the test.)
 */
#ifndef MRD_CORE_ELASTIC_H
#define MRD_CORE_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tune.h"

enum mrd_elastic_act {
    MRD_ELASTIC_NONE = 0,
    MRD_ELASTIC_CUT,     /* to `factor` of the window */
    MRD_ELASTIC_RESTORE, /* at least to `cwnd_bytes` */
};

struct mrd_elastic {
    bool testing;         /* the window is held */
    bool one_at_a_time;   /* it was below one packet when the test began */
    uint32_t steps;       /* cuts of this test */
    uint32_t wait;        /* rounds until losses are of packets sent after the cut */
    uint32_t cuts;        /* since the last test */
    double gain;          /* of the window, what it may grow by in an RTT; 0: as usual */
    double growth;        /* of the window in this RTT */
    double excess;        /* packets lost beyond the usual share */
    double sent, lost;    /* packets since `excess` left zero, or since the test's last cut */
    double rounds, lossy; /* round trips since then, and those of them that lost something */
    double recent_sent, recent_lost; /* packets of the last round trips */
    double share;                    /* lost before that cut, or before the test's first */
    double usual;                    /* lost whatever the window was */
    double cwnd_bytes;               /* before the test */
    double factor;
};

/* A round trip is over in which `sent` packets were acked or declared lost, `lost` of them lost. */
enum mrd_elastic_act mrd_elastic_round(struct mrd_elastic *x, const struct mrd_tune_elastic *tune,
                                       double sent, double lost, double cwnd_bytes,
                                       double packet_bytes);
/*
 * Something else explains the losses: the window grows as usual. What share is usual stays known.
 */
void mrd_elastic_reset(struct mrd_elastic *x);

#endif
