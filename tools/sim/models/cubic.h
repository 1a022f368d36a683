/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP sender with CUBIC (RFC 9438) that always has data, beside contexts on a simulated fabric:
 * what shares the links of networks.
 *
 * Its window is that of the RFC with the defaults, fast convergence and the Reno-friendly region.
 * Each packet is acked; one that three later ones overtook is lost (RFC 6675), and nothing is
 * spurious on one path. Slow start ends with the first loss. Nothing is paced, and packets are not
 * marked.
 *
 * model_cubic_start() on two hosts of which no context is open; model_cubic_delivered_bytes();
 * model_cubic_stop() before the simulation ends.
 */
#ifndef MODELS_CUBIC_H
#define MODELS_CUBIC_H

#include "mrd/sim.h"

/* Headers of a data packet on the wire: preamble to gap of Ethernet, IPv4, TCP with timestamps. */
enum { MODEL_CUBIC_HEADER_BYTES = 66 + 32 };

struct model_cubic;

/*
 * `mss`: bytes of data in a packet. NULL with errno EBUSY: a context or stack has one of the hosts;
 * or ENOMEM.
 */
struct model_cubic *model_cubic_start(struct mrd_sim *sim, uint32_t from, uint32_t to,
                                      uint32_t mss);
/* `c` may be NULL. */
void model_cubic_stop(struct model_cubic *c);
/* Data that came to the receiver, each byte once. */
uint64_t model_cubic_delivered_bytes(const struct model_cubic *c);

#endif
