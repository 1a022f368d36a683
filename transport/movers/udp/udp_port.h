/* SPDX-License-Identifier: BSD-2-Clause */
/* Network interfaces: as devices, and what the kernel tells of the one that a context uses. */
#ifndef MRD_TRANSPORT_UDP_PORT_H
#define MRD_TRANSPORT_UDP_PORT_H

#include "transport/movers/udp/udp_state.h"

/* The device that binds no interface's address. */
#define MRD_UDP_ANY "udp"

/*
 * The first address of an interface that other hosts can use. 0; -ENODEV: no such interface;
 * -EADDRNOTAVAIL: it is down, or has none; or another -errno. All with mrd_error_set().
 */
int mrd_udp_interface_address(const char *name, struct mrd_addr *addr);
void mrd_udp_port_facts(struct mrd_backend *b, struct mrd_port_facts *facts);
/* The MTU of the interface that has the address, in bytes, or what it most probably is. */
uint32_t mrd_udp_interface_mtu(const struct mrd_addr *addr);

#endif
