/* SPDX-License-Identifier: BSD-2-Clause */
/* The near end, which listens: each connection becomes a stream to its forward's target. */
#ifndef FORWARD_NEAR_H
#define FORWARD_NEAR_H

#include "tools/forward/hub.h"
#include "tools/forward/options.h"
#include "tools/forward/server.h"

struct near;

/* Listens at each of o->forwards. NULL after it said why. */
struct near *near_open(struct hub *hub, const struct options *o, const struct server *server);
/* After hub_close(). */
void near_close(struct near *near);

#endif
