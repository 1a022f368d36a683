/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hub looks at from time to time, as no event tells of it. Of the hub alone. */
#ifndef FORWARD_HUB_SWEEP_H
#define FORWARD_HUB_SWEEP_H

#include <event2/util.h>

#include "tools/forward/hub.h"

/* For struct schedule: requests without an answer, sockets that died, streams that end, and idle windows. */
void hub_on_sweep(evutil_socket_t fd, short what, void *hub);
/* Once a peer timeout: asks each peer whether it knows the sessions of the streams to it. */
/* Who asked for a stream waits for an answer: without memory it gets it later. */
void hub_answer_refused(struct hub *hub, const struct mrd_wc *wc, const struct frame *refused,
                        const char *why);
void hub_answer_owed(struct hub *hub);
void hub_on_ping(evutil_socket_t fd, short what, void *hub);

#endif
