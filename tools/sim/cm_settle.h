/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that involve several lines of a connection matrix.
 *
 * simx_cm_settle() once all lines are read.
 */
#ifndef MRD_SIM_CM_SETTLE_H
#define MRD_SIM_CM_SETTLE_H

#include "tools/sim/cm.h"
#include "tools/sim/lines.h"

/*
 * Trigger ids in the flows (trigger, send_done, recv_done) become indices, and the counts of
 * barriers without one are filled in. 0; -EINVAL with a sentence: an id twice,
 * a trigger that is undefined or cannot fire; -ENOMEM.
 */
int simx_cm_settle(struct simx_cm *cm, const struct simx_lines *lines);

#endif
