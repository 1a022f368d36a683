/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lone flow gets out of a path that loses packets at random, by formulas: to compare with.
 *
 * Both know nothing of the rate of the path but that nothing goes beyond it: callers take the
 * lesser of the two.
 */
#ifndef MODELS_RESPONSE_H
#define MODELS_RESPONSE_H

/*
 * CUBIC's average window in packets, where one of 1 / loss packets is lost: RFC 9438, section 5 for
 * the cubic function, and section 4.3 for the Reno-friendly region; CUBIC has the greater one.
 * `loss` 0: infinite.
 */
double model_response_cubic_packets(double rtt_s, double loss);
/* The share of the path's rate that arrives with BBR; see response.c for its source. */
double model_response_bbr_share(double loss);

#endif
