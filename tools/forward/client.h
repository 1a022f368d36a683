/* SPDX-License-Identifier: BSD-2-Clause */
/* The side that listens: each connection becomes a stream to its forward's target. */
#ifndef FORWARD_CLIENT_H
#define FORWARD_CLIENT_H

#include "tools/forward/hub.h"
#include "tools/forward/options.h"
#include "tools/forward/server.h"

struct client;

/* Listens at each of o->forwards. NULL after it said why. */
struct client *client_open(struct hub *hub, const struct options *o, const struct server *server);
/* After hub_close(). */
void client_close(struct client *client);

#endif
