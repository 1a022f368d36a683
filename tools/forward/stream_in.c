/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/stream_in.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READS_MAX = 4 /* messages of a stream before the others have their turn */ };

/* ---------------------------------------------------------------------------------------- opening */

static void wait_for_buffer(struct stream *s)
{
    schedule_wait_for_buffer(&s->entry, s->peer);
    (void)event_del(s->in.readable);
}

/* Behind those that wait for a buffer already. */
static void read_in_turn(struct stream *s)
{
    if (!mrd_list_empty(&s->peer->waiting) && !stream_was_reset(s))
        wait_for_buffer(s);
    else
        stream_in_read(s);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    read_in_turn(arg);
}

/* False: a regular file and the like, which never has to wait. */
static bool can_poll(int fd)
{
    struct epoll_event event = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct stat status;
    bool can;

    if (epoll < 0) /* no descriptor is left to ask with: most that cannot are regular files */
        return fstat(fd, &status) || !S_ISREG(status.st_mode);
    can = epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno != EPERM;
    close(epoll);
    return can;
}

bool stream_in_open(struct stream *s, int fd)
{
    s->in.fd = fd;
    s->in.is_file = !can_poll(fd);
    s->in.readable =
        event_new(s->shared->base, s->in.is_file ? -1 : fd, EV_READ | EV_PERSIST, on_readable, s);
    return s->in.readable != NULL;
}

/* A file is always readable, and nothing can wait for it. */
static void poll_input(struct stream *s)
{
    if (!s->in.is_file)
        (void)event_add(s->in.readable, NULL);
    else
        event_active(s->in.readable, EV_READ, 0);
}

void stream_in_start(struct stream *s)
{
    poll_input(s);
    if (s->in.early_len)
        event_active(s->in.readable, EV_READ, 0);
}

/* ---------------------------------------------------------------------------------------- the end */

void stream_in_finish(struct stream *s)
{
    s->in.state = STREAM_IN_FIN_SENT;
    (void)event_del(s->in.readable);
    stream_close_in(s);
    stream_send(s, &(struct frame){.type = FRAME_FIN, .seq = s->in.flow.sent}, NULL, 0);
    schedule_sweep(&s->shared->schedule);
}

void stream_in_discard(struct stream *s)
{
    if (s->in.state != STREAM_IN_READING)
        return;
    s->in.state = STREAM_IN_DISCARDING;
    if (s->in.fd < 0)
        return;
    if (s->in.fd == s->out.fd) {
        (void)event_add(s->in.readable, NULL);
        return;
    }
    (void)event_del(s->in.readable);
    stream_close_in(s);
}

/* Nobody takes what it gives. But a program that cannot write may not read, either. */
static void discard_input(struct stream *s)
{
    static uint8_t scrap[LINK_DATA_BYTES];
    ssize_t n = read(s->in.fd, scrap, sizeof(scrap));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        (void)event_add(s->in.readable, NULL);
        return;
    }
    (void)event_del(s->in.readable);
    if (n < 0) {
        int error = errno;

        stream_reset(s, error, strerror(error), false);
    }
}

/* ---------------------------------------------------------------------------------------- reading */

static ssize_t read_input(struct stream *s, uint8_t *buffer)
{
    uint32_t n = s->in.early_len;

    if (!n)
        return read(s->in.fd, buffer, LINK_DATA_BYTES);
    memcpy(buffer, s->in.early, n);
    s->in.early_len = 0;
    return (ssize_t)n;
}

static void send_data(struct stream *s, const uint8_t *buffer, uint32_t len)
{
    struct frame data = {.type = FRAME_DATA, .seq = flow_sent(&s->in.flow), .arg = len};

    s->in.bytes += len;
    data.credit = !flow_may_send(&s->in.flow);
    stream_send(s, &data, buffer, len);
}

/* A socket that takes no more is reset when it gives no more, either. */
static void end_of_input(struct stream *s)
{
    int error = s->drain.error;

    if (s->out.state == STREAM_OUT_DISCARDING)
        stream_reset(s, error, strerror(error), true);
    else
        stream_in_finish(s);
}

/* One message. True: there is probably more to be read; else it waits for it, or has ended. */
static bool read_message(struct stream *s)
{
    uint8_t *buffer;
    ssize_t n;
    int error;

    if (!flow_may_send(&s->in.flow)) {
        (void)event_del(s->in.readable);
        schedule_sweep(&s->shared->schedule);
        return false;
    }
    buffer = link_tx(s->shared->link, s->peer);
    if (!buffer) {
        wait_for_buffer(s);
        return false;
    }
    n = read_input(s, buffer);
    error = errno;
    if (n > 0) {
        send_data(s, buffer, (uint32_t)n);
        if (n == LINK_DATA_BYTES)
            return true;
        poll_input(s);
        return false;
    }
    link_tx_unused(s->shared->link, buffer);
    if (n == 0)
        end_of_input(s);
    else if (error == EAGAIN || error == EINTR)
        poll_input(s);
    else
        stream_reset(s, error, strerror(error), true);
    return false;
}

void stream_in_read(struct stream *s)
{
    if (s->state != STREAM_OPEN || s->in.fd < 0 || stream_in_has_ended(s))
        return;
    if (s->in.state == STREAM_IN_DISCARDING) {
        discard_input(s);
        return;
    }
    for (int i = 0; i < READS_MAX; i++) {
        if (!read_message(s))
            return;
    }
    poll_input(s);
}

/* -------------------------------------------------------------------------------------- frames in */

/* Reads again, if it waited for credit. */
static void go_on(struct stream *s, bool had_none)
{
    if (had_none && flow_may_send(&s->in.flow) && !schedule_is_waiting(&s->entry) && s->in.readable)
        read_in_turn(s);
}

void stream_in_on_credit(struct stream *s, const struct frame *frame)
{
    bool had_none = !flow_may_send(&s->in.flow);

    if (stream_was_reset(s) || !flow_credited(&s->in.flow, frame->seq, frame->credit))
        return;
    if (s->drain.query == STREAM_CREDIT_ASKED)
        s->drain.query = STREAM_CREDIT_ANSWERED;
    go_on(s, had_none);
}

/* It leaves some credit, perhaps more than has come: CREDIT of the last round does not count now. */
void stream_in_on_recall(struct stream *s, const struct frame *frame)
{
    struct flow_tx *flow = &s->in.flow;
    bool had_none = !flow_may_send(flow);

    if (s->state != STREAM_OPEN || stream_was_reset(s) ||
        !flow_recalled(flow, frame->seq, frame->credit))
        return;
    stream_send(s,
                &(struct frame){.type = FRAME_YIELD, .seq = flow->round, .credit = flow->allowed},
                NULL, 0);
    go_on(s, had_none);
}

void stream_in_on_done(struct stream *s)
{
    if (stream_was_reset(s))
        return;
    if (!stream_in_has_ended(s)) {
        stream_reset(s, EPROTO, "the other end acknowledged an end that was not", true);
        return;
    }
    s->in.state = STREAM_IN_DONE;
    stream_end_if_done(s);
}
