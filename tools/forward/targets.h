/* SPDX-License-Identifier: BSD-2-Clause */
/* The side that serves: it connects to the targets that others ask for, if they are allowed. */
#ifndef FORWARD_TARGETS_H
#define FORWARD_TARGETS_H

#include "tools/forward/hub.h"
#include "tools/forward/options.h"

struct targets;

/* hub_ops whose arg is a struct targets *. */
extern const struct hub_ops targets_ops;

/* NULL after it said why. */
struct targets *targets_open(struct event_base *base, const struct options *o);
/* After hub_close(). */
void targets_close(struct targets *targets);

#endif
