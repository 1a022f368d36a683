/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a stream whose other end, or whose socket, broke off. A reset takes nothing back that
 * was sent before it:
 *
 * RESET came: what came, or is on its way, is written before the socket is reset. What is read here
 * is dropped.
 * The socket takes no more: what it still gives is sent before the other end is told. What comes is
 * dropped. See stream_out_on_socket_lost().
 *
 * Either ends when its reader takes nothing for the peer timeout. A network that takes longer is
 * waited for: after RESET one sees that nothing came, and a socket's stream sends ASK.
 */
#ifndef FORWARD_STREAM_DRAIN_H
#define FORWARD_STREAM_DRAIN_H

#include "tools/forward/stream.h"

/* RESET came. The stream may have ended then. */
void stream_drain_on_peer_reset(struct stream *s, const struct frame *frame);
bool stream_is_draining(const struct stream *s);
/*
 * Of one that is draining, once a second: it ends if its reader took nothing for `stall_timeout_ns`.
 */
void stream_drain_check_deadline(struct stream *s, uint64_t now_ns, uint64_t stall_timeout_ns);

#endif
