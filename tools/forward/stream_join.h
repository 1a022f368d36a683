/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream and its descriptors: it gets them, and they may die while nothing polls them. */
#ifndef FORWARD_STREAM_JOIN_H
#define FORWARD_STREAM_JOIN_H

#include "tools/forward/stream.h"

/* `in` and `out` are the stream's now; non-blocking. 0, or -ENOMEM: it was reset. */
int stream_join(struct stream *s, int in, int out);
/*
 * Does the event loop poll neither descriptor, as the stream waits for the other end? Then it would
 * not tell that the socket has died.
 */
bool stream_is_unpolled(const struct stream *s);
/* Of its input alone: it will be unpolled, by no event, when all that came is written. */
bool stream_input_is_unpolled(const struct stream *s);
bool stream_socket_has_died(const struct stream *s);

#endif
