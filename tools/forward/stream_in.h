/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream's input: what can be read here is sent, as far as there are credit and buffers.
 *
 * stream_in_open() and stream_in_start() by stream_join(). Without credit, or a buffer, nothing is
 * read: then the socket is not polled, and stream_is_unpolled() of stream_join.h says so.
 */
#ifndef FORWARD_STREAM_IN_H
#define FORWARD_STREAM_IN_H

#include "tools/forward/stream.h"

/* `fd` is the stream's from now on. False: no memory. */
bool stream_in_open(struct stream *s, int fd);
void stream_in_start(struct stream *s);
/* Reads and sends. The stream may have ended then. */
void stream_in_read(struct stream *s);
/* No more is read: sends FIN. */
void stream_in_finish(struct stream *s);
/* RESET came: what is read is dropped from now on. */
void stream_in_discard(struct stream *s);

/* Frames that came. The stream may have ended then. */
void stream_in_on_credit(struct stream *s, const struct frame *frame);
void stream_in_on_recall(struct stream *s, const struct frame *frame);
void stream_in_on_done(struct stream *s);

#endif
