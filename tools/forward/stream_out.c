/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream_out.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tools/forward/stream_in.h"

enum { IOVECS_MAX = 16 };

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    stream_out_write(arg);
}

bool stream_out_open(struct stream *s, int fd)
{
    s->out.fd = fd;
    s->out.writable = event_new(s->shared->base, fd, EV_WRITE | EV_PERSIST, on_writable, s);
    return s->out.writable != NULL;
}

uint64_t stream_out_unsent(const struct stream *s)
{
    int bytes = 0;

    if (s->out.fd < 0 || ioctl(s->out.fd, SIOCOUTQNSD, &bytes) != 0)
        return 0;
    return (uint64_t)bytes;
}

/* ----------------------------------------------------------------------------------------- credit */

/* A window grows while a quarter of all buffers is left for others. */
static void grow_window(struct stream *s)
{
    struct link *link = s->shared->link;
    uint32_t more = flow_wants(&s->out.flow, s->shared->window_max);

    if (!more || link_buffers_free(link) < more + link_buffers(link) / 4 ||
        !flow_grow(&s->out.flow, more))
        return;
    link_grant(link, more);
    schedule_sweep_if_scarce(&s->shared->schedule);
}

static void give_credit(struct stream *s)
{
    struct flow_rx *flow = &s->out.flow;
    uint32_t credit;

    grow_window(s);
    if (!flow_tell(flow, &credit) && !(s->out.owes_credit && flow_answer(flow, &credit)))
        return;
    s->out.owes_credit = false;
    stream_send(s, &(struct frame){.type = FRAME_CREDIT, .seq = flow->round, .credit = credit},
                NULL, 0);
}

bool stream_out_shrink(struct stream *s, uint32_t keep)
{
    struct flow_rx *flow = &s->out.flow;
    bool is_idle = s->out.came_until_sweep == flow->came;
    uint32_t credit;

    s->out.came_until_sweep = flow->came;
    if (s->state != STREAM_OPEN || stream_was_reset(s) || flow->has_end || flow->window <= keep)
        return false;
    if (is_idle && flow_recall(flow, keep, &credit))
        stream_send(s, &(struct frame){.type = FRAME_RECALL, .seq = flow->round, .credit = credit},
                    NULL, 0);
    return true;
}

/* ---------------------------------------------------------------------------------------- writing */

/* Only of a socket can there be something to read when nothing can be written. */
void stream_out_on_socket_lost(struct stream *s, int error, const char *why)
{
    if (stream_was_reset(s) || stream_in_has_ended(s) || s->in.fd != s->out.fd) {
        stream_reset(s, error, why, !stream_was_reset(s));
        return;
    }
    s->out.state = STREAM_OUT_DISCARDING;
    (void)event_del(s->out.writable);
    stream_start_drain(s, error);
}

/* The bytes of the oldest messages that are in order. Returns how many iovecs. */
static int gather(struct stream *s, struct iovec *iov)
{
    uint32_t skip = s->out.written;
    int num = 0;

    for (; num < IOVECS_MAX; num++, skip = 0) {
        struct flow_slot *slot = flow_next(&s->out.flow, (uint32_t)num);

        if (!slot)
            break;
        iov[num] = (struct iovec){slot->buffer + skip, slot->len - skip};
    }
    return num;
}

/* Returns the buffer of the oldest message. */
static void release_oldest(struct stream *s, const struct flow_slot *slot)
{
    link_return(s->shared->link, slot->buffer);
    flow_drained(&s->out.flow);
}

static void release_written(struct stream *s, size_t n)
{
    s->out.bytes += n;
    n += s->out.written;
    for (;;) {
        struct flow_slot *slot = flow_next(&s->out.flow, 0);
        uint32_t len = slot ? slot->len : 0;

        if (!slot || n < len)
            break;
        release_oldest(s, slot);
        n -= len;
    }
    s->out.written = (uint32_t)n;
}

static void discard_output(struct stream *s)
{
    struct flow_slot *slot;

    while ((slot = flow_next(&s->out.flow, 0)))
        release_oldest(s, slot);
    s->out.written = 0;
}

static void end_of_output(struct stream *s)
{
    s->out.state = STREAM_OUT_DONE;
    (void)event_del(s->out.writable);
    (void)shutdown(s->out.fd,
                   SHUT_WR); /* also if standard input is the same socket; else it fails */
    stream_close_out(s);
    stream_send(s, &(struct frame){.type = FRAME_DONE}, NULL, 0);
    if (s->in.ends_with_output && s->in.state == STREAM_IN_READING)
        stream_in_finish(s);
    stream_end_if_done(s);
}

/* A reset of the socket would discard what has not left yet. */
static void end_if_drained(struct stream *s)
{
    int one = 1;

    if (!flow_is_over(&s->out.flow))
        return;
    if (stream_out_unsent(s)) {
        /* Writable: nothing is left. After the end of output it always is; there is the sweep. */
        if (s->out.state == STREAM_OUT_DRAINING &&
            setsockopt(s->out.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &one, sizeof(one)) == 0)
            (void)event_add(s->out.writable, NULL);
        return;
    }
    if (s->drain.ends_with_fin && s->out.state == STREAM_OUT_DRAINING) {
        (void)shutdown(s->out.fd, SHUT_WR);
        s->out.state = STREAM_OUT_FLUSHING;
    }
    stream_reset(s, s->drain.error, "reset by the other end", false);
}

/* Writes what is in order, as far as the descriptor takes it. False: it failed. */
static bool write_output(struct stream *s)
{
    struct iovec iov[IOVECS_MAX];
    int num;

    while ((num = gather(s, iov)) > 0) {
        ssize_t n = writev(s->out.fd, iov, num);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            (void)event_add(s->out.writable, NULL);
            return true;
        }
        if (n < 0) {
            int error = errno;

            stream_out_on_socket_lost(s, error, strerror(error));
            return false;
        }
        release_written(s, (size_t)n);
    }
    (void)event_del(s->out.writable);
    return true;
}

void stream_out_write(struct stream *s)
{
    switch (s->out.state) {
    case STREAM_OUT_WRITING:
        if (s->out.fd < 0 || !write_output(s))
            return;
        give_credit(s);
        if (flow_is_over(&s->out.flow))
            end_of_output(s);
        return;
    case STREAM_OUT_DRAINING:
        if (s->out.fd >= 0 && write_output(s))
            end_if_drained(s);
        return;
    case STREAM_OUT_FLUSHING:
        end_if_drained(s);
        return;
    case STREAM_OUT_DISCARDING:
        discard_output(s);
        give_credit(s);
        return;
    case STREAM_OUT_DONE:
        return;
    }
}

/* -------------------------------------------------------------------------------------- frames in */

bool stream_out_on_data(struct stream *s, const struct frame *frame, uint8_t *bytes, uint32_t len)
{
    if (!flow_came(&s->out.flow, frame->seq, bytes, len, frame->credit == 1)) {
        stream_reset(s, EPROTO, "the other end sent more than its credit", true);
        return false;
    }
    stream_make_due(s);
    return true;
}

void stream_out_on_fin(struct stream *s, const struct frame *frame)
{
    if (stream_was_reset(s))
        return;
    if (flow_end(&s->out.flow, frame->seq))
        stream_make_due(s);
    else
        stream_reset(s, EPROTO, "the other end ended twice, or before its data", true);
}

void stream_out_on_ask(struct stream *s)
{
    if (s->state != STREAM_OPEN || stream_was_reset(s))
        return;
    s->out.owes_credit = true;
    give_credit(s);
}

void stream_out_on_yield(struct stream *s, const struct frame *frame)
{
    link_take_back(s->shared->link, flow_yielded(&s->out.flow, frame->seq, frame->credit));
    if (s->state == STREAM_OPEN && !stream_was_reset(s))
        give_credit(s);
}
