/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping: descriptors of queues and counters, and the sources that these hear of. */
#include "transport/adapters/ofi/wait.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    SOURCES_FIRST = 4, /* room of a list of sources, when it gets its first */
};

/* ----------------------------------------------------------------------------------------- time */

uint64_t mrd_ofi_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int mrd_ofi_time_left(int timeout_ms, uint64_t start_ns)
{
    uint64_t over_ms;

    if (timeout_ms < 0)
        return -1;
    over_ms = (mrd_ofi_now_ns() - start_ns) / 1000000u;
    return over_ms < (uint64_t)timeout_ms ? timeout_ms - (int)over_ms : 0;
}

/* ---------------------------------------------------------------------------------- descriptors */

int mrd_ofi_wait_add_fd(struct mrd_ofi_wait *w, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    if (w->obj == FI_WAIT_NONE || fd < 0)
        return 0;
    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void mrd_ofi_wait_del_fd(struct mrd_ofi_wait *w, int fd)
{
    if (w->obj != FI_WAIT_NONE && fd >= 0)
        (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int mrd_ofi_wait_init(struct mrd_ofi_wait *w, enum fi_wait_obj obj)
{
    int error;

    *w = (struct mrd_ofi_wait){.obj = obj, .epoll_fd = -1, .event_fd = -1};
    if (obj == FI_WAIT_NONE)
        return 0;
    if (obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD && obj != FI_WAIT_YIELD)
        return -FI_ENOSYS;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    error = w->epoll_fd < 0 || w->event_fd < 0 ? -errno : mrd_ofi_wait_add_fd(w, w->event_fd);
    if (error)
        mrd_ofi_wait_fini(w);
    return error;
}

void mrd_ofi_wait_fini(struct mrd_ofi_wait *w)
{
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    if (w->event_fd >= 0)
        close(w->event_fd);
    w->epoll_fd = w->event_fd = -1;
}

void mrd_ofi_wait_signal(struct mrd_ofi_wait *w)
{
    uint64_t one = 1;

    if (!w->armed)
        return;
    w->armed = false;
    w->signals++;
    w->to_wake = w->sleepers;
    if (w->event_fd >= 0) {
        /* Fails only at 2^64 signals that nobody looked at. */
        ssize_t written = write(w->event_fd, &one, sizeof(one));

        (void)written;
    }
}

void mrd_ofi_wait_arm(struct mrd_ofi_wait *w)
{
    uint64_t count;

    w->armed = true;
    /* Threads that a signal is to wake sleep on if it is taken before they run. */
    if (w->event_fd >= 0 && !w->to_wake) {
        ssize_t taken = read(w->event_fd, &count, sizeof(count));

        (void)taken; /* fails if there was none */
    }
}

int mrd_ofi_wait_sleep(struct mrd_ofi_wait *w, int timeout_ms)
{
    struct epoll_event event;

    if (epoll_wait(w->epoll_fd, &event, 1, timeout_ms) >= 0)
        return 0;
    return -errno;
}

int mrd_ofi_wait_block(struct mrd_ofi_wait *w, pthread_mutex_t *mutex, int timeout_ms)
{
    uint32_t signals = w->signals;
    bool others_first = w->to_wake; /* until they have the lock the descriptor stays readable */
    int result;

    w->sleepers++;
    if (mutex)
        pthread_mutex_unlock(mutex);
    if (others_first)
        sched_yield();
    result = mrd_ofi_wait_sleep(w, timeout_ms);
    if (mutex)
        pthread_mutex_lock(mutex);
    w->sleepers--;
    if (w->signals != signals)
        w->to_wake--;
    return result;
}

int mrd_ofi_wait_control(struct mrd_ofi_wait *w, int command, void *arg)
{
    /* An unspecified wait object is a descriptor, and may be used as one. */
    enum fi_wait_obj obj = w->obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : w->obj;

    switch (command) {
    case FI_GETWAIT:
        if (obj != FI_WAIT_FD)
            return -FI_ENODATA;
        *(int *)arg = w->epoll_fd;
        return 0;
    case FI_GETWAITOBJ:
        *(enum fi_wait_obj *)arg = obj;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

/* -------------------------------------------------------------------------------------- sources */

/* Where the source is in the list, or where it would be appended. */
static uint32_t find(const struct mrd_ofi_sources *s, const struct mrd_ofi_source *source)
{
    uint32_t i = 0;

    while (i < s->num && s->source[i] != source)
        i++;
    return i;
}

/* A source that is added twice is there twice, one after the other. */
static bool is_first(const struct mrd_ofi_sources *s, uint32_t i)
{
    return i == 0 || s->source[i - 1] != s->source[i];
}

static int make_room(struct mrd_ofi_sources *s)
{
    uint32_t room = s->room ? s->room * 2 : SOURCES_FIRST;
    struct mrd_ofi_source **grown;

    if (s->num < s->room)
        return 0;
    grown = realloc(s->source, room * sizeof(*grown));
    if (!grown)
        return -FI_ENOMEM;
    s->source = grown;
    s->room = room;
    return 0;
}

int mrd_ofi_sources_add(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                        struct mrd_ofi_source *source)
{
    uint32_t at = find(s, source);
    int error = make_room(s);

    if (!error && at == s->num)
        error = mrd_ofi_wait_add_fd(w, source->fd);
    if (error)
        return error;
    memmove(&s->source[at + 1], &s->source[at], (s->num - at) * sizeof(*s->source));
    s->source[at] = source;
    s->num++;
    return 0;
}

void mrd_ofi_sources_del(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                         struct mrd_ofi_source *source)
{
    uint32_t at = find(s, source);

    if (at == s->num)
        return;
    s->num--;
    memmove(&s->source[at], &s->source[at + 1], (s->num - at) * sizeof(*s->source));
    if (find(s, source) == s->num)
        mrd_ofi_wait_del_fd(w, source->fd);
    if (s->num)
        return;
    free(s->source);
    *s = (struct mrd_ofi_sources){0};
}

void mrd_ofi_sources_progress(const struct mrd_ofi_sources *s)
{
    for (uint32_t i = 0; i < s->num; i++)
        if (is_first(s, i))
            s->source[i]->progress(s->source[i]);
}

void mrd_ofi_sources_arm(const struct mrd_ofi_sources *s, struct mrd_ofi_wait *w)
{
    mrd_ofi_wait_arm(w);
    for (uint32_t i = 0; i < s->num; i++)
        if (is_first(s, i))
            s->source[i]->arm(s->source[i]);
}
