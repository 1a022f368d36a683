/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream_drain.h"

#include <errno.h>

#include "tools/forward/stream_in.h"
#include "tools/forward/stream_join.h"
#include "tools/forward/stream_out.h"

/* How long the network may take for what the other end has sent, while that end is there. */
#define NETWORK_TIMEOUT_NS UINT64_C(60000000000)

void stream_drain_on_peer_reset(struct stream *s, const struct frame *frame)
{
    int error = frame->arg ? (int)frame->arg : ECONNRESET;

    if (stream_was_reset(s))
        return;
    if (s->out.state == STREAM_OUT_DISCARDING || !flow_cut(&s->out.flow, frame->seq) ||
        (s->state == STREAM_OPENING && frame->seq == 0)) { /* perhaps no OPENED ever comes */
        stream_reset(s, error, "reset by the other end", false);
        return;
    }
    s->out.state = stream_out_has_ended(s) ? STREAM_OUT_FLUSHING : STREAM_OUT_DRAINING;
    s->drain.ends_with_fin = frame->credit != 0;
    stream_start_drain(s, error);
    stream_in_discard(s);
}

bool stream_is_draining(const struct stream *s)
{
    return stream_was_reset(s) || s->out.state == STREAM_OUT_DISCARDING;
}

/* Is it the network that takes long, and not the reader? */
static bool waits_for_network(struct stream *s, uint64_t now_ns)
{
    if (now_ns - s->drain.moved_ns > NETWORK_TIMEOUT_NS)
        return false;
    if (stream_was_reset(s))
        return !s->drain.peer_was_lost && !flow_next(&s->out.flow, 0) &&
               !flow_is_over(&s->out.flow);
    if (s->drain.query == STREAM_CREDIT_NOT_ASKED) {
        s->drain.query = STREAM_CREDIT_ASKED;
        stream_send(s, &(struct frame){.type = FRAME_ASK}, NULL, 0);
    }
    return s->drain.query == STREAM_CREDIT_ASKED;
}

/* Notes whether bytes left since the last call. What has credit, and is to be read, is on its way. */
static void note_progress(struct stream *s, uint64_t now_ns)
{
    uint64_t moved = s->in.bytes + s->out.bytes - stream_out_unsent(s);

    if (moved == s->drain.moved &&
        !(s->out.state == STREAM_OUT_DISCARDING && flow_may_send(&s->in.flow)))
        return;
    s->drain.moved = moved;
    s->drain.moved_ns = now_ns;
    s->drain.query = STREAM_CREDIT_NOT_ASKED;
}

void stream_drain_check_deadline(struct stream *s, uint64_t now_ns, uint64_t stall_timeout_ns)
{
    bool was_reset = stream_was_reset(s);

    note_progress(s, now_ns);
    if (was_reset && stream_is_unpolled(s) && stream_socket_has_died(s))
        stream_reset(s, s->drain.error, "reset by both ends", false);
    else if (now_ns - s->drain.moved_ns > stall_timeout_ns && !waits_for_network(s, now_ns))
        stream_reset(s, s->drain.error, "nobody read what came before a reset", !was_reset);
    else if (was_reset)
        stream_out_write(s);
}
