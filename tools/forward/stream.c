/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/forward/say.h"

enum { WINDOW_FIRST = 4 };

/* ---------------------------------------------------------------------------------- the beginning */

uint32_t stream_window_first(const struct stream_shared *shared)
{
    return shared->window_max < WINDOW_FIRST ? shared->window_max : WINDOW_FIRST;
}

/* Few messages where many streams share the buffers; 0: there are none. */
static uint32_t window_of_next(const struct stream_shared *shared)
{
    uint32_t free = link_buffers_free(shared->link);
    uint32_t window = stream_window_first(shared);

    if (free < link_buffers(shared->link) / 8 * 7)
        window = 1;
    return free < window ? free : window;
}

struct stream *stream_create(struct stream_shared *shared, struct link_peer *peer, char *why,
                             size_t why_bytes)
{
    uint32_t window = window_of_next(shared);
    struct stream *s;

    if (shared->table.num == shared->table.max || !window) {
        snprintf(why, why_bytes, "there are %u streams, as many as %s allows", shared->table.num,
                 window ? "--streams" : "--memory");
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(why, why_bytes, "no memory");
        return NULL;
    }
    schedule_entry_init(&s->entry);
    s->shared = shared;
    s->id = stream_table_add(&shared->table, s);
    s->peer = peer;
    s->own = peer->own;
    s->in.fd = s->out.fd = -1;
    s->request.began_ns = s->request.asked_ns = clock_now_ns();
    peer->uses++;
    link_grant(shared->link, window);
    schedule_sweep_if_scarce(&shared->schedule);
    flow_rx_init(&s->out.flow, window);
    link_peer_watch(peer);
    return s;
}

void stream_destroy_ended(struct stream_shared *shared)
{
    for (struct schedule_entry *e; (e = schedule_next_ended(&shared->schedule));) {
        struct stream *s = stream_of(e);

        link_peer_release(shared->link, s->peer);
        free(s->target);
        free(s);
    }
}

/* -------------------------------------------------------------------------------------- frames out */

void stream_make_due(struct stream *s)
{
    schedule_make_due(&s->shared->schedule, &s->entry);
}

void stream_send(struct stream *s, const struct frame *frame, const void *bytes, uint32_t len)
{
    struct frame full = *frame;
    int rc;

    full.session = s->session;
    full.stream = s->remote;
    rc = link_send(s->shared->link, s->peer, s->id, &full, bytes, len);
    if (rc == 0)
        return;
    say_detail("%s: %s", s->peer->address, mrd_last_error());
    s->send_error = -rc;
    stream_make_due(s);
}

void stream_ask(struct stream *s)
{
    s->own = s->peer->own;

    struct frame frame = {
        .type = FRAME_OPEN, .seq = s->own, .arg = s->id, .credit = s->out.flow.window};
    int rc =
        link_send(s->shared->link, s->peer, s->id, &frame, s->target, (uint32_t)strlen(s->target));

    s->request.tries++;
    if (rc == 0)
        return;
    s->send_error = -rc;
    stream_make_due(s);
}

/* ---------------------------------------------------------------------------------------- the end */

/* Others may have the open file, too: it blocks again if it did. */
static void close_pipe(const struct stream *s, int *fd, bool was_blocking)
{
    bool in_use = s->is_one_file && s->in.fd >= 0 && s->out.fd >= 0;
    int flags = was_blocking && !in_use ? fcntl(*fd, F_GETFL) : -1;

    if (flags >= 0)
        (void)fcntl(*fd, F_SETFL, flags & ~O_NONBLOCK);
    close(*fd);
    *fd = -1;
}

void stream_close_in(struct stream *s)
{
    if (s->in.fd >= 0 && s->in.fd != s->out.fd)
        close_pipe(s, &s->in.fd, s->in.was_blocking);
}

void stream_close_out(struct stream *s)
{
    if (s->out.fd >= 0 && s->in.fd != s->out.fd)
        close_pipe(s, &s->out.fd, s->out.was_blocking);
}

static void close_socket(struct stream *s, bool reset)
{
    struct linger at_once = {.l_onoff = 1};

    if (reset)
        (void)setsockopt(s->in.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(s->in.fd);
    s->in.fd = s->out.fd = -1;
}

static void close_both(struct stream *s, bool reset)
{
    if (s->in.readable)
        event_free(s->in.readable);
    if (s->out.writable)
        event_free(s->out.writable);
    s->in.readable = s->out.writable = NULL;
    if (s->in.fd >= 0 && s->in.fd == s->out.fd) {
        /* Nothing is reset where all was handed on that there was. */
        close_socket(s, reset && !(stream_in_has_ended(s) && stream_out_has_ended(s)));
        return;
    }
    stream_close_in(s);
    stream_close_out(s);
}

static void end_stream(struct stream *s, int error, const char *why)
{
    struct stream_shared *shared = s->shared;

    assert(s->state != STREAM_ENDED);
    close_both(s, error != 0);
    for (uint8_t *buffer; (buffer = flow_take(&s->out.flow));)
        link_return(shared->link, buffer);
    flow_rx_fini(&s->out.flow);
    link_take_back(shared->link, s->out.flow.window);
    s->state = STREAM_ENDED;
    if (s->ops)
        s->ops->ended(s, error, why);
    shared->totals.bytes_in += s->in.bytes;
    shared->totals.bytes_out += s->out.bytes;
    stream_table_remove(&shared->table, s->id);
    schedule_end(&shared->schedule, &s->entry);
}

void stream_start_drain(struct stream *s, int error)
{
    s->drain.error = error;
    s->drain.moved_ns = clock_now_ns();
    schedule_sweep(&s->shared->schedule);
    stream_make_due(s);
}

void stream_end_if_done(struct stream *s)
{
    if (s->in.state == STREAM_IN_DONE && s->out.state == STREAM_OUT_DONE)
        end_stream(s, 0, "");
}

void stream_reset(struct stream *s, int error, const char *why, bool tell)
{
    if (tell && s->state == STREAM_OPEN)
        stream_send(s,
                    &(struct frame){.type = FRAME_RESET,
                                    .seq = s->in.flow.sent,
                                    .arg = (uint32_t)error,
                                    .credit = stream_in_has_ended(s)},
                    NULL, 0);
    end_stream(s, error, why);
}
