/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: packets to one peer by one path leave as one superpacket, which the kernel or the
 * network card splits (UDP_SEGMENT).
 *
 * A run of packets on one path is one system call. When it stops early, the next call begins with
 * the packet that it stopped at, so an error is always of the first message.
 */
#ifndef MRD_TRANSPORT_UDP_TX_H
#define MRD_TRANSPORT_UDP_TX_H

#include "transport/movers/udp/udp_state.h"

unsigned mrd_udp_tx_burst(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);

#endif
