/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses device, port, GID and the numbers of paths, slots and queue pairs, by what the device
 * can do.
 */
#ifndef MRD_TRANSPORT_IBV_PORT_H
#define MRD_TRANSPORT_IBV_PORT_H

#include "transport/movers/ibv/ibv_state.h"

/*
 * Opens the device, chooses port and GID, and finds out MTU, entropy and sizes. 0 or -errno
 * with mrd_error_set().
 */
int mrd_ibv_port_open(struct mrd_ibv *ibv, const struct mrd_context_attr *attr);
void mrd_ibv_port_facts(struct mrd_backend *b, struct mrd_port_facts *facts);

#endif
