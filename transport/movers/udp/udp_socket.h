/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates the sockets of the UDP mover. */
#ifndef MRD_TRANSPORT_UDP_SOCKET_H
#define MRD_TRANSPORT_UDP_SOCKET_H

#include "transport/movers/udp/udp_state.h"

/*
 * These return 0, or -errno with mrd_error_set(). mrd_udp_family_choose() sets the family, by the
 * bound address and what the machine supports. A source socket is bound to `port`; 0: to an
 * ephemeral one.
 */
int mrd_udp_family_choose(struct mrd_udp *udp);
int mrd_udp_open_rx(struct mrd_udp *udp, uint16_t port);
int mrd_udp_open_path(struct mrd_udp *udp, uint16_t port);
int mrd_udp_open_ask(struct mrd_udp *udp);
/* Connects a path to a peer, in place of the connection that it has; `connected` tells whether. */
void mrd_udp_connect_path(const struct mrd_udp *udp, struct mrd_udp_path *path,
                          const struct mrd_addr *to);

#endif
