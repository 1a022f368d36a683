/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP sender with CUBIC (RFC 9438) that always has data, on a simulated fabric beside contexts: what shares the links of
 * networks. Its window is that of the RFC with the defaults, fast convergence and the Reno-friendly region; each packet is
 * acked; one that three later ones overtook is lost (RFC 6675), and nothing is spurious on one path. Slow start ends with
 * the first loss. Nothing is paced.
 *
 * cubic_start() on two hosts of which no context is open; cubic_delivered_bytes(); cubic_stop() before the simulation ends.
 */
#ifndef MRD_TESTS_SUPPORT_CUBIC_H
#define MRD_TESTS_SUPPORT_CUBIC_H

#include "mrd/sim.h"

struct cubic;

/* `mss`: bytes of data in a packet. */
struct cubic *cubic_start(struct mrd_sim *sim, uint32_t from, uint32_t to, uint32_t mss);
void cubic_stop(struct cubic *c);
/* Data that came to the receiver. */
uint64_t cubic_delivered_bytes(const struct cubic *c);

#endif
