/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine refuses, as sandboxes and old kernels do. Contexts work without it, at a price
 * that the log names once for each context.
 */
#ifndef MRD_TRANSPORT_UDP_LACKS_H
#define MRD_TRANSPORT_UDP_LACKS_H

#include "transport/movers/udp/udp_state.h"

/* The machine refused it with `error`, of either sign: logs that, the first time. */
void mrd_udp_lacks(struct mrd_udp *udp, enum mrd_udp_ability ability, int error);
static inline bool mrd_udp_can(const struct mrd_udp *udp, enum mrd_udp_ability ability)
{
    return !(udp->lacks & 1u << ability);
}
/* Sets the ability's socket option to `value`. */
void mrd_udp_ask(struct mrd_udp *udp, int fd, enum mrd_udp_ability ability, int value);
/* Does the kernel tell the MTU of routes? `fd` is not connected. */
void mrd_udp_ask_for_mtu(struct mrd_udp *udp, int fd);

#endif
