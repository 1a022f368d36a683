/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end, which connects to the targets that others ask for, if they are allowed. */
#ifndef FORWARD_FAR_H
#define FORWARD_FAR_H

#include "tools/forward/hub.h"
#include "tools/forward/options.h"

struct far;

/* hub_ops whose arg is a struct far *. */
extern const struct hub_ops far_ops;

/* NULL after it said why. */
struct far *far_open(struct event_base *base, const struct options *o);
/* After hub_close(). */
void far_close(struct far *far);

#endif
