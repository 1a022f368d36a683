/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "transport/error.h"
#include "transport/progress.h"

int mrd_channel_event_fd(struct mrd_comp_channel *channel)
{
    return mrd_channel_of(channel)->event_fd;
}

/* ------------------------------------------------------------------------------------ the alarm */

void mrd_channels_set_alarm(struct mrd_context_impl *c, uint64_t deadline_ns)
{
    uint64_t now_ns = mrd_context_now(c), left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 1;
    struct itimerspec at = {0};

    c->channels.alarm_ns = deadline_ns;
    if (deadline_ns != UINT64_MAX) {
        at.it_value.tv_sec = (time_t)(left_ns / 1000000000u);
        at.it_value.tv_nsec = (long)(left_ns % 1000000000u);
    }
    timerfd_settime(c->channels.alarm_fd, 0, &at, NULL);
}

static int open_alarm(struct mrd_context_impl *c)
{
    if (c->channels.alarm_fd >= 0)
        return 0;
    c->channels.alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    c->channels.alarm_ns = UINT64_MAX;
    return c->channels.alarm_fd < 0 ? -errno : 0;
}

void mrd_channels_check(struct mrd_context_impl *c)
{
    struct mrd_channel_impl *news;
    uint64_t one = 1;

    while ((news = mrd_engine_take_news(c->engine))) {
        int fd = mrd_channel_of(&news->pub)->event_fd;
        /* Fails only at 2^64 events that nobody took. */
        ssize_t written = fd < 0 ? 0 : write(fd, &one, sizeof(one));

        (void)written;
    }
    if (c->channels.alarm_fd >= 0) {
        uint64_t deadline_ns = mrd_progress_deadline(c);

        if (deadline_ns < c->channels.alarm_ns)
            mrd_channels_set_alarm(c, deadline_ns);
    }
}

void mrd_channel_quiet(struct mrd_comp_channel *channel)
{
    struct mrd_channel *ch = mrd_channel_of(channel);
    uint64_t count;

    if (ch->event_fd >= 0 && mrd_list_empty(&ch->impl.cqs)) {
        ssize_t bytes = read(ch->event_fd, &count, sizeof(count));

        (void)bytes; /* fails if it was not readable */
    }
}

bool mrd_channel_has_events_only(const struct mrd_cq *cq)
{
    struct mrd_comp_channel *channel = mrd_engine_cq_channel(cq);

    return channel && mrd_channel_of(channel)->events_only;
}

void mrd_channels_fini(struct mrd_context_impl *c)
{
    if (c->channels.alarm_fd >= 0)
        close(c->channels.alarm_fd);
}

/* ---------------------------------------------------------------------------------- descriptors */

static int add_to_set(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* A packet or the alarm wakes all who sleep: whoever comes first does the work of all. */
static int add_work_to_set(struct mrd_context_impl *c, int set, int packets_fd)
{
    int error = open_alarm(c);

    if (!error)
        error = add_to_set(set, packets_fd);
    return error ? error : add_to_set(set, c->channels.alarm_fd);
}

void mrd_channel_close(struct mrd_channel *ch)
{
    if (ch->impl.pub.fd >= 0)
        close(ch->impl.pub.fd);
    if (ch->event_fd >= 0)
        close(ch->event_fd);
}

int mrd_channel_open(struct mrd_context_impl *c, struct mrd_channel *ch)
{
    int packets_fd, error = 0;

    if (!c->backend->threaded)
        return 0;
    packets_fd = ch->events_only ? -1 : c->ops->fd(c->backend);
    if (!c->thread.started && ch->events_only) {
        mrd_error_set("a channel of events only needs a progress thread: nobody else would handle "
                      "packets");
        return -EOPNOTSUPP;
    }
    if (!c->thread.started && packets_fd < 0) {
        mrd_error_set("%s has no descriptor to wait on: use a progress thread",
                      c->context.device->name);
        return -EOPNOTSUPP;
    }
    ch->impl.pub.fd = epoll_create1(EPOLL_CLOEXEC);
    ch->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (ch->impl.pub.fd < 0 || ch->event_fd < 0)
        error = -errno;
    if (!error)
        error = add_to_set(ch->impl.pub.fd, ch->event_fd);
    if (!error && packets_fd >= 0)
        error = add_work_to_set(c, ch->impl.pub.fd, packets_fd);
    if (error)
        mrd_error_set("no descriptor for a completion channel: %s", strerror(-error));
    return error;
}
