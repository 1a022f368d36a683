/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows, timeouts and sizes that follow from constants and fabric. */
#ifndef MODELS_CONFIGURE_H
#define MODELS_CONFIGURE_H

#include "tools/sim/models/qp.h"

/* Fill in what follows from `config`; sim and num_hosts are set. -EINVAL after mrd_error_set(). */
int model_flows_configure(struct model_flows *flows, const struct model_flows_config *config);

#endif
