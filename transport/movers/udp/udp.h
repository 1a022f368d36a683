/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes the UDP mover: its ops are mrd_udp_ops of backend.h. */
#ifndef MRD_TRANSPORT_UDP_H
#define MRD_TRANSPORT_UDP_H

#include "transport/movers/udp/udp_state.h"

/*
 * mrd_udp_ops.open() of a device with that name, for tests: without some of the machine's abilities: `without`
 * is of enum mrd_udp_without.
 */
struct mrd_backend *mrd_udp_open_without(const char *device, const struct mrd_context_attr *attr,
                                         unsigned without, int *error);

#endif
