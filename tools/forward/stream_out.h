/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream's output: what came is written here in order, and the other end gets credit for more.
 *
 * stream_out_open() by stream_join(). stream_out_on_data() keeps what came; the hub calls
 * stream_out_write() in the same turn of the loop, and after that the socket does when it takes more.
 */
#ifndef FORWARD_STREAM_OUT_H
#define FORWARD_STREAM_OUT_H

#include "tools/forward/stream.h"

/* `fd` is the stream's from now on. False: no memory. */
bool stream_out_open(struct stream *s, int fd);
/* Writes what came. The stream may have ended then. */
void stream_out_write(struct stream *s);
/* Bytes that were written, and that the kernel has not sent yet; 0 if it is no TCP socket. */
uint64_t stream_out_unsent(const struct stream *s);
/*
 * The socket takes no more: what it still gives is sent before the other end is told, see
 * stream_drain.h. The stream ends at once if there is nothing to wait for.
 */
void stream_out_on_socket_lost(struct stream *s, int error, const char *why);
/*
 * Takes back the credit beyond `keep` messages if nothing came since the last call. False: it has no
 * more.
 */
bool stream_out_shrink(struct stream *s, uint32_t keep);

/* Frames that came. The stream may have ended then. `bytes`: true says that it keeps the buffer. */
bool stream_out_on_data(struct stream *s, const struct frame *frame, uint8_t *bytes, uint32_t len);
void stream_out_on_fin(struct stream *s, const struct frame *frame);
void stream_out_on_ask(struct stream *s);
void stream_out_on_yield(struct stream *s, const struct frame *frame);

#endif
