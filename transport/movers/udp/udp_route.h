/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources and MTUs of routes, as the kernel knows them.
 *
 * connect() of a UDP socket asks for them; it sends nothing. The socket for that is opened with the
 * context: a process at its limit of descriptors still can ask.
 */
#ifndef MRD_TRANSPORT_UDP_ROUTE_H
#define MRD_TRANSPORT_UDP_ROUTE_H

#include "transport/movers/udp/udp_state.h"

/* Asks the kernel. 0 or -errno, without mrd_error_set(). */
int mrd_udp_route(const struct mrd_udp *udp, const struct mrd_addr *to,
                  struct mrd_udp_route *route);
/*
 * Payload bytes of a packet that fits the route's MTU, at most `wanted`; `wanted` 0: our choice. 0:
 * not even 64 bytes fit.
 */
uint32_t mrd_udp_payload_fit(const struct mrd_udp_route *route, bool v4, uint32_t wanted);
int mrd_udp_payload_bytes(struct mrd_backend *b, const struct mrd_addr *to);
bool mrd_udp_one_way(struct mrd_backend *b, const struct mrd_addr *to);
/* Does the kernel send to `to` from that address? 0 or -errno, without mrd_error_set(). */
int mrd_udp_route_from(const struct mrd_udp *udp, const struct mrd_addr *from,
                       const struct mrd_addr *to);
void mrd_udp_too_big_add(struct mrd_udp *udp, const struct mrd_addr *to);
bool mrd_udp_too_big(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes);

#endif
