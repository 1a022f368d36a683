/* SPDX-License-Identifier: BSD-2-Clause */
/* What ICMP says of packets that were sent: that nobody listens at an address. See ip(7), IP_RECVERR. */
#ifndef MRD_TRANSPORT_UDP_ICMP_H
#define MRD_TRANSPORT_UDP_ICMP_H

#include "transport/movers/udp/udp_state.h"

/* Has the kernel keep what ICMP says of packets that the socket sent. */
void mrd_udp_icmp_watch(struct mrd_udp *udp, int fd);
/* Reads what it kept of a socket. Returns whether there was anything: a call may have failed for it. */
bool mrd_udp_icmp_read(struct mrd_udp *udp, int fd);
/* A packet to a peer never heard of leaves by the path: look what came of the ones before. */
void mrd_udp_icmp_ask(struct mrd_udp *udp, uint16_t path);
bool mrd_udp_refused(struct mrd_backend *b, struct mrd_addr *to);

#endif
