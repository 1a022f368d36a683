/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: short datagrams by one recvmsg() into the staging buffer, long ones after a peek at
 * their header; where most are short and several wait, some by each recvmmsg().
 *
 * The peek (MSG_PEEK) costs one cheap system call a superpacket. With the header the engine can
 * plan where the payloads belong, and recvmsg() then scatters them straight into the users'
 * buffers. While only short datagrams come there is no peek, which keeps latency low.
 */
#ifndef MRD_TRANSPORT_UDP_RX_H
#define MRD_TRANSPORT_UDP_RX_H

#include "transport/movers/udp/udp_state.h"

unsigned mrd_udp_rx_burst(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                          bool *more, mrd_plan_fn *plan, void *plan_arg);
void mrd_udp_rx_return(struct mrd_backend *b);

#endif
