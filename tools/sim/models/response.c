/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/models/response.h"

#include <math.h>

/* RFC 9438, sections 4.2 and 4.6. */
#define CUBIC_C    0.4
#define CUBIC_BETA 0.7

/* AIMD(alpha, beta) with an alpha that makes its average that of Reno. */
static double reno_packets(double loss)
{
    double alpha = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA);

    return sqrt(alpha * (1 + CUBIC_BETA) / (2 * (1 - CUBIC_BETA) * loss));
}

double model_response_cubic_packets(double rtt_s, double loss)
{
    double factor = pow(CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA)), 0.25);

    return fmax(factor * pow(rtt_s / loss, 0.75), reno_packets(loss));
}

/*
 * Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016. Losses do not
 * slow it down, until they take what probing adds: at a gain of 1.25 a share of 1 - 1 / 1.25; from
 * there on each probe measures less than the one before, and nothing is left. ProbeRTT takes 200 ms
 * of each 10 s.
 */
#define BBR_PROBE_GAIN      1.25
#define BBR_PROBE_RTT_SHARE (0.2 / 10)

double model_response_bbr_share(double loss)
{
    if (loss >= 1 - 1 / BBR_PROBE_GAIN)
        return 0;
    return (1 - loss) * (1 - BBR_PROBE_RTT_SHARE);
}
