/* SPDX-License-Identifier: BSD-2-Clause */
/* What a host calls of a transport that runs on it in place of a context: see sim_stack.h. */
#ifndef MRD_TRANSPORT_SIM_SIM_STACK_OPS_H
#define MRD_TRANSPORT_SIM_SIM_STACK_OPS_H

#include "transport/movers/sim/sim_packet.h"

struct mrd_sim_stack_ops {
    /* A packet arrived, for the stack to release. If it is `broken`, a link damaged data[]. */
    void (*receive)(void *arg, struct mrd_sim_packet *packet);
    /* The time given to mrd_sim_stack_wake() has come. */
    void (*timer)(void *arg);
};

#endif
